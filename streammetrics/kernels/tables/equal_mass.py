"""Groups of equal mass: rows in the order of their scores, cut into n groups of as many rows each.

With N rows (by weight) a row is in group floor(n · B / N), where B of them have a lower score: tied
rows stay together, in the group in which they begin. Of buckets of scores it is known how many rows
they hold, of which class, and the sum of their scores. A cut that falls within a bucket may divide
it in many ways, so what lies below it is only known between certain bounds; figures are those of
whole buckets, as if the rows of each were tied, and these lie within the bounds too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from streammetrics.core.bounded import Bounded
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up
from streammetrics.kernels.tables.probabilities import ScoreBuckets

Range: TypeAlias = tuple[Fraction, Fraction]  # what a number is certainly between
Corner: TypeAlias = tuple[Fraction, Fraction]  # units, and a bound of an error


class Boundary(NamedTuple):
    """What is below a boundary between two groups. buckets: those that are, at least in part;
    divided: whether the last of them may be divided. units, positives, error: the rows, the
    positive ones, and Σ score - Σ label, of whole buckets.

    fewest_positives: certainly; at most there are `positives`. lows, highs: the certain bounds of
    the error by the units below, ascending up to `units`, and straight between two such corners.
    """

    buckets: int
    divided: bool
    units: int
    positives: int
    error: Fraction
    fewest_positives: int
    lows: Sequence[Corner]
    highs: Sequence[Corner]

    @property
    def fewest_units(self) -> Fraction:
        """The least number of units below; at most there are `units`."""
        return self.lows[0][0]

    @property
    def error_range(self) -> Range:
        """The certain bounds of the error."""
        return min(error for _, error in self.lows), max(error for _, error in self.highs)


class Gap(NamedTuple):
    """|Σ score - Σ label| / rows of a group: of whole buckets, None if it has none then, and its
    certain bounds. sure: whether the group certainly has rows."""

    value: Fraction | None
    low: Fraction
    high: Fraction
    sure: bool


def boundaries(buckets: ScoreBuckets, n: int) -> list[Boundary]:
    """The n + 1 boundaries of n groups of equal mass; the first one has nothing below, the last one
    everything. There must be rows.

    >>> buckets = ScoreBuckets(np.array([0.25, 0.5]), np.array([0.25, 0.75]),
    ...     np.array([[1, 1], [1, 1]]), [2, 5], 2)
    >>> [(int(edge.fewest_units), edge.units) for edge in boundaries(buckets, 4)]
    [(0, 0), (2, 2), (2, 2), (3, 4), (4, 4)]
    """
    of_classes = buckets.counts.tolist()
    units = [0, *accumulate(map(sum, zip(*of_classes, strict=True)))]
    positives: list[int] = [0, *accumulate(of_classes[1])]
    sums = [0, *accumulate(buckets.sums)]

    def error(end: int) -> Fraction:
        return Fraction(sums[end], 1 << buckets.shift) - positives[end]

    edges = []
    for group in range(n + 1):
        goal = -(-group * units[-1] // n)
        end = bisect_left(units, goal)  # of the buckets below, the last one perhaps in part
        hits, lows = positives[end], [(Fraction(units[end]), error(end))]
        highs, divided = lows, units[end] > goal and not _tied(buckets, end - 1)
        if divided:
            whole = end - 1
            least = goal - units[whole]
            hits = positives[whole] + max(0, least - of_classes[0][whole])
            lows, highs = (
                [(units[whole] + n_units, error(whole) + off) for n_units, off in corners]
                for corners in _divided(buckets, whole, least)
            )
        edges.append(
            Boundary(end, divided, units[end], positives[end], error(end), hits, lows, highs)
        )
    return edges


def _tied(buckets: ScoreBuckets, i: int) -> bool:
    """Whether all rows of a bucket certainly have the same score."""
    units = int(buckets.counts[:, i].sum())
    mean = Fraction(buckets.sums[i], units << buckets.shift)
    return units == 1 or mean in (buckets.least[i].item(), buckets.largest[i].item())


def _divided(buckets: ScoreBuckets, i: int, least: int) -> tuple[list[Corner], list[Corner]]:
    """The certain bounds of Σ score - Σ label of the lowest rows of a bucket, by their units: at
    least these, and perhaps all, since tied rows are not divided.

    The scores of a units add up to at least a times the least one, and to no less than what is left
    if all others have the largest one; and to no more than a times the mean. At least a - negatives
    and at most min(a, positives) of them are positive. So the lower bound is convex in a, the upper
    one concave, and both are straight between corners.
    """
    negatives, positives = (int(count) for count in buckets.counts[:, i])
    units, total = negatives + positives, Fraction(buckets.sums[i], 1 << buckets.shift)
    low, high = Fraction(buckets.least[i].item()), Fraction(buckets.largest[i].item())
    bend = (units * high - total) / (high - low) if high > low else 0
    inside = {*map(Fraction, (least, negatives, positives, bend, units))}
    corners: list[Fraction] = sorted(a for a in inside if least <= a <= units)
    lows = [
        (a, max(a * low, total - (units - a) * high) - min(a, Fraction(positives))) for a in corners
    ]
    highs = [(a, a * total / units - max(Fraction(0), a - negatives)) for a in corners]
    return lows, highs


def gaps(buckets: ScoreBuckets, edges: Sequence[Boundary]) -> list[Gap]:
    """The gap of each group between two boundaries that may have rows."""
    has = buckets.counts > 0
    of_groups = []
    for a, b in pairwise(edges):
        fewest, most = b.fewest_units - a.units, b.units - a.fewest_units
        if not most:
            continue
        value = abs(b.error - a.error) / (b.units - a.units) if b.units > a.units else None
        # No group is further off than one of its rows: a negative by its score.
        first = a.buckets - a.divided
        negative, positive = (np.flatnonzero(side[first : b.buckets]) + first for side in has)
        of_rows = [Fraction(buckets.largest[negative[-1]].item())] if len(negative) else []
        of_rows += [1 - Fraction(buckets.least[positive[0]].item())] if len(positive) else []
        greatest = max(of_rows)
        if fewest > 0:  # a ratio of linear functions is extreme at a corner
            low = min(_slopes(a.highs, b.lows))
            high = max(_slopes(a.lows, b.highs))
            greatest = min(greatest, max(high, -low))
        else:
            low, high = ((b.error_range[end] - a.error_range[1 - end]) / most for end in (0, 1))
        least = max(Fraction(0), low, -high)
        of_groups.append(Gap(value, least, greatest, sure=fewest > 0 or least > 0))
    return of_groups


def _slopes(lower: Sequence[Corner], upper: Sequence[Corner]) -> list[Fraction]:
    return [(f - e) / (n - m) for m, e in lower for n, f in upper]


def mean_gap(edges: Sequence[Boundary], most: Fraction) -> Bounded:
    """The mean of the gaps of the groups over all rows; it is at most `most`.

    It is the length of a path through Σ score - Σ label at each boundary. The shortest one moves no
    further than it must; the longest one turns at the bounds.
    """
    shortest = place = Fraction(0)
    ways = [(place, shortest)]  # to each end of the last range, and the length
    for edge in edges[1:]:
        low, high = edge.error_range
        nearest = min(max(place, low), high)
        shortest, place = shortest + abs(nearest - place), nearest
        ways = [
            (end, max(length + abs(end - start) for start, length in ways))
            for end in dict.fromkeys((low, high))
        ]
    value = sum((abs(b.error - a.error) for a, b in pairwise(edges)), Fraction(0))
    longest = min(max(length for _, length in ways), most)
    return _bounded(*(total / edges[-1].units for total in (value, shortest, longest)))


def greatest_gap(of_groups: Sequence[Gap]) -> Bounded:
    """The greatest gap of a group."""
    low, high = max(gap.low for gap in of_groups), max(gap.high for gap in of_groups)
    return _bounded(max(gap.value for gap in of_groups if gap.value is not None), low, high)


def plain_mean_gap(of_groups: Sequence[Gap]) -> Bounded:
    """The mean of the gaps of the groups that have rows, each counted once."""
    values = [gap.value for gap in of_groups if gap.value is not None]
    sure = [gap for gap in of_groups if gap.sure]
    unsure_gaps = [gap for gap in of_groups if not gap.sure]
    low = sum((gap.low for gap in sure), Fraction(0)) / (len(sure) + len(unsure_gaps))
    high, n = sum((gap.high for gap in sure), Fraction(0)), len(sure)
    for gap in sorted(unsure_gaps, key=lambda gap: -gap.high):
        if not n or gap.high * n > high:
            high, n = high + gap.high, n + 1
    return _bounded(sum(values, Fraction(0)) / len(values), low, high / n)


def share_bounds(a: Boundary, b: Boundary) -> tuple[float, float]:
    """What the share of positives between two boundaries is certainly between; nan without rows."""
    fewest, most = int(b.fewest_units) - a.units, b.units - int(a.fewest_units)
    if not most:
        return math.nan, math.nan
    least = max(0, b.fewest_positives - a.positives)
    greatest = b.positives - a.fewest_positives
    if fewest <= greatest:
        fewest, greatest = 1, int(greatest > 0)
    return rounded_down(least, most), rounded_up(greatest, fewest)


def _bounded(value: Fraction, low: Fraction, high: Fraction) -> Bounded:
    """The value, correctly rounded, and its bounds, rounded outwards."""
    return Bounded(
        ratio(*value.as_integer_ratio()),
        low=rounded_down(*low.as_integer_ratio()),
        high=rounded_up(*high.as_integer_ratio()),
    )
