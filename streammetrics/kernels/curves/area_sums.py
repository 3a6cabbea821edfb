"""The areas of groups: their mean without rounding, and mergeable sums of integers.

Σ w·A / Σ w with A = 2U / 2PN is a sum of fractions, which does not depend on the order of groups.
`mean_area` adds terms of equal denominator as integers; n rows have at most about n^(2/3) different
products P·N, so few terms remain. `sum_areas` rounds each group's area once, to a multiple of
2**-96, as a function of that group alone. So sums over groups are integers. They do not depend on
how the groups are split, and are as small for a billion groups as for a thousand. The groups are
independent, so the variance of Σ w A / Σ w is that of a ratio (`variances.ratio_variance`), with
areas to 2**-62.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from sys import getsizeof
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.area import Pairs
from streammetrics.kernels.curves.segments import GroupPairs
from streammetrics.kernels.exact.rounding import ExactArea, FractionMean, exact_sum, ratio
from streammetrics.kernels.inference.variances import ratio_variance

Ints = NDArray[np.int64]

BITS: Final = 96  # of an area, in a mean
SPREAD_BITS: Final = 62  # of an area, in a variance
_LIMB: Final = 32
_HALF: Final = 31
_SPARE: Final = BITS - SPREAD_BITS
_CHUNK: Final = 1 << 13  # groups
_DOWN, _NEAREST, _UP = 0, 1, 2  # rounding modes
_NARROW: Final = 1 << 32
_ENTRY_BYTES: Final = 64  # of two integers in a dict


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
    >>> from streammetrics.kernels.exact.rounding import rounded
    >>> none, one, two = np.array([[0, 0], [1, 1], [2, 1]])
    >>> rounded(mean_area(GroupPairs(one, none, two, one, {}), "uniform").value)  # 1/2 and 1
    0.75
    """
    return mean_areas(groups, weight, None, 1, bounded=bounded)[0]


def mean_areas(
    groups: GroupPairs, weight: str, owners: Ints | None, n: int, *, bounded: bool = False
) -> list[ExactArea]:
    """The `mean_area` of the groups of each of n owners. owners: int64 [g], ascending; None: of
    one owner all."""
    live_groups = Kept(groups, weight, owners)
    totals = live_groups.totals(n)

    def means(tied: int) -> list[FractionMean]:
        """The mean areas if a tied pair is worth `tied` halves."""
        return [*map(FractionMean, live_groups.sums(*live_groups.twice_u(tied), n), totals)]

    value = means(1)
    low, high = (means(0), means(2)) if bounded else (value, value)
    return [ExactArea(*ends, bounded) for ends in zip(value, low, high, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class AreaSoFar:
    """What `mean_area` and counts of groups need, which follow the groups that change; none has
    `LARGE` rows.

    groups, kept: all groups, and those with both labels. positives: of all groups; rows: of the
    kept ones. total: Σ weight. sizes: by 2PN the number of groups. sums: by the halves that a tied
    pair is worth Σ weight · 2U by 2PN.
    """

    weight: str
    bounded: bool = False
    groups: int = 0
    kept: int = 0
    positives: int = 0
    rows: int = 0
    total: int = 0
    sizes: Mapping[int, int] = field(default_factory=dict)
    sums: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        tables = (self.sizes, *self.sums.values())
        return sum(getsizeof(table) + _ENTRY_BYTES * len(table) for table in tables)

    def changed(self, old: Ints, new: Ints) -> AreaSoFar:
        """With groups of these sums in place of those of the old ones, 0 for a new group.

        Both are [4, groups]: pairs won or tied, pairs tied, positives, negatives.
        """
        left, added = self._alone(old), self._alone(new)
        sizes = {d: self.sizes.get(d, 0) + n for d, n in added.sizes.items()}
        sizes = {**self.sizes, **sizes}
        for denominator, n in left.sizes.items():
            sizes[denominator] -= n
        gone = [denominator for denominator in left.sizes if not sizes[denominator]]
        for denominator in gone:
            del sizes[denominator]
        sums = {}
        for tied, of_added in added.sums.items():
            tied_sums = dict(self.sums.get(tied, {}))
            for denominator, amount in of_added.items():
                tied_sums[denominator] = tied_sums.get(denominator, 0) + amount
            for denominator, amount in left.sums[tied].items():
                tied_sums[denominator] -= amount
            for denominator in gone:
                del tied_sums[denominator]
            sums[tied] = tied_sums
        return AreaSoFar(
            self.weight,
            self.bounded,
            self.groups + added.groups - left.groups,
            self.kept + added.kept - left.kept,
            self.positives + added.positives - left.positives,
            self.rows + added.rows - left.rows,
            self.total + added.total - left.total,
            sizes,
            sums,
        )

    def _alone(self, sums: Ints) -> AreaSoFar:
        """Of these groups alone."""
        not_lost, ties, positives, negatives = sums
        groups = GroupPairs(not_lost, ties, positives, negatives, {})
        live_groups = Kept(groups, self.weight)
        sizes, counts = np.unique(live_groups.denominators, return_counts=True)
        return AreaSoFar(
            self.weight,
            self.bounded,
            int(np.count_nonzero(groups.positives + groups.negatives)),
            len(live_groups.small),
            exact_sum(groups.positives),
            exact_sum(live_groups.positives) + exact_sum(live_groups.negatives),
            live_groups.total,
            dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
            {
                tied: live_groups.sums(*live_groups.twice_u(tied), 1)[0]
                for tied in ((1, 0, 2) if self.bounded else (1,))
            },
        )

    def mean(self) -> ExactArea:
        """The mean area, equal to that of `mean_area` of all groups."""
        value, low, high = (
            FractionMean(self.sums.get(tied, {}), self.total)
            for tied in ((1, 0, 2) if self.bounded else (1, 1, 1))
        )
        return ExactArea(value, low, high, self.bounded)


class Terms(NamedTuple):
    """Groups that have both labels: weights, half-pairs won (2U), and 2PN, below 2**32; int64 [g]
    each. others: the same three values of every other group."""

    weights: Ints
    twice_u: Ints
    denominators: Ints
    others: list[tuple[int, int, int]]


class Kept:
    """The groups that have both labels: large ones, and small ones in ascending order of 2PN, those
    of each owner together."""

    def __init__(self, groups: GroupPairs, weight: str, owners: Ints | None = None) -> None:
        live = np.flatnonzero((groups.positives > 0) & (groups.negatives > 0))
        self.of_large = [g for g in live.tolist() if g in groups.large] if groups.large else []
        small = live[~np.isin(live, self.of_large)] if groups.large else live
        sizes = 2 * groups.positives[small] * groups.negatives[small]
        order = np.argsort(sizes) if owners is None else np.lexsort((sizes, owners[small]))
        small = small[order]
        self.owners = np.zeros_like(groups.positives) if owners is None else owners
        self.groups, self.weight, self.small = groups, weight, small
        self.large = [groups.large[g] for g in self.of_large]
        self.positives, self.negatives = groups.positives[small], groups.negatives[small]
        self.weights = _weights(self.positives, self.negatives, weight)
        self.denominators = 2 * self.positives * self.negatives
        self.total = exact_sum(self.weights) + sum(_weight(pairs, weight) for pairs in self.large)

    def twice_u(self, tied: int) -> tuple[Ints, list[int]]:
        """Half-pairs won (2U), of small groups and of large ones."""
        not_lost, ties = self.groups.not_lost[self.small], self.groups.ties[self.small]
        return 2 * not_lost - (2 - tied) * ties, [_twice_u(pairs, tied) for pairs in self.large]

    def terms(self, small: Ints, large: list[int]) -> Terms:
        """The terms of all groups, in no order; small, large: from `twice_u`."""
        narrow = self.denominators < _NARROW
        wide = (array[~narrow].tolist() for array in (self.weights, small, self.denominators))
        wide_terms = list(zip(*wide, strict=True))
        for pairs, twice_u in zip(self.large, large, strict=True):
            wide_terms.append((_weight(pairs, self.weight), twice_u, 2 * pairs.all))
        return Terms(self.weights[narrow], small[narrow], self.denominators[narrow], wide_terms)

    def totals(self, n: int) -> list[int]:
        """The weight of all groups of each of n owners."""
        edges = np.searchsorted(self.owners[self.small], np.arange(n + 1))
        # Running sums may wrap around; a difference of two is right if it fits.
        running = np.concatenate([[0], np.cumsum(self.weights)])
        totals: list[int] = np.diff(running[edges]).tolist()
        for group, pairs in zip(self.of_large, self.large, strict=True):
            totals[self.owners.item(group)] += _weight(pairs, self.weight)
        return totals

    def sums(self, small: Ints, large: list[int], n: int) -> list[dict[int, int]]:
        """For each of n owners Σ weight · 2U for each different denominator 2PN."""
        owners = self.owners[self.small]
        owner_sums = _denominator_sums(self.weights, small, self.denominators, owners, n)
        for group, pairs, twice_u in zip(self.of_large, self.large, large, strict=True):
            sums = owner_sums[self.owners.item(group)]
            sums[2 * pairs.all] = sums.get(2 * pairs.all, 0) + _weight(pairs, self.weight) * twice_u
        return owner_sums


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


def _denominator_sums(
    weights: Ints, twice_u: Ints, denominators: Ints, owners: Ints, n: int
) -> list[dict[int, int]]:
    """For each of n owners Σ weight · 2U for each different denominator; both ascend."""
    if not len(denominators):
        return [{} for _ in range(n)]
    new = np.diff(denominators, prepend=-1) != 0
    first = np.flatnonzero(new | (np.diff(owners, prepend=-1) != 0))
    w, u = weights, twice_u
    if int(w.max()) * int(u.max()) * len(w) < 1 << 63:
        sums = np.add.reduceat(w * u, first).tolist()
    else:  # split 2U into two halves, and the products, below 2**62, again
        sums = [0] * len(first)
        for part, shift in ((u & ((1 << _HALF) - 1), 0), (u >> _HALF, _HALF)):
            product = w * part
            low = np.add.reduceat(product & ((1 << _HALF) - 1), first).tolist()
            high = np.add.reduceat(product >> _HALF, first).tolist()
            for i, (a, b) in enumerate(zip(low, high, strict=True)):
                sums[i] += (a + (b << _HALF)) << shift
    terms = iter(zip(denominators[first].tolist(), sums, strict=True))
    sizes = np.bincount(owners[first], minlength=n).tolist()
    return [dict(islice(terms, size)) for size in sizes]


class AreaSums(NamedTuple):
    """Sums over groups with both labels, of areas in units of 2**-96.

    total: Σ w. value: Σ w A. low, high: Σ w A of the least and greatest area of each group,
    rounded outwards.
    """

    total: int
    value: int
    low: int
    high: int

    def mean(self, *, bounded: bool) -> ExactArea:
        """The weighted mean, off by at most 2**-97, and its bounds, each at most 2**-96 outwards.

        bounded: whether ties may be worth 0 to 1.

        >>> AreaSums(4, 3 << BITS, 3 << BITS, 3 << BITS).mean(bounded=False).value
        FractionMean(sums={79228162514264337593543950336: 237684487542793012780631851008}, total=4)
        """
        value, low, high = (
            FractionMean({1 << BITS: areas}, self.total)
            for areas in (self.value, self.low, self.high)
        )
        return ExactArea(value, low, high, bounded)


class AreaSpread(NamedTuple):
    """The sums for a variance, over the groups with both labels: w is the weight of a group and A
    its area, in units of 2**-62.

    units: the number of groups. y: Σ w A. n: Σ w. yy: Σ (w A)². yn: Σ w² A. nn: Σ w².
    """

    units: int
    y: int
    n: int
    yy: int
    yn: int
    nn: int

    @property
    def effective(self) -> float:
        """(Σ w)² / Σ w²: how many groups of equal weight show as much; nan without any."""
        return ratio(self.n * self.n, self.nn)

    @property
    def variance(self) -> float:
        """Of Σ w A / Σ w, with `units` - 1 degrees of freedom; nan for fewer than two groups."""
        unit = 1 << SPREAD_BITS
        squares = Fraction(self.yy, unit * unit), Fraction(self.yn, unit), self.nn
        return ratio_variance(self.units, Fraction(self.y, unit), self.n, squares)


def sum_areas(groups: GroupPairs, weight: str, *, bounded: bool = False) -> AreaSums:
    """The sums of the groups that have both labels.

    weight: "impressions", "positives" or "uniform", as in `mean_area`. bounded: a tied pair is
    worth 0 in `low` and 1 in `high`, else one half.

    >>> none, one, two = np.array([[0, 0], [1, 1], [2, 1]])
    >>> sums = sum_areas(GroupPairs(one, none, two, one, {}), "uniform")  # 1/2 and 1
    >>> sums.total, sums.value / 2**BITS
    (2, 1.5)
    """
    live_groups = Kept(groups, weight)
    value = _sum(live_groups.terms(*live_groups.twice_u(1)), _NEAREST)
    if not bounded:
        return AreaSums(live_groups.total, value, value, value)
    low, high = (
        _sum(live_groups.terms(*live_groups.twice_u(0)), _DOWN),
        _sum(live_groups.terms(*live_groups.twice_u(2)), _UP),
    )
    return AreaSums(live_groups.total, value, low, high)


def area_spread(groups: GroupPairs, weight: str) -> AreaSpread:
    """The sums for the variance of the mean area.

    >>> none, one, two = np.array([[0, 0], [1, 1], [2, 1]])
    >>> area_spread(GroupPairs(one, none, two, one, {}), "uniform").variance  # 1/2 and 1
    0.0625
    """
    live_groups = Kept(groups, weight)
    terms = live_groups.terms(*live_groups.twice_u(1))
    y = yy = yn = nn = 0
    for chunk in _chunks(terms):
        (whole, first, second, _), _ = _digits(chunk)
        areas = (whole << SPREAD_BITS) + (first << SPREAD_BITS - _LIMB) + (second >> _SPARE - _LIMB)
        top, low_bits = areas >> _HALF, areas & ((1 << _HALF) - 1)
        squares = chunk.weights * chunk.weights
        y += (_dot(chunk.weights, top) << _HALF) + _dot(chunk.weights, low_bits)
        yn += (_dot(squares, top) << _HALF) + _dot(squares, low_bits)
        yy += _dot(squares, top * top) << 2 * _HALF
        yy += (_dot(squares, top * low_bits) << _HALF + 1) + _dot(squares, low_bits * low_bits)
        nn += exact_sum(squares)
    for w, twice_u, denominator in terms.others:
        area = _fixed(twice_u, denominator, _DOWN) >> _SPARE
        y, yn, yy, nn = y + w * area, yn + w * w * area, yy + (w * area) ** 2, nn + w * w
    return AreaSpread(len(terms.weights) + len(terms.others), y, live_groups.total, yy, yn, nn)


def area_terms(groups: GroupPairs, weight: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The terms w A and w of each group, in the order of the groups; 0 for a group of one class.

    Each rounded once from w, 2U and 2PN, which are exact as float64 below 2**53.

    >>> none, one, two = np.array([[0, 0], [1, 1], [2, 1]])
    >>> values, weights = area_terms(GroupPairs(one, none, two, one, {}), "impressions")
    >>> values.tolist(), weights.tolist()  # 1/2 of three rows, and 1 of two
    ([1.5, 2.0], [3.0, 2.0])
    """
    p, n = groups.positives, groups.negatives
    is_live = (p > 0) & (n > 0)
    weights = np.where(is_live, _weights(p, n, weight), 0).astype(np.float64)
    twice_u = (2 * groups.not_lost - groups.ties).astype(np.float64)
    areas = twice_u / np.where(is_live, 2.0 * p * n, 1.0)
    for g, pairs in groups.large.items():
        areas[g] = ratio(_twice_u(pairs, 1), 2 * pairs.all)
    return weights * areas, weights


def _sum(terms: Terms, halves: int) -> int:
    """Σ w A, each A rounded down, to nearest or up (`halves`) to a multiple of 2**-96."""
    total = sum(w * _fixed(u, denominator, halves) for w, u, denominator in terms.others)
    for chunk in _chunks(terms):
        limbs, left = _digits(chunk)
        whole = chunk.denominators.astype(np.uint64)
        round_up = 2 * left >= whole if halves == _NEAREST else (left > 0) & (halves == _UP)
        total += exact_sum(chunk.weights[round_up])
        for power, limb in enumerate(reversed(limbs)):
            total += exact_sum(chunk.weights * limb) << power * _LIMB  # below 2**31 times 2**32
    return total


def _chunks(terms: Terms) -> Iterator[Terms]:
    """Chunks of the groups, so that intermediate arrays stay in the cache."""
    for start in range(0, len(terms.weights), _CHUNK):
        span = slice(start, start + _CHUNK)
        yield Terms(terms.weights[span], terms.twice_u[span], terms.denominators[span], [])


def _digits(terms: Terms) -> tuple[list[Ints], NDArray[np.uint64]]:
    """2U / 2PN as an integer part and three 32-bit limbs of the fraction, and the remainder over
    2PN. Long division, which fits 64 bits because 2PN < 2**32."""
    denominators = terms.denominators.astype(np.uint64)
    left = terms.twice_u.astype(np.uint64)
    limbs = []
    for shift in (0, _LIMB, _LIMB, _LIMB):
        left = left << np.uint64(shift)
        limb = left // denominators
        left = left - limb * denominators
        limbs.append(limb.astype(np.int64))
    return limbs, left


def _fixed(twice_u: int, denominator: int, halves: int) -> int:
    """The area of one group in units of 2**-96, rounded by `halves`."""
    area, left = divmod(twice_u << BITS, denominator)
    if halves == _NEAREST:
        return area + (2 * left >= denominator)
    return area + (left > 0) * (halves == _UP)


def _dot(a: Ints, b: Ints) -> int:
    """Σ a b of integers from 0 to 2**62; the sum may have any size."""
    low = (1 << _HALF) - 1
    total = 0
    for x, up in ((a >> _HALF, _HALF), (a & low, 0)):
        for y, shift in ((b >> _HALF, _HALF), (b & low, 0)):
            if x.any() and y.any():
                total += exact_sum(x * y) << up + shift
    return total
