"""Curves from counts, whether all points are there or are counted when asked for."""

from __future__ import annotations

import math

import numpy as np

from streammetrics.core.bounded import Bounded
from streammetrics.kernels.curves.area import Pairs
from streammetrics.present.views import counts_of, views_of
from streammetrics.results.score_curve import ExactCurve, Points, ScoreCurve


def curve(negatives: list[int], positives: list[int], *, exact: bool) -> ScoreCurve:
    counts = np.array([negatives, positives], np.int64)
    return ScoreCurve(np.arange(counts.shape[1]) / 4, counts, exact, int(counts.sum()))


def test_a_curve_of_buckets_has_areas_with_bounds() -> None:
    found = curve([1, 1, 0], [0, 1, 1], exact=False)
    assert found.auc == Bounded(0.875, low=0.75, high=1.0)
    assert found.gini == Bounded(0.75, low=0.5, high=1.0)


def test_a_curve_that_gave_up_says_why_and_keeps_its_count() -> None:
    none = np.zeros((2, 0), np.int64)
    found = ScoreCurve(np.empty(0), none, exact=True, rows=11, reason="past max_rows=10")
    assert isinstance(found.auc, float) and math.isnan(found.auc)
    assert (found.rows, found.positives) == (11, None)
    assert "past max_rows=10" in repr(found)


def test_curves_are_equal_by_what_they_hold() -> None:
    assert curve([1, 2], [0, 1], exact=True) == curve([1, 2], [0, 1], exact=True)
    assert curve([1, 2], [0, 1], exact=True) != curve([1, 2], [1, 1], exact=True)
    assert curve([1, 2], [0, 1], exact=True) != curve([1, 2], [0, 1], exact=False)


def test_its_text_is_one_line_whatever_it_holds() -> None:
    text = repr(curve([1] * 5000, [2] * 5000, exact=True))
    assert text == "ScoreCurve(auc=0.5, rows=15000, positives=10000)"


def test_relative_improvement_of_areas_has_no_rounding_between() -> None:
    a = curve([1, 0, 1, 0, 0], [0, 1, 0, 1, 1], exact=True)
    b = curve([1, 0, 0, 1, 0], [0, 1, 1, 0, 1], exact=True)
    assert (a.auc, b.auc, a.rela_impr(b)) == (5 / 6, 2 / 3, 1.0)
    nothing, half = curve([1], [0], exact=True), curve([1], [1], exact=True)
    for base in (nothing, half):
        assert math.isnan(float(a.rela_impr(base)))


def test_relative_improvement_of_buckets_is_bounded() -> None:
    a = curve([1, 1, 0], [0, 1, 1], exact=False)  # 0.75 to 1
    b = curve([3, 1, 0], [0, 1, 1], exact=False)  # 7/8 to 1
    found = a.rela_impr(b)
    assert found == Bounded(-1 / 7, -0.5, math.nextafter(1 / 3, 1))


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
