"""Areas without rounding: of one group, and the weighted mean of the areas of many.

Σ w·A / Σ w with A = 2U / 2PN is a sum of fractions, in which no order of groups shows. Terms of
one denominator are added as integers; n rows have at most about n^(2/3) different products P·N,
so few are left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.area import Pairs
from streammetrics.kernels.fraction_mean import UNDEFINED, ExactArea, FractionMean
from streammetrics.kernels.segments import GroupPairs, exact_sum

Ints = NDArray[np.int64]

_HALF: Final = 31


def area_of(pairs: Pairs, *, bounded: bool = False) -> ExactArea:
    """The area of one group; a tied pair is worth one half or, if `bounded`, 0 to 1."""
    every = pairs.all

    def area(tied: int) -> FractionMean:
        return FractionMean({2 * every: _twice_u(pairs, tied)}, 1) if every else UNDEFINED

    return _area(area, bounded)


def mean_area(groups: GroupPairs, weight: str, *, bounded: bool = False) -> ExactArea:
    """GAUC of the groups that have both labels.

    weight: "impressions" (rows of the group), "positives" (its positives) or "uniform" (1).
    A tied pair is worth one half or, if `bounded`, 0 to 1.

    >>> import numpy as np
    >>> from streammetrics.kernels.fraction_mean import rounded
    >>> none, one, two = np.array([[0, 0], [1, 1], [2, 1]])
    >>> rounded(mean_area(GroupPairs(one, none, two, one, {}), "uniform").value)  # 1/2 and 1
    0.75
    """
    p, n = groups.positives, groups.negatives
    live = np.flatnonzero((p > 0) & (n > 0))
    small = live
    if groups.large:
        small = live[~np.isin(live, list(groups.large))]
    large = [groups.large[g] for g in live.tolist() if g in groups.large] if groups.large else []
    p, n, not_lost, ties = p[small], n[small], groups.not_lost[small], groups.ties[small]
    weights = p + n if weight == "impressions" else p if weight == "positives" else np.ones_like(p)
    total = exact_sum(weights) + sum(_weight(pairs, weight) for pairs in large)
    order = np.argsort(2 * p * n)
    weights, denominators = weights[order], (2 * p * n)[order]

    def mean(tied: int) -> FractionMean:
        twice = (2 * not_lost - (2 - tied) * ties)[order]
        sums = _by_denominator(weights, twice, denominators)
        for pairs in large:
            term = _weight(pairs, weight) * _twice_u(pairs, tied)
            sums[2 * pairs.all] = sums.get(2 * pairs.all, 0) + term
        return FractionMean(sums, total)

    return _area(mean, bounded)


def _area(mean: Callable[[int], FractionMean], bounded: bool) -> ExactArea:
    """What `mean` gives for twice the worth of a tied pair."""
    value = mean(1)
    return ExactArea(value, mean(0), mean(2), True) if bounded else ExactArea(value, value, value)


def _twice_u(pairs: Pairs, tied: int) -> int:
    return 2 * pairs.wins + tied * pairs.ties


def _weight(pairs: Pairs, weight: str) -> int:
    if weight == "impressions":
        return pairs.positives + pairs.negatives
    return pairs.positives if weight == "positives" else 1


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
