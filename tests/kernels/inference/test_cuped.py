"""CUPED on totals, against least squares on the rows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.inference.cuped import ArmTotals, adjusted, theta

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def rows(n: int, lift: float, seed: int) -> Rows:
    """Covariates and outcomes in 64ths, and groups, of n units."""
    rng = np.random.default_rng(seed)
    x = rng.normal(2, 1, n)
    y = 0.5 * x + rng.normal(0, 1, n) + lift
    return np.round(x * 64) / 64, np.round(y * 64) / 64, rng.integers(0, 16, n)


def totals(found: Rows, groups: int = 16) -> ArmTotals:
    x, y, g = found
    count = np.bincount(g, minlength=groups).tolist()
    sums = [np.bincount(g, values, minlength=groups).tolist() for values in (x, y)]
    return ArmTotals(count, *sums, xx=float((x * x).sum()), xy=float((x * y).sum()))


A, B = rows(300, 0.0, 1), rows(450, 0.25, 2)


def test_theta_is_the_coefficient_of_least_squares() -> None:
    arm = np.repeat([0.0, 1.0], [300, 450])
    x, y = np.concatenate([A[0], B[0]]), np.concatenate([A[1], B[1]])
    fit, *_ = np.linalg.lstsq(np.column_stack([np.ones_like(x), arm, x]), y)
    found = adjusted(totals(A), totals(B))
    assert math.isclose(found.theta, fit[2], rel_tol=1e-11)
    assert math.isclose(found.effect, fit[1], rel_tol=1e-11)
    assert found.theta == float(theta([totals(A), totals(B)]))
    assert math.isclose(found.unadjusted, B[1].mean() - A[1].mean(), rel_tol=1e-13)


def test_the_variance_is_that_of_the_groups_of_residuals() -> None:
    found = adjusted(totals(A), totals(B), 0.5)
    parts = []
    for x, y, g in (A, B):
        residual = (y - 0.5 * x) - (y - 0.5 * x).mean()
        z = np.bincount(g, residual, minlength=16) / len(x)
        parts.append(16 / 15 * ((z - z.mean()) ** 2).sum())
    assert math.isclose(found.variance, sum(parts), rel_tol=1e-10)
    df = sum(parts) ** 2 / sum(part**2 / 15 for part in parts)
    assert math.isclose(found.df, df, rel_tol=1e-10)


def test_a_unit_that_is_a_group_gives_the_variance_of_units() -> None:
    x, y, _ = A
    alone = totals((x, y, np.arange(300)), 300)
    none = ArmTotals([1] * 300, [0] * 300, [0] * 300, 0, 0)
    found = adjusted(none, alone, 0)
    assert math.isclose(found.variance, y.var(ddof=1) / 300, rel_tol=1e-10)


def test_what_the_covariate_explains_is_taken_out() -> None:
    plain, helped = adjusted(totals(A), totals(B), 0), adjusted(totals(A), totals(B))
    assert plain.effect == plain.unadjusted == helped.unadjusted
    assert helped.variance < plain.variance


def test_a_frozen_theta_is_taken_as_it_is() -> None:
    found = adjusted(totals(A), totals(B), Fraction(1, 3))
    assert found.theta == 1 / 3


def test_a_covariate_that_does_not_vary_explains_nothing() -> None:
    flat = ArmTotals([2, 3], [2, 3], [1, 4], 5, 5)
    found = adjusted(flat, ArmTotals([1, 1], [1, 1], [1, 0], 2, 1))
    assert (found.theta, found.effect) == (0.0, -0.5)


@pytest.mark.parametrize(
    "arm", [ArmTotals([], [], [], 0, 0), ArmTotals([0, 0], [0, 0], [0, 0], 0, 0)]
)
def test_an_arm_without_units_has_no_effect(arm: ArmTotals) -> None:
    found = adjusted(arm, totals(B))
    assert all(map(math.isnan, (found.effect, found.variance, found.df, found.unadjusted)))
    assert not math.isnan(found.theta)


def test_one_group_has_no_variance() -> None:
    found = adjusted(ArmTotals([5, 0], [5, 0], [3, 0], 7, 4), totals(B))
    assert math.isfinite(found.effect) and math.isnan(found.variance) and math.isnan(found.df)


def test_without_any_residual_the_variance_is_zero_and_nothing_is_divided() -> None:
    still = ArmTotals([1, 1], [0, 0], [1, 1], 0, 0)
    found = adjusted(still, still)
    assert (found.effect, found.variance) == (0.0, 0.0) and math.isnan(found.df)
