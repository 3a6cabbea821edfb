"""Means of values in [0, 1], certain at every look, against confseq, mpmath and their own mean."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath

from streammetrics.kernels.inference.empirical_bernstein import (
    Moments,
    boundary,
    difference,
    interval,
    log_e,
    log_m,
)
from streammetrics.kernels.inference.normal_mixture import tuned


def rates(ones: int, n: int) -> Moments:
    return Moments(n, ones, ones)


def test_the_radius_is_that_of_the_boundary() -> None:
    # Σ (x - 1/4)² of 300 ones in 1000 is 300 · 9/16 + 700 / 16.
    low, high = interval(rates(300, 1000), Fraction(1, 4), 200.0, 0.05)
    radius = boundary(212.5, tuned(200.0, 2 * 0.025), 0.025) / 1000
    assert (low, high) == (0.3 - radius, 0.3 + radius)


def test_squares_about_a_reference_are_exact() -> None:
    values = [0.1, 0.7, 0.25]
    total = sum(map(Fraction, values), Fraction(0))
    squares = sum((Fraction(x) ** 2 for x in values), Fraction(0))
    moments = Moments(3, total, squares)
    expected = sum((Fraction(x) - Fraction(0.3)) ** 2 for x in values)
    assert moments.squares_about(0.3) == float(expected) and moments.mean == float(total / 3)
    assert Moments(3, 0.3, 0.03 - 1e-12).squares_about(0.1) == 0.0  # a sum that was rounded


def test_without_values_nothing_is_known() -> None:
    none = Moments(0, 0, 0)
    assert interval(none, 0.5, 10.0, 0.05) == interval(rates(1, 2), 0.5, 10.0, 0.05) == (0.0, 1.0)
    assert difference(none, rates(3, 4), 0.5, 10.0, 0.05)[0] == -1.0
    assert log_e(none, rates(3, 4), 0.5, 10.0, 0.05) == 0.0
    assert math.isnan(none.mean)


def test_the_difference_spends_a_quarter_of_alpha_on_each_side_of_each_arm() -> None:
    a, b = rates(400, 1000), rates(500, 1000)
    low, high = difference(a, b, 0.4, 250.0, 0.05)
    bounds_a, bounds_b = (interval(arm, 0.4, 250.0, 0.025) for arm in (a, b))
    assert (low, high) == (bounds_b[0] - bounds_a[1], bounds_b[1] - bounds_a[0])
    assert difference(b, a, 0.4, 250.0, 0.05) == (-high, -low)


def test_the_e_value_reaches_one_over_alpha_just_where_the_interval_leaves_out_zero() -> None:
    goal, alpha, sides = math.log(20), 0.05, set()
    for ones in (740, 850, 880, 895, 905, 999):
        a, b = rates(1000, 4000), rates(ones, 3000)
        low, high = difference(a, b, 0.3, 800.0, alpha)
        evidence = log_e(a, b, 0.3, 800.0, alpha)
        assert (evidence >= goal) == (not low <= 0 <= high)
        assert log_e(b, a, 0.3, 800.0, alpha) == evidence
        sides.add(evidence >= goal)
    assert sides == {True, False}


def test_equal_means_are_no_evidence() -> None:
    assert log_e(rates(30, 100), rates(60, 200), 0.3, 20.0, 0.05) < 0
    arm = rates(30, 100)
    least = log_m(0.0, arm.squares_about(0.3), tuned(20.0, 2 * 0.0125))
    assert log_e(arm, arm, 0.3, 20.0, 0.05) == least - math.log(4)


RHO = tuned(100.0, 2 * 0.025)


def exact(s: float, v: float, rho: float) -> float:
    """ln m as Howard et al. print it."""
    mpmath.mp.dps = 50
    r, a, x = (mpmath.mpf(n) for n in (rho, v, s))
    a, x = a + r, x + a + r
    lower = mpmath.gammainc(a, 0, x, regularized=True)
    whole = mpmath.gammainc(r, 0, r, regularized=True)
    first = r * mpmath.log(r) - mpmath.loggamma(r) - mpmath.log(whole)
    second = mpmath.loggamma(a) + mpmath.log(lower) - a * mpmath.log(x)
    return float(first + second + mpmath.mpf(s) + mpmath.mpf(v))


def test_the_boundary_is_that_of_confseq() -> None:
    expected = {
        1.0: 11.3813005072,
        10.0: 14.6760923016,
        100.0: 33.4883695307,
        1e3: 106.835013078,
        1e4: 362.667938049,
        1e5: 1235.11124297,
    }
    for v, printed in expected.items():  # to twelve digits; that of 1e4 lies halfway
        assert math.isclose(boundary(v, RHO, 0.025), printed, rel_tol=1.5e-12)
    assert f"{log_m(60.0, 100.0, RHO):.12g}" == "11.4244936978"


def test_it_is_what_mpmath_says() -> None:
    for v, rho, size in product((0.0, 20.0, 1e6), (0.5, 1e3), (0.0, 3.0)):
        s = size * math.sqrt(v + rho)
        assert math.isclose(log_m(s, v, rho), exact(s, v, rho), rel_tol=1e-11, abs_tol=1e-11)


def test_the_boundary_is_where_the_e_value_is_one_over_alpha() -> None:
    for v, alpha in product((0.0, 1e7), (0.4, 1e-6)):
        limit = boundary(v, RHO, alpha)
        assert math.isclose(log_m(limit, v, RHO), -math.log(alpha), rel_tol=1e-9)
