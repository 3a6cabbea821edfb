"""Of all successes, which arm: worked values, and the exact chance of ever erring."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.inference.incomplete import log_beta
from streammetrics.kernels.inference.success_labels import Successes, log_e, relative_rates

WORKED = Successes(control=520, treatment=585)


def test_the_worked_value_and_its_interval() -> None:
    assert f"{log_e([WORKED]):.15f}" == "0.508596177868929"
    low, high = relative_rates([WORKED], 0.05)
    assert (f"{low:.12f}", f"{high:.12f}") == ("0.940999657519", "1.345823181221")


@pytest.mark.parametrize(
    ("treatment", "control", "k", "digits"),
    [
        (500_200_000, 499_800_000, 1e3, "73.0919164347167"),
        (500_001_000_000, 499_999_000_000, 1e4, "-7.2103653969726"),
    ],
)
def test_many_successes_lose_no_digits(treatment: int, control: int, k: float, digits: str) -> None:
    assert f"{log_e([Successes(control, treatment)], k):.13f}" == digits


def test_the_prior_leans_as_the_arms_do() -> None:
    # A tenth of the units, and so of a prior of 50 successes, is the treatment's.
    ratio = log_beta(5.0 + 9, 45.0 + 30) - log_beta(5.0, 45.0)
    expected = ratio - 9 * math.log(0.1) - 30 * math.log(0.9)
    found = log_e([Successes(30, 9, Fraction(1, 10))], 50.0)
    assert math.isclose(found, expected, rel_tol=1e-11)


def first_rejected(n: int, k: float, since: int) -> int:
    """The least majority of n successes, from `since` on, with e >= 20; n + 1 if none has."""
    for s in range(since, n + 1):
        if log_e([Successes(n - s, s)], k) >= math.log(20):
            return s
    return n + 1


def ever_rejects(successes: int, k: float, true_share: float = 0.5) -> float:
    """The chance that e >= 20 at any success up to this many, by its recursion."""
    alive, rejected, majority = np.ones(1), 0.0, 1
    for n in range(1, successes + 1):
        grown = np.zeros(n + 1)
        grown[:-1] += alive * (1 - true_share)
        grown[1:] += alive * true_share
        majority = first_rejected(n, k, max(majority, (n + 1) // 2))
        for out in (slice(majority, None), slice(0, max(0, n - majority + 1))):
            rejected += float(grown[out].sum())
            grown[out] = 0
        alive = grown
    return rejected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("successes", "k", "digits"),
    [
        (1000, 1.0, "0.0365451229"),
        (1000, 100.0, "0.0202809590"),
        (1000, 1000.0, "0.0007253557"),
        (3000, 1.0, "0.0377622503"),
        (3000, 100.0, "0.0302795603"),
        (3000, 1000.0, "0.0077556405"),
    ],
)
def test_looked_at_after_every_success_it_errs_less_often_than_one_in_twenty(
    successes: int, k: float, digits: str
) -> None:
    assert f"{ever_rejects(successes, k):.10f}" == digits


@pytest.mark.slow
def test_the_power_at_a_share_of_53_percent() -> None:
    assert f"{ever_rejects(3000, 100.0, 0.53):.8f}" == "0.70497955"


@pytest.mark.parametrize("share", [Fraction(1, 10), 0.3, Fraction(1, 2)])
@pytest.mark.parametrize("psi", [1.0, 1.25])
def test_the_mean_is_one_at_the_true_relative_rate(share: float | Fraction, psi: float) -> None:
    theta = float(share) * psi / (float(share) * psi + 1 - float(share))
    mean = math.fsum(
        math.comb(20, s)
        * theta**s
        * (1 - theta) ** (20 - s)
        * math.exp(log_e([Successes(20 - s, s, share)], 30.0, psi))
        for s in range(21)
    )
    assert abs(mean - 1) < 1e-12


def test_unequal_arms_with_equal_rates_are_no_evidence() -> None:
    ramp = [Successes(900, 100, Fraction(1, 10)), Successes(2000, 2000)]
    low, high = relative_rates(ramp, 0.05)
    assert log_e(ramp) < 0 and low < 1 < high
    # Pooled as if the arms had been equal throughout, the same counts would shout.
    assert log_e([Successes(2900, 2100)]) > 50


def test_epochs_are_factors() -> None:
    one, other = Successes(30, 50, 0.25), Successes(10, 11)
    assert log_e([one, other]) == math.fsum([log_e([one]), log_e([other])])


@pytest.mark.parametrize("found", [WORKED, Successes(3, 0), Successes(0, 40), Successes(1, 9, 0.2)])
def test_the_interval_is_the_rates_that_are_not_refuted(found: Successes) -> None:
    low, high = relative_rates([found], 0.05)
    goal = math.log(20)
    assert low < high and (low == 0) == (found.treatment == 0)
    assert (high == math.inf) == (found.control == 0)
    for end, out in ((low, 1 - 1e-9), (high, 1 + 1e-9)):
        if 0 < end < math.inf:
            assert log_e([found], relative_rate=end * (2 - out)) < goal
            assert log_e([found], relative_rate=end * out) > goal


def test_without_successes_every_rate_is_possible() -> None:
    assert relative_rates([], 0.05) == (0.0, math.inf)
    assert relative_rates([Successes(0, 0)], 0.05) == (0.0, math.inf)
    assert log_e([]) == log_e([Successes(0, 0)]) == 0.0


def test_epochs_that_contradict_one_another_leave_no_rate() -> None:
    torn = [Successes(10_000, 100), Successes(100, 10_000)]
    assert relative_rates(torn, 0.05) == (math.inf, 0.0)
