"""`nbytes` is what a state holds, within 5 %: after it was fed, read and copied, and from bytes."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from benchmarks.bench_memory import cases, moments

pytestmark = pytest.mark.slow

ROWS = 40_000
CASES = cases(ROWS)


@pytest.fixture(scope="module", autouse=True)
def nothing_else_is_collected() -> Iterator[None]:
    """What earlier tests left is many times the states here, and is looked through at each moment
    unless it is put aside."""
    gc.collect()
    gc.freeze()
    yield


@pytest.mark.parametrize("name", CASES)
def test_nbytes_is_what_is_held(name: str) -> None:
    empty, feed = CASES[name]
    wrong = [held for held in moments(name, empty, ROWS, feed) if not held.right]
    assert wrong == []
