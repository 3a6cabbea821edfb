"""The normal mixture, against published values, its mean, and the chance that it ever errs."""

from __future__ import annotations

import math
from itertools import product

import mpmath
import numpy as np

from streammetrics.kernels.inference.normal_mixture import (
    anytime_p,
    as_t,
    gaussianised,
    log_e,
    multiplier,
    one_sided_log_e,
    one_sided_multiplier,
    tuned,
)
from streammetrics.kernels.inference.tails import normal_sf, t_sf

RHO = tuned(1.0, 0.05)


def narrowest(v_opt: float, alpha: float) -> float:
    """The ρ with the root of L = 2 ln(1/α) + ln(1 + L), by Lambert's function."""
    return v_opt / float(-mpmath.lambertw(-(mpmath.mpf(alpha) ** 2) / mpmath.e, -1).real - 1)


def test_the_prior_is_tuned_to_the_narrowest_interval_nearly() -> None:
    assert [round(1 / tuned(1.0, alpha), 6) for alpha in (0.05, 0.01)] == [7.936155, 11.533741]
    for alpha in (0.2, 1e-6):
        best = multiplier(1.0, narrowest(1.0, alpha), alpha)
        assert best <= multiplier(1.0, tuned(1.0, alpha), alpha) < best * 1.001


def test_the_multiples_of_the_standard_error_over_time() -> None:
    times = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 10, 100]
    rho = narrowest(1.0, 0.05)
    multiples = [round(multiplier(v, rho, 0.05), 3) for v in times]
    assert multiples == [8.944, 4.665, 3.823, 3.251, 3.079, 3.035, 3.064, 3.131, 3.246, 3.566]


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
    rho = narrowest(1 / (0.0475 * 2 / 20_000), 0.05)
    assert f"{rho:.9f}" == "25636.523936559"
    c = multiplier(v, rho, 0.05)
    assert f"{c:.12f}" == "3.092960974775"
    assert f"{effect - c * error:.12f}" == "-0.003492905946"
    assert f"{effect + c * error:.12f}" == "0.016492905946"
    evidence = log_e(effect / error, v, rho)
    assert f"{evidence:.12f}" == "0.818847242952"
    assert f"{anytime_p(evidence):.12f}" == "0.440939657946"


def mean_of_e(log: object, v: float, rho: float) -> float:
    """E[e] where z is normal, by the trapezoid rule, which is exact here."""
    assert callable(log)
    z = np.arange(-40.0, 40.0, 1 / 16)
    heights = [math.exp(log(x, v, rho) - 0.5 * x**2) for x in z.tolist()]
    return math.fsum(heights) / 16 / math.sqrt(2 * math.pi)


def test_without_an_effect_the_mean_is_one() -> None:
    for v, rho in ((3.0, 0.7), (0.5, 2.0)):
        assert math.isclose(mean_of_e(log_e, v, rho), 1.0, rel_tol=1e-13)
        assert math.isclose(mean_of_e(one_sided_log_e, v, rho), 1.0, rel_tol=1e-13)


def test_an_undefined_estimate_is_no_evidence() -> None:
    assert log_e(math.nan, 1.0, 1.0) == one_sided_log_e(math.nan, 1.0, 1.0) == 0.0
    assert anytime_p(0.0) == anytime_p(-math.inf) == 1.0
    assert anytime_p(math.inf) == 0.0


def test_the_interval_ends_where_the_e_value_is_one_over_alpha() -> None:
    for v, alpha in product((1e-3, 1.0, 1e4), (0.2, 0.05, 1e-4)):
        goal = math.log(1 / alpha)
        assert math.isclose(log_e(multiplier(v, RHO, alpha), v, RHO), goal, rel_tol=1e-12)
        multiple = one_sided_multiplier(v, RHO, alpha)
        assert math.isclose(one_sided_log_e(multiple, v, RHO), goal, rel_tol=1e-12)
        # Howard et al.'s closed form lies above it, two sides at twice the level below.
        closed = math.sqrt(2 * (1 + RHO / v) * math.log(math.sqrt(1 + v / RHO) / (2 * alpha) + 1))
        assert multiplier(v, RHO, 2 * alpha) < multiple < closed


def test_one_side_is_right_far_in_both_tails() -> None:
    mpmath.mp.dps = 40
    for z in (-1e6, -60.0, -29.0, -28.0, -3.0, 0.0, 2.0, 40.0):
        x = mpmath.mpf(z) / mpmath.sqrt(2)
        share = mpmath.erfc(-x / mpmath.sqrt(2))  # 2Φ(x)
        expected = float(x * x / 2 + mpmath.log(share) - mpmath.log(2) / 2)
        assert math.isclose(one_sided_log_e(z, 1.0, 1.0), expected, rel_tol=1e-8, abs_tol=1e-12), z


def test_without_information_nothing_is_concluded() -> None:
    for v in (0.0, math.inf, math.nan, -1.0):
        assert multiplier(v, 1.0, 0.05) == one_sided_multiplier(v, 1.0, 0.05) == math.inf
        assert log_e(3.0, v, 1.0) == one_sided_log_e(3.0, v, 1.0) == 0.0


def test_a_t_statistic_as_a_normal_one_has_the_same_tail() -> None:
    for z, df in product((0.01, 2.0, 6.0), (1.0, 15.0, 1e4)):
        moved = gaussianised(z, df)
        assert math.isclose(normal_sf(moved), t_sf(z, df), rel_tol=1e-12)
        assert 0 < moved < z
        assert gaussianised(-z, df) == -moved
        assert math.isclose(as_t(moved, df), z, rel_tol=1e-11)
        assert as_t(-moved, df) == -as_t(moved, df)
    for z in (-2.0, 0.0, 7.0):
        assert gaussianised(z, math.inf) == as_t(z, math.inf) == z
    for z, df in ((2.0, 0.0), (2.0, -1.0), (2.0, math.nan), (math.nan, 5.0)):
        assert math.isnan(gaussianised(z, df)) and math.isnan(as_t(z, df))


def test_what_no_float_can_hold_is_cut_on_the_safe_side() -> None:
    assert 37 < gaussianised(1e9, 63.0) < 38
    assert gaussianised(math.inf, 63.0) == gaussianised(1e9, 63.0)
    assert as_t(38.0, 3.0) == as_t(math.inf, 63.0) == math.inf
    assert as_t(-math.inf, 63.0) == -math.inf
