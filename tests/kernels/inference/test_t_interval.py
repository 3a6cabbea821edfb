"""Ends from an estimate, its error and a quantile; of differences and of lifts."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.inference.t_interval import (
    EVERYTHING,
    critical,
    fieller_bounds,
    lift_variance,
    logit_bounds,
    symmetric_bounds,
    two_sided_p,
    welch_df,
)

Z = critical(0.95)


def test_a_large_error_on_the_logit_is_nearly_everything() -> None:
    lower, upper = logit_bounds(0.5, 1e9, Z)
    assert 0 <= lower < 1e-300 and upper == 1.0
    assert logit_bounds(0.5, math.inf, Z) == (lower, upper)


def test_without_an_error_or_an_estimate_nothing_is_known() -> None:
    for unknown in (math.nan, -1.0):
        assert symmetric_bounds(0.5, unknown, Z) == EVERYTHING
        assert logit_bounds(0.5, unknown, Z) == EVERYTHING
        assert math.isnan(two_sided_p(0.5, unknown))
    assert symmetric_bounds(math.nan, 1.0, Z) == EVERYTHING
    assert math.isnan(two_sided_p(math.nan, 1.0)) and math.isnan(two_sided_p(1.0, 1.0, math.nan))
    for edge in (0.0, 1.0, math.nan):
        assert logit_bounds(edge, 0.1, Z) == EVERYTHING


def test_the_p_value_and_the_interval_agree() -> None:
    for df in (3.0, 70.0, math.inf):
        q = critical(0.9, df)
        assert math.isclose(two_sided_p(-q, 1.0, df), 0.1, rel_tol=1e-12)
    assert (two_sided_p(0.0, 1.0), two_sided_p(1.0, 0.0)) == (1.0, 0.0)
    assert math.isnan(two_sided_p(0.0, 0.0))


def test_degrees_of_freedom_of_a_difference() -> None:
    assert welch_df(1.0, 9.0, 1.0, 9.0) == 18
    assert math.isclose(welch_df(2.0, 10.0, 1.0, math.inf), 22.5, rel_tol=1e-15)
    assert welch_df(2.0, math.inf, 1.0, math.inf) == math.inf
    assert welch_df(0.0, 5.0, 1.0, 9.0) == 9
    # (Va + Vb)² / (Va² / df_a + Vb² / df_b) with 4 and 1, 15 and 63.
    assert math.isclose(welch_df(4.0, 15.0, 1.0, 63.0), 25 / (16 / 15 + 1 / 63), rel_tol=1e-15)
    for unknown in ((0.0, 3.0, 0.0, 3.0), (math.nan, 3.0, 1.0, 3.0), (1.0, math.nan, 1.0, 3.0)):
        assert math.isnan(welch_df(*unknown))


ARMS = 0.052, 0.052 * 0.948 / 9_999, 0.0585, 0.0585 * 0.9415 / 9_999
AREAS = 0.70 - 0.5, 0.004**2, 0.71 - 0.5, 0.004**2


def test_worked_lifts() -> None:
    for pair, bounds, error in (
        (ARMS, (0.003048416175, 0.262821682082), 0.065914074641),
        (AREAS, (-0.005289726345, 0.108521517671), 0.029),  # RelaImpr
    ):
        lower, upper = fieller_bounds(*pair, Z)
        assert (round(lower, 12), round(upper, 12)) == bounds
        assert round(math.sqrt(lift_variance(*pair)), 12) == error
    control, variance, treatment, treatment_variance = AREAS
    assert fieller_bounds(-control, variance, -treatment, treatment_variance, Z) == fieller_bounds(
        *AREAS, Z
    )
    assert fieller_bounds(0.5, 0.0, 1.0, 0.0, Z) == (1.0, 1.0)


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


def test_thin_data_say_nothing_and_raise_nothing() -> None:
    for thin in (
        (0.0, 0.1, 0.5, 0.1),
        (math.nan, math.nan, 0.5, 0.1),
        (0.5, 0.001, math.nan, math.nan),
        (0.5, math.nan, 0.5, 0.1),
        (0.5, 0.001, 0.5, math.nan),
        (1e-300, 1.0, 0.5, 0.1),
        (1e-3, 1.0, 1e300, 1e300),
    ):
        assert fieller_bounds(*thin, Z) == EVERYTHING, thin
        assert not math.isfinite(lift_variance(*thin)), thin
