"""The normal mixture, against published values, its mean, and the chance that it ever errs."""

from __future__ import annotations

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from streammetrics.kernels.inference.normal_mixture import (
    anytime_p,
    log_e,
    multiplier,
    one_sided_log_e,
    one_sided_multiplier,
    tuned,
)
from streammetrics.kernels.inference.tails import normal_sf
from tests.depth import further_are_slow

RHO = tuned(1.0, 0.05)


@pytest.mark.parametrize(("alpha", "length"), [(0.05, 7.936155), (0.01, 11.533741)])
def test_the_length_that_tunes_the_prior(alpha: float, length: float) -> None:
    assert round(1 / tuned(1.0, alpha), 6) == length


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.01, 1e-6])
def test_the_exact_length_is_that_of_the_lambert_function(alpha: float) -> None:
    exact = -mpmath.lambertw(-(mpmath.mpf(alpha) ** 2) / mpmath.e, -1).real - 1
    assert math.isclose(1 / tuned(1.0, alpha, exact=True), float(exact), rel_tol=1e-14)
    # It is the least interval at its time, and the closed form is hardly wider.
    best = multiplier(1.0, tuned(1.0, alpha, exact=True), alpha)
    assert best <= multiplier(1.0, tuned(1.0, alpha), alpha) < best * 1.001
    for other in (0.9, 1.1):
        assert best < multiplier(1.0, other * tuned(1.0, alpha, exact=True), alpha)


def test_at_five_percent_the_closed_form_is_wider_by_less_than_one_in_ten_thousand() -> None:
    best = multiplier(1.0, tuned(1.0, 0.05, exact=True), 0.05)
    assert multiplier(1.0, RHO, 0.05) < best * 1.0001


def test_the_multiples_of_the_standard_error_over_time() -> None:
    times = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 10, 100]
    rho = tuned(1.0, 0.05, exact=True)
    found = [round(multiplier(v, rho, 0.05), 3) for v in times]
    assert found == [8.944, 4.665, 3.823, 3.251, 3.079, 3.035, 3.064, 3.131, 3.246, 3.566]


def test_the_boundary_is_that_of_confseq() -> None:
    rho = tuned(1e4, 0.05)
    expected = {
        1: "86.9285528428",
        10: "87.2899516541",
        100: "90.8437943731",
        1e3: "121.907531463",
        1e4: "303.520899038",
        1e5: "1025.12286832",
    }
    for v, digits in expected.items():
        assert f"{multiplier(v, rho, 0.05) * math.sqrt(v):.12g}" == digits
    assert f"{log_e(250 / math.sqrt(1e4), 1e4, rho):.12g}" == "1.68024432683"


def test_two_rates_of_ten_thousand_units() -> None:
    a, b, n = 0.052, 0.0585, 10_000
    variance = (a * (1 - a) + b * (1 - b)) / (n - 1)
    effect, error, v = b - a, math.sqrt(variance), 1 / variance
    rho = tuned(1 / (0.0475 * 2 / 20_000), 0.05, exact=True)
    assert f"{rho:.9f}" == "25636.523936559"
    c = multiplier(v, rho, 0.05)
    assert f"{c:.12f}" == "3.092960974775"
    assert f"{effect - c * error:.12f}" == "-0.003492905946"
    assert f"{effect + c * error:.12f}" == "0.016492905946"
    found = log_e(effect / error, v, rho)
    assert f"{found:.12f}" == "0.818847242952"
    assert f"{anytime_p(found):.12f}" == "0.440939657946"


def mean_of_e(log: object, v: float, rho: float, drift: float = 0.0) -> float:
    """E[e] where z is normal with the mean `drift`, by the trapezoid rule, which is exact here."""
    assert callable(log)
    z = np.arange(-60.0, 60.0, 1 / 64)
    heights = [math.exp(log(x, v, rho) - 0.5 * (x - drift) ** 2) for x in z.tolist()]
    return math.fsum(heights) / 64 / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(("v", "rho"), [(3.0, 0.7), (0.5, 2.0), (1.0, 1.0)])
def test_without_an_effect_the_mean_is_one(v: float, rho: float) -> None:
    assert math.isclose(mean_of_e(log_e, v, rho), 1.0, rel_tol=1e-13)
    assert math.isclose(mean_of_e(one_sided_log_e, v, rho), 1.0, rel_tol=1e-13)


def test_below_the_margin_the_mean_of_one_side_is_less_than_one() -> None:
    assert mean_of_e(one_sided_log_e, 3.0, 0.7, drift=-1.0) < 0.7


def ever_crossing(bounds: list[tuple[float, float]]) -> float:
    """The chance that a normal walk of unit steps ever leaves bounds[k] after step k + 1."""
    nodes, weights = np.polynomial.legendre.leggauss(240)

    def placed(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        return low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2

    at, total_count = placed(*bounds[0])
    density = np.exp(-at * at / 2) / math.sqrt(2 * math.pi)
    for low, high in bounds[1:]:
        following, its_mass = placed(low, high)
        steps = np.exp(-((following[:, None] - at) ** 2) / 2) / math.sqrt(2 * math.pi)
        density = (steps * (density * total_count)).sum(axis=1)
        at, total_count = following, its_mass
    return 1 - float((density * total_count).sum())


@pytest.mark.parametrize(
    ("looks", "chance"),
    [(2, 0.08312), (5, 0.14169), (10, 0.19336), (20, 0.24791), (50, 0.32045), (200, 0.42427)],
)
def test_a_z_test_looked_at_again_and_again_errs(looks: int, chance: float) -> None:
    reach = [1.959963984540054 * math.sqrt(k) for k in range(1, looks + 1)]
    assert round(ever_crossing([(-b, b) for b in reach]), 5) == chance


@pytest.mark.parametrize(
    ("tuned_at", "chance"), [(1, 0.01610), (0.5, 0.02142), (0.25, 0.02492), (0.05, 0.02605)]
)
def test_the_mixture_errs_less_often_than_alpha_in_200_looks(
    tuned_at: float, chance: float
) -> None:
    rho = tuned(200 * tuned_at, 0.05, exact=True)
    reach = [multiplier(k, rho, 0.05) * math.sqrt(k) for k in range(1, 201)]
    assert round(ever_crossing([(-b, b) for b in reach]), 5) == chance


@pytest.mark.parametrize("tuned_at", list(further_are_slow(1, 0.25, 0.05)))
def test_one_side_errs_less_often_than_alpha_in_200_looks(tuned_at: float) -> None:
    rho = tuned(200 * tuned_at, 0.1)
    reach = [one_sided_multiplier(k, rho, 0.05) * math.sqrt(k) for k in range(1, 201)]
    assert 0.01 < ever_crossing([(-9 * math.sqrt(k) - 9, b) for k, b in enumerate(reach, 1)]) < 0.03


@pytest.mark.parametrize("v", [1e-3, 0.3, 1.0, 7.0, 1e4])
@pytest.mark.parametrize("alpha", [0.2, 0.05, 1e-4])
def test_the_interval_ends_where_the_e_value_is_one_over_alpha(v: float, alpha: float) -> None:
    goal = math.log(1 / alpha)
    assert math.isclose(log_e(multiplier(v, RHO, alpha), v, RHO), goal, rel_tol=1e-12)
    one = one_sided_multiplier(v, RHO, alpha)
    assert math.isclose(one_sided_log_e(one, v, RHO), goal, rel_tol=1e-12)
    # Howard et al.'s closed form lies above it, two sides at twice the level below.
    closed = math.sqrt(2 * (1 + RHO / v) * math.log(math.sqrt(1 + v / RHO) / (2 * alpha) + 1))
    assert multiplier(v, RHO, 2 * alpha) < one < closed


@pytest.mark.parametrize("z", [-1e6, -1000.0, -60.0, -29.0, -28.0, -3.0, 0.0, 2.0, 40.0])
def test_one_side_is_right_far_in_both_tails(z: float) -> None:
    mpmath.mp.dps = 40
    v, rho = mpmath.mpf(1), mpmath.mpf(1)
    x = mpmath.mpf(z) * mpmath.sqrt(v / (v + rho))
    share = mpmath.erfc(-x / mpmath.sqrt(2))  # 2Φ(x)
    expected = x * x / 2 + mpmath.log(share) + mpmath.log(rho / (v + rho)) / 2
    assert math.isclose(one_sided_log_e(z, 1.0, 1.0), float(expected), rel_tol=1e-8, abs_tol=1e-12)


def test_one_side_rises_with_z() -> None:
    found = [one_sided_log_e(z / 8, 1.0, 1.0) for z in range(-400, 400)]
    assert all(a < b for a, b in pairwise(found))


@pytest.mark.parametrize("v", [0.0, math.inf, math.nan, -1.0])
def test_without_information_nothing_is_concluded(v: float) -> None:
    assert multiplier(v, 1.0, 0.05) == one_sided_multiplier(v, 1.0, 0.05) == math.inf
    assert log_e(3.0, v, 1.0) == one_sided_log_e(3.0, v, 1.0) == 0.0


def test_an_undefined_estimate_is_no_evidence() -> None:
    assert log_e(math.nan, 1.0, 1.0) == one_sided_log_e(math.nan, 1.0, 1.0) == 0.0
    assert anytime_p(0.0) == anytime_p(-math.inf) == 1.0
    assert anytime_p(math.inf) == 0.0


def test_sides_are_alike() -> None:
    assert log_e(1.5, 2.0, 0.5) == log_e(-1.5, 2.0, 0.5)
    assert normal_sf(0.0) == 0.5
