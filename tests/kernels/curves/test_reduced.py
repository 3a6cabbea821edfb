"""Counts by score without a group, of which only coarser counts are known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.curves import reduced as module
from streammetrics.kernels.curves.reduced import reduced, thinned

SCORES = np.array([-1.0, 0.0, 0.25, 0.5, 2.0])
COUNTS = np.array([[3, 1, 4, 0, 5], [0, 2, 6, 5, 3]])
COARSE = np.array([-2.0, 0.25])  # the least scores of two buckets
WHOLE = np.array([[4, 9], [2, 14]])


@pytest.mark.parametrize("unit", [1, 10**15])
def test_each_class_loses_the_same_share_in_all_scores_of_a_coarse_bucket(unit: int) -> None:
    rest = np.array([[1, 9], [2, 10]])
    result = reduced(SCORES, COUNTS * unit, COARSE, WHOLE, rest)
    shares = [[Fraction(1, 4)] * 2 + [1] * 3, [1] * 2 + [Fraction(5, 7)] * 3]
    exact = [
        [n * share for n, share in zip(*row, strict=True)]
        for row in zip(COUNTS, shares, strict=True)
    ]
    total = int(result.sum())
    for counts, row in zip(result.tolist(), exact, strict=True):
        for n, x in zip(counts, row, strict=True):
            assert abs(n * sum(map(sum, exact)) - x * total) * 10**9 <= x * total


def test_a_group_that_has_no_row_changes_nothing_but_the_unit() -> None:
    result = reduced(SCORES, COUNTS, COARSE, WHOLE, WHOLE)
    assert (result * COUNTS[1, 2] == COUNTS * result[1, 2]).all()


def test_scores_below_all_buckets_and_classes_that_a_bucket_lacks_are_kept() -> None:
    whole, none = np.array([[4], [0]]), np.array([[0], [0]])
    result = reduced(SCORES, COUNTS, np.array([0.25]), whole, none)
    assert not result[0].any() and (result[1] > 0).tolist() == (COUNTS[1] > 0).tolist()
    empty = np.empty((2, 0), np.int64)
    assert reduced(SCORES[:0], empty, COARSE[:0], empty, empty).shape == (2, 0)


def test_many_scores_are_counted_together_with_their_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    scores, counts = thinned(SCORES, COUNTS)
    assert scores.tolist() == [-1.0, 0.25, 2.0]
    assert counts.tolist() == [[4, 4, 5], [2, 11, 3]]
    scores, counts = thinned(SCORES[:0], COUNTS[:, :0])
    assert (scores.shape, counts.shape) == ((0,), (2, 0))
