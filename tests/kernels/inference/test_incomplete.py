"""The incomplete gamma and beta functions against mpmath, near and far from their middles."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from streammetrics.kernels.inference.incomplete import beta_p, gamma_p, gamma_q, log_gamma_p

size = st.floats(-0.5, 3.5).map(lambda power: 10.0**power)
deviations = st.floats(-6, 8)


@pytest.fixture(autouse=True)
def _forty_digits() -> None:
    mp.dps = 40


@given(size, deviations)
def test_both_sides_of_gamma_are_known_to_12_digits(a: float, by: float) -> None:
    x = max(a + by * math.sqrt(a), 1e-3 * a)
    below = mp.gammainc(mpf(a), 0, mpf(x), regularized=True)
    above = mp.gammainc(mpf(a), mpf(x), mp.inf, regularized=True)
    assert abs(gamma_p(a, x) - below) <= 1e-12 * below
    assert abs(gamma_q(a, x) - above) <= 1e-12 * above
    assert abs(log_gamma_p(a, x) - mp.log(below)) <= 1e-12


@given(st.floats(0.5, 16), st.floats(0.01, 60))
def test_gamma_of_few_degrees_of_freedom_is_known_to_14_digits(a: float, x: float) -> None:
    above = mp.gammainc(mpf(a), mpf(x), mp.inf, regularized=True)
    assert abs(gamma_q(a, x) - above) <= 3e-14 * above


@pytest.mark.slow
@given(size, size, deviations)
def test_beta_is_known_to_12_digits(a: float, b: float, by: float) -> None:
    middle = a / (a + b)
    x = middle + by * math.sqrt(middle * (1 - middle) / (a + b + 1))
    x = min(max(x, 1e-6), 1 - 1e-6)
    wanted = mp.betainc(mpf(a), mpf(b), 0, mpf(x), regularized=True)
    assert abs(beta_p(a, b, x, 1 - x) - wanted) <= 1e-12 * wanted


def test_the_logarithm_does_not_underflow() -> None:
    wanted = mp.log(mp.gammainc(1000, 0, 10, regularized=True))
    assert gamma_p(1000.0, 10.0) == 0
    assert abs(log_gamma_p(1000.0, 10.0) - wanted) <= 1e-14 * abs(wanted)


def test_the_ends() -> None:
    assert (gamma_p(2.0, 0.0), gamma_p(2.0, math.inf)) == (0.0, 1.0)
    assert (gamma_q(2.0, 0.0), gamma_q(2.0, math.inf)) == (1.0, 0.0)
    assert (beta_p(2.0, 3.0, 0.0, 1.0), beta_p(2.0, 3.0, 1.0, 0.0)) == (0.0, 1.0)
    assert math.isnan(gamma_p(-1.0, 1.0)) and math.isnan(gamma_q(1.0, -1.0))


@pytest.mark.parametrize("a", [1e6, 1e8])
def test_the_middle_of_a_large_gamma_is_near_a_half(a: float) -> None:
    # P(a, a) = 1/2 + 1 / (3 √(2πa)) + O(a^-3/2).
    assert abs(gamma_p(a, a) - 0.5 - 1 / (3 * math.sqrt(2 * math.pi * a))) < 1e-10
