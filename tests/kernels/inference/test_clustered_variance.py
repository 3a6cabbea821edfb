"""Variance between groups: by influence and by leaving each out, and when to doubt it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.inference.clustered_variance import (
    GroupVariance,
    design_effect,
    doubts_of_groups,
    jackknife_variance,
    spread_variance,
)

values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=70)


def spread(found: list[float]) -> Fraction:
    exact = [Fraction(x) for x in found]
    mean = sum(exact) / len(exact)
    return sum(((x - mean) ** 2 for x in exact), Fraction(0))


@given(values)
def test_both_are_their_formulas(found: list[float]) -> None:
    k, square = len(found), spread(found)
    slack = 1e-9 * max(map(abs, found)) ** 2 * 1e-3 * k + 1e-300
    assert abs(spread_variance(found).variance - k * square / (k - 1)) <= slack
    assert abs(jackknife_variance(found).variance - (k - 1) * square / k) <= slack


@given(values)
def test_the_order_of_the_groups_changes_no_bit(found: list[float]) -> None:
    moved = sorted(found)
    assert spread_variance(found) == spread_variance(moved)
    assert jackknife_variance(found) == jackknife_variance(moved)


def test_the_jackknife_of_a_mean_is_the_variance_of_the_mean() -> None:
    rows = [1.0, 2.0, 4.0, 8.0]
    without = [(15.0 - x) / 3 for x in rows]
    assert math.isclose(jackknife_variance(without).variance, float(spread(rows)) / 3 / 4)


def test_degrees_of_freedom_are_groups_less_one() -> None:
    found = spread_variance([1.0, 2.0, 3.0])
    assert (found.groups, found.df, found.reason) == (3, 2.0, "")
    assert found.se == math.sqrt(3.0)


@pytest.mark.parametrize(("few", "said"), [([], "0 groups"), ([0.5], "1 group with")])
def test_fewer_than_two_groups_say_nothing_and_why(few: list[float], said: str) -> None:
    for found in (spread_variance(few), jackknife_variance(few)):
        assert math.isnan(found.variance) and math.isnan(found.df) and math.isnan(found.se)
        assert found.reason.startswith(said)


def test_an_estimate_that_is_undefined_leaves_its_variance_so() -> None:
    for bad in (math.nan, math.inf):
        left_out, whole = jackknife_variance([0.5, bad, 0.5]), spread_variance([0.5, bad])
        assert math.isnan(left_out.variance) and "without one of the groups" in left_out.reason
        assert math.isnan(whole.variance) and whole.reason == "the estimate is undefined"


def test_groups_that_are_all_alike_have_no_variance() -> None:
    assert jackknife_variance([0.5] * 4) == GroupVariance(0.0, 4)


def test_enough_groups_without_a_whale_leave_no_doubt() -> None:
    assert doubts_of_groups([1] * 16) == ()
    assert doubts_of_groups([5] + [1] * 15 + [0] * 48) == ()  # 5 of 20: a quarter, not above


def test_few_groups_and_whales_are_named() -> None:
    assert doubts_of_groups([1] * 15 + [0]) == ("only 15 groups have rows; 16 make a variance",)
    assert doubts_of_groups([6] + [1] * 15) == ("one group has 29 % of the weight",)
    assert len(doubts_of_groups([Fraction(1, 3), Fraction(2, 3)])) == 2
    assert doubts_of_groups([]) == ("only 0 groups have rows; 16 make a variance",)


def test_the_design_effect() -> None:
    assert design_effect(0.5, 0.25) == 2
    assert design_effect(0.052712918267**2, 0.051252533181**2) == pytest.approx(
        1.057799724, rel=1e-9
    )
    assert math.isnan(design_effect(0.5, 0.0)) and math.isnan(design_effect(math.nan, 0.5))
