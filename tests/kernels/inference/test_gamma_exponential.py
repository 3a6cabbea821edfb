"""The gamma-exponential mixture, against confseq, mpmath, and its own mean."""

from __future__ import annotations

import math

import mpmath
import pytest

from streammetrics.kernels.inference.empirical_bernstein import boundary, log_m, tuned_one_sided

RHO = tuned_one_sided(100.0, 0.025)


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


@pytest.mark.parametrize("v", [0.0, 0.3, 20.0, 1e4, 1e6])
@pytest.mark.parametrize("rho", [0.5, 12.0, 1e3])
def test_it_is_what_mpmath_says(v: float, rho: float) -> None:
    for s in (0.0, 1.0, 3.0 * math.sqrt(v + rho)):
        assert math.isclose(log_m(s, v, rho), exact(s, v, rho), rel_tol=1e-11, abs_tol=1e-11)


@pytest.mark.parametrize("v", [0.0, 1.0, 1e3, 1e7])
@pytest.mark.parametrize("alpha", [0.4, 0.025, 1e-6])
def test_the_boundary_is_where_the_e_value_is_one_over_alpha(v: float, alpha: float) -> None:
    found = boundary(v, RHO, alpha)
    assert math.isclose(log_m(found, v, RHO), -math.log(alpha), rel_tol=1e-9)


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_its_mean_is_at_most_one_for_rates(rate: float) -> None:
    # Of n values 0 or 1, about a prediction that was made beforehand.
    n, m0, mean = 40, 0.4, []
    for ones in range(n + 1):
        s, v = ones - n * rate, ones * (1 - m0) ** 2 + (n - ones) * m0**2
        chance = math.comb(n, ones) * rate**ones * (1 - rate) ** (n - ones)
        # It rises with s, and is at most 1 at s = 0.
        mean.append(chance * math.exp(log_m(s, v, 5.0) if s + v + 5.0 > 0 else 0.0))
    assert 0.1 < math.fsum(mean) <= 1
