"""Areas without rounding: of one group, and the weighted mean of the areas of many.

Σ w·A / Σ w with A = 2U / 2PN is a sum of fractions, in which no order of groups shows. Terms of
one denominator are added as integers; n rows have at most about n^(2/3) different products P·N,
so few are left.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.area import Pairs
from streammetrics.kernels.curves.segments import GroupPairs, exact_sum
from streammetrics.kernels.exact.fraction_mean import ExactArea, FractionMean

Ints = NDArray[np.int64]

_HALF: Final = 31
_NARROW: Final = 1 << 32


def area_of(pairs: Pairs, *, bounded: bool = False) -> ExactArea:
    """The area of one group; a tied pair is worth one half or, if `bounded`, 0 to 1."""
    if not pairs.all:
        return ExactArea(bounded=bounded)
    value, low, high = (
        FractionMean({2 * pairs.all: _twice_u(pairs, tied)}, 1)
        for tied in ((1, 0, 2) if bounded else (1, 1, 1))
    )
    return ExactArea(value, low, high, bounded)


def mean_area(groups: GroupPairs, weight: str, *, bounded: bool = False) -> ExactArea:
    """GAUC of the groups that have both labels.

    weight: "impressions" (rows of the group), "positives" (its positives) or "uniform" (1).
    A tied pair is worth one half or, if `bounded`, 0 to 1.

    >>> import numpy as np
    >>> from streammetrics.kernels.exact.fraction_mean import rounded
    >>> none, one, two = np.array([[0, 0], [1, 1], [2, 1]])
    >>> rounded(mean_area(GroupPairs(one, none, two, one, {}), "uniform").value)  # 1/2 and 1
    0.75
    """
    kept = Kept(groups, weight)

    def mean(tied: int) -> FractionMean:
        """The one where a tied pair is worth so many halves."""
        return FractionMean(kept.sums(*kept.twice_u(tied)), kept.total)

    value = mean(1)
    low, high = (mean(0), mean(2)) if bounded else (value, value)
    return ExactArea(value, low, high, bounded)


class Terms(NamedTuple):
    """Groups that have both labels: weights, halves of a pair that are won, and 2PN, below 2**32;
    int64 [g] each. others: the same three, of each group with more."""

    weights: Ints
    twice_u: Ints
    denominators: Ints
    others: list[tuple[int, int, int]]


class Kept:
    """The groups that have both labels: large ones, and the others by denominator, ascending."""

    def __init__(self, groups: GroupPairs, weight: str) -> None:
        live = np.flatnonzero((groups.positives > 0) & (groups.negatives > 0))
        self.of_large = [g for g in live.tolist() if g in groups.large] if groups.large else []
        small = live[~np.isin(live, self.of_large)] if groups.large else live
        small = small[np.argsort(2 * groups.positives[small] * groups.negatives[small])]
        self.groups, self.weight, self.small = groups, weight, small
        self.large = [groups.large[g] for g in self.of_large]
        self.positives, self.negatives = groups.positives[small], groups.negatives[small]
        self.weights = _weights(self.positives, self.negatives, weight)
        self.denominators = 2 * self.positives * self.negatives
        self.total = exact_sum(self.weights) + sum(_weight(pairs, weight) for pairs in self.large)

    def twice_u(self, tied: int) -> tuple[Ints, list[int]]:
        """Halves of a pair that are won, of small groups and of large ones."""
        not_lost, ties = self.groups.not_lost[self.small], self.groups.ties[self.small]
        return 2 * not_lost - (2 - tied) * ties, [_twice_u(pairs, tied) for pairs in self.large]

    def terms(self, small: Ints, large: list[int]) -> Terms:
        """Each group with what `twice_u` says of it, in no order."""
        narrow = self.denominators < _NARROW
        wide = (array[~narrow].tolist() for array in (self.weights, small, self.denominators))
        others = list(zip(*wide, strict=True))
        for pairs, twice_u in zip(self.large, large, strict=True):
            others.append((_weight(pairs, self.weight), twice_u, 2 * pairs.all))
        return Terms(self.weights[narrow], small[narrow], self.denominators[narrow], others)

    def sums(self, small: Ints, large: list[int]) -> dict[int, int]:
        """Σ weight · 2U for each different denominator 2PN."""
        sums = _by_denominator(self.weights, small, self.denominators)
        for pairs, twice_u in zip(self.large, large, strict=True):
            term = _weight(pairs, self.weight) * twice_u
            sums[2 * pairs.all] = sums.get(2 * pairs.all, 0) + term
        return sums


def _twice_u(pairs: Pairs, tied: int) -> int:
    return 2 * pairs.wins + tied * pairs.ties


def _weight(pairs: Pairs, weight: str) -> int:
    if weight == "impressions":
        return pairs.positives + pairs.negatives
    return pairs.positives if weight == "positives" else 1


def _weights(positives: Ints, negatives: Ints, weight: str) -> Ints:
    if weight == "impressions":
        return positives + negatives
    return positives if weight == "positives" else np.ones_like(positives)


def _by_denominator(weights: Ints, twice_u: Ints, denominators: Ints) -> dict[int, int]:
    """Σ weight · 2U for each different denominator; these are ascending."""
    if not len(denominators):
        return {}
    first = np.flatnonzero(np.diff(denominators, prepend=-1) != 0)
    w, u = weights, twice_u
    if int(w.max()) * int(u.max()) * len(w) < 1 << 63:
        sums = np.add.reduceat(w * u, first).tolist()
    else:  # 2U in two halves, and the products, of less than 2**62, in two halves again
        sums = [0] * len(first)
        for part, shift in ((u & ((1 << _HALF) - 1), 0), (u >> _HALF, _HALF)):
            product = w * part
            low = np.add.reduceat(product & ((1 << _HALF) - 1), first).tolist()
            high = np.add.reduceat(product >> _HALF, first).tolist()
            for i, (a, b) in enumerate(zip(low, high, strict=True)):
                sums[i] += (a + (b << _HALF)) << shift
    return dict(zip(denominators[first].tolist(), sums, strict=True))
