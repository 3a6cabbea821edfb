"""Figures of calibration and regression that follow from sums, whatever gave these."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np

from streammetrics import Regression
from streammetrics.results import counts_of, headlines_of, views_of
from streammetrics.results.calibration import CalibrationFigures
from streammetrics.results.sums import RegressionErrors

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
