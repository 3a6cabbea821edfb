"""Intervals of areas: DeLong's worked example, buckets that hide, groups."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from pytest import approx

from streammetrics import Bounded, ExactAUC, GroupedAUC, HistogramAUC, MulticlassAUC
from streammetrics.kernels.inference.area_interval import area_bounds, placements
from streammetrics.results.areas import GroupedArea
from streammetrics.results.score_curve import ScoreCurve

S = [0.1, 0.2, 0.2, 0.3, 0.4, 0.4, 0.4, 0.5, 0.6, 0.7, 0.7, 0.8, 0.9]
Y = [0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1]


def exact() -> ExactAUC:
    metric = ExactAUC()
    metric.update(Y, S)
    return metric


def test_an_area_has_delongs_worked_interval_guarded_as_rows_are_few() -> None:
    interval = exact().confidence_interval()
    assert interval.estimate == 31 / 42 and interval.n == 13 and interval.method == "delong"
    assert interval.se == approx(math.sqrt(0.022297808012094), abs=2e-15)
    assert interval.df == approx(8.681519661, abs=5e-10)
    assert (interval.lower, interval.upper) == (
        approx(0.327139390, abs=5e-10),
        approx(0.942314634, abs=5e-10),
    )
    assert "Hanley" in interval.reason and interval.resolution == 0.0


def test_coarse_buckets_widen_and_fine_ones_do_not() -> None:
    random = np.random.default_rng(3)
    y = random.integers(0, 2, 4000)
    s = np.clip(random.normal(0.4 + 0.2 * y, 0.2), 0, 1)
    fine, coarse = (
        HistogramAUC(grid="equal", resolution=10),
        HistogramAUC(grid="equal", resolution=2),
    )
    for metric in (fine, coarse):
        metric.update(y, s)
    interval = fine.compute().interval()
    assert 0 < interval.resolution < 0.25 * interval.se and interval.reason == ""
    interval, value = coarse.compute().interval(), coarse.compute().auc
    assert not isinstance(value, float)
    assert interval.resolution == approx(value.high - value.value, rel=1e-12)
    assert "buckets" in interval.reason
    assert interval.lower < value.low - interval.se and interval.upper > value.high + interval.se


def test_one_class_alone_has_no_area() -> None:
    for labels, why in (([], "no rows"), ([0, 0], "no positives"), ([1, 1], "no negatives")):
        metric = ExactAUC()
        metric.update(labels, [0.5] * len(labels))
        interval = metric.compute().interval()
        assert not interval.defined and (interval.reason, interval.n) == (why, len(labels))


def test_what_has_no_formula_says_what_has_one() -> None:
    for view in ("ap", "ks", "pr_auc_trapezoid"):
        interval = exact().compute().interval(view)
        assert not interval.defined and "UserGroups" in interval.reason and interval.n == 13, view


def test_the_rates_at_a_threshold_are_widened_by_the_bucket_that_it_cuts() -> None:
    curve = ScoreCurve(np.array([0.0, 0.5]), np.array([[30, 10], [10, 30]]), False, 80)
    at_edge, inside = (
        curve.interval("confusion(0.5).recall"),
        curve.interval("confusion(0.6).recall"),
    )
    assert at_edge.resolution == 0.0 and at_edge == curve.confusion(0.5).interval("recall")
    assert inside.estimate == 0.0 and inside.resolution == approx(0.75, rel=1e-12)
    assert inside.upper == approx(0.75 + 0.0876216, abs=1e-6) and inside.lower == 0.0


def test_a_class_has_the_interval_of_its_own_curve() -> None:
    metric = MulticlassAUC(3)
    random = np.random.default_rng(0)
    metric.update(random.integers(0, 3, 100), random.random((100, 3)))
    result = metric.compute()
    assert result.interval("curves[1].auc") == result.curves[1].interval("auc")
    assert "UserGroups" in result.interval("macro_auc").reason


@pytest.mark.parametrize("weight", ["impressions", "positives", "uniform"])
def test_gauc_takes_groups_as_independent(weight: str) -> None:
    random = np.random.default_rng(8)
    groups, y, s = random.integers(0, 30, 600), random.integers(0, 2, 600), random.random(600)
    metric = GroupedAUC(weight=weight, score_type="float64")
    metric.update(y, s, groups=groups)
    w, a = [], []
    for group in range(30):
        p, n = s[(groups == group) & (y == 1)], s[(groups == group) & (y == 0)]
        if len(p) and len(n):
            a.append(np.mean(p[:, None] > n[None, :]))
            w.append({"impressions": len(p) + len(n), "positives": len(p), "uniform": 1}[weight])
    z = np.array(w) * (np.array(a) - np.average(a, weights=w)) / sum(w)
    interval = metric.confidence_interval()
    assert interval.se == approx(math.sqrt(len(z) / (len(z) - 1) * (z**2).sum()), rel=1e-12)
    assert (interval.n, interval.df, interval.method, interval.reason) == (
        len(z),
        len(z) - 1,
        "t",
        "",
    )


def test_gauc_of_one_group_is_undefined_and_of_weighted_rows_is_not() -> None:
    metric = GroupedAUC(weight_unit=Fraction(1, 2))
    metric.update([0, 1], [0.1, 0.2], groups=[1, 1], weights=[1.5, 2])
    assert metric.compute().interval().reason == "1 group: at least 2 needed"
    metric.update([0, 1, 1], [0.1, 0.2, 0.05], groups=[2, 2, 2], weights=[1.5, 2, 1])
    assert metric.compute().interval().defined


def test_each_class_counts_as_many_rows_as_it_has() -> None:
    metric = ExactAUC()
    metric.update([1] + [0] * 40, [0.65, *np.linspace(0, 1, 40)])  # no variance: the guard alone
    interval, placed = metric.compute().interval(), placements(*metric.compute().counts)
    bounds = area_bounds(placed.estimate._replace(resolution=0.0), 0.95)
    assert (interval.lower, interval.upper) == (bounds.lower, bounds.upper) and bounds.guarded


# What the areas of groups say together.


def area(groups: int | None, ids: str) -> GroupedArea:
    return GroupedArea(
        0.75,
        groups=groups,
        groups_kept=3,
        groups_one_class=2,
        rows=9,
        rows_kept=7,
        rows_one_class=2,
        positives=4,
        compared_as="float32",
        ids=ids,
    )


def model(good: int, bad: int, **settings: str) -> GroupedArea:
    """One user, whose positive stands above `good` negatives and below `bad`."""
    metric = GroupedAUC(**settings)  # type: ignore[arg-type]
    scores = [0.5, *[0.25] * good, *[0.75] * bad]
    metric.update([1, *[0] * (good + bad)], scores, groups=[7] * len(scores))
    return metric.compute()


def test_only_hashed_ids_collide() -> None:
    assert area(2**33, "hashed").collision_probability() == 1.0
    assert area(2, "hashed").collision_probability() == 2.0**-64
    assert area(1, "hashed").collision_probability() == 0.0
    assert area(2**33, "exact").collision_probability() == 0.0
    assert area(None, "hashed").collision_probability() == 0.0


def test_relative_improvement_has_no_rounding_between() -> None:
    assert model(5, 1).gauc == 5 / 6 and model(2, 1).gauc == 2 / 3
    assert model(5, 1).rela_impr(model(2, 1)) == 1.0
    assert (5 / 6 - 0.5) / (2 / 3 - 0.5) - 1 != 1.0  # as floats would have it
    assert model(1, 2).rela_impr(model(2, 1)) == -2.0


def test_over_chance_or_over_nothing_there_is_no_improvement() -> None:
    for base in (model(1, 1), model(0, 0)):
        improvement = model(2, 1).rela_impr(base)
        assert isinstance(improvement, float) and math.isnan(improvement)
    assert math.isnan(float(model(0, 0).rela_impr(model(2, 1))))


@pytest.mark.parametrize("grids", [("relative", None), (None, "relative"), ("equal", "equal")])
def test_the_improvement_is_bounded_where_an_area_is(grids: tuple[str | None, ...]) -> None:
    a, b = (
        model(good, 1, **({"grid": grid} if grid else {}))
        for good, grid in zip((5, 2), grids, strict=True)
    )
    assert a.rela_impr(b) == Bounded(1.0, 1.0, 1.0)
