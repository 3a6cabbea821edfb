"""ROC and precision-recall curves: few points, and bands that hold the exact curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streammetrics import ExactAUC, HistogramAUC
from streammetrics.present.curves import Drawn, kept, pr, pr_points, roc, roc_points
from streammetrics.present.figures import curve_of
from streammetrics.present.spec import CURVE
from tests.depth import further_are_slow
from tests.present.specs import check, fed, pair


def outside(drawn: Drawn, x: Any, y: Any) -> list[tuple[float, float]]:
    """The points (x, y) that no box of the band, and no point that is drawn, holds."""
    assert drawn.band is not None
    low, high = drawn.band
    found = []
    for one, other in zip(x.tolist(), y.tolist(), strict=True):
        over = (drawn.x[:-1] <= one) & (one <= drawn.x[1:])
        if not np.any(over & (low[:-1] <= other) & (other <= high[:-1])):
            found.append((one, other))
    return found


@pytest.mark.parametrize("rows", [30, 5000])
@pytest.mark.parametrize("seed", range(5))
def test_the_band_of_buckets_holds_every_point_of_the_exact_roc_curve(rows: int, seed: int) -> None:
    coarse, exact = pair(rows, seed)
    points = exact.roc()
    for most in (10, CURVE):
        drawn = roc_points(curve_of(coarse), most)
        assert not outside(drawn, points.fpr, points.tpr)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [10, CURVE])
def test_the_band_of_buckets_holds_every_point_of_the_exact_precision(seed: int, most: int) -> None:
    coarse, exact = pair(5000, seed)
    points = exact.pr()
    assert not outside(pr_points(curve_of(coarse), most), points.recall, points.precision)


@pytest.mark.slow
@pytest.mark.parametrize("most", list(further_are_slow(20, 5, CURVE)))
def test_a_thinned_exact_curve_has_a_band_that_holds_what_was_left_out(most: int) -> None:
    exact = fed(ExactAUC(), 20_000)
    whole, precise = exact.roc(), exact.pr()
    drawn = roc_points(curve_of(exact), most)
    assert len(drawn.x) <= most
    assert not outside(drawn, whole.fpr, whole.tpr)
    thin = pr_points(curve_of(exact), most)
    assert len(thin.x) <= most
    assert not outside(thin, precise.recall, precise.precision)


def test_the_band_of_500_points_is_narrow() -> None:
    drawn = roc_points(curve_of(fed(ExactAUC(), 20_000)), CURVE)
    assert drawn.band is not None
    assert np.max(drawn.band[1] - drawn.band[0]) < 0.01


def test_a_short_exact_curve_is_drawn_whole_and_has_no_band() -> None:
    exact = fed(ExactAUC(), 100)
    drawn = roc_points(curve_of(exact), CURVE)
    assert drawn.band is None
    assert drawn.x.tolist() == exact.roc().fpr.tolist()
    assert drawn.y.tolist() == exact.roc().tpr.tolist()


@pytest.mark.parametrize("draw", [roc, pr])
def test_one_class_has_no_curve_and_says_why(draw: Any) -> None:
    metric = ExactAUC()
    metric.update([0, 0], [0.1, 0.2])
    spec = check(draw({"bts": curve_of(metric.compute())}))
    assert spec["data"]["values"] == []
    assert spec["usermeta"]["reason"].startswith("bts: there are no ")


def test_a_series_without_a_curve_leaves_the_others() -> None:
    empty, full = ExactAUC().compute(), fed(ExactAUC(), 100)
    spec = check(roc({"none": curve_of(empty), "bts": curve_of(full)}))
    assert {row["series"] for row in spec["data"]["values"]} == {"bts"}
    assert spec["usermeta"]["reason"] == ""


def test_small_precision_cuts_the_axis_and_says_so() -> None:
    rng = np.random.default_rng(1)
    metric = HistogramAUC()
    metric.update((rng.random(20_000) < 0.01).astype(int), rng.random(20_000))
    spec = check(pr({"": curve_of(metric.compute())}))
    axis = spec["layer"][-1]["encoding"]["y"]
    assert axis["title"] == "precision (the axis is cut)"
    assert axis["scale"]["domain"][1] < 0.5


@pytest.mark.parametrize("most", [4, 5, 50, 500])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 49, 501, 3000])
def test_at_most_so_many_places_are_kept_with_both_ends(count: int, most: int) -> None:
    position = np.sort(np.random.default_rng(count).random(count))
    found = kept(position, most)
    assert len(found) <= most
    assert list(found) == sorted(set(found.tolist()))
    if count:
        assert (found[0], found[-1]) == (0, count - 1)


def test_what_is_left_out_between_two_places_is_short() -> None:
    position = np.cumsum(np.random.default_rng(1).random(10_000))
    found = kept(position, 100)
    gaps = np.diff(found) > 1
    lengths = np.diff(position[found])[gaps]
    assert lengths.max() < position[-1] * 2.1 / 98
