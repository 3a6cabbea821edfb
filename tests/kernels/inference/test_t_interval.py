"""Ends from an estimate, its error and a quantile."""

from __future__ import annotations

import math

import pytest

from streammetrics.kernels.inference.t_interval import (
    EVERYTHING,
    critical,
    logit_bounds,
    symmetric_bounds,
    two_sided_p,
    welch_df,
)

Z = critical(0.95)


def test_the_critical_value_is_that_of_the_tables() -> None:
    assert [round(critical(0.95, df), 4) for df in (1, 7, 30, math.inf)] == [
        12.7062, 2.3646, 2.0423, 1.96,
    ]  # fmt: skip
    assert round(critical(0.99), 6) == 2.575829
    assert math.isnan(critical(0.95, 0))


def test_eight_users_have_the_interval_of_t_with_seven_degrees_of_freedom() -> None:
    lower, upper = symmetric_bounds(17 / 70, 0.052712918267, critical(0.95, 7))
    assert (round(lower, 11), round(upper, 11)) == (0.11821089795, 0.36750338776)


@pytest.mark.parametrize(
    ("estimate", "se", "lower", "upper"),
    [
        (20 / 27, 0.048498407489, 0.635261594, 0.824159649),
        (2 / 3, 0.0496903995, 0.563378722, 0.756098730),
        (20 / 33, 0.055477713377, 0.493838661, 0.708107934),
        (31 / 42, math.sqrt(0.022297808012094), 0.382748282, 0.927579106),
    ],
)
def test_the_logit_keeps_to_the_worked_values(
    estimate: float, se: float, lower: float, upper: float
) -> None:
    found = logit_bounds(estimate, se, Z)
    assert (round(found[0], 9), round(found[1], 9)) == (lower, upper)


def test_the_logit_of_one_minus_is_mirrored() -> None:
    lower, upper = logit_bounds(0.2, 0.05, Z)
    other_lower, other_upper = logit_bounds(0.8, 0.05, Z)
    assert math.isclose(lower, 1 - other_upper, rel_tol=1e-14)
    assert math.isclose(upper, 1 - other_lower, rel_tol=1e-14)


def test_a_large_error_on_the_logit_is_nearly_everything() -> None:
    lower, upper = logit_bounds(0.5, 1e9, Z)
    assert 0 <= lower < 1e-300 and upper == 1.0
    assert logit_bounds(0.5, math.inf, Z) == (lower, upper)


@pytest.mark.parametrize("unknown", [math.nan, -1.0])
def test_without_an_error_nothing_is_known(unknown: float) -> None:
    assert symmetric_bounds(0.5, unknown, Z) == EVERYTHING
    assert logit_bounds(0.5, unknown, Z) == EVERYTHING
    assert two_sided_p(0.5, unknown) == 1.0


def test_without_an_estimate_nothing_is_known() -> None:
    assert symmetric_bounds(math.nan, 1.0, Z) == EVERYTHING
    assert two_sided_p(math.nan, 1.0) == two_sided_p(1.0, 1.0, math.nan) == 1.0
    for edge in (0.0, 1.0, math.nan):
        assert logit_bounds(edge, 0.1, Z) == EVERYTHING


def test_the_p_value_and_the_interval_agree() -> None:
    for df in (3.0, 70.0, math.inf):
        q = critical(0.9, df)
        assert math.isclose(two_sided_p(-q, 1.0, df), 0.1, rel_tol=1e-12)
    assert (two_sided_p(0.0, 1.0), two_sided_p(0.0, 0.0), two_sided_p(1.0, 0.0)) == (1.0, 1.0, 0.0)


def test_the_pooled_z_of_the_worked_example() -> None:
    p = (520 + 585) / 20000
    assert round(two_sided_p(0.0065, math.sqrt(p * (1 - p) / 5000)), 7) == 0.0442464


def test_degrees_of_freedom_of_a_difference() -> None:
    assert welch_df(1.0, 9.0, 1.0, 9.0) == 18
    assert math.isclose(welch_df(2.0, 10.0, 1.0, math.inf), 22.5, rel_tol=1e-15)
    assert welch_df(2.0, math.inf, 1.0, math.inf) == math.inf
    assert welch_df(0.0, 5.0, 1.0, 9.0) == 9
    # (Va + Vb)² / (Va² / df_a + Vb² / df_b) with 4 and 1, 15 and 63.
    assert math.isclose(welch_df(4.0, 15.0, 1.0, 63.0), 25 / (16 / 15 + 1 / 63), rel_tol=1e-15)


@pytest.mark.parametrize(
    "unknown", [(0.0, 3.0, 0.0, 3.0), (math.nan, 3.0, 1.0, 3.0), (1.0, math.nan, 1.0, 3.0)]
)
def test_degrees_of_freedom_that_are_not_known(
    unknown: tuple[float, float, float, float],
) -> None:
    assert math.isnan(welch_df(*unknown))
