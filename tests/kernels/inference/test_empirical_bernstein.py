"""Means of values in [0, 1], certain at every look."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.inference.empirical_bernstein import (
    Moments,
    boundary,
    difference,
    interval,
    log_e,
    log_m,
    tuned_one_sided,
)


def rates(ones: int, n: int) -> Moments:
    return Moments(n, ones, ones)


def test_the_radius_is_that_of_the_boundary() -> None:
    # Σ (x - 1/4)² of 300 ones in 1000 is 300 · 9/16 + 700 / 16.
    low, high = interval(rates(300, 1000), Fraction(1, 4), 200.0, 0.05)
    radius = boundary(212.5, tuned_one_sided(200.0, 0.025), 0.025) / 1000
    assert (low, high) == (0.3 - radius, 0.3 + radius)


def test_squares_about_a_reference_are_exact() -> None:
    values = [0.1, 0.7, 0.25]
    total = sum(map(Fraction, values), Fraction(0))
    squares = sum((Fraction(x) ** 2 for x in values), Fraction(0))
    found = Moments(3, total, squares)
    expected = sum((Fraction(x) - Fraction(0.3)) ** 2 for x in values)
    assert found.about(0.3) == float(expected) and found.mean == float(total / 3)


def test_a_sum_of_squares_that_was_rounded_is_never_below_zero() -> None:
    assert Moments(3, 0.3, 0.03 - 1e-12).about(0.1) == 0.0


def test_without_values_nothing_is_known() -> None:
    none = Moments(0, 0, 0)
    assert interval(none, 0.5, 10.0, 0.05) == (0.0, 1.0)
    assert difference(none, rates(3, 4), 0.5, 10.0, 0.05)[0] == -1.0
    assert log_e(none, rates(3, 4), 0.5, 10.0, 0.05) == 0.0
    assert math.isnan(none.mean)


@pytest.mark.parametrize("ones", [0, 3, 10])
def test_few_values_give_an_interval_within_zero_and_one(ones: int) -> None:
    low, high = interval(rates(ones, 10), 0.5, 10.0, 0.05)
    assert 0 <= low <= ones / 10 <= high <= 1


def test_the_difference_spends_a_quarter_of_alpha_on_each_side_of_each_arm() -> None:
    a, b = rates(400, 1000), rates(500, 1000)
    low, high = difference(a, b, 0.4, 250.0, 0.05)
    one, other = (interval(arm, 0.4, 250.0, 0.025) for arm in (a, b))
    assert (low, high) == (other[0] - one[1], other[1] - one[0])
    assert difference(b, a, 0.4, 250.0, 0.05) == (-high, -low)


def test_the_e_value_reaches_one_over_alpha_just_where_the_interval_leaves_out_zero() -> None:
    goal, alpha, sides = math.log(20), 0.05, set()
    for ones in range(740, 1000, 7):
        a, b = rates(1000, 4000), rates(ones, 3000)
        low, high = difference(a, b, 0.3, 800.0, alpha)
        found = log_e(a, b, 0.3, 800.0, alpha)
        assert (found >= goal) == (not low <= 0 <= high)
        assert log_e(b, a, 0.3, 800.0, alpha) == found
        sides.add(found >= goal)
    assert sides == {True, False}


def test_equal_means_are_no_evidence() -> None:
    assert log_e(rates(30, 100), rates(60, 200), 0.3, 20.0, 0.05) < 0
    one = rates(30, 100)
    least = log_m(0.0, one.about(0.3), tuned_one_sided(20.0, 0.0125))
    assert log_e(one, one, 0.3, 20.0, 0.05) == least - math.log(4)


@pytest.mark.slow
def test_it_hardly_ever_errs_looked_at_always() -> None:
    rng, missed = np.random.default_rng(20261121), 0
    for _ in range(200):
        values = rng.beta(2, 5, 2000)
        for n in (10, 30, 100, 300, 1000, 2000):
            found = Moments(n, float(values[:n].sum()), float((values[:n] ** 2).sum()))
            low, high = interval(found, 0.3, 50.0, 0.05)
            if not low <= 2 / 7 <= high:
                missed += 1
                break
    assert missed <= 10
