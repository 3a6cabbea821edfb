"""From states to curves: one bag of rows, or the buckets of each class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from streammetrics.core.bag import BagColumn
from streammetrics.core.counts import CountsColumn
from streammetrics.core.weighted_counts import WeightedCountsColumn
from streammetrics.kernels.grids import Gridded, grid_of
from streammetrics.kernels.segments import joined_pairs, sorted_pairs
from streammetrics.results.exact_curve import ExactCurve
from streammetrics.results.score_curve import ScoreCurve


def rounded_of(counts: CountsColumn) -> tuple[int, int] | None:
    """Negatives and positives whose weight was rounded, in one state; None where none may be."""
    if not counts.cells:
        return None
    negatives, positives = counts.dense().ravel().tolist()
    return negatives, positives


def bag_curve(
    bag: BagColumn,
    weight_unit: Fraction = Fraction(1),
    rounded: tuple[int, int] | None = None,
) -> ScoreCurve:
    """The curve of every row in a bag of one state, whose counts are in this unit of weight.

    rounded: negatives and positives whose weight was.
    """
    if bag.dropped:
        none = np.empty(0, bag.rule.values), np.zeros((2, 0), np.int64)
        why = bag.why_dropped
        return ScoreCurve(
            *none, True, bag.total, why, weight_unit, _rounded=None if rounded is None else (0, 0)
        )
    planes = [sorted_pairs(words, counts) for words, counts in bag.planes()]
    return ExactCurve(joined_pairs(planes), bag.total, bag.points(), weight_unit, rounded)


def bucket_curves(
    counts: WeightedCountsColumn,
    metric: Gridded,
    weight_unit: Fraction,
    rounded: Sequence[tuple[int, int] | None],
) -> Iterator[ScoreCurve]:
    """The curve of each class, from counts [class, truth, bucket] whose `excess` is of the rows.

    rounded: of each class negatives and positives whose weight was; None where none may be.
    """
    n_classes = len(rounded)
    grid = grid_of(metric)
    b, excess = grid.n_buckets, int(counts.excess[0])
    cells, held = counts.occupied()
    edges = np.searchsorted(cells, np.arange(n_classes + 1) * 2 * b)
    for number, how in enumerate(rounded):
        here = slice(edges[number], edges[number + 1])
        label, bucket = np.divmod(cells[here] - number * 2 * b, b)
        used, places = np.unique(bucket, return_inverse=True)
        table = np.zeros((2, len(used)), np.int64)
        table[label, places] = held[here]
        least, ends = grid.least[used], grid.ends[used]
        if metric.range == "probability":  # no score is above 1
            ends = np.fmin(ends, np.nextafter(1, 2))
        rows = int(table.sum()) - excess
        yield ScoreCurve(
            least, table, False, rows, weight_unit=weight_unit, _ends=ends, _rounded=how
        )
