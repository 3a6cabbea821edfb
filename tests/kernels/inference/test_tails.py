"""Tails, quantiles and the functions that they are made of, against mpmath."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from streammetrics.kernels.inference.tails import (
    beta_p,
    chi2_sf,
    deviance,
    gamma_p,
    gamma_q,
    last_inside,
    log_beta,
    log_gamma_p,
    normal_isf,
    normal_sf,
    stirling_remainder,
    t_isf,
    t_sf,
)

shares = st.floats(-10, math.log10(0.499)).map(lambda power: 10.0**power)
freedoms = st.one_of(st.integers(1, 2046).map(float), st.floats(1, 2046))


@pytest.fixture(autouse=True)
def _fifty_digits() -> None:
    mp.dps = 50


def tail_of_t(t: float | mpf, df: float) -> mpf:
    t, df = mpf(t), mpf(df)
    return mp.betainc(df / 2, mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2


@given(st.floats(-8, 37))
def test_the_tail_of_a_normal(z: float) -> None:
    expected = mp.erfc(mpf(z) / mp.sqrt(2)) / 2
    assert abs(normal_sf(z) - expected) <= 2e-16 * (1 + z * z) * expected


@given(st.floats(-300, math.log10(0.499)).map(lambda power: 10.0**power))
def test_the_quantile_of_a_normal(p: float) -> None:
    z = mpf(normal_isf(p))
    better = z + (mp.erfc(z / mp.sqrt(2)) / 2 - mpf(p)) / mp.npdf(z)
    assert abs(z - better) <= 1e-15 * max(better, 0.1)
    assert normal_isf(1 - 0.25) == -normal_isf(0.25)


@given(shares, freedoms)
@settings(max_examples=25)
def test_the_tail_of_t_is_known_to_12_digits(p: float, df: float) -> None:
    t = t_isf(p, df)
    expected = tail_of_t(t, df)
    assert abs(t_sf(t, df) - expected) <= 1e-12 * expected
    assert t_sf(-t, df) == 1 - t_sf(t, df)


@given(shares, freedoms)
@settings(max_examples=25)
def test_the_quantile_of_t_is_known_to_13_digits(p: float, df: float) -> None:
    t, df_ = mpf(t_isf(p, df)), mpf(df)
    density = (1 + t * t / df_) ** (-(df_ + 1) / 2) / mp.sqrt(df_) / mp.beta(df_ / 2, mpf(1) / 2)
    better = t + (tail_of_t(t, df) - mpf(p)) / density
    assert abs(t - better) <= 1e-13 * better / min(1, 10 * (0.5 - p))


@given(st.floats(0.01, 200), st.integers(1, 40))
def test_the_tail_of_chi_square(x: float, df: int) -> None:
    expected = mp.gammainc(mpf(df) / 2, mpf(x) / 2, mp.inf, regularized=True)
    assert abs(chi2_sf(x, df) - expected) <= 1e-13 * expected


def test_the_ends() -> None:
    assert (normal_isf(0.0), normal_isf(1.0), normal_isf(0.5)) == (math.inf, -math.inf, 0.0)
    assert (t_sf(math.inf, 3), t_sf(-math.inf, 3), t_sf(0.0, 3)) == (0.0, 1.0, 0.5)
    assert (t_isf(0.0, 3), t_isf(1.0, 3), t_isf(0.5, 3)) == (math.inf, -math.inf, 0.0)
    assert t_isf(0.975, 3) == -t_isf(1 - 0.975, 3)
    assert (chi2_sf(0.0, 2), chi2_sf(-1.0, 2)) == (1.0, 1.0)
    assert t_sf(2.0, math.inf) == normal_sf(2.0)
    assert t_isf(0.01, math.inf) == normal_isf(0.01)


def test_what_is_no_share_or_no_number_of_degrees_is_nan() -> None:
    undefined = [
        normal_isf(1.5), normal_isf(math.nan), t_sf(1.0, 0.0), t_sf(math.nan, 3.0),
        t_isf(0.1, 0.0), t_isf(-0.1, 3.0), t_isf(0.1, math.nan), t_isf(math.nan, 2.0),
    ]  # fmt: skip
    assert all(map(math.isnan, undefined))


def test_many_degrees_of_freedom() -> None:
    for df, t in ((4000.0, 5.0), (4096.0, 0.7), (4096.0, 12.0), (1e6, 5.0)):
        f, bounds = mpf(df), [t, t + 1, t + 3, t + 10, t + 40]
        log_height = mp.loggamma((f + 1) / 2) - mp.loggamma(f / 2) - mp.log(f * mp.pi) / 2
        area = mp.quad(lambda u, f=f: (1 + u * u / f) ** (-(f + 1) / 2), bounds)
        expected = mp.exp(log_height) * area
        assert abs(t_sf(t, df) - expected) <= 1e-12 * expected, (df, t)


def test_a_quantile_far_out_is_still_one() -> None:
    for df in (0.02, 0.5, 1.0):
        t = t_isf(1e-3, df)
        assert t == math.inf or math.isclose(t_sf(t, df), 1e-3, rel_tol=1e-10)


def test_the_last_float_inside_is_the_one_next_to_the_change() -> None:
    for edge in (1.0, 1.9999999, -0.7, 1e-9):
        assert last_inside(-2.0, 2.0, lambda x, limit=edge: x <= limit) == edge
        assert last_inside(2.0, -2.0, lambda x, limit=edge: x >= limit) == edge
    after = math.nextafter(1.0, 2.0)
    assert last_inside(1.0, after, lambda x: x < 1 / 0) == 1.0  # neighbours: nothing is asked


size = st.floats(-0.5, 3.5).map(lambda power: 10.0**power)
deviations = st.floats(-6, 8)


@given(size, deviations)
def test_both_sides_of_gamma_are_known_to_12_digits(a: float, deviation: float) -> None:
    x = max(a + deviation * math.sqrt(a), 1e-3 * a)
    below = mp.gammainc(mpf(a), 0, mpf(x), regularized=True)
    above = mp.gammainc(mpf(a), mpf(x), mp.inf, regularized=True)
    assert abs(gamma_p(a, x) - below) <= 1e-12 * below
    assert abs(gamma_q(a, x) - above) <= 1e-12 * above
    assert abs(log_gamma_p(a, x) - mp.log(below)) <= 1e-12


@given(size, size, deviations)
@settings(max_examples=12)
def test_beta_is_known_to_12_digits(a: float, b: float, deviation: float) -> None:
    middle = a / (a + b)
    x = middle + deviation * math.sqrt(middle * (1 - middle) / (a + b + 1))
    x = min(max(x, 1e-6), 1 - 1e-6)
    expected = mp.betainc(mpf(a), mpf(b), 0, mpf(x), regularized=True)
    assert abs(beta_p(a, b, x, 1 - x) - expected) <= 1e-12 * expected


def test_the_logarithm_does_not_underflow() -> None:
    expected = mp.log(mp.gammainc(1000, 0, 10, regularized=True))
    assert gamma_p(1000.0, 10.0) == 0
    assert abs(log_gamma_p(1000.0, 10.0) - expected) <= 1e-14 * abs(expected)


def test_the_ends_of_gamma_and_beta() -> None:
    assert (gamma_p(2.0, 0.0), gamma_p(2.0, math.inf)) == (0.0, 1.0)
    assert (gamma_q(2.0, 0.0), gamma_q(2.0, math.inf)) == (1.0, 0.0)
    assert (beta_p(2.0, 3.0, 0.0, 1.0), beta_p(2.0, 3.0, 1.0, 0.0)) == (0.0, 1.0)
    assert math.isnan(gamma_p(-1.0, 1.0)) and math.isnan(gamma_q(1.0, -1.0))


positive = st.floats(-3, 12).map(lambda power: 10.0**power)


@given(positive)
def test_the_remainder_is_known_to_its_last_places(x: float) -> None:
    a = mpf(x)
    expected = mp.loggamma(a) - (a - 0.5) * mp.log(a) + a - mp.log(2 * mp.pi) / 2
    assert abs(stirling_remainder(x) - expected) <= 3e-15 * expected


@given(positive, positive)
def test_log_beta_is_known_to_14_digits_whatever_the_sizes(a: float, b: float) -> None:
    expected = mp.loggamma(mpf(a)) + mp.loggamma(mpf(b)) - mp.loggamma(mpf(a) + mpf(b))
    assert abs(log_beta(a, b) - expected) <= 1e-14 * max(1, abs(expected))
    assert log_beta(a, b) == log_beta(b, a)


@given(positive, st.floats(-0.4, 0.6))
def test_a_deviance_of_near_numbers_loses_no_digits(mean: float, apart: float) -> None:
    x = mean * (1 + apart)
    expected = mpf(x) * mp.log(mpf(x) / mpf(mean)) - mpf(x) + mpf(mean)
    assert abs(deviance(x, mean) - expected) <= 1e-13 * expected


def test_a_deviance_at_its_ends() -> None:
    assert (deviance(3.0, 3.0), deviance(0.0, 3.0)) == (0.0, 3.0)
    assert math.isclose(deviance(30.0, 3.0), 30 * math.log(10) - 27, rel_tol=1e-15)
