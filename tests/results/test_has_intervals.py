"""The interval as a value: what it says of itself, and what it cannot."""

from __future__ import annotations

import dataclasses
import math

from streammetrics import (
    Bounded,
    Calibration,
    HistogramAUC,
    IntraListSimilarity,
    MulticlassAUC,
    RankingMetrics,
    Ratio,
    Regression,
    SlidingAUC,
    Units,
)
from streammetrics.core.interval import Interval
from streammetrics.estimators.request import widened
from streammetrics.kernels.inference.t_interval import critical
from streammetrics.present.views import range_of
from streammetrics.results.rates import Rates

AREA = Interval(
    0.75, 0.5, 1.0, se=0.125, level=0.9, df=7.0, method="delong", n=12, n_eff=6.0, deff=2.0,
    resolution=0.25, reason="",
)  # fmt: skip


def test_the_ends_belong_to_it() -> None:
    assert 0.5 in AREA and 1.0 in AREA and 0.49 not in AREA and 1.01 not in AREA
    assert math.nan not in AREA
    assert AREA.width == 0.5


def test_one_that_is_undefined_holds_everything_and_says_why() -> None:
    nothing = Interval.undefined("no positives", level=0.9, method="delong", n=3, estimate=0.5)
    assert (nothing.estimate, nothing.lower, nothing.upper) == (0.5, -math.inf, math.inf)
    assert (nothing.level, nothing.method, nothing.n) == (0.9, "delong", 3)
    unknown = nothing.se, nothing.df, nothing.n_eff, nothing.deff
    assert nothing.reason == "no positives" and all(map(math.isnan, unknown))
    assert not nothing.defined and 1e9 in nothing and math.inf == nothing.width


def test_gini_is_an_area_scaled() -> None:
    gini = AREA.scaled(2.0, -1.0)
    assert (gini.estimate, gini.lower, gini.upper) == (0.5, 0.0, 1.0)
    assert (gini.se, gini.resolution) == (0.25, 0.5)
    same = {"level", "df", "method", "n", "n_eff", "deff", "reason"}
    assert all(getattr(gini, name) == getattr(AREA, name) for name in same)


def test_scaling_by_a_negative_number_turns_the_ends() -> None:
    error = AREA.scaled(-1.0, 1.0)
    assert (error.estimate, error.lower, error.upper) == (0.25, 0.0, 0.5)
    assert (error.se, error.resolution) == (0.125, 0.25)


def test_without_a_formula_is_something_else_than_without_rows() -> None:
    y, p = [0, 1, 1, 0], [0.1, 0.9, 0.4, 0.6]
    for metric, columns, views in (
        (SlidingAUC(rows=3), {"labels": y, "scores": p}, "auc"),
        (
            MulticlassAUC(2),
            {"labels": y, "scores": [[1 - probability, probability] for probability in p]},
            "macro_auc map",
        ),
        (Regression(), {"labels": y, "scores": p}, "mse rmse r2"),
        (Units(), {"units": [1, 2]}, "units"),
        (Calibration(), {"labels": y, "scores": p}, "normalized_entropy ece mce"),
        (HistogramAUC(), {"labels": y, "scores": p}, "ap ks"),
    ):
        metric.update(**columns)
        for view in views.split():
            interval = metric.compute().interval(view)
            assert interval.reason and not (interval.formula or interval.defined), view
    nothing = Ratio().compute().interval()
    assert (nothing.formula, nothing.defined, nothing.reason) == (True, False, "no rows")


def test_it_prints_what_it_is() -> None:
    assert str(AREA) == "0.75, 90 % CI 0.5 to 1 (delong, n = 12)"
    assert repr(AREA) == f"Interval({AREA})"
    doubted = dataclasses.replace(AREA, reason="only 5 groups have rows")
    assert str(doubted).endswith("n = 12): only 5 groups have rows")


def test_certain_bounds_widen_it_where_they_are_more_than_a_quarter_of_the_error() -> None:
    interval = Interval(0.5, 0.25, 0.75, se=0.125)
    same = widened(interval, Bounded(0.5, 0.46875, 0.53125))
    assert (same.lower, same.upper, same.resolution, same.reason) == (0.25, 0.75, 0.03125, "")
    wide = widened(interval, Bounded(0.5, 0.5, 0.5625))
    assert (wide.lower, wide.upper, wide.resolution) == (0.25, 0.8125, 0.0625)
    assert "widened" in wide.reason


def test_an_interval_has_no_values_that_its_view_cannot_have() -> None:
    losses, lists = Calibration(), RankingMetrics(["NDCG@2", "DCG@2"])
    losses.update([1, 0, 1, 1], [0.9, 0.1, 0.9, 0.01])
    lists.update([[1, 0], [3, 0], [0, 1]], [[2, 1]] * 3)
    diverse = IntraListSimilarity([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    diverse.update([[0, 1], [0, 1], [1, 2]])
    rare = Rates(tp=1, fp=0, fn=3, tn=8)
    for result, view, method, lower, upper in (
        (losses.compute(), "log_loss", "t", 0.0, math.inf),
        (losses.compute(), "brier", "t", 0.0, 1.0),
        (lists.compute(), "NDCG@2", "t", 0.0, 1.0),
        (lists.compute(), "DCG@2", "t", 0.0, math.inf),
        (diverse.compute(), "ils", "t", -1.0, 1.0),
        (rare, "mcc", "delta", -1.0, 1.0),
        (rare, "recall", "delta", 0.0, 1.0),
    ):
        interval = result.interval(view, method=method, level=0.999)
        half = critical(0.999, interval.df) * interval.se
        free = interval.estimate - half, interval.estimate + half
        assert free[0] < lower or free[1] > upper, view
        ends = max(free[0], lower), min(free[1], upper)
        assert (interval.lower, interval.upper) == ends, view
        assert range_of(result, view) == (lower, upper), view


def test_what_is_exact_or_undefined_is_not_widened() -> None:
    interval = Interval(0.5, 0.25, 0.75, se=0.125)
    assert widened(interval, Bounded(0.5, 0.5, 0.5)) is interval
    nothing = Interval.undefined("no rows", level=0.95, method="t")
    assert widened(nothing, Bounded(math.nan, 0.0, 1.0)) is nothing
