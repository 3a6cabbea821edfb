"""Variances of means and of ratios from exact sums of their units, and between groups of users.

A mean over lists has a unit for each list; a ratio (CTR, a mean over the rows of users, GAUC) one
for each user, or for each group of users. Sums are integers or Fractions, so small differences of
large sums are exact, and each result is rounded once.

If the rows of one user are correlated, users are hashed into groups. Groups are independent even
then, so their spread estimates the error of an estimate. An empty group carries no information and
is omitted: K below is the number of groups that have rows. (Wolter 2007,
"Introduction to Variance Estimation", chapters 2 and 4.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from streammetrics.core.bounded import ByValue
from streammetrics.core.parts.float_bits import Exact
from streammetrics.kernels.exact.rounding import ratio


def mean_variance(n: int, sum_: Exact, squares: Exact) -> float:
    """The variance of a mean of n independent units: (Σx² - (Σx)² / n) / (n - 1) / n.

    n - 1 degrees of freedom; nan for n < 2. 0 if a rounded Σx² is too small.

    >>> mean_variance(4, 10, 30)  # 1, 2, 3, 4
    0.4166666666666667
    """
    (total, scale), (square, units) = sum_.as_integer_ratio(), squares.as_integer_ratio()
    spread = n * square * scale * scale - total * total * units
    return ratio(max(spread, 0), units * (scale * n) ** 2 * (n - 1))


def ratio_variance(
    units: int,
    y: Exact,
    n: Exact,
    squares: tuple[Exact, Exact, Exact],
) -> float:
    """The variance of R = Σy / Σn over independent units: U/(U-1) Σ (y_u - R n_u)² / (Σn)².

    units: U, the units with rows. y, n: Σ y_u and Σ n_u. squares: Σ y_u², Σ y_u n_u, Σ n_u².
    U - 1 degrees of freedom; nan for U < 2 and where Σn is 0. (Cochran 1977, "Sampling
    Techniques", 6.4; Deng, Knoblich and Lu 2018, KDD, arXiv 1803.06336.) The units may be users, or
    groups of users that have rows. GAUC = Σ w_u AUC_u / Σ w_u is such a ratio: y_u = w_u AUC_u,
    n_u = w_u, of the users with both labels.

    >>> clicks, views = [2, 1, 0, 5, 0, 2, 3, 4], [10, 4, 7, 12, 3, 9, 5, 20]
    >>> users = list(zip(clicks, views, strict=True))
    >>> squares = sum(y * y for y, _ in users), sum(y * n for y, n in users), sum(
    ...     n * n for _, n in users)
    >>> round(math.sqrt(ratio_variance(8, 17, 70, squares)), 12)
    0.052712918267
    """
    if units < 2 or not n:
        return math.nan
    spread, scale = _spread(y, n, squares)
    below, unit = n.as_integer_ratio()
    return ratio(max(units * spread, 0) * unit**4, (units - 1) * below**4 * scale)


def _spread(y: Exact, n: Exact, squares: tuple[Exact, ...]) -> tuple[int, int]:
    """Σ (n y_u - y n_u)², as numerator and denominator: without fractions, which are reduced at
    each step."""
    (a, a_unit), (b, b_unit) = y.as_integer_ratio(), n.as_integer_ratio()
    (aa, aa_unit), (ab, ab_unit), (bb, bb_unit) = (part.as_integer_ratio() for part in squares)
    a_square, b_square = a_unit * a_unit, b_unit * b_unit
    spread = b * b * aa * a_square * ab_unit * bb_unit
    spread -= 2 * a * b * ab * a_unit * b_unit * aa_unit * bb_unit
    spread += a * a * bb * b_square * aa_unit * ab_unit
    return spread, a_square * b_square * aa_unit * ab_unit * bb_unit


# A value and its square are each off by at most 2**-53 of it, so each sum of products is off by
# less than 2**-51 of it. Where the spread is 0, its terms are n² Σ y², twice that, and once that.
_ROUNDING: Final = 49


def rounded_ratio_variance(
    units: int, y: Fraction, n: Fraction | int, squares: tuple[Fraction, Fraction, Fraction | int]
) -> float:
    """`ratio_variance` where values and products were rounded to float64 before they were summed:
    0 if the spread may be that of the rounding alone.

    >>> third = 1 / 3  # of each of 3 units with the weight 1
    >>> yy = 3 * Fraction(third * third)
    >>> rounded_ratio_variance(3, Fraction(1), 3, (yy + Fraction(1, 2**60), Fraction(1), 3))
    0.0
    """
    spread, scale = _spread(y, n, squares)
    (below, unit), (square, square_unit) = n.as_integer_ratio(), squares[0].as_integer_ratio()
    none = (spread << _ROUNDING) * unit * unit * square_unit <= below * below * square * scale
    return ratio_variance(units, y, n, (Fraction(0),) * 3 if none else squares)


def rounded_mean_variance(n: int, sum_: Exact, squares: Exact) -> float:
    """`mean_variance` where values and squares were rounded to float64 before they were summed: 0
    if the spread may be that of the rounding alone, as in `rounded_ratio_variance`.

    >>> third = 1 / 3
    >>> rounded_mean_variance(3, Fraction(1), 3 * Fraction(third * third) + Fraction(1, 2**60))
    0.0
    """
    (total, scale), (square, units) = sum_.as_integer_ratio(), squares.as_integer_ratio()
    whole = n * square * scale * scale
    spread = whole - total * total * units
    if spread << _ROUNDING <= whole:
        spread = 0
    return ratio(spread, units * (scale * n) ** 2 * (n - 1))


FEW: Final = 16  # groups; with fewer, the variance itself is known to 37 % at best
WHALE: Final = Fraction(1, 4)  # share of all weight in one group


@dataclass(frozen=True, slots=True, eq=False)
class GroupVariance(ByValue):
    """A variance from groups, and their number, which gives its degrees of freedom.

    variance: nan if undefined, as with fewer than two groups; `reason` states why. effective: the
    number of groups of equal weight that know it as well, by default all of them. df: less 1.

    >>> GroupVariance(0.25, 5).df, GroupVariance(0.25, 5, effective=3.5).df
    (4.0, 2.5)
    """

    variance: float
    groups: int
    reason: str = ""
    effective: float = math.nan

    @property
    def se(self) -> float:
        """The standard error."""
        return math.sqrt(self.variance)

    @property
    def df(self) -> float:
        """Degrees of freedom; nan where there are none."""
        if self.groups < 2:
            return math.nan
        return (self.groups if math.isnan(self.effective) else self.effective) - 1.0


def effective_groups(weights: Sequence[int | Fraction]) -> float:
    """(Σ w)² / Σ w², the number of equal weights that are as even; nan without any. (Kish 1965)

    >>> effective_groups([2, 2, 0, 2]), effective_groups([9, 1])
    (3.0, 1.2195121951219512)
    """
    squares = sum(weight * weight for weight in weights)
    return float(Fraction(sum(weights)) ** 2 / squares) if squares else math.nan


def jackknife_variance(
    replicates: Sequence[float], weights: Sequence[int | Fraction] = ()
) -> GroupVariance:
    """(K - 1) / K Σ_g (θ_g - mean θ)², over the groups that have rows.

    replicates: θ_g, the estimate from all groups but g, [K]. weights: of the groups, from which
    their effective number follows: with few users one heavy group does not pass for many. Undefined
    if a replicate is.

    >>> jackknife_variance([0.25, 0.75]).variance
    0.0625
    >>> jackknife_variance([0.25, math.nan]).reason
    'the estimate is undefined without one of the groups'
    """
    k, effective = len(replicates), effective_groups(weights)
    if k < 2:
        return GroupVariance(math.nan, k, f"{k} group{'s' * (k != 1)} with rows: at least 2 needed")
    if not all(map(math.isfinite, replicates)):
        return GroupVariance(math.nan, k, "the estimate is undefined without one of the groups")
    if min(replicates) == max(replicates):  # their mean may be another float
        return GroupVariance(0.0, k, effective=effective)
    try:
        mean = math.fsum(replicates) / k
        square = math.fsum((value - mean) * (value - mean) for value in replicates)
    except OverflowError:
        square = math.inf
    if not math.isfinite(square):
        return GroupVariance(math.nan, k, "the variance exceeds the range of float64")
    return GroupVariance((k - 1) / k * square, k, effective=effective)


def doubts_of_groups(weights: Sequence[int | Fraction]) -> tuple[str, ...]:
    """Reasons to doubt a variance from groups, as text: too few groups, or a dominant one.

    weights: the rows or the weight of each group, [K], empty ones included.

    >>> doubts_of_groups([5, 5])
    ('only 2 groups have rows; a reliable variance needs 16', 'one group has 50 % of the weight')
    """
    nonempty = [weight for weight in weights if weight]
    total = sum(nonempty)
    doubts = []
    if len(nonempty) < FEW:
        doubts.append(f"only {len(nonempty)} groups have rows; a reliable variance needs {FEW}")
    if nonempty and max(nonempty) > WHALE * total:
        doubts.append(
            f"one group has {float(100 * Fraction(max(nonempty), 1) / total):.0f} % of the weight"
        )
    return tuple(doubts)


def design_effect(clustered: float, independent: float) -> float:
    """The factor by which clustering multiplies the variance; nan if either is unknown.

    >>> design_effect(0.5, 0.25), design_effect(0.5, 0.0)
    (2.0, nan)
    """
    return clustered / independent if independent > 0 else math.nan
