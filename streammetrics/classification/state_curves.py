"""From states to curves: one bag of rows, or the buckets of each class."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from streammetrics.core.bag import BagColumn
from streammetrics.core.counts import CountsColumn
from streammetrics.kernels.grids import Gridded, grid_of
from streammetrics.kernels.segments import joined_pairs, sorted_pairs
from streammetrics.results.exact_curve import ExactCurve
from streammetrics.results.score_curve import ScoreCurve


def bag_curve(bag: BagColumn, weight_unit: Fraction = Fraction(1)) -> ScoreCurve:
    """The curve of every row in a bag of one state, whose counts are in this unit of weight."""
    if bag.dropped:
        none = np.empty(0, bag.rule.values), np.zeros((2, 0), np.int64)
        why = bag.why_dropped
        return ScoreCurve(*none, exact=True, rows=bag.total, reason=why, weight_unit=weight_unit)
    planes = [sorted_pairs(words, counts) for words, counts in bag.planes()]
    return ExactCurve(joined_pairs(planes), bag.total, bag.points(), weight_unit)


def bucket_curves(counts: CountsColumn, metric: Gridded, n_classes: int) -> Iterator[ScoreCurve]:
    """The curve of each class, from counts [class, truth, bucket]."""
    grid = grid_of(metric)
    b = grid.n_buckets
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
        yield ScoreCurve(least, table, False, int(table.sum()), _ends=ends)
