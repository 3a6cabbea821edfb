"""Figures of calibration and regression that follow from sums, whatever gave these."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from streammetrics.results import counts_of, headlines_of, views_of
from streammetrics.results.calibration import CalibrationFigures
from streammetrics.results.regression import RegressionErrors

THIRD = Fraction(1, 3)


def figures(
    *bins: tuple[int, int, Fraction], losses: Fraction | None = THIRD
) -> CalibrationFigures:
    return CalibrationFigures(bins, squares=THIRD, hits=THIRD, losses=losses)


def test_the_greatest_gap_is_of_the_bin_and_the_mean_gap_is_of_the_rows() -> None:
    found = figures((3, 0, THIRD), (0, 0, Fraction(0)), (0, 1, THIRD))
    assert found.mce == 2 / 3
    assert found.ece == 1 / 4


def test_gaps_of_both_signs_do_not_cancel() -> None:
    found = figures((0, 1, Fraction(1, 4)), (1, 0, Fraction(3, 4)))
    assert (found.ratio, found.copc, found.ece, found.mce) == (1.0, 1.0, 0.75, 0.75)


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


def test_r2_of_squares_that_are_not_known() -> None:
    assert RegressionErrors(2, None, None, THIRD, THIRD).r2 == -math.inf
    assert math.isnan(RegressionErrors(2, None, None, THIRD, None).r2)
    assert RegressionErrors(2, None, None, THIRD, THIRD).rmse == math.inf
    perfect = RegressionErrors(2, Fraction(0), Fraction(0), THIRD, THIRD)
    assert (perfect.rmse, perfect.r2) == (0.0, 1.0)
