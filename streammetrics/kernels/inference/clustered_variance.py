"""Variance between groups of users, where the rows of one user are correlated.

Users are hashed into K buckets; groups are independent whatever users are like, so their
spread says how far the estimate may be off. An empty group says nothing and is left out, so that
K below is the number of groups that have rows. (Wolter 2007, "Introduction to Variance
Estimation", chapters 2 and 4.)

Sums are exact, so that the order of the groups changes no bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

FEW: Final = 16  # groups; with fewer, the variance itself is known to 37 % at best
WHALE: Final = Fraction(1, 4)  # of all weight in one group


@dataclass(frozen=True, slots=True)
class GroupVariance:
    """A variance from groups: how many there were, and so its degrees of freedom.

    variance: nan with fewer than two groups, and where `reason` says why. df: groups - 1.

    >>> GroupVariance(0.25, 5).df
    4.0
    """

    variance: float
    groups: int
    reason: str = ""

    @property
    def se(self) -> float:
        """The standard error."""
        return math.sqrt(self.variance)

    @property
    def df(self) -> float:
        """Degrees of freedom; nan where there are none."""
        return float(self.groups - 1) if self.groups > 1 else math.nan


def spread_variance(influences: Sequence[float]) -> GroupVariance:
    """K / (K - 1) Σ_g (Z_g - mean Z)², of the groups that have rows.

    influences: Z_g, what group g adds to the linearised estimate, [K].

    >>> spread_variance([0.5, -0.5])
    GroupVariance(variance=1.0, groups=2, reason='')
    """
    return _of_squares(influences, lambda k: k / (k - 1))


def jackknife_variance(replicates: Sequence[float]) -> GroupVariance:
    """(K - 1) / K Σ_g (θ_g - mean θ)², of the groups that have rows.

    replicates: θ_g, the estimate from all groups but g, [K]. Undefined where one of them is.

    >>> jackknife_variance([0.25, 0.75]).variance
    0.0625
    >>> jackknife_variance([0.25, math.nan]).reason
    'the estimate is undefined without one of the groups'
    """
    if len(replicates) > 1 and not all(map(math.isfinite, replicates)):
        why = "the estimate is undefined without one of the groups"
        return GroupVariance(math.nan, len(replicates), why)
    return _of_squares(replicates, lambda k: (k - 1) / k)


def _of_squares(values: Sequence[float], factor: Callable[[int], float]) -> GroupVariance:
    k = len(values)
    if k < 2:
        return GroupVariance(math.nan, k, f"{k} group{'s' * (k != 1)} with rows: at least 2 needed")
    if not all(map(math.isfinite, values)):
        return GroupVariance(math.nan, k, "the estimate is undefined")
    try:
        mean = math.fsum(values) / k
        square = math.fsum((value - mean) * (value - mean) for value in values)
    except OverflowError:
        square = math.inf
    if not math.isfinite(square):
        return GroupVariance(math.nan, k, "the variance is beyond the range of float64")
    return GroupVariance(factor(k) * square, k)


def doubts_of_groups(weights: Sequence[int | Fraction]) -> tuple[str, ...]:
    """What makes a variance from groups doubtful, in words: too few of them, or a whale.

    weights: the rows or the weight of each group, [K], empty ones included.

    >>> doubts_of_groups([5, 5])
    ('only 2 groups have rows; 16 make a variance', 'one group has 50 % of the weight')
    """
    met = [weight for weight in weights if weight]
    total = sum(met)
    found = []
    if len(met) < FEW:
        found.append(f"only {len(met)} groups have rows; {FEW} make a variance")
    if met and max(met) > WHALE * total:
        found.append(
            f"one group has {float(100 * Fraction(max(met), 1) / total):.0f} % of the weight"
        )
    return tuple(found)


def design_effect(clustered: float, independent: float) -> float:
    """By how much clustering multiplies the variance; nan where either is not known.

    >>> design_effect(0.5, 0.25), design_effect(0.5, 0.0)
    (2.0, nan)
    """
    return clustered / independent if independent > 0 else math.nan
