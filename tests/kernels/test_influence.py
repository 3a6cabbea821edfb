"""The delta variance of functions of counts, against simple shares."""

from __future__ import annotations

import math

import numpy as np

from streammetrics.kernels.groups import spread_variance
from streammetrics.kernels.influence import counts_variance, group_influence


def test_a_function_that_grows_with_the_counts_loses_the_square_of_its_mean() -> None:
    # The number of successes of n rows: n p (1 - p).
    assert counts_variance(np.array([3, 7]), np.array([1.0, 0.0])) == 2.1


def test_a_share_has_its_variance() -> None:
    assert math.isclose(counts_variance(np.array([3, 7]), np.array([0.07, -0.03])), 0.021)


def test_cells_without_rows_say_nothing() -> None:
    assert counts_variance(np.array([3, 0]), np.array([1.0, math.nan])) == 0.0
    assert math.isnan(counts_variance(np.array([0, 0]), np.array([1.0, 2.0])))
    assert math.isnan(counts_variance(np.zeros((0, 0), np.int64), np.zeros((0, 0))))


def test_a_variance_is_never_below_0() -> None:
    assert counts_variance(np.array([7]), np.array([0.1])) == 0.0


def test_the_order_of_the_cells_changes_no_bit() -> None:
    rng = np.random.default_rng(5)
    counts, psi = rng.integers(0, 10**9, 500), rng.normal(size=500)
    at = rng.permutation(500)
    assert counts_variance(counts, psi) == counts_variance(counts[at], psi[at])


def test_groups_of_one_row_have_the_variance_of_rows() -> None:
    psi = np.array([0.07, -0.03])
    rows = np.array([[1, 0]] * 3 + [[0, 1]] * 7)
    between = spread_variance(group_influence(rows, psi))
    assert math.isclose(between.variance, 0.021 * 10 / 9, rel_tol=1e-14)


def test_cells_that_no_group_has_may_be_nan() -> None:
    psi = np.array([0.5, math.nan, -0.25])
    assert group_influence(np.array([[1, 0, 0], [0, 0, 2]]), psi) == [0.5, -0.5]
