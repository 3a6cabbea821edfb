"""Relative lift: worked values, and a control that may be 0."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.inference.t_interval import (
    EVERYTHING,
    critical,
    fieller_bounds,
    lift_variance,
    log_lift_bounds,
)

Z = critical(0.95)
ARMS = 0.052, 0.052 * 0.948 / 9_999, 0.0585, 0.0585 * 0.9415 / 9_999
AREAS = 0.70 - 0.5, 0.004**2, 0.71 - 0.5, 0.004**2


def test_fieller() -> None:
    lower, upper = fieller_bounds(*ARMS, Z)
    assert (round(lower, 12), round(upper, 12)) == (0.003048416175, 0.262821682082)


def test_the_delta_error() -> None:
    assert round(math.sqrt(lift_variance(*ARMS)), 12) == 0.065914074641


def test_the_log_scale() -> None:
    lower, upper = log_lift_bounds(*ARMS, Z)
    assert (round(lower, 8), round(upper, 9)) == (0.00295253, 0.261899204)


def test_rela_impr() -> None:
    lower, upper = fieller_bounds(*AREAS, Z)
    assert (round(lower, 12), round(upper, 12)) == (-0.005289726345, 0.108521517671)
    assert round(math.sqrt(lift_variance(*AREAS)), 12) == 0.029


positive = st.floats(0.01, 10)


@given(positive, positive, positive, st.floats(0.01, 0.99))
def test_the_ends_of_fieller_are_where_the_difference_is_q_errors(
    control: float, treatment: float, error_t: float, root_g: float
) -> None:
    variance_c = (root_g * control / Z) ** 2
    for end in fieller_bounds(control, variance_c, treatment, error_t**2, Z):
        s = 1 + end
        distance = (treatment - s * control) ** 2
        allowed = Z * Z * (error_t**2 + s * s * variance_c)
        assert math.isclose(distance, allowed, rel_tol=1e-6)


def test_a_control_that_may_be_0_leaves_the_lift_unbounded() -> None:
    assert fieller_bounds(1.0, 1.0, 2.0, 0.1, Z) == EVERYTHING
    assert fieller_bounds(2.0, 1.0, 2.0, 0.1, 2.0) == EVERYTHING  # g = 1
    assert fieller_bounds(-1.0, 1.0, 2.0, 0.1, Z) == EVERYTHING
    assert fieller_bounds(2.0, 0.99, 2.0, 0.1, 2.0) != EVERYTHING


def test_a_control_below_0_keeps_the_ends_in_order() -> None:
    lower, upper = fieller_bounds(-0.2, 0.004**2, -0.21, 0.004**2, Z)
    there = fieller_bounds(0.2, 0.004**2, 0.21, 0.004**2, Z)
    assert (lower, upper) == there and lower < 0.05 < upper
    assert log_lift_bounds(-0.2, 0.004**2, -0.21, 0.004**2, Z) == log_lift_bounds(
        0.2, 0.004**2, 0.21, 0.004**2, Z
    )


@pytest.mark.parametrize(
    "thin",
    [
        (0.0, 0.1, 0.5, 0.1),
        (math.nan, math.nan, 0.5, 0.1),
        (0.5, 0.001, math.nan, math.nan),
        (0.5, math.nan, 0.5, 0.1),
        (0.5, 0.001, 0.5, math.nan),
        (1e-300, 1.0, 0.5, 0.1),
        (1e-3, 1.0, 1e300, 1e300),
    ],
)
def test_thin_data_say_nothing_and_raise_nothing(thin: tuple[float, float, float, float]) -> None:
    assert fieller_bounds(*thin, Z) == EVERYTHING
    assert log_lift_bounds(*thin, Z) in (EVERYTHING, (-1.0, math.inf))
    assert not math.isfinite(lift_variance(*thin))


def test_the_log_needs_two_of_one_sign() -> None:
    assert (
        log_lift_bounds(0.5, 0.1, -0.5, 0.1, Z)
        == log_lift_bounds(0.5, 0.1, 0, 0.1, Z)
        == EVERYTHING
    )


def test_a_zero_variance_has_no_width() -> None:
    assert (
        fieller_bounds(0.5, 0.0, 1.0, 0.0, Z)
        == log_lift_bounds(0.5, 0.0, 1.0, 0.0, Z)
        == (1.0, 1.0)
    )
