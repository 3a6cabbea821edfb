"""The e-value of counts, against mpmath, its own mean, and limits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest

from streammetrics.kernels.inference.dirichlet_multinomial import log_e_of_counts, log_ratio

HALF = Fraction(1, 2)


def exact(counts: list[int], shares: list[Fraction], prior: list[float]) -> mpmath.mpf:
    mpmath.mp.dps = 60

    def log_beta(at: list[mpmath.mpf]) -> mpmath.mpf:
        return sum(map(mpmath.loggamma, at)) - mpmath.loggamma(sum(at))

    before = [mpmath.mpf(a) for a in prior]
    after = [a + n for a, n in zip(before, counts, strict=True)]
    logs = [
        n * mpmath.log(mpmath.mpf(p.numerator) / p.denominator)
        for n, p in zip(counts, shares, strict=True)
    ]
    return log_beta(after) - log_beta(before) - sum(logs)


@pytest.mark.parametrize("rows", [10**3, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("off", [0, 1, 3])
@pytest.mark.parametrize("k", [1.0, 100.0, 1e4])
def test_the_error_stays_small_however_many_rows(rows: int, off: int, k: float) -> None:
    moved = off * math.isqrt(rows) // 2
    for share in (HALF, Fraction(1, 3), Fraction(1, 50)):
        second = round(rows * share) + moved
        counts, shares = [rows - second, second], [1 - share, share]
        prior = [k * float(1 - share), k * float(share)]
        error = abs(log_e_of_counts(counts, shares, prior) - exact(counts, shares, prior))
        assert error < 1e-13 * max(1.0, abs(log_e_of_counts(counts, shares, prior)))


def test_several_classes_and_unequal_priors() -> None:
    counts, prior = [3 * 10**11, 2 * 10**11 + 12_345, 5 * 10**11], [0.5, 7.25, 1e3]
    shares = [Fraction(3, 10), Fraction(1, 5), HALF]
    assert abs(log_e_of_counts(counts, shares, prior) - exact(counts, shares, prior)) < 1e-12


def test_small_counts_far_from_the_shares() -> None:
    for counts in ([0, 12], [12, 0], [1, 40], [500, 3]):
        shares, prior = [Fraction(1, 1000), Fraction(999, 1000)], [0.5, 0.5]
        expected = float(exact(counts, shares, prior))
        assert math.isclose(
            log_e_of_counts(counts, shares, prior), expected, rel_tol=1e-13, abs_tol=1e-13
        )


@pytest.mark.parametrize("k", [1, 100])
def test_under_the_shares_the_mean_is_one(k: int) -> None:
    shares, n = [HALF, Fraction(3, 10), Fraction(1, 5)], 20
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


def test_no_rows_are_no_evidence() -> None:
    assert log_e_of_counts([0, 0], [HALF, HALF], [3.0, 4.0]) == 0.0


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


def test_one_class_alone_is_no_evidence() -> None:
    assert log_e_of_counts([7], [1], [2.0]) == 0.0


@pytest.mark.parametrize("ratio", [(1, 3), (2, 1), (10**400, 1), (10**20 + 1, 10**20), (99, 100)])
def test_logarithms_of_fractions(ratio: tuple[int, int]) -> None:
    mpmath.mp.dps = 60
    expected = mpmath.log(mpmath.mpf(ratio[0]) / ratio[1])
    assert math.isclose(log_ratio(*ratio), float(expected), rel_tol=4e-16)
