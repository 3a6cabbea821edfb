"""Of all successes, which arm: worked values, and the exact chance of ever erring."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from streammetrics.kernels.inference.dirichlet_multinomial import (
    Successes,
    log_e_of_successes,
    relative_rates,
)

WORKED = Successes(control=520, treatment=585)


def test_the_worked_value_and_its_interval() -> None:
    assert f"{log_e_of_successes([WORKED]):.15f}" == "0.508596177868929"
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
    assert f"{log_e_of_successes([Successes(control, treatment)], k):.13f}" == digits


def test_unequal_arms_with_equal_rates_are_no_evidence() -> None:
    ramp = [Successes(900, 100, Fraction(1, 10)), Successes(2000, 2000)]
    low, high = relative_rates(ramp, 0.05)
    assert log_e_of_successes(ramp) < 0 and low < 1 < high
    # Pooled as if the arms had been equal throughout, the same counts would shout.
    assert log_e_of_successes([Successes(2900, 2100)]) > 50


@pytest.mark.parametrize("found", [WORKED, Successes(3, 0), Successes(0, 40), Successes(1, 9, 0.2)])
def test_the_interval_is_the_rates_that_are_not_refuted(found: Successes) -> None:
    low, high = relative_rates([found], 0.05)
    goal = math.log(20)
    assert low < high and (low == 0) == (found.treatment == 0)
    assert (high == math.inf) == (found.control == 0)
    for end, out in ((low, 1 - 1e-9), (high, 1 + 1e-9)):
        if 0 < end < math.inf:
            assert log_e_of_successes([found], relative_rate=end * (2 - out)) < goal
            assert log_e_of_successes([found], relative_rate=end * out) > goal


def test_without_successes_every_rate_is_possible() -> None:
    assert relative_rates([], 0.05) == (0.0, math.inf)
    assert relative_rates([Successes(0, 0)], 0.05) == (0.0, math.inf)
    assert log_e_of_successes([]) == log_e_of_successes([Successes(0, 0)]) == 0.0


def test_epochs_that_contradict_one_another_leave_no_rate() -> None:
    torn = [Successes(10_000, 100), Successes(100, 10_000)]
    assert relative_rates(torn, 0.05) == (math.inf, 0.0)


def test_the_mean_is_one_at_the_true_relative_rate() -> None:
    for share, psi in ((Fraction(1, 10), 1.0), (0.3, 1.25), (Fraction(1, 2), 1.25)):
        theta = float(share) * psi / (float(share) * psi + 1 - float(share))
        mean = math.fsum(
            math.comb(20, s)
            * theta**s
            * (1 - theta) ** (20 - s)
            * math.exp(log_e_of_successes([Successes(20 - s, s, share)], 30.0, psi))
            for s in range(21)
        )
        assert abs(mean - 1) < 1e-12, (share, psi)
