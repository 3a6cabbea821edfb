"""Tails and quantiles against mpmath, over the ranges in which intervals ask for them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from streammetrics.kernels.inference.tails import chi2_sf, normal_isf, normal_sf, t_isf, t_sf

shares = st.floats(-10, math.log10(0.499)).map(lambda power: 10.0**power)
freedoms = st.one_of(st.integers(1, 2046).map(float), st.floats(1, 2046))


@pytest.fixture(autouse=True)
def _forty_digits() -> None:
    mp.dps = 40


def tail_of_t(t: float | mpf, df: float) -> mpf:
    t, df = mpf(t), mpf(df)
    return mp.betainc(df / 2, mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2


@given(st.floats(-8, 37))
def test_the_tail_of_a_normal(z: float) -> None:
    wanted = mp.erfc(mpf(z) / mp.sqrt(2)) / 2
    assert abs(normal_sf(z) - wanted) <= 2e-16 * (1 + z * z) * wanted


@given(st.floats(-300, math.log10(0.499)).map(lambda power: 10.0**power))
def test_the_quantile_of_a_normal(p: float) -> None:
    z = mpf(normal_isf(p))
    better = z + (mp.erfc(z / mp.sqrt(2)) / 2 - mpf(p)) / mp.npdf(z)
    assert abs(z - better) <= 1e-15 * max(better, 0.1)
    assert normal_isf(1 - 0.25) == -normal_isf(0.25)


@given(shares, freedoms)
@settings(max_examples=60)
def test_the_tail_of_t_is_known_to_12_digits(p: float, df: float) -> None:
    t = t_isf(p, df)
    wanted = tail_of_t(t, df)
    assert abs(t_sf(t, df) - wanted) <= 1e-12 * wanted
    assert t_sf(-t, df) == 1 - t_sf(t, df)


@pytest.mark.slow
@given(shares, freedoms)
@settings(max_examples=60)
def test_the_quantile_of_t_is_known_to_13_digits(p: float, df: float) -> None:
    t, df_ = mpf(t_isf(p, df)), mpf(df)
    density = (1 + t * t / df_) ** (-(df_ + 1) / 2) / mp.sqrt(df_) / mp.beta(df_ / 2, mpf(1) / 2)
    better = t + (tail_of_t(t, df) - mpf(p)) / density
    assert abs(t - better) <= 1e-13 * better / min(1, 10 * (0.5 - p))


@pytest.mark.parametrize("df", [4000.0, 4096.0, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("t", [0.01, 0.7, 1.96, 5.0, 12.0])
def test_many_degrees_of_freedom(t: float, df: float) -> None:
    f, bounds = mpf(df), [t, t + 1, t + 3, t + 10, t + 40]
    log_height = mp.loggamma((f + 1) / 2) - mp.loggamma(f / 2) - mp.log(f * mp.pi) / 2
    wanted = mp.exp(log_height) * mp.quad(lambda u: (1 + u * u / f) ** (-(f + 1) / 2), bounds)
    assert abs(t_sf(t, df) - wanted) <= 1e-12 * wanted


@given(st.floats(0.01, 200), st.integers(1, 40))
def test_the_tail_of_chi_square(x: float, df: int) -> None:
    wanted = mp.gammainc(mpf(df) / 2, mpf(x) / 2, mp.inf, regularized=True)
    assert abs(chi2_sf(x, df) - wanted) <= 1e-13 * wanted


def test_t_of_one_and_two_degrees_is_what_arithmetic_says() -> None:
    for t in (0.1, 1.0, 3.0, 50.0):
        assert math.isclose(t_sf(t, 1), math.atan(1 / t) / math.pi, rel_tol=1e-14)
        root = math.sqrt(2 + t * t)
        assert math.isclose(t_sf(t, 2), 1 / (root * (root + t)), rel_tol=1e-14)


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


@pytest.mark.parametrize("df", [0.02, 0.5, 1.0])
def test_a_quantile_far_out_is_still_one(df: float) -> None:
    t = t_isf(1e-3, df)
    assert t == math.inf or math.isclose(t_sf(t, df), 1e-3, rel_tol=1e-10)
