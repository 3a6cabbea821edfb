"""The area under the ROC curve from counts, in integers, with certain bounds; and RelaImpr.

Bucket b, in ascending order, has p_b of the P positives and n_b of the N negatives.
wins = Σ_b p_b · Σ_{a<b} n_a counts the pairs whose positive is in the higher bucket, and
ties = Σ_b p_b n_b the pairs within a bucket. The area of the unbucketed scores lies between
wins / PN and (wins + ties) / PN. If a bucket is one score, a tied pair counts one half and the
area is the midpoint.
(Hanley and McNeil, Radiology 143, 1982; Mann and Whitney, Ann. Math. Stat. 18, 1947.)
"""

from __future__ import annotations

import math
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.many_steps import FigureColumns, ManySteps
from streammetrics.kernels.curves.steps import Figure
from streammetrics.kernels.exact.rounded_columns import share_bounds
from streammetrics.kernels.exact.rounding import (
    BITS,
    ExactArea,
    FractionMean,
    exact_sum,
    ratio,
    rounded,
    rounded_down,
    rounded_up,
)

Ints = NDArray[np.int64]
_INT64: Final = (1 << 63) - 1
_SURE: Final = 2.0**62  # a product of floats below this is below 2**63


class Pairs(NamedTuple):
    """Pairs of a positive and a negative, won and tied, and the rows of each class."""

    wins: int
    ties: int
    positives: int
    negatives: int

    @property
    def all(self) -> int:
        """The number of pairs."""
        return self.positives * self.negatives


def pairs(negatives: NDArray[np.int64], positives: NDArray[np.int64]) -> Pairs:
    """Count the pairs of buckets [b] in ascending order of score; empty ones may be omitted."""
    n, p = exact_sum(negatives), exact_sum(positives)
    if n * p > _INT64:  # no sum below is greater than n * p
        negatives, positives = negatives.astype(object), positives.astype(object)
    below = np.cumsum(negatives) - negatives
    wins, ties = int((positives * below).sum()), int((positives * negatives).sum())
    return Pairs(wins, ties, p, n)


def pairs_of_tables(
    cells: Ints, counts: Ints, edges: Ints, buckets: int
) -> list[tuple[int, int, int, int]]:
    """The pairs of many tables [label, bucket] at once: the values of `Pairs`, as `pairs` counts
    them.

    cells, counts: the occupied cells, ascending, and their counts; cell c of table i is
    2 i buckets + c. edges: where the negatives and the positives of each table begin,
    and the end; [2 n + 1].

    >>> import numpy as np
    >>> cells, counts = np.array([0, 1, 3, 4, 6]), np.array([2, 1, 1, 5, 1])
    >>> Pairs(*pairs_of_tables(cells, counts, np.array([0, 2, 3, 4, 5]), 2)[0])
    Pairs(wins=2, ties=1, positives=1, negatives=3)
    """
    sizes = edges[1:] - edges[:-1]
    rows = np.arange(len(sizes))
    is_positive = (rows & 1 == 1).repeat(sizes)
    is_negative = ~is_positive
    keys = cells - ((rows + 1 >> 1) * buckets).repeat(sizes)  # of table and bucket
    key, p = keys[is_positive], counts[is_positive]
    below, n = keys[is_negative], counts[is_negative]
    ranks = below.searchsorted(key)
    tied = np.zeros(len(p), np.int64)
    if len(below):
        last = np.minimum(ranks, len(below) - 1)
        tied = n[last] * (below[last] == key)
    # Sums that wrap around have the right differences, if these are below 2**63.
    starts, ends = _running(sizes[::2]), _running(sizes[1::2])
    of_n = _running(n)
    negatives, positives = _sums(of_n, starts), _sums(_running(p), ends)
    wins = _sums(_running(p * of_n[ranks]), ends) - of_n[starts[:-1]] * positives
    ties = _sums(_running(p * tied), ends)
    values = [*zip(*(sums.tolist() for sums in (wins, ties, positives, negatives)), strict=True)]
    for i in np.flatnonzero(negatives.astype(np.float64) * positives >= _SURE).tolist():
        n_cells, p_cells = slice(starts[i], starts[i + 1]), slice(ends[i], ends[i + 1])
        used, column = np.unique(
            np.concatenate([below[n_cells], key[p_cells]]), return_inverse=True
        )
        table = np.zeros((2, len(used)), np.int64)
        table[0, column[: sizes[2 * i]]] = n[n_cells]
        table[1, column[sizes[2 * i] :]] = p[p_cells]
        values[i] = pairs(*table)
    return values


def _running(values: Ints) -> Ints:
    """0 and the running sums; int64 [n + 1]."""
    sums = np.zeros(len(values) + 1, np.int64)
    values.cumsum(out=sums[1:])
    return sums


def _sums(running: Ints, edges: Ints) -> Ints:
    """The sums between edges [n + 1], from running sums."""
    totals = running[edges]
    return totals[1:] - totals[:-1]


def area(counts: Pairs, *, bounded: bool) -> Figure:
    """(wins + ties / 2) / PN, correctly rounded; its bounds are wins / PN and (wins + ties) / PN,
    rounded outwards. Without a positive or a negative all are nan.

    >>> area(Pairs(wins=1, ties=2, positives=2, negatives=2), bounded=True)
    (0.5, 0.25, 0.75)
    """
    return _middle(counts.wins, counts.wins + counts.ties, counts.all, bounded)


def gini(counts: Pairs, *, bounded: bool) -> Figure:
    """2 area - 1, as `area`."""
    n_pairs = counts.all
    low, high = 2 * counts.wins - n_pairs, 2 * (counts.wins + counts.ties) - n_pairs
    return _middle(low, high, n_pairs, bounded)


def _middle(low: int, high: int, n_pairs: int, bounded: bool) -> Figure:
    """The middle between two shares of the pairs, and both if `bounded`; nan without a pair."""
    value = ratio(low + high, 2 * n_pairs)
    if not (bounded and n_pairs):
        return value, value, value
    return value, rounded_down(low, n_pairs), rounded_up(high, n_pairs)


_FLOATS: Final = 2.0**51  # pairs of a curve, below which all numbers of them are floats


def areas_and_ginis(curves: ManySteps, *, bounded: bool) -> tuple[FigureColumns, FigureColumns]:
    """The `area` and the `gini` of each of many curves, and if `bounded` their bounds."""
    areas, ginis = np.full((2, 3, len(curves)), np.nan)
    below = np.repeat(curves.negatives, np.diff(curves.edges)) - curves.fp
    wins, ties = curves.sums(curves.p * below), curves.sums(curves.p * curves.n)
    every = curves.positives.astype(np.float64) * curves.negatives
    few = np.flatnonzero((every > 0) & (every < _FLOATS))
    won, tied, size = wins[few], ties[few], every[few]
    areas[0, few], ginis[0, few] = (2 * won + tied) / (2 * size), (2 * won + tied - size) / size
    if bounded:
        sizes = (curves.positives * curves.negatives)[few]
        areas[1:, few] = share_bounds(won, won + tied, sizes)
        ginis[1:, few] = share_bounds(2 * won - sizes, 2 * (won + tied) - sizes, sizes)
    for i in np.flatnonzero(every >= _FLOATS).tolist():
        rows = slice(curves.edges[i], curves.edges[i + 1])
        counts = pairs(curves.n[rows][::-1], curves.p[rows][::-1])
        areas[:, i], ginis[:, i] = area(counts, bounded=bounded), gini(counts, bounded=bounded)
    return FigureColumns(*areas), FigureColumns(*ginis)


def improvement(measured: ExactArea, base: ExactArea) -> tuple[float, float, float]:
    """RelaImpr, (a - 1/2) / (b - 1/2) - 1: how much further from chance one area is than another.

    The value, correctly rounded, and its bounds, rounded outwards. All are nan if an area is
    undefined or the base is 1/2. If the base may be 1/2, the bounds are infinite. (Yan et al. 2014,
    ICML; Zhou et al. 2018, KDD, section 6.2.)
    """
    if not (measured.defined and base.defined):
        return math.nan, math.nan, math.nan
    sides = {_side(end) for end in (base.low, base.high)}
    if sides == {0}:
        return math.nan, math.nan, math.nan
    value = math.nan
    if _side(base.value):
        value = rounded(_Improvement(measured.value, base.value))
    if not (measured.bounded or base.bounded):
        return value, value, value
    if len(sides) > 1 or 0 in sides:
        return value, -math.inf, math.inf
    # Monotone in both areas, so the extremes are at corners.
    corners = product((measured.low, measured.high), (base.low, base.high))
    ends = [_Improvement(a, b) for a, b in corners]
    return (
        value,
        min(rounded(end, rounded_down) for end in ends),
        max(rounded(end, rounded_up) for end in ends),
    )


class _Improvement(NamedTuple):
    """RelaImpr as a rational number; `base` is not 1/2."""

    measured: FractionMean
    base: FractionMean

    def enclosing(self, bits: int) -> list[tuple[int, int]]:
        ends = self.base.enclosing(bits)
        if _common_side(ends) is None:
            return []
        return [_improved(a, b) for a, b in product(self.measured.enclosing(bits), ends)]

    def fraction(self) -> tuple[int, int]:
        return _improved(self.measured.fraction(), self.base.fraction())


def _improved(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    over, under = (2 * a[0] - a[1]) * b[1], (2 * b[0] - b[1]) * a[1]
    return (over - under, under) if under > 0 else (under - over, -under)


def _side(area: FractionMean) -> int:
    """1 where the area is above 1/2, 0 where it is 1/2, -1 where it is below."""
    for bits in BITS:
        side = _common_side(area.enclosing(bits))
        if side is not None:
            return side
    numerator, denominator = area.fraction()
    return (2 * numerator > denominator) - (2 * numerator < denominator)


def _common_side(ends: list[tuple[int, int]]) -> int | None:
    """The common side of 1/2 of all ends, or None."""
    sides = {(2 * a > b) - (2 * a < b) for a, b in ends}
    return sides.pop() if len(sides) == 1 else None
