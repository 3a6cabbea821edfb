"""Variances: worked values, exactness where floats would cancel, and groups that are left out."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.inference.variances import (
    design_effect,
    doubts_of_groups,
    jackknife_variance,
    mean_variance,
    ratio_variance,
)

# n, clicks of eight users.
USERS = [(10, 2), (4, 1), (7, 0), (12, 5), (3, 0), (9, 2), (5, 3), (20, 4)]
VIEWS, CLICKS = ([user[i] for user in USERS] for i in (0, 1))


def squares(y: list[int], n: list[int]) -> tuple[int, int, int]:
    pairs = list(zip(y, n, strict=True))
    return sum(a * a for a, _ in pairs), sum(a * b for a, b in pairs), sum(b * b for _, b in pairs)


def test_a_mean_of_rows_is_a_ratio_of_units_of_one() -> None:
    rows = [0, 1, 1, 0, 1]
    as_ratio = ratio_variance(5, 3, 5, squares(rows, [1] * 5))
    assert mean_variance(5, 3, 3) == as_ratio == 0.06


@given(st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=20), st.integers(0, 2**70))
def test_a_mean_far_from_0_loses_no_digits(rows: list[int], far: int) -> None:
    moved = [row + far for row in rows]
    n = len(rows)
    mean = Fraction(sum(rows), n)
    expected = sum((row - mean) ** 2 for row in rows) / (n - 1) / n
    assert mean_variance(n, sum(moved), sum(row * row for row in moved)) == float(expected)


def test_squares_that_were_rounded_down_give_no_variance_below_0() -> None:
    assert mean_variance(3, 3, Fraction(29999, 10000)) == 0.0
    assert ratio_variance(2, 2, 2, (1, 1, Fraction(9, 10))) == 0.0


def test_too_few_units_have_no_variance() -> None:
    assert math.isnan(mean_variance(0, 0, 0)) and math.isnan(mean_variance(1, 5, 25))
    assert math.isnan(ratio_variance(1, 1, 2, (1, 2, 4)))
    assert math.isnan(ratio_variance(2, 0, 0, (0, 0, 0)))


values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=70)


def spread(numbers: list[float]) -> Fraction:
    exact = [Fraction(x) for x in numbers]
    mean = sum(exact) / len(exact)
    return sum(((x - mean) ** 2 for x in exact), Fraction(0))


@given(values)
def test_it_is_the_formula_in_any_order(estimates: list[float]) -> None:
    k = len(estimates)
    slack = 1e-9 * max(map(abs, estimates)) ** 2 * 1e-3 * k + 1e-300
    assert abs(jackknife_variance(estimates).variance - (k - 1) * spread(estimates) / k) <= slack
    assert jackknife_variance(estimates) == jackknife_variance(sorted(estimates))


@pytest.mark.parametrize("groups", range(2, 65))
def test_equal_replicates_have_no_variance_though_their_mean_is_rounded(groups: int) -> None:
    for value in (0.1, 1 / 3, 0.23463936301137828, -1e300):
        assert jackknife_variance([value] * groups).variance == 0


def test_degrees_of_freedom_are_groups_less_one() -> None:
    jackknife = jackknife_variance([1.0, 2.0, 3.0])
    assert (jackknife.groups, jackknife.df, jackknife.reason) == (3, 2.0, "")
    assert jackknife.se == math.sqrt(4 / 3)


def test_fewer_than_two_groups_say_nothing_and_why() -> None:
    for few, reason in (([], "0 groups"), ([0.5], "1 group with")):
        jackknife = jackknife_variance(few)
        assert (
            math.isnan(jackknife.variance) and math.isnan(jackknife.df) and math.isnan(jackknife.se)
        )
        assert jackknife.reason.startswith(reason)


def test_an_estimate_that_is_undefined_leaves_its_variance_so() -> None:
    for bad in (math.nan, math.inf):
        jackknife = jackknife_variance([0.5, bad, 0.5])
        assert math.isnan(jackknife.variance) and "without one of the groups" in jackknife.reason
    far = jackknife_variance([1e300, -1e300])
    assert math.isnan(far.variance) and "exceeds the range" in far.reason


def test_few_groups_and_whales_are_named() -> None:
    assert doubts_of_groups([5] + [1] * 15 + [0] * 48) == ()  # 5 of 20: a quarter, not above
    assert doubts_of_groups([1] * 15 + [0]) == (
        "only 15 groups have rows; a reliable variance needs 16",
    )
    assert doubts_of_groups([6] + [1] * 15) == ("one group has 29 % of the weight",)
    assert len(doubts_of_groups([Fraction(1, 3), Fraction(2, 3)])) == 2
    assert doubts_of_groups([]) == ("only 0 groups have rows; a reliable variance needs 16",)


def test_the_design_effect() -> None:
    assert design_effect(0.5, 0.25) == 2
    assert design_effect(0.052712918267**2, 0.051252533181**2) == pytest.approx(
        1.057799724, rel=1e-9
    )
    assert math.isnan(design_effect(0.5, 0.0)) and math.isnan(design_effect(math.nan, 0.5))
