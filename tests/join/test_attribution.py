"""Attribution by hand, on few events."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from streammetrics.join.attribution import (
    by_id_and_time,
    first_at_least,
    pairs,
    spans,
    standing,
    sums,
)

IDS = np.array([1, 1, 1, 4, 7, 7], np.uint64)
TIMES = np.array([0, 3, 8, 5, 1, 2], np.int64)


def places(*values: int) -> NDArray[np.intp]:
    return np.array(values, np.intp)


def test_the_first_time_that_is_late_enough_is_found_in_each_span() -> None:
    low, high = spans(IDS, np.array([1, 1, 2, 7], np.uint64))
    assert (low.tolist(), high.tolist()) == ([0, 0, 3, 4], [3, 3, 3, 6])
    wanted = np.array([3, 9, 0, 2], np.int64)
    assert first_at_least(TIMES, low, high, wanted).tolist() == [1, 3, 3, 5]


def test_an_impression_stands_unless_one_that_stands_came_shortly_before() -> None:
    assert standing(IDS, TIMES, 4).tolist() == [True, False, True, True, True, False]
    assert standing(IDS, TIMES, 9).tolist() == [True, False, False, True, True, False]
    assert standing(IDS[:0], TIMES[:0], 9).tolist() == []


def test_an_outcome_belongs_to_the_last_impression_in_its_window_or_to_each() -> None:
    low, last, at = places(0, 0, 3, 4), places(1, 2, 2, 5), np.array([5, 20, 9, 3])
    owner, owned = pairs(TIMES, low, last, at, 6, every=False)
    assert (owner.tolist(), owned.tolist()) == ([1, 5], [0, 3])
    owner, owned = pairs(TIMES, low, last, at, 6, every=True)
    assert (owner.tolist(), owned.tolist()) == ([0, 1, 4, 5], [0, 0, 3, 3])
    nothing, _ = pairs(TIMES, low[:0], last[:0], at[:0], 6, every=True)
    assert len(nothing) == 0


def test_the_order_is_stable() -> None:
    ids = np.array([2, 1, 2, 1, 2], np.uint64)
    times = np.array([5, 0, 1, 0, 5], np.int64)
    assert by_id_and_time(ids, times).tolist() == [1, 3, 2, 0, 4]


def test_sums_are_rounded_once_in_any_order() -> None:
    values = [1e308, 1e308, -1e308, 0.1, -1e308]
    for order in list(permutations(values))[::7]:
        found = sums(np.array([*order, -0.0]), places(1, 1, 1, 1, 1, 2), 4)
        assert found.tolist() == [0.0, 0.1, 0.0, 0.0]
        assert math.copysign(1, found[2]) == 1
    assert sums(np.array([1e308, 1e308]), places(0, 0), 1).tolist() == [math.inf]
