"""ROC and precision-recall curves: few points, and bands that hold the exact curve."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from streammetrics import ExactAUC, ExactUplift, HistogramAUC, Uplift
from streammetrics.present.curves import (
    Drawn,
    kept,
    pr,
    pr_points,
    roc,
    roc_points,
    uplift,
    uplift_points,
)
from streammetrics.present.figures import curve_of, effects_by_score
from streammetrics.present.spec import CURVE
from tests.present.specs import check, fed, pair


def outside(drawn: Drawn, x: Any, y: Any) -> list[tuple[float, float]]:
    """The points (x, y) that no box of the band, and no point that is drawn, holds."""
    assert drawn.band is not None
    low, high = drawn.band
    points = []
    for x_value, y_value in zip(x.tolist(), y.tolist(), strict=True):
        over = (drawn.x[:-1] <= x_value) & (x_value <= drawn.x[1:])
        if not np.any(over & (low[:-1] <= y_value) & (y_value <= high[:-1])):
            points.append((x_value, y_value))
    return points


@pytest.mark.parametrize(("seed", "rows"), [(0, 30), (1, 2000)])
def test_the_band_of_buckets_holds_every_point_of_the_exact_curves(seed: int, rows: int) -> None:
    coarse, exact = pair(rows, seed)
    whole, precise = exact.roc(), exact.pr()
    for most in (10, CURVE):
        assert not outside(roc_points(curve_of(coarse), most), whole.fpr, whole.tpr)
        if rows == 2000:
            drawn = pr_points(curve_of(coarse), most)
            assert not outside(drawn, precise.recall, precise.precision)


def test_a_long_exact_curve_has_a_band_that_holds_the_points_between_and_a_short_one_none() -> None:
    exact, short = fed(ExactAUC(), 2000), fed(ExactAUC(), 100)
    whole, precise = exact.roc(), exact.pr()
    for most in (5, 20, CURVE):
        drawn, thin = roc_points(curve_of(exact), most), pr_points(curve_of(exact), most)
        assert len(drawn.x) <= most and len(thin.x) <= most
        assert not outside(drawn, whole.fpr, whole.tpr)
        assert not outside(thin, precise.recall, precise.precision)
    assert drawn.band is not None and np.max(drawn.band[1] - drawn.band[0]) < 0.01
    drawn = roc_points(curve_of(short), CURVE)
    assert drawn.band is None
    assert drawn.x.tolist() == short.roc().fpr.tolist()
    assert drawn.y.tolist() == short.roc().tpr.tolist()


def test_the_band_of_uplift_holds_every_point_of_the_exact_curve_also_of_one_thinned() -> None:
    treated = [0, 1] * 1000
    coarse = fed(Uplift(resolution=0), 2000, treated=treated)
    exact = fed(ExactUplift(), 2000, treated=treated)
    whole, few = exact.curve(), fed(ExactUplift(), 100, treated=[0, 1] * 50)
    for most in (5, 20, CURVE):
        for result in (coarse, exact):
            drawn = uplift_points(effects_by_score(result), most)
            assert len(drawn.x) <= most and not outside(drawn, whole.share, whole.uplift)
    assert drawn.band is not None and np.max(drawn.band[1] - drawn.band[0]) < 0.05
    drawn = uplift_points(effects_by_score(few), CURVE)
    assert drawn.band is None and drawn.y.tolist() == few.curve().uplift.tolist()


def test_uplift_ends_at_the_effect_as_its_chord_does_and_needs_both_arms() -> None:
    result = fed(ExactUplift(), 100, treated=[0, 1] * 50)
    spec = check(uplift({"": effects_by_score(result)}))
    assert spec["data"]["values"][-1]["y"] == result.ate
    assert spec["layer"][0]["encoding"]["y2"] == {"datum": result.ate}
    spec = check(uplift({"bts": effects_by_score(fed(ExactUplift(), 100, treated=[1] * 100))}))
    assert spec["usermeta"]["reason"] == "bts: an arm has no rows"


def test_one_class_has_no_curve_and_says_why() -> None:
    metric = ExactAUC()
    metric.update([0, 0], [0.1, 0.2])
    for draw in (roc, pr):
        spec = check(draw({"bts": curve_of(metric.compute())}))
        assert spec["data"]["values"] == []
        assert spec["usermeta"]["reason"].startswith("bts: ")


def test_a_series_without_a_curve_leaves_the_others() -> None:
    empty, full = ExactAUC().compute(), fed(ExactAUC(), 100)
    spec = check(roc({"none": curve_of(empty), "bts": curve_of(full)}))
    assert {row["series"] for row in spec["data"]["values"]} == {"bts"}
    assert spec["usermeta"]["reason"] == ""


def test_small_precision_cuts_the_axis_and_says_so() -> None:
    rng = np.random.default_rng(1)
    metric = HistogramAUC()
    metric.update((rng.random(5000) < 0.01).astype(int), rng.random(5000))
    spec = check(pr({"": curve_of(metric.compute())}))
    axis = spec["layer"][-1]["encoding"]["y"]
    assert axis["title"] == "precision (the axis is cut)"
    assert axis["scale"]["domain"][1] < 0.5


def test_at_most_so_many_points_are_kept_with_both_ends() -> None:
    for count, most in product([0, 1, 2, 3, 49, 501, 3000], [4, 5, 50, 500]):
        indices = kept(np.sort(np.random.default_rng(count).random(count)), most)
        assert len(indices) <= most and list(indices) == sorted(set(indices.tolist()))
        assert not count or (indices[0], indices[-1]) == (0, count - 1)


def test_what_is_left_out_between_two_places_is_short() -> None:
    position = np.cumsum(np.random.default_rng(1).random(10_000))
    indices = kept(position, 100)
    gaps = np.diff(indices) > 1
    lengths = np.diff(position[indices])[gaps]
    assert lengths.max() < position[-1] * 2.1 / 98
