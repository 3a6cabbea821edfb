"""`nbytes` is what a state holds, within 5 %: after it was fed, read and copied, and from bytes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor

import pytest

from benchmarks.bench_memory import Held, cases, moments

ROWS = 40_000
CASES = cases(ROWS)


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    """A process of its own: in this one, threads of earlier tests may allocate meanwhile."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        yield process


def wrong_moments(name: str) -> list[Held]:
    """The moments at which a state holds more or fewer bytes than it says."""
    empty, feed = CASES[name]
    return [moment for moment in moments(name, empty, ROWS, feed) if not moment.right]


@pytest.mark.parametrize("name", CASES)
def test_nbytes_is_what_is_held(name: str, executor: Executor) -> None:
    assert executor.submit(wrong_moments, name).result() == []
