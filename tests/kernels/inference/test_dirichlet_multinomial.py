"""The e-value of counts, of units and of successes, against mpmath and worked values."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest

from streammetrics.kernels.inference.dirichlet_multinomial import (
    Successes,
    chi_square,
    log_e,
    log_e_of_counts,
    log_e_of_successes,
    log_ratio,
    relative_rates,
)

HALF = Fraction(1, 2)


def exact(counts: list[int], shares: list[Fraction], prior: list[float]) -> mpmath.mpf:
    mpmath.mp.dps = 60

    def log_beta(parameters: list[mpmath.mpf]) -> mpmath.mpf:
        return sum(map(mpmath.loggamma, parameters)) - mpmath.loggamma(sum(parameters))

    before = [mpmath.mpf(a) for a in prior]
    after = [a + n for a, n in zip(before, counts, strict=True)]
    logs = [
        n * mpmath.log(mpmath.mpf(p.numerator) / p.denominator)
        for n, p in zip(counts, shares, strict=True)
    ]
    return log_beta(after) - log_beta(before) - sum(logs)


@pytest.mark.parametrize("rows", [10**3, 10**12])
def test_the_error_stays_small_however_many_rows(rows: int) -> None:
    for off, k, share in product((0, 3), (1.0, 1e4), (HALF, Fraction(1, 50))):
        moved = off * math.isqrt(rows) // 2
        second = round(rows * share) + moved
        counts, shares = [rows - second, second], [1 - share, share]
        prior = [k * float(1 - share), k * float(share)]
        error = abs(log_e_of_counts(counts, shares, prior) - exact(counts, shares, prior))
        assert error < 1e-13 * max(1.0, abs(log_e_of_counts(counts, shares, prior)))
    counts, shares, prior = (
        [rows, 0, rows],
        [HALF, Fraction(1, 9), Fraction(7, 18)],
        [0.5, 7.25, 1e3],
    )
    assert math.isclose(
        log_e_of_counts(counts, shares, prior), float(exact(counts, shares, prior)), rel_tol=1e-13
    )


def test_small_counts_far_from_the_shares() -> None:
    for counts in ([0, 12], [12, 0], [1, 40], [500, 3]):
        shares, prior = [Fraction(1, 1000), Fraction(999, 1000)], [0.5, 0.5]
        expected = float(exact(counts, shares, prior))
        assert math.isclose(
            log_e_of_counts(counts, shares, prior), expected, rel_tol=1e-13, abs_tol=1e-13
        )


def test_under_the_shares_the_mean_is_one() -> None:
    shares, n, k = [HALF, Fraction(3, 10), Fraction(1, 5)], 20, 100
    terms = []
    for a, b in product(range(n + 1), repeat=2):
        if a + b <= n:
            counts = [a, b, n - a - b]
            ways = math.factorial(n)
            for count in counts:
                ways //= math.factorial(count)
            chance = float(ways * math.prod(p**c for p, c in zip(shares, counts, strict=True)))
            terms.append(
                chance * math.exp(log_e_of_counts(counts, shares, [k * p for p in shares]))
            )
    assert abs(math.fsum(terms) - 1) < 1e-13


def test_a_class_without_a_share_has_no_rows_or_refutes_everything() -> None:
    thirds = [Fraction(1, 3), Fraction(2, 3)]
    plain = log_e_of_counts([5, 9], thirds, [1.0, 2.0])
    assert log_e_of_counts([5, 0, 9], [thirds[0], 0, thirds[1]], [1.0, 0.0, 2.0]) == plain
    assert log_e_of_counts([5, 1, 9], [thirds[0], 0, thirds[1]], [1.0, 0.0, 2.0]) == math.inf


def test_a_class_without_a_share_may_have_a_prior() -> None:
    shares = [Fraction(1, 3), Fraction(0), Fraction(2, 3)]
    for counts in ([5, 0, 9], [10**11, 0, 2 * 10**11]):
        # No row bears its share, so that a share of any size stands for none.
        stand_in = [shares[0], Fraction(1, 7), shares[2]]
        expected = exact(counts, stand_in, [1.0, 4.0, 2.0])
        assert abs(log_e_of_counts(counts, shares, [1.0, 4.0, 2.0]) - expected) < 1e-12


def test_logarithms_of_fractions() -> None:
    mpmath.mp.dps = 60
    for top, bottom in ((1, 3), (2, 1), (10**400, 1), (10**20 + 1, 10**20), (99, 100)):
        expected = mpmath.log(mpmath.mpf(top) / bottom)
        assert math.isclose(log_ratio(top, bottom), float(expected), rel_tol=4e-16)


def test_two_equal_arms() -> None:
    result = chi_square([5120, 4880], [1, 1])
    assert (result.statistic, result.df, f"{result.pvalue:.14f}") == (5.76, 1, "0.01639507184919")
    small, large = (log_e([5120, 4880], [0.5, 0.5], k) for k in (100, 1e4))
    assert f"{small:.14f}" == "0.54200051726850"
    assert f"{math.exp(-small):.12f}" == "0.581583619754"
    assert f"{large:.14f}" == "1.09352047929572"
    assert f"{log_e([5300, 4700], [1, 1], 1000):.13f}" == "15.1740752374848"


def test_chi_square_is_its_formula_and_its_tail_that_of_mpmath() -> None:
    for counts in ([10, 20, 31], [1, 0, 0], [10**6, 10**6 + 5000, 999_000]):
        result, total = chi_square(counts, [1, 2, 3]), sum(counts)
        expected = [Fraction(total * weight, 6) for weight in (1, 2, 3)]
        statistic = sum((n - m) ** 2 / m for n, m in zip(counts, expected, strict=True))
        pvalue = float(mpmath.gammainc(1, mpmath.mpf(float(statistic)) / 2, regularized=True))
        assert result.statistic == float(statistic) and result.df == 2
        assert math.isclose(result.pvalue, pvalue, rel_tol=1e-11, abs_tol=1e-300)


def test_an_arm_of_weight_zero_is_no_degree_of_freedom() -> None:
    assert chi_square([5120, 0, 4880], [1, 0, 1]) == chi_square([5120, 4880], [1, 1])
    assert log_e([5120, 0, 4880], [1, 0, 1]) == log_e([5120, 4880], [1, 1])


def test_a_unit_in_an_arm_of_weight_zero_is_a_mismatch() -> None:
    result = chi_square([5120, 1, 4880], [1, 0, 1])
    assert (result.statistic, result.df, result.pvalue) == (math.inf, 1, 0.0)
    assert log_e([5120, 1, 4880], [1, 0, 1]) == math.inf


def test_without_units_or_with_one_arm_there_is_no_evidence() -> None:
    assert chi_square([0, 0], [1, 3]).pvalue == 1.0 and log_e([0, 0], [1, 3]) == 0.0
    assert chi_square([9], [2]).pvalue == 1.0 and log_e([9], [2]) == 0.0
    assert (chi_square([9, 0], [2, 0]).df, log_e([9, 0], [2, 0])) == (0, 0.0)


# Of all successes, which arm: worked values, and the exact chance of ever erring.

WORKED = Successes(control=520, treatment=585)


def test_unequal_arms_with_equal_rates_are_no_evidence() -> None:
    ramp = [Successes(900, 100, Fraction(1, 10)), Successes(2000, 2000)]
    low, high = relative_rates(ramp, 0.05)
    assert log_e_of_successes(ramp) < 0 and low < 1 < high
    # Pooled as if the arms had been equal throughout, the same counts would shout.
    assert log_e_of_successes([Successes(2900, 2100)]) > 50


@pytest.mark.parametrize(
    "successes", [WORKED, Successes(3, 0), Successes(0, 40), Successes(1, 9, 0.2)]
)
def test_the_interval_is_the_rates_that_are_not_refuted(successes: Successes) -> None:
    low, high = relative_rates([successes], 0.05)
    goal = math.log(20)
    assert low < high and (low == 0) == (successes.treatment == 0)
    assert (high == math.inf) == (successes.control == 0)
    for end, out in ((low, 1 - 1e-9), (high, 1 + 1e-9)):
        if 0 < end < math.inf:
            assert log_e_of_successes([successes], relative_rate=end * (2 - out)) < goal
            assert log_e_of_successes([successes], relative_rate=end * out) > goal


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
