"""The curve of an exact state."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.kernels.area import Pairs
from streammetrics.results.figures import counts_of, views_of
from streammetrics.results.score_curve import ExactCurve, Points, ScoreCurve


def test_points_are_counted_once_and_only_when_asked_for() -> None:
    calls = []

    def points() -> Points:
        calls.append(1)
        return np.array([0.25, 0.5]), np.array([[1, 1], [0, 2]])

    curve = ExactCurve(Pairs(wins=2, ties=2, positives=2, negatives=2), 4, points)
    assert (curve.auc, curve.positives, curve.rows, repr(curve)[:21]) == (
        0.75,
        2,
        4,
        "ScoreCurve(auc=0.75, ",
    )
    assert not calls
    assert curve.scores.tolist() == [0.25, 0.5] and curve.counts.shape == (2, 2)
    assert len(calls) == 1


def test_it_equals_the_curve_of_its_points() -> None:
    points = np.array([0.25, 0.5]), np.array([[1, 1], [0, 2]])
    late = ExactCurve(Pairs(2, 2, 2, 2), 4, lambda: points)
    plain = ScoreCurve(*points, exact=True, rows=4)
    assert late == plain and plain == late
    assert views_of(late) == views_of(plain) and counts_of(late) == counts_of(plain)


def test_it_cannot_be_changed() -> None:
    curve = ExactCurve(Pairs(2, 2, 2, 2), 4, lambda: (np.empty(0), np.zeros((2, 0), np.int64)))
    with pytest.raises(AttributeError):
        curve.rows = 5  # type: ignore[misc]
