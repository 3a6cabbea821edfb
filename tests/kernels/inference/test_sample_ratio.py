"""The sample ratio checks: worked values, arms without a share, and nothing at all."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy import stats

from streammetrics.kernels.inference.dirichlet_multinomial import chi_square, log_e, shares_of


def test_two_equal_arms() -> None:
    found = chi_square([5120, 4880], [1, 1])
    assert (found.statistic, found.df, f"{found.pvalue:.14f}") == (5.76, 1, "0.01639507184919")
    small, large = (log_e([5120, 4880], [0.5, 0.5], k) for k in (100, 1e4))
    assert f"{small:.14f}" == "0.54200051726850"
    assert f"{math.exp(-small):.12f}" == "0.581583619754"
    assert f"{large:.14f}" == "1.09352047929572"
    assert f"{log_e([5300, 4700], [1, 1], 1000):.13f}" == "15.1740752374848"


def test_three_arms() -> None:
    counts, weights = [50_210, 30_050, 19_740], [5, 3, 2]
    found = chi_square(counts, weights)
    assert f"{found.statistic:.12f}" == "4.345333333333"
    assert (found.df, f"{found.pvalue:.11f}") == (2, "0.11387354887")
    assert f"{log_e(counts, weights, 100):.14f}" == "-4.73569880460797"


@pytest.mark.parametrize("counts", [[10, 20, 31], [1, 0, 0], [10**6, 10**6 + 5000, 999_000]])
def test_chi_square_is_that_of_scipy(counts: list[int]) -> None:
    found = chi_square(counts, [1, 2, 3])
    expected = [sum(counts) * w / 6 for w in (1, 2, 3)]
    peer = stats.chisquare(counts, expected)
    assert math.isclose(found.statistic, float(peer.statistic), rel_tol=1e-12)
    assert math.isclose(found.pvalue, float(peer.pvalue), rel_tol=1e-11, abs_tol=1e-300)


def test_an_arm_of_weight_zero_is_no_degree_of_freedom() -> None:
    assert chi_square([5120, 0, 4880], [1, 0, 1]) == chi_square([5120, 4880], [1, 1])
    assert log_e([5120, 0, 4880], [1, 0, 1]) == log_e([5120, 4880], [1, 1])


def test_a_unit_in_an_arm_of_weight_zero_is_a_mismatch() -> None:
    found = chi_square([5120, 1, 4880], [1, 0, 1])
    assert (found.statistic, found.df, found.pvalue) == (math.inf, 1, 0.0)
    assert log_e([5120, 1, 4880], [1, 0, 1]) == math.inf


def test_without_units_or_with_one_arm_there_is_no_evidence() -> None:
    assert chi_square([0, 0], [1, 3]).pvalue == 1.0 and log_e([0, 0], [1, 3]) == 0.0
    assert chi_square([9], [2]).pvalue == 1.0 and log_e([9], [2]) == 0.0
    assert (chi_square([9, 0], [2, 0]).df, log_e([9, 0], [2, 0])) == (0, 0.0)


def test_a_strong_mismatch_does_not_underflow_to_nothing() -> None:
    assert 0 < chi_square([10_000, 12_000], [1, 1]).pvalue < 1e-40


def test_shares_add_up_to_one_exactly() -> None:
    assert sum(shares_of([0.1, 0.2, 0.7])) == 1
    assert shares_of([1, 0, 2]) == [Fraction(1, 3), 0, Fraction(2, 3)]
