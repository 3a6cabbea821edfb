"""One rate: worked values, the mean of the e-value, and its interval."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from streammetrics.kernels.beta_binomial import JEFFREYS, interval, log_e
from streammetrics.kernels.stirling import log_beta


def test_thirty_of_a_hundred() -> None:
    low, high = interval(30, 100, 0.05)
    assert (f"{low:.12f}", f"{high:.12f}") == ("0.165651535388", "0.462839865142")
    assert f"{log_e(30, 100, Fraction(1, 5)):.14f}" == "0.28556195342449"


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.5, 0.99])
@pytest.mark.parametrize("prior", [JEFFREYS, (1.0, 1.0), (20.0, 3.0)])
def test_the_mean_is_one_at_every_rate(rate: float, prior: tuple[float, float]) -> None:
    mean = math.fsum(
        math.comb(20, s) * rate**s * (1 - rate) ** (20 - s) * math.exp(log_e(s, 20, rate, prior))
        for s in range(21)
    )
    assert abs(mean - 1) < 1e-13


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (1, 10), (9, 10), (7, 10**9)])
def test_the_interval_is_the_rates_that_are_not_refuted(successes: int, trials: int) -> None:
    low, high = interval(successes, trials, 0.05)
    goal = math.log(20)
    assert low <= successes / trials <= high
    assert (low == 0.0) == (successes == 0) and (high == 1.0) == (successes == trials)
    for end, beyond in ((low, -math.inf), (high, math.inf)):
        if 0 < end < 1:
            assert log_e(successes, trials, end) < goal
            past = math.nextafter(end, beyond)
            assert log_e(successes, trials, past) > goal - 1e-9


def test_without_trials_every_rate_is_possible() -> None:
    assert interval(0, 0, 0.05) == (0.0, 1.0)
    assert log_e(0, 0, 0.3) == 0.0


def test_a_rate_of_none_or_all_is_refuted_by_one_that_differs() -> None:
    assert log_e(1, 10, 0.0) == log_e(9, 10, 1.0) == math.inf
    # Where it is borne out: ln of B(1/2, 10 + 1/2) / B(1/2, 1/2).
    assert math.isclose(log_e(0, 10, 0.0), log_beta(0.5, 10.5) - log_beta(0.5, 0.5), rel_tol=1e-14)
    assert log_e(10, 10, 1.0) == log_e(0, 10, 0.0)


def two_arms(a: tuple[int, int], b: tuple[int, int], prior: tuple[float, float]) -> float:
    """The obvious e-value of two (successes, failures), against the likeliest common rate."""
    one, other = (log_beta(prior[0] + s, prior[1] + f) for s, f in (a, b))
    both, rows = (a[0] + b[0], a[1] + b[1]), sum(a) + sum(b)
    pooled = math.fsum(n * math.log(n / rows) for n in both if n)
    return one + other - 2 * log_beta(*prior) - pooled


def test_the_obvious_mixture_of_two_arms_is_weak() -> None:
    a, b = (520, 9480), (585, 9415)
    assert f"{two_arms(a, b, JEFFREYS):.10f}" == "-7.6374288816"
    assert f"{two_arms(a, b, (62.5, 1187.5)):.10f}" == "-1.0720811306"
    for rate, printed in ((0.1, 0.083309819074), (0.3, 0.178230876303), (0.5, 0.304765188603)):
        chances = [math.comb(20, s) * rate**s * (1 - rate) ** (20 - s) for s in range(21)]
        mean = math.fsum(
            p * q * math.exp(two_arms((s, 20 - s), (t, 20 - t), JEFFREYS))
            for s, p in enumerate(chances)
            for t, q in enumerate(chances)
        )
        assert round(mean, 12) == printed


def test_rates_may_be_fractions() -> None:
    assert log_e(3, 9, Fraction(1, 3)) < 0
