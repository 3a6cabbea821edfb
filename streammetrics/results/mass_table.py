"""MassTable: how well probabilities fit the labels, in groups of equal mass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from math import nan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.proportions import wilson_bounds
from streammetrics.kernels.tables.equal_mass import Boundary, boundaries, share_bounds
from streammetrics.kernels.tables.probabilities import ScoreBuckets
from streammetrics.present.notebook import ShownColumns
from streammetrics.present.row_table import RowTable, table_of_columns
from streammetrics.present.value_rows import LEVEL


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MassTable(ShownColumns):
    """The reliability diagram by groups of equal mass, the lowest scores first: deciles for 10.

    group: from 1. low, high: the least and the largest score that the group may hold; nan without
    rows, as its figures then are. units: rows, positives: those with label 1; int64 [n], in units
    of weight. mean_score, positive_share: float64 [n], equal where the model is calibrated, and
    exact for the scores from low to high. share_low, share_high: certain bounds of the positive
    share where groups are cut between scores, not between buckets of them. lower, upper: the
    confidence interval of the positive share, Wilson's; nan if rows are weighted. ratio: the sum of
    the scores over the positives, above 1 where the model overpredicts.

    It is shown without the ends of scores, positives and certain bounds, which its frame has.
    """

    group: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    units: NDArray[np.int64]
    positives: NDArray[np.int64]
    mean_score: NDArray[np.float64]
    positive_share: NDArray[np.float64]
    share_low: NDArray[np.float64]
    share_high: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    ratio: NDArray[np.float64]

    def _table(self, most: int) -> RowTable:
        columns = {name: column for name, column in self._columns(LEVEL).items() if name in _SHOWN}
        return table_of_columns(type(self).__name__, columns, most)


_SHOWN: Final = ("group", "units", "mean_score", "positive_share", "lower", "upper", "ratio")


class _Group(NamedTuple):
    """A line of a MassTable."""

    group: int
    low: float = nan
    high: float = nan
    units: int = 0
    positives: int = 0
    mean_score: float = nan
    positive_share: float = nan
    share_low: float = nan
    share_high: float = nan
    lower: float = nan
    upper: float = nan
    ratio: float = nan


def mass_table(buckets: ScoreBuckets, n: int, q: float) -> MassTable:
    """The table of n groups. q: the critical value of the intervals, nan for none."""
    edges = boundaries(buckets, n) if len(buckets.sums) else []
    lines = [_line(buckets, i, a, b, q) for i, (a, b) in enumerate(pairwise(edges), 1)]
    columns = zip(*(lines or map(_Group, range(1, n + 1))), strict=True)
    return MassTable(*map(np.array, columns))


def _line(buckets: ScoreBuckets, group: int, a: Boundary, b: Boundary, q: float) -> _Group:
    units, positives = b.units - a.units, b.positives - a.positives
    share_low, share_high = share_bounds(a, b)
    if not units:
        return _Group(group, share_low=share_low, share_high=share_high)
    total = b.error - a.error + positives
    return _Group(
        group,
        buckets.least[a.buckets].item(),
        buckets.largest[b.buckets - 1].item(),
        units,
        positives,
        ratio(total, units),
        ratio(positives, units),
        share_low,
        share_high,
        *((nan, nan) if math.isnan(q) else wilson_bounds(positives, units, q)),
        ratio(total, positives) if positives or not total else math.inf,
    )
