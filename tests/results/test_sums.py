"""Results of sums: quotients, means over lists, losses, errors."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pytest import approx

from streammetrics import (
    Calibration,
    GroupedScores,
    IntraListSimilarity,
    RankingMetrics,
    Ratio,
    Regression,
)
from streammetrics.core.bounded import equal
from streammetrics.ranking.measures import MRR, NDCG
from streammetrics.results import counts_of, headlines_of, views_of
from streammetrics.results.calibration_figures import CalibrationFigures
from streammetrics.results.list_results import Averages
from streammetrics.results.sums import Quotient, RegressionErrors

TOP, LEAST = Fraction(2) ** 1000, Fraction(1, 2**1000)


def test_the_exact_sums_are_divided_and_rounded_once() -> None:
    for top, bottom, expected in (
        (Fraction(1), Fraction(3), 1 / 3),
        (Fraction(-1), Fraction(4), -0.25),
        (TOP, TOP * 2, 0.5),
        (TOP, LEAST, math.inf),
        (-TOP, LEAST, -math.inf),
        (LEAST, TOP, 0.0),
        (1 + Fraction(1, 2**60) + Fraction(1, 2**53), Fraction(1), 1.0000000000000002),
    ):
        assert Quotient(1.0, 1.0, (top, bottom), rows=1).ratio == expected, (top, bottom)
    for top, bottom, expected in (
        (math.inf, 2.0, math.inf),
        (math.inf, -2.0, -math.inf),
        (3.0, math.inf, 0.0),
    ):
        assert Quotient(top, bottom, None, rows=1).ratio == expected, (top, bottom)


def test_what_has_no_ratio_is_nan() -> None:
    for top in (0, 1, -1):
        exact = Fraction(top), Fraction(0)
        assert math.isnan(Quotient(float(top), 0.0, exact, rows=1).ratio)
    for pair in ((math.inf, math.inf), (math.inf, 0.0), (math.nan, 1.0), (1.0, math.nan)):
        assert math.isnan(Quotient(*pair, None, rows=1).ratio), pair
    interval = Quotient(0.0, 0.0, (Fraction(0), Fraction(0)), rows=0).interval()
    assert not interval.defined and interval.reason == "no rows"


def test_why_there_is_no_ratio_depends_on_the_sums() -> None:
    for numerators, denominators, reason in (
        ([math.inf, -math.inf], [1.0, 1.0], "a sum has infinite values of both signs"),
        ([1.0, 2.0], [math.inf, -math.inf], "a sum has infinite values of both signs"),
        ([math.inf], [math.inf], "both sums are infinite"),
        ([math.inf], [2.0], "a value is infinite"),
        ([1e308], [1e-308], "beyond the range of numbers"),
        ([2.0], [0.0], "the denominator is 0"),
    ):
        metric = Ratio()
        metric.update(numerators, denominators=denominators)
        assert reason in str(metric.compute())


def test_averages_are_a_mapping_of_measures_and_their_texts_to_means() -> None:
    averages = Averages({"NDCG@10": 0.25, "MRR": math.nan}, lists_kept=2, lists_empty=1, rows=3)
    assert averages[NDCG @ 10] == averages["NDCG@10"] == averages[" NDCG @ 10"] == 0.25
    assert list(averages) == ["NDCG@10", "MRR"] and len(averages) == 2
    assert NDCG @ 10 in averages and MRR in averages and NDCG not in averages
    with pytest.raises(KeyError, match=r"one of NDCG@10, MRR, got 'MRR@5'; did you mean 'MRR'\?"):
        averages[MRR @ 5]


THIRD = Fraction(1, 3)


def figures(
    *bins: tuple[int, int, Fraction], losses: Fraction | None = THIRD
) -> CalibrationFigures:
    return CalibrationFigures(bins, squares=THIRD, hits=THIRD, losses=losses)


def test_the_greatest_gap_is_of_the_bin_and_the_mean_gap_is_of_the_rows() -> None:
    result = figures((3, 0, THIRD), (0, 0, Fraction(0)), (0, 1, THIRD))
    assert result.mce == 2 / 3
    assert result.ece == 1 / 4


def test_an_infinite_loss_is_infinite_in_both_views() -> None:
    result = figures((1, 1, THIRD), losses=None)
    assert result.log_loss == result.normalized_entropy == math.inf
    assert math.isnan(figures((2, 0, THIRD), losses=None).normalized_entropy)


def test_normalized_entropy_keeps_its_digits_where_positives_are_rare() -> None:
    n = 10**15
    result = figures((n - 1, 1, THIRD), losses=Fraction(36))
    # n times the entropy is 1 + ln n, but for 1/2n
    assert result.normalized_entropy == 36 / (1 + math.log(n))


def test_views_and_counts() -> None:
    result = figures((1, 1, THIRD))
    names = "log_loss normalized_entropy brier ratio copc ece mce mean_score base_rate"
    assert list(views_of(result)) == names.split()
    assert counts_of(result) == {"rows": 2, "positives": 1}
    assert headlines_of(result) == ("log_loss",)
    table = result.reliability()
    assert table.units.dtype == np.int64 and len(table.low) == len(table.high) == 1
    errors = RegressionErrors(2, THIRD, THIRD, THIRD, THIRD)
    assert list(views_of(errors)) == ["mae", "mse", "rmse", "r2"]


def test_figures_of_infinite_errors() -> None:
    endless = RegressionErrors(2, None, None, THIRD, THIRD)
    assert endless.mae == endless.mse == endless.rmse == math.inf
    assert endless.r2 == -math.inf
    perfect = RegressionErrors(2, Fraction(0), Fraction(0), THIRD, THIRD)
    assert (perfect.rmse, perfect.r2) == (0.0, 1.0)


def test_units_are_counted_once() -> None:
    metric = Regression()
    metric.update([0, 1], [0.25, 0.5], weights=[2, 3])
    assert counts_of(metric.compute()) == {"rows": 2, "weight_units": 5}


# Intervals of means and ratios: of lists, losses, clicks.


Floats = NDArray[np.float64]
RANDOM = np.random.default_rng(11)
GRADES = RANDOM.integers(0, 2, (60, 5))
GRADES[:6] = 0  # lists with nothing relevant


def ranked(**settings: str) -> RankingMetrics:
    metric = RankingMetrics(["NDCG@3", "HR@1", "PooledHR@2"], complete_lists=True, **settings)
    metric.update(GRADES)
    return metric


@pytest.mark.parametrize("empty", ["skip", "zero"])
def test_a_mean_over_lists_has_students_interval(empty: str) -> None:
    per_list = []
    for grades in GRADES:
        metric = RankingMetrics(["NDCG@3"], empty="zero")
        metric.update(grades[None])
        per_list.append(metric.compute()["NDCG@3"])
    values = np.array(per_list)[GRADES.any(axis=1) | (empty == "zero")]
    interval = ranked(empty=empty).confidence_interval(cluster="none")
    assert interval.estimate == approx(values.mean(), rel=1e-12) and interval.n == len(values)
    assert interval.se == approx(values.std(ddof=1) / math.sqrt(len(values)), rel=1e-12)
    assert (interval.df, interval.method, interval.reason) == (len(values) - 1, "t", "")
    t = {53: 2.0057459953178696, 59: 2.0009953780882688}[len(values) - 1]  # scipy
    assert interval.upper - interval.estimate == approx(t * interval.se, rel=1e-12)


def test_hits_are_shares_of_lists_unless_ties_make_them_fractions() -> None:
    interval = ranked().confidence_interval(view="HR@1")
    hits = int(GRADES[GRADES.any(axis=1), 0].sum())
    assert (interval.method, interval.n, interval.estimate) == ("wilson", 54, hits / 54)
    tied = RankingMetrics(["HR@1"])
    tied.update([[1, 0], [1, 0], [1, 0]], [[0.5, 0.5], [0.5, 0.25], [0.25, 0.5]])
    assert tied.confidence_interval().method == "t"


def test_a_pooled_measure_is_a_ratio_of_sums_over_lists() -> None:
    grades = GRADES[GRADES.any(axis=1)]
    hits, relevant = grades[:, :2].sum(axis=1), grades.sum(axis=1)
    share = hits.sum() / relevant.sum()
    squares = ((hits - share * relevant) ** 2).sum() / relevant.sum() ** 2
    for empty in ("skip", "zero"):
        interval = ranked(empty=empty).confidence_interval(view="PooledHR@2")
        assert interval.se == approx(math.sqrt(54 / 53 * squares), rel=1e-12) and interval.n == 54


def test_lists_item_by_item_have_the_interval_of_whole_lists() -> None:
    whole, items = RankingMetrics(["NDCG@3"]), GroupedScores(["NDCG@3"])
    scores = RANDOM.random(GRADES.shape).astype(np.float32)
    whole.update(GRADES, scores)
    items.update(GRADES.ravel(), scores.ravel(), groups=np.repeat(np.arange(60), 5))
    assert items.confidence_interval() == whole.confidence_interval()
    assert "lists are taken as independent" in items.confidence_interval().reason


def test_rows_that_were_dropped_leave_their_reason() -> None:
    items = GroupedScores(["NDCG@3"], max_rows=2)
    items.update([1, 0, 1], [0.1, 0.2, 0.3], groups=[1, 1, 2])
    interval = items.confidence_interval()
    assert not interval.defined and interval.reason == items.compute().reason


def test_the_similarity_of_lists_is_a_mean_over_lists() -> None:
    metric = IntraListSimilarity([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    metric.update([[0, 1], [1, 2], [0, 1], [0]])
    values = np.array([0.0, math.sqrt(0.5), 0.0])
    interval = metric.confidence_interval()
    assert interval.se == approx(values.std(ddof=1) / math.sqrt(3), rel=1e-12) and interval.n == 3


def test_clicks_are_a_share_and_revenue_is_not() -> None:
    clicks, revenue = Ratio(), Ratio()
    clicks.update([1, 0, 0, 1, 1, 0, 0, 0, 0, 0])
    revenue.update([1.0, 2.0], [1, 1])
    interval = clicks.confidence_interval(cluster="none")
    assert (interval.lower, interval.upper) == (
        approx(0.107791267406, abs=5e-13), approx(0.603221852539, abs=5e-13)
    )  # fmt: skip
    assert clicks.compute().is_share and not revenue.compute().is_share
    assert revenue.confidence_interval().n == 2
    assert revenue.confidence_interval().reason.startswith("rows are not all 0 or 1 over 1")


def test_one_row_of_another_kind_is_enough() -> None:
    for numerators, denominators, share in (
        ([0.0, -0.0, 1.0, True], [1, 1.0, 1, 1], True),
        ([0, 1], [1, 2], False),
        ([0, 1], [1, 0], False),
        ([0, 2], [1, 1], False),
        ([0, -1], [1, 1], False),
        ([0.5, 1], [1, 1], False),
        ([0, math.inf], [1, 1], False),
        ([1, -1], [1, 1], False),
    ):
        whole, parts = Ratio(), Ratio()
        whole.update(numerators, denominators)
        for row in zip(numerators, denominators, strict=True):
            parts.update(*([value] for value in row))
        result = whole.compute()
        assert result.is_share == share and result.rows == len(numerators), numerators
        assert whole.confidence_interval().defined == share and parts == whole


Y = RANDOM.integers(0, 2, 300)
P = np.round(RANDOM.random(300) * 0.9 + 0.05, 6)


def calibrated() -> Calibration:
    metric = Calibration()
    metric.update(Y[:100], P[:100])
    metric.update(Y[100:], P[100:])
    return metric


def test_a_mean_loss_has_students_interval() -> None:
    for view, values in (
        ("log_loss", -np.log(np.where(Y == 1, P, 1 - P))),
        ("brier", (P - Y) ** 2),
        ("mean_score", P),
    ):
        interval = calibrated().confidence_interval(view=view)
        assert interval.estimate == approx(values.mean(), rel=1e-12), view
        assert interval.se == approx(values.std(ddof=1) / math.sqrt(300), rel=1e-12), view
        assert (interval.df, interval.n, interval.method) == (299, 300, "t"), view


def test_a_ratio_of_sums_has_its_linearised_variance() -> None:
    for view, top, bottom in (("ratio", P, Y), ("copc", Y, P)):
        residuals = (top - top.sum() / bottom.sum() * bottom) / bottom.sum()
        interval = calibrated().confidence_interval(view=view)
        assert interval.se == approx(math.sqrt(300 / 299 * (residuals**2).sum()), rel=1e-12), view


def test_other_figures_of_calibration_say_why_not() -> None:
    assert calibrated().confidence_interval(view="base_rate").method == "wilson"
    assert not calibrated().confidence_interval(view="ece").defined
    certain = Calibration()
    certain.update([1, 0], [0.0, 0.5])
    assert certain.confidence_interval().reason == "the estimate is inf"
    weighted = Calibration()
    weighted.update([1, 0], [0.25, 0.5], weights=[1, 2])
    assert weighted.confidence_interval().reason.startswith("rows are weighted")
    ones = Calibration()
    ones.update(Y, P, weights=np.ones(300))
    assert ones.confidence_interval() == calibrated().confidence_interval()


def test_the_mean_absolute_error_is_a_mean_over_rows() -> None:
    metric, off = Regression(), np.abs(Y - P)
    metric.update(Y, P)
    interval = metric.confidence_interval()
    assert interval.se == approx(off.std(ddof=1) / math.sqrt(300), rel=1e-12)
    assert not metric.confidence_interval(view="mse").defined


def test_one_row_or_none_is_no_error() -> None:
    for metric, n in product((Calibration(), Regression()), (0, 1)):
        metric = metric.empty()
        metric.update(Y[:n], P[:n])
        interval = metric.confidence_interval()
        assert not interval.defined and interval.n == n
        assert interval.reason == ("1 row: at least 2 needed" if n else "no rows")


HOSTILE = [0.0, 0.5, 1 / 3, 1.0, 2.0**-300, 1e-160, 5e-324]
LARGE = [-3.0, 1e150, -1e300, 2.0**600, math.inf]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(HOSTILE + LARGE), st.integers(0, 3))))
def test_views_of_sums_that_are_no_fractions_yet_are_those_of_fractions(
    rows: list[tuple[bool, float, int]],
) -> None:
    labels, scores, weights = np.array(rows).reshape(-1, 3).T
    errors, calibration = Regression(), Calibration()
    errors.update(labels, scores, weights=weights)
    shares = (scores >= 0) & (scores <= 1)
    calibration.update(labels[shares], scores[shares], weights=weights[shares])
    for metric in (errors, calibration, errors.empty(), calibration.empty()):
        late, second = metric.compute(), metric.compute()
        given_fractions = replace(second)
        assert equal(views_of(late), views_of(given_fractions))
        for view in views_of(late):
            assert equal(late.interval(view), given_fractions.interval(view)), view
