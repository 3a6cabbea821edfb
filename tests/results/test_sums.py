"""Results of sums: quotients, means over lists, losses, errors."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from math import nan

import numpy as np
import pytest

from streammetrics import Regression
from streammetrics.ranking.measures import MRR, NDCG
from streammetrics.results import counts_of, headlines_of, views_of
from streammetrics.results.calibration import CalibrationFigures
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
    found = Quotient(0.0, 0.0, (Fraction(0), Fraction(0)), rows=0).interval()
    assert not found.defined and found.reason == "no rows"


RESULT = Averages({"NDCG@10": 0.25, "MRR": nan}, lists_kept=2, lists_empty=1, rows=3)


def test_a_measure_and_its_text_find_the_same_mean() -> None:
    assert RESULT[NDCG @ 10] == RESULT["NDCG@10"] == RESULT[" NDCG @ 10"] == 0.25


def test_a_mapping_of_texts_to_means() -> None:
    assert list(RESULT) == ["NDCG@10", "MRR"]
    assert len(RESULT) == 2
    assert NDCG @ 10 in RESULT
    assert MRR in RESULT
    assert NDCG not in RESULT


def test_a_measure_that_was_not_asked_for_is_named_with_those_that_were() -> None:
    with pytest.raises(KeyError, match=r"MRR@5 is not one of NDCG@10, MRR"):
        RESULT[MRR @ 5]


THIRD = Fraction(1, 3)


def figures(
    *bins: tuple[int, int, Fraction], losses: Fraction | None = THIRD
) -> CalibrationFigures:
    return CalibrationFigures(bins, squares=THIRD, hits=THIRD, losses=losses)


def test_the_greatest_gap_is_of_the_bin_and_the_mean_gap_is_of_the_rows() -> None:
    found = figures((3, 0, THIRD), (0, 0, Fraction(0)), (0, 1, THIRD))
    assert found.mce == 2 / 3
    assert found.ece == 1 / 4


def test_an_infinite_loss_is_infinite_in_both_views() -> None:
    found = figures((1, 1, THIRD), losses=None)
    assert found.log_loss == found.normalized_entropy == math.inf
    assert math.isnan(figures((2, 0, THIRD), losses=None).normalized_entropy)


def test_normalized_entropy_keeps_its_digits_where_positives_are_rare() -> None:
    n = 10**15
    found = figures((n - 1, 1, THIRD), losses=Fraction(36))
    # n times the entropy is 1 + ln n, but for 1/2n
    assert found.normalized_entropy == 36 / (1 + math.log(n))


def test_views_and_counts() -> None:
    found = figures((1, 1, THIRD))
    names = "log_loss normalized_entropy brier ratio copc ece mce mean_score base_rate"
    assert list(views_of(found)) == names.split()
    assert counts_of(found) == {"rows": 2, "positives": 1}
    assert headlines_of(found) == ("log_loss",)
    table = found.reliability()
    assert table.units.dtype == np.int64 and len(table.low) == len(table.high) == 1
    errors = RegressionErrors(2, THIRD, THIRD, THIRD, THIRD)
    assert list(views_of(errors)) == ["mae", "mse", "rmse", "r2"]


def test_figures_of_infinite_errors() -> None:
    endless = RegressionErrors(2, None, None, THIRD, THIRD)
    assert endless.mae == endless.mse == endless.rmse == math.inf
    assert endless.r2 == -math.inf
    perfect = RegressionErrors(2, Fraction(0), Fraction(0), THIRD, THIRD)
    assert (perfect.rmse, perfect.r2) == (0.0, 1.0)


def test_a_result_shows_its_figures_and_its_rows_and_a_unit_of_weight_that_is_not_1() -> None:
    found = figures((1, 1, THIRD))
    said = "log_loss=0.16666666666666666, normalized_entropy=0.2404491734814939, "
    said += "brier=0.3333333333333333, ratio=0.3333333333333333, ece=0.3333333333333333, rows=2"
    assert repr(found) == f"CalibrationFigures({said})"
    tenths = dataclasses.replace(found, weight_unit=Fraction(1, 10))
    assert repr(tenths) == f"CalibrationFigures({said}, weight_unit=Fraction(1, 10))"
    half = Fraction(1, 2)
    errors = RegressionErrors(2, Fraction(1), half, Fraction(0), Fraction(2))
    said = "mae=0.5, mse=0.25, rmse=0.5, r2=0.75, rows=2"
    assert repr(errors) == f"RegressionErrors({said})"
    halves = dataclasses.replace(errors, weight_unit=half)
    assert repr(halves) == f"RegressionErrors({said}, weight_unit=Fraction(1, 2))"


def test_units_are_counted_once() -> None:
    metric = Regression()
    metric.update([0, 1], [0.25, 0.5], weights=[2, 3])
    assert counts_of(metric.compute()) == {"rows": 2, "weight_units": 5}
