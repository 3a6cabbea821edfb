"""Intervals from a variance over users, in the form that the view's own has."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import Calibration, ExactAUC, HistogramAUC, InputError
from streammetrics.combine.user_groups_result import clustered
from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import Interval
from streammetrics.kernels.inference.area_interval import area_bounds
from streammetrics.kernels.inference.proportions import wilson_bounds
from streammetrics.kernels.inference.t_interval import critical, logit_bounds
from streammetrics.kernels.inference.variances import GroupVariance
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve
from streammetrics.results.sums import Quotient

# Users (views, clicks) of a published example: 17 clicks of 70 views.
CLICKS = Quotient(17.0, 70.0, (Fraction(17), Fraction(70)), rows=70, is_share=True)
RATES = Rates(tp=40, fp=10, fn=30, tn=920)
SE_OF_USERS = 0.052712918267


def found(
    result: object, view: str, variance: float, method: str = "auto", groups: int = 8
) -> Interval:
    """The interval at 95 % of 1,000 rows or as many as are known."""
    return clustered(result, view, GroupVariance(variance, groups), (), 1000, 0.95, method)


def scores(n: int = 200) -> ExactAUC:
    random = np.random.default_rng(3)
    labels = random.integers(0, 2, n)
    metric = ExactAUC()
    metric.update(labels, random.normal(labels, 1.0))
    return metric


def classes_of(result: ScoreCurve) -> tuple[int, int]:
    """Positives and negatives."""
    assert result.positives is not None
    return result.positives, result.rows - result.positives


def test_a_share_has_wilsons_ends_of_as_many_independent_rows_with_students_t() -> None:
    interval = found(CLICKS, "ratio", SE_OF_USERS**2)
    assert (round(interval.lower, 9), round(interval.upper, 9)) == (0.141534336, 0.384248784)
    assert (interval.method, interval.df, interval.n) == ("jackknife, wilson", 7.0, 70)
    assert interval.se == pytest.approx(SE_OF_USERS, rel=1e-15)
    p = 17 / 70
    assert interval.n_eff == pytest.approx(p * (1 - p) / SE_OF_USERS**2, rel=1e-14)
    assert interval.reason == ""


def test_every_view_has_the_estimate_and_t_times_its_error() -> None:
    interval = found(CLICKS, "ratio", SE_OF_USERS**2, "jackknife")
    assert (round(interval.lower, 11), round(interval.upper, 11)) == (0.11821089795, 0.36750338776)
    assert interval.method == "jackknife"


def test_deff_is_the_variance_over_users_by_that_over_rows() -> None:
    plain = RATES.interval("recall")
    interval = found(RATES, "recall", 3 * plain.se**2)
    assert interval.deff == pytest.approx(3, rel=1e-14)
    assert interval.n_eff == pytest.approx(plain.n / 3, rel=0.05)
    q = critical(0.95, 7.0)
    assert (interval.lower, interval.upper) == wilson_bounds(40, 70, q, n_eff=interval.n_eff)


@pytest.mark.parametrize("view", ["f1", "f_beta(2)", "jaccard"])
def test_what_is_mapped_or_on_the_logit_is_on_the_logit(view: str) -> None:
    interval = found(RATES, view, 0.0025, groups=64)
    value = RATES.interval(view).estimate
    form = "wilson" if view == "jaccard" else "logit"
    assert interval.method == f"jackknife, {form}"
    if form == "logit":
        assert (interval.lower, interval.upper) == logit_bounds(value, 0.05, critical(0.95, 63.0))
    assert 0 < interval.lower < value < interval.upper < 1


def test_an_area_has_the_groups_variance_and_classes_smaller_by_the_design_effect() -> None:
    result = scores().compute()
    plain = result.interval("auc")
    interval = found(result, "auc", 4 * plain.se**2, groups=64)
    positives, negatives = classes_of(result)
    sizes = positives / interval.deff, negatives / interval.deff
    ends = area_bounds(plain.estimate, interval.se**2, 63.0, sizes, 0.95)
    assert interval.deff == pytest.approx(4, rel=1e-12)
    assert (interval.lower, interval.upper) == (ends.lower, ends.upper)
    assert (interval.method, interval.n, interval.n_eff) == (
        "jackknife, logit",
        200,
        200 / interval.deff,
    )


def test_gini_is_twice_the_area_less_1() -> None:
    result = scores().compute()
    area, gini = found(result, "auc", 0.0025), found(result, "gini", 4 * 0.0025)
    assert gini == area.scaled(2, -1)
    assert gini.se == 2 * area.se == 0.1


def test_a_design_effect_below_1_makes_no_class_larger() -> None:
    result = scores(40).compute()
    plain = result.interval("auc")
    interval = found(result, "auc", plain.se**2 / 9, groups=64)
    ends = area_bounds(plain.estimate, interval.se**2, 63.0, classes_of(result), 0.95)
    assert ends.guarded
    assert (interval.lower, interval.upper) == (ends.lower, ends.upper)


def test_what_buckets_leave_open_widens_it_and_an_area_stays_within_0_and_1() -> None:
    metric = HistogramAUC(grid="equal", resolution=1)
    metric.update([0, 1] * 50, [0.1, 0.9] * 40 + [0.6, 0.7] * 10)
    result = metric.compute()
    narrow, wide = (found(result, "auc", v, groups=64) for v in (1e-8, 0.25))
    assert isinstance(result.auc, Bounded)
    hidden = max(result.auc.high - result.auc.value, result.auc.value - result.auc.low)
    assert narrow.resolution == wide.resolution == hidden > 0
    assert "widened" in narrow.reason and "widened" not in wide.reason
    assert narrow.upper <= 1.0
    moved = found(result, "auc", 1e-8, "jackknife", groups=64)
    assert moved.upper > result.auc.high
    assert moved.reason == narrow.reason


@pytest.mark.parametrize(
    ("view", "variance", "reason"),
    [
        ("mcc", 0.0, "the variance is 0, which says nothing of other users"),
        ("f1", math.nan, "the variance is not defined"),
        ("f1", math.inf, "the variance is not defined"),
    ],
)
def test_what_has_no_variance_is_infinite_and_says_why(
    view: str, variance: float, reason: str
) -> None:
    interval = found(RATES, view, variance)
    assert (interval.lower, interval.upper) == (-math.inf, math.inf)
    assert (interval.reason, interval.defined) == (reason, False)
    assert interval.estimate == RATES.interval(view).estimate


def test_an_estimate_that_is_nan_or_at_an_end_of_the_logit_has_none() -> None:
    nothing, perfect = Rates(tp=0, fp=0, fn=0, tn=5), Rates(tp=5, fp=0, fn=0, tn=5)
    assert found(nothing, "recall", 0.25).reason == "the estimate is nan"
    assert found(perfect, "f1", 0.25).reason == "the logit of 1.0 has no error"
    assert found(perfect, "recall", 0.0).reason == (
        "all groups agree, so that rows are taken as independent"
    )


def test_a_share_of_which_all_groups_agree_has_the_ends_of_independent_rows() -> None:
    perfect = Rates(tp=5, fp=0, fn=0, tn=5)
    interval = found(perfect, "recall", 0.0, groups=64)
    assert (interval.lower, interval.upper) == wilson_bounds(5, 5, critical(0.95, 63.0))


def test_doubts_stand_behind_what_else_is_said() -> None:
    variance = GroupVariance(0.0025, 5)
    interval = clustered(RATES, "mcc", variance, ("few", "a whale"), 1000, 0.95, "auto")
    assert interval.reason == "few; a whale"


def test_a_view_without_a_formula_for_rows_has_a_jackknife_and_no_design_effect() -> None:
    metric = Calibration()
    metric.update([0, 1, 0, 1], [0.1, 0.7, 0.4, 0.8])
    interval = found(metric.compute(), "ece", 0.0025)
    assert interval.method == "jackknife"
    assert math.isnan(interval.deff) and math.isnan(interval.n_eff)
    assert interval.defined
    bare = clustered(metric.compute(), "ece", GroupVariance(0.0025, 8), (), 77, 0.95, "auto")
    assert bare.n in (4, 77)


def test_other_methods_are_refused_by_name() -> None:
    with pytest.raises(InputError, match='"auto" or "jackknife, wilson" or "jackknife"'):
        found(CLICKS, "ratio", 0.0025, "delong")
    with pytest.raises(InputError, match='"auto" or "jackknife", got'):
        found(RATES, "mcc", 0.0025, "logit")
