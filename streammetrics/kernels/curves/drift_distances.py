"""Distances between two distributions of rows over the same cells, and their certain bounds.

A cell is one value, or a bucket of values; within a bucket the rows of the two sides may be equal
or all different. p and q are the shares of the reference and of the current rows in a cell.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.part import Slots
from streammetrics.kernels.curves.operating_points import distance_of_classes
from streammetrics.kernels.curves.steps import UNDEFINED, Figure, steps
from streammetrics.kernels.exact.double_double import divided, two_sum, whole
from streammetrics.kernels.exact.elementary import log
from streammetrics.kernels.exact.rounding import exact_sum, ratio
from streammetrics.kernels.inference.quantile_ranks import rank_of
from streammetrics.kernels.inference.tails import chi2_sf

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_LN_2: Final = 0.6931471805599453
_ROUNDING: Final = 2.0**-48  # of a distance, relative: more than all of its roundings together


@dataclass(frozen=True, eq=False)
class Cells:
    """The counts of both sides in each cell that has rows.

    counts: int64 [2, k], reference and current, in ascending order of value. wide: bool [k],
    whether a cell holds several values.
    """

    counts: Ints
    wide: NDArray[np.bool_]

    @cached_property
    def rows(self) -> tuple[int, int]:
        """The counts of all cells, n and m."""
        return exact_sum(self.counts[0]), exact_sum(self.counts[1])

    @property
    def is_defined(self) -> bool:
        """Whether both sides have rows."""
        return min(self.rows) > 0

    @cached_property
    def _common(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The shares p and q, c m and d n in units of 1 / nm; objects if they exceed int64."""
        n, m = self.rows
        counts = self.counts if 2 * n * m < 1 << 63 else self.counts.astype(object)
        return counts[0] * m, counts[1] * n

    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """The shares p and q: float64 [k], to the nearest float or next to it."""
        n, m = self.rows
        return _quotients(self.counts[0], n), _quotients(self.counts[1], m)

    @property
    def exact(self) -> bool:
        """Whether every cell is one value."""
        return not self.wide.any()


class Places(NamedTuple):
    """The cells of one side that have rows, all [k]. keys: ascending; those of both sides are equal
    where the cell is the same. low, high: the least and the greatest value that a row there can
    have on this side."""

    keys: Floats
    counts: Ints
    low: Floats
    high: Floats


def cells_of(*sides: Places) -> tuple[Cells, Floats]:
    """The cells of the reference and of the current rows, and their keys [k].

    >>> one, two = np.array([1.0, 2.0]), np.array([2.0, 3.0])
    >>> found, keys = cells_of(
    ...     Places(one, np.array([5, 6]), one, one), Places(two, np.array([7, 8]), two, two + 0.5)
    ... )
    >>> found.counts.tolist(), found.wide.tolist()
    ([[5, 6, 0], [0, 7, 8]], [False, True, True])
    """
    every = np.concatenate([side.keys for side in sides])
    order = np.argsort(every, kind="stable")  # which merges, as each side ascends
    every = every[order]
    new = np.ones(len(every), np.bool_)
    np.not_equal(every[1:], every[:-1], out=new[1:])
    columns = np.empty(len(every), np.intp)
    columns[order] = np.cumsum(new) - 1
    every = every[new]
    table = np.zeros((2, len(every)), np.int64)
    least, greatest = np.full(len(every), np.inf), np.full(len(every), -np.inf)
    of_sides = np.split(columns, [len(sides[0].keys)])
    for counts, side, cells in zip(table, sides, of_sides, strict=True):
        counts[cells] = side.counts
        least[cells] = np.minimum(least[cells], side.low)
        greatest[cells] = np.maximum(greatest[cells], side.high)
    return Cells(table, least < greatest), every


# PSI: the population stability index, over bins that the reference determines.


def bin_ends(reference: Ints, parts: int) -> Slots:
    """The cells at which bins end: those of the i/parts quantiles of the reference, 0 < i < parts,
    each once. The last bin has no end."""
    running = np.cumsum(reference, dtype=object if exact_sum(reference) >= 1 << 63 else np.int64)
    ranks = [rank_of(int(running[-1]), Fraction(i, parts)) for i in range(1, parts)]
    return np.unique(np.searchsorted(running, np.array(ranks, running.dtype)))


def binned(keys: Floats, counts: Ints, ends: Floats) -> Ints:
    """The counts in bins: int64 [2, bins]. keys: of the cells, ascending; ends: keys at which bins
    end, ascending."""
    running = np.zeros((2, len(keys) + 1), np.int64)
    np.cumsum(counts, axis=1, out=running[:, 1:])
    edges = [0, *np.searchsorted(keys, ends, "right"), len(keys)]
    return running[:, edges[1:]] - running[:, edges[:-1]]


def psi(counts: Ints, smoothing: Fraction) -> float:
    """Σ (p - q) ln(p / q), with p = (c + s) / (n + B s) in each of B bins of both sides.

    counts: [2, B]. smoothing: s; with 0 the sum is infinite if a bin is empty on one side only. nan
    if a side is empty. (Siddiqi 2006, "Credit Risk Scorecards", page 137, without s.)

    >>> round(psi(np.array([[50, 30, 20, 0], [40, 0, 40, 20]]), Fraction(1, 2)), 12)
    2.092371692552
    """
    n, m = (sum(side) for side in counts.tolist())
    if not (n and m):
        return math.nan
    # In units of the denominator of s, all of these are integers.
    numerator, unit = smoothing.as_integer_ratio()
    below = [unit * whole + len(counts[0]) * numerator for whole in (n, m)]
    pairs = [
        ((unit * c + numerator) * below[1], (unit * d + numerator) * below[0])
        for c, d in zip(*counts.tolist(), strict=True)
        if (unit * c + numerator) * below[1] != (unit * d + numerator) * below[0]
    ]
    if not all(map(all, pairs)):
        return math.inf
    scale = below[0] * below[1]
    logs = _logs([Fraction(*pair) for pair in pairs])
    return math.fsum(
        (p - q) / scale * log_ratio for (p, q), log_ratio in zip(pairs, logs, strict=True)
    )


class DesignEffects(NamedTuple):
    """Of bins over clusters: by how much clusters widen the differences p - q, and how unequal they
    do so. mean: of the eigenvalues of the generalised design effect, 1 for independent rows.
    inequality: 1 + their squared coefficient of variation."""

    mean: float = 1.0
    inequality: float = 1.0


def psi_pvalue(observed: float, n: int, m: int, bins: int, effects: DesignEffects) -> float:
    """How often PSI is at least this large if both sides have the same distribution.

    PSI / (1/n + 1/m) is then chi-square with B - 1 degrees of freedom for independent rows.
    (Yurdakul and Naranjo 2020, J. Risk Model Validation 14.) With clusters n and m are divided by
    the mean design effect, and both sides of the comparison by the inequality of the effects. (The
    second-order correction of Rao and Scott 1981, J. Am. Stat. Assoc. 76.) 1 if it is not known.
    """
    deff, inequality = effects
    if bins < 2 or not (n and m and deff > 0):
        return 1.0
    statistic = observed / (1 / n + 1 / m) / deff
    return float(chi2_sf(statistic / inequality, (bins - 1) / inequality))


def differences_of_bins(counts: Ints) -> Floats:
    """The differences p - q of bins: float64 [B]; nan if a side is empty. counts: [2, B]."""
    n, m = (sum(side) for side in counts.tolist())
    pairs = zip(*counts.tolist(), strict=True)
    return np.array([ratio(c * m - d * n, n * m) for c, d in pairs])


def design_effects(counts: Ints, replicates: Floats) -> DesignEffects:
    """The design effects of bins from the jackknife: nan with fewer than two bins or clusters.

    counts: [2, B]. replicates: the differences p - q without each of K clusters, [K, B]. The sum of
    squares of the eigenvalues is that of the matrix, less its bias from K - 1 degrees of freedom.

    >>> counts = np.array([[50, 50], [60, 40]])
    >>> one, other = [0.0, 0.2, 0.1], [0.0, -0.2, -0.1]
    >>> found = design_effects(counts, np.array([one, other]).T)
    >>> round(found.mean, 3), found.inequality
    (2.694, 1.0)
    """
    n, m = (sum(side) for side in counts.tolist())
    used = np.flatnonzero(counts.any(0))
    k, bin_df = len(replicates), len(used) - 1
    if bin_df < 1 or k < 2 or not np.isfinite(replicates).all():
        return DesignEffects(math.nan, math.nan)
    pooled = counts[:, used].sum(0) / (n + m)
    off = replicates[:, used]
    scaled = (off - off.mean(0)) / np.sqrt(pooled * ((1 / n + 1 / m) * k / (k - 1)))
    trace = float((scaled * scaled).sum())
    columns = ((scaled * scaled[:, i : i + 1]).sum(0) for i in range(len(used)))
    squares = math.fsum(float((column * column).sum()) for column in columns)
    if trace > 0:
        df = k - 1
        squares = (squares - trace * trace / df) * df * df / ((df + 2) * (df - 1) or 1)
        return DesignEffects(
            trace / bin_df, min(max(bin_df * squares / trace**2, 1.0), float(bin_df))
        )
    return DesignEffects(0.0, 1.0)


# Distances over all cells.


def greatest_distance(cells: Cells) -> Figure:
    """KS, max |F - G|. The lower bound is the maximum at the ends of cells; for the upper one all
    rows of one side come first within a cell."""
    return distance_of_classes(steps(*cells.counts), bounded=not cells.exact)


def total_variation(cells: Cells, *, apart: bool = False) -> float:
    """½ Σ |p - q|. apart: if the two sides have no value in common within a wide cell.

    >>> cells = Cells(np.array([[10, 20, 40, 20, 10], [5, 15, 35, 30, 15]]), np.ones(5, bool))
    >>> total_variation(cells), total_variation(cells, apart=True)
    (0.15, 1.0)
    """
    if not cells.is_defined:
        return math.nan
    n, m = cells.rows
    p, q = cells._common
    parts = np.where(cells.wide & apart, p + q, abs(p - q))  # their sum is at most 2nm
    return ratio(int(parts.sum()), 2 * n * m)


def jensen_shannon(cells: Cells, *, apart: bool = False) -> float:
    """(KL(p || r) + KL(q || r)) / 2 in bits, with r = (p + q) / 2: in [0, 1].

    With t = (p - q) / (p + q) a cell has (p + q) / 2 times ½ [(1 + t) log2(1 + t) +
    (1 - t) log2(1 - t)], a sum without cancellation. (Lin 1991, IEEE Trans. Inf. Theory 37.)
    """
    if not cells.is_defined:
        return math.nan
    u, v = cells._common
    t = divided(whole(u - v), whole(u + v)).high
    parts = np.ones(len(t))  # of a cell with rows of one side only
    shared_cells = np.flatnonzero(abs(t) < 1)
    t = t[shared_cells]
    up, down = _log_1p(t), _log_1p(-t)
    parts[shared_cells] = (_log_1p(-t * t) + t * (up - down)) / (2 * _LN_2)
    return _parts_distance(cells, parts, apart=apart)


def hellinger(cells: Cells, *, apart: bool = False) -> float:
    """√(½ Σ (√p - √q)²), in [0, 1]."""
    if not cells.is_defined:
        return math.nan
    (p, q), (u, v), (n, m) = cells._shares, cells._common, cells.rows
    distance = _quotients(u - v, n * m) / (np.sqrt(p) + np.sqrt(q))
    return math.sqrt(_parts_distance(cells, distance * distance / (p + q), apart=apart))


def outwards(low: float, high: float) -> Figure:
    """A distance that is certainly at least `low` and at most `high`, both in [0, 1], with room for
    their rounding: low as the value, and the bounds."""
    return low, low * (1 - _ROUNDING), min(high * (1 + _ROUNDING), 1.0)


def wasserstein(
    values: tuple[Floats, Floats],
    counts: tuple[Ints, Ints],
    moves: tuple[Floats, Floats],
    *,
    bounded: bool,
) -> Figure:
    """W1, ∫ |F - G|, with all rows of a place at its value.

    values, counts: of the places of each side. moves: how far a row there may be from the value;
    each share of rows that moves as far changes W1 by at most their product.

    >>> exact = np.zeros(5), np.zeros(4)
    >>> x = np.array([1.0, 2.0, 2.0, 3.0, 7.5]), np.array([2.0, 2.5, 3.0, 9.0])
    >>> round(wasserstein(x, (np.ones(5, int), np.ones(4, int)), exact, bounded=False)[0], 12)
    1.025
    """
    n, m = (exact_sum(side) for side in counts)
    if not (n and m):
        return UNDEFINED
    where = np.concatenate(values)
    order = np.argsort(where, kind="stable")
    where = where[order]
    units = [side if 2 * n * m < 1 << 63 else side.astype(object) for side in counts]
    steps_ = np.concatenate([units[0] * m, -units[1] * n])[order]
    apart = _quotients(abs(np.cumsum(steps_)[:-1]), n * m)
    used = np.flatnonzero(apart * (where[1:] > where[:-1]))  # equal infinities do not meet
    # The distance of two floats may be more than the greatest one, but not half of it.
    unit = 2.0 if (np.abs(where[np.isfinite(where)]) > 2.0**1022).any() else 1.0
    gaps = where[used + 1] / unit - where[used] / unit
    distance = _sum(apart[used] * gaps)
    if not bounded:
        return unit * distance, unit * distance, unit * distance
    off = math.fsum(
        _sum(_quotients(side, total) * (move / unit))
        for side, total, move in zip(counts, (n, m), moves, strict=True)
    )
    low = distance * (1 - _ROUNDING) - off * (1 + _ROUNDING) if off < math.inf else 0.0
    low = min(unit * max(0.0, low), sys.float_info.max)  # the exact value is finite
    return unit * distance, low, unit * ((distance + off) * (1 + _ROUNDING))


def _parts_distance(cells: Cells, parts: Floats, *, apart: bool) -> float:
    """Σ (p + q) / 2 part. apart: the part of a wide cell is 1."""
    p, q = cells._shares
    return min(_sum((p + q) / 2 * np.where(cells.wide & apart, 1.0, parts)), 1.0)


def _quotients(above: Ints, below: int) -> Floats:
    """Integers / below, to the nearest float or next to it: float64 [k]."""
    if above.dtype != object and below < 1 << 53:
        return above / float(below)
    return np.array([ratio(count, below) for count in above.tolist()])


def _log_1p(t: Floats) -> Floats:
    """ln(1 + t) of t > -1."""
    return log(*two_sum(np.ones(len(t)), t)).high


def _logs(ratios: list[Fraction]) -> list[float]:
    """The logarithms of ratios of counts."""
    near = [ratio(*fraction.as_integer_ratio()) for fraction in ratios]
    low_parts = [float(fraction - Fraction(x)) for fraction, x in zip(ratios, near, strict=True)]
    return log(np.array(near), np.array(low_parts)).high.tolist() if ratios else []


def _sum(terms: Floats) -> float:
    """The sum, correctly rounded; infinite if it is."""
    if np.isinf(terms).any():
        return math.inf
    return math.fsum(terms.tolist())
