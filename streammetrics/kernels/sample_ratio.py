"""Whether units fell to the arms in the declared shares: the test of a sample ratio mismatch.

Counts are of units, exact or by a hash threshold: the error of a HyperLogLog alone rejects 69 %
of healthy experiments of a million units. (Fabijan et al. 2019, KDD, for what a mismatch means;
Lindon and Malek 2022, NeurIPS, for the e-value.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.dirichlet_multinomial import log_e as log_e_of_counts
from streammetrics.kernels.rounding import ratio
from streammetrics.kernels.tails import chi2_sf

Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """The statistic, its degrees of freedom and its p-value."""

    statistic: float
    df: int
    pvalue: float


def shares_of(weights: Sequence[Number]) -> list[Fraction]:
    """Weights [k], not negative and not all 0, over their sum, exactly.

    >>> shares_of([5, 3, 2])
    [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    """
    total = sum((Fraction(one) for one in weights), Fraction(0))
    return [Fraction(one) / total for one in weights]


def chi_square(counts: Sequence[int], weights: Sequence[Number]) -> ChiSquare:
    """Pearson's Σ (n_i - N p_i)² / (N p_i) of counts [k] and weights [k], for one look only.

    Arms of weight 0 are no degree of freedom, and a unit in one of them makes the p-value 0.
    Without a unit, or with one arm of positive weight, the p-value is 1.

    >>> found = chi_square([5120, 4880], [1, 1])
    >>> found.statistic, round(found.pvalue, 12)
    (5.76, 0.016395071849)
    """
    shares = shares_of(weights)
    df = sum(p > 0 for p in shares) - 1
    if any(n and not p for n, p in zip(counts, shares, strict=True)):
        return ChiSquare(math.inf, df, 0.0)
    total = sum(counts)
    if not total:
        return ChiSquare(0.0, df, 1.0)
    # Σ n_i² / (N p_i) - N, in whole numbers until it is rounded.
    squares = (n * n / p for n, p in zip(counts, shares, strict=True) if p)
    statistic = ratio(sum(squares, Fraction(0)) - total * total, total)
    return ChiSquare(statistic, df, chi2_sf(statistic, df))


def log_e(counts: Sequence[int], weights: Sequence[Number], k: float = 10_000.0) -> float:
    """The logarithm of the e-value against the shares, for every look; alarm at ln 1000.

    Counts [k], weights [k]; k: the weight of the prior in units, 10,000 for large balanced tests.
    Infinite where an arm of weight 0 has a unit.

    >>> round(log_e([5120, 4880], [1, 1], k=100), 12)
    0.542000517269
    """
    shares = shares_of(weights)
    # An arm of share 0 has no prior, and is left out there.
    prior = [Fraction(k) * p for p in shares]
    return log_e_of_counts(counts, shares, prior)
