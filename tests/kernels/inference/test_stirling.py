"""What Stirling's formula leaves over, against mpmath with 50 digits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from streammetrics.kernels.inference.incomplete import deviance, log_beta, stirling_remainder

positive = st.floats(-3, 12).map(lambda power: 10.0**power)


@pytest.fixture(autouse=True)
def _fifty_digits() -> None:
    mp.dps = 50


@given(positive)
def test_the_remainder_is_known_to_its_last_places(x: float) -> None:
    a = mpf(x)
    wanted = mp.loggamma(a) - (a - 0.5) * mp.log(a) + a - mp.log(2 * mp.pi) / 2
    assert abs(stirling_remainder(x) - wanted) <= 3e-15 * wanted


@given(positive, positive)
def test_log_beta_is_known_to_14_digits_whatever_the_sizes(a: float, b: float) -> None:
    wanted = mp.loggamma(mpf(a)) + mp.loggamma(mpf(b)) - mp.loggamma(mpf(a) + mpf(b))
    assert abs(log_beta(a, b) - wanted) <= 1e-14 * max(1, abs(wanted))


@given(positive, positive)
def test_log_beta_does_not_know_which_comes_first(a: float, b: float) -> None:
    assert log_beta(a, b) == log_beta(b, a)


@given(positive, st.floats(-0.4, 0.6))
def test_a_deviance_of_near_numbers_loses_no_digits(mean: float, apart: float) -> None:
    x = mean * (1 + apart)
    wanted = mpf(x) * mp.log(mpf(x) / mpf(mean)) - mpf(x) + mpf(mean)
    assert abs(deviance(x, mean) - wanted) <= 1e-13 * wanted


def test_a_deviance_at_its_ends() -> None:
    assert (deviance(3.0, 3.0), deviance(0.0, 3.0)) == (0.0, 3.0)
    assert math.isclose(deviance(30.0, 3.0), 30 * math.log(10) - 27, rel_tol=1e-15)
