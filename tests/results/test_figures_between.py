"""Ends of calibration and regression that follow from sums, whatever gave these."""

from __future__ import annotations

import math
from fractions import Fraction

from streammetrics.results.calibration import CalibrationFigures
from streammetrics.results.calibration_between import CalibrationBetween, RoundedBin, RoundedRows
from streammetrics.results.regression import RegressionErrors
from streammetrics.results.regression_between import RegressionBetween

HALF, NOTHING, ONE = Fraction(1, 2), Fraction(0), Fraction(1)
TINY = Fraction(1, 1 << 2140)


def test_what_logarithms_lose_in_their_last_digits_is_within_the_ends() -> None:
    found = CalibrationBetween(
        CalibrationFigures(((1, 1, HALF),), squares=HALF, hits=HALF, losses=Fraction(1)),
        RoundedRows((RoundedBin(0, 0, NOTHING, NOTHING),), NOTHING, NOTHING),
    )
    loss = found.log_loss
    assert math.nextafter(loss.low, 1) == loss.value == math.nextafter(loss.high, 0)
    for figure, exact in ((found.brier, 0.25), (found.base_rate, 0.5)):  # of exact sums
        assert (figure.low, figure.value, figure.high) == (exact, exact, exact)


def test_labels_that_may_all_be_equal_have_an_r2_without_a_lower_end() -> None:
    one_row = RegressionErrors(1, ONE, ONE, NOTHING, NOTHING)
    perhaps = RegressionBetween(one_row, RegressionErrors(1, NOTHING, NOTHING, ONE, ONE))
    assert math.isnan(perhaps.r2.value)
    assert (perhaps.r2.low, perhaps.r2.high) == (-math.inf, -2.0)  # at most 1/3 of spread
    none = RegressionErrors(0, NOTHING, NOTHING, NOTHING, NOTHING)
    kept = RegressionBetween(RegressionErrors(2, TINY, TINY, NOTHING, TINY), none)
    assert (kept.r2.low, kept.r2.value, kept.r2.high) == (0.0, 0.0, 0.0)
