"""States that decode can exist: altered bytes, with a checksum that is right,
are refused, or give a result that can be shown whole.

Numbers in a state depend on each other: rows and sums, sums and sums of squares, pairs and areas. A
state whose numbers contradict each other must not reach a result, where it would be an error that
names neither the file nor the cause.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from streammetrics import StateError, load
from streammetrics.results import counts_of, figure_of, kinds_of, texts_of, views_of
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import most_are_slow, tries
from tests.laws.test_hostile_bytes import framed, opened, small_state

TRIES = tries(40, 1_500)
_LARGE = (b"\x04\xff\xff\xff\x7f", b"\x08" + (2**62).to_bytes(8, "little"), b"\xff\xff\xff\x07")


def altered(body: bytes, other: bytes, random: Random) -> bytes:
    """A body with a few bytes changed, or a part of another state of the same metric in it."""
    data = bytearray(body)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(data) + 1)
        match random.randrange(6):
            case 0 | 1 if at < len(data):
                data[at] = random.choice((0, 1, 2, 127, 128, 255, random.randrange(256)))
            case 2 if at < len(data):
                data[at] = (data[at] + random.choice((-1, 1))) % 256
            case 3:
                data[at : at + random.randrange(9)] = random.choice(_LARGE)
            case 4:
                there = random.randrange(len(other) + 1)
                some = other[there : there + random.randrange(20)]
                data[at : at + len(some)] = some
            case _:
                end = min(len(data), at + random.randrange(1, 9))
                data[at:end] = data[at:end][::-1]
    return bytes(data)


def show(result: object) -> None:
    """All that a page, a report, a notebook or the command line ask of a result."""
    repr(result)
    for one in parts(result):
        views, _, _ = views_of(one), counts_of(one), texts_of(one)
        interval = getattr(one, "interval", None)
        for view in views if callable(interval) else ():
            interval(view)
        for kind in kinds_of(one):
            figure_of(one, kind)
    html = getattr(result, "_repr_html_", None)
    if callable(html):
        html()


def parts(result: object) -> Iterator[object]:
    """A result and those within it, the first of them."""
    yield result
    if isinstance(result, Mapping):
        for one, _ in zip(result.values(), range(8), strict=False):
            yield from parts(one)
    total = getattr(result, "total", None)
    if total is not None and not isinstance(total, float | int):
        yield from parts(total)


@pytest.mark.parametrize("case", list(most_are_slow(CASES)))
def test_altered_bytes_are_refused_or_give_a_result_that_can_be_shown(case: Case[Any]) -> None:
    random = Random(str(case))
    states = [small_state(case, rows) for rows in (1, 7, 25)]
    bodies = [opened(state) for state in states]
    for _ in range(TRIES):
        head, body = random.choice(bodies)
        data = framed(head, altered(body, random.choice(bodies)[1], random))
        try:
            state = load(data)
        except StateError:
            continue
        assert state.to_bytes() == data
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            show(state.compute())
