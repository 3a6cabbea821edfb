"""The weighted mean of the areas of groups, correctly rounded, so that no order of groups shows.

Σ w·A / Σ w with A = 2U / 2PN is a sum of fractions. Terms of one denominator are added as
integers; those sums are then divided in fixed point with as many bits as the rounding needs.
n rows have at most about n^(2/3) different products P·N, so few divisions are left.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_BITS: Final = (192, 1024)  # of the fixed point; more is needed only half-way between two floats
_HALF: Final = 31


def mean_area(
    twice_u: Ints, positives: Ints, negatives: Ints, large: dict[int, int], weight: str
) -> float:
    """GAUC of groups [g], as `segments.group_areas` gives them; nan if none has both labels.

    weight: "impressions" (rows of the group), "positives" (its positives) or "uniform" (1).

    >>> import numpy as np
    >>> two, one = np.array([2, 1]), np.array([1, 1])
    >>> mean_area(two, one, one, {}, "uniform")  # areas 1 and 1/2
    0.75
    """
    live = np.flatnonzero((positives > 0) & (negatives > 0))
    if not len(live):
        return math.nan
    sums: dict[int, int] = {}
    total = 0
    small = live
    if large:
        small = live[~np.isin(live, list(large))]
        for g in set(live.tolist()) & large.keys():
            rows_p, rows_n = int(positives[g]), int(negatives[g])
            pairs = rows_p * rows_n
            w = {"impressions": rows_p + rows_n, "positives": rows_p, "uniform": 1}[weight]
            sums[2 * pairs] = sums.get(2 * pairs, 0) + w * large[g]
            total += w
    p, n, u = positives[small], negatives[small], twice_u[small]
    if weight == "impressions":
        weights = p + n
    elif weight == "positives":
        weights = p
    else:
        weights = np.ones(len(small), np.int64)
    total += _sum(weights)
    for denominator, numerator in _by_denominator(weights, u, 2 * p * n):
        sums[denominator] = sums.get(denominator, 0) + numerator
    return _rounded(sums, total)


def _by_denominator(weights: Ints, twice_u: Ints, denominators: Ints) -> list[tuple[int, int]]:
    """(denominator, Σ weight · 2U) for each different denominator."""
    if not len(denominators):
        return []
    order = np.argsort(denominators)
    sorted_ = denominators[order]
    first = np.flatnonzero(np.diff(sorted_, prepend=-1) != 0)
    w, u = weights[order], twice_u[order]
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
    return list(zip(sorted_[first].tolist(), sums, strict=True))


def _rounded(sums: dict[int, int], total: int) -> float:
    """Σ numerator / denominator / total, correctly rounded."""
    for bits in _BITS:
        low = inexact = 0
        for denominator, numerator in sums.items():
            whole, rest = divmod(numerator << bits, denominator)
            low += whole
            inexact += rest > 0
        scale = total << bits
        if low / scale == (low + inexact) / scale:
            return low / scale
    exact = sum((Fraction(n, d) for d, n in sums.items()), Fraction(0)) / total
    return exact.numerator / exact.denominator


def _sum(values: Ints) -> int:
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
