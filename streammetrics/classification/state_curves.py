"""From states to curves: one bag of rows, or the buckets of each class."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.parts.weighted_counts import WeightedCountsColumn
from streammetrics.kernels.curves.segments import joined_pairs, sorted_pairs
from streammetrics.kernels.tables.grids import Gridded, grid_of
from streammetrics.results.score_curve import ExactCurve, ScoreCurve


def bag_curve(
    bag: BagColumn,
    weight_unit: Fraction,
    rows_rounded: int | None,
) -> ScoreCurve:
    """The curve of every row in a bag of one state, whose counts are in this unit of weight."""
    if bag.dropped:
        none = np.empty(0, bag.rule.values), np.zeros((2, 0), np.int64)
        return ScoreCurve(*none, True, bag.total, bag.why_dropped, weight_unit, rows_rounded)
    planes = [sorted_pairs(words, counts) for words, counts in bag.planes()]
    return ExactCurve(joined_pairs(planes), bag.total, bag.points(), weight_unit, rows_rounded)


def bucket_curves(
    counts: WeightedCountsColumn,
    metric: Gridded,
    n_classes: int,
    weight_unit: Fraction,
    rows_rounded: int | None,
) -> Iterator[ScoreCurve]:
    """The curve of each class, from counts [class, truth, bucket] with the surplus of the rows."""
    grid = grid_of(metric)
    b, surplus = grid.n_buckets, int(counts.surplus[0])
    cells, held = counts.occupied()
    edges = np.searchsorted(cells, np.arange(n_classes + 1) * 2 * b)
    for number in range(n_classes):
        here = slice(edges[number], edges[number + 1])
        label, bucket = np.divmod(cells[here] - number * 2 * b, b)
        used, places = np.unique(bucket, return_inverse=True)
        table = np.zeros((2, len(used)), np.int64)
        table[label, places] = held[here]
        least, ends = grid.least[used], grid.ends[used]
        if metric.range == "probability":  # no score is above 1
            ends = np.fmin(ends, np.nextafter(1, 2))
        rows = int(table.sum()) - surplus
        yield ScoreCurve(least, table, False, rows, "", weight_unit, rows_rounded, _ends=ends)
