"""Curves from states: from the bag of all scores, and from counts in buckets of scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streammetrics.authoring import Bounded, Grid, grid_of, occupied_table, side_by_side
from streammetrics.core import result_type
from streammetrics.kernels.curves import (
    LabelPairs,
    Pairs,
    joined_pairs,
    pairs_of_tables,
    placements_of_keys,
    sorted_pairs,
)
from streammetrics.kernels.inference.area_interval import Placements
from streammetrics.kernels.tables.grids import Gridded
from streammetrics.results.late_buckets import BucketPoints, Points
from streammetrics.results.score_curve import ScoreCurve

if TYPE_CHECKING:
    from streammetrics.authoring import BagColumn


class ExactCurve(ScoreCurve[float]):
    """A ScoreCurve of every different score, ten times the size of its state.

    The area and its interval do not need the points. `points` returns ascending scores [k] and
    counts [2, k]; every call must return the same. placed: the placements of the same rows, without
    the points; None if they are to be made from these.

    >>> import numpy as np
    >>> curve = ExactCurve(Pairs(1, 0, 1, 1), 2, lambda: (np.arange(2.0), np.eye(2, dtype=int)))
    >>> curve.auc
    1.0
    >>> curve.scores.tolist()
    [0.0, 1.0]
    """

    def __init__(
        self,
        pairs: Pairs,
        rows: int,
        points: Callable[[], Points],
        weight_unit: Fraction = Fraction(1),
        rows_rounded: int | None = None,
        placed: Callable[[], Placements] | None = None,
    ) -> None:
        # The parent is a frozen dataclass: its fields are set in `__dict__`.
        self.__dict__.update(_pairs=pairs, exact=True, rows=rows, reason="", _points=points)
        self.__dict__.update(weight_unit=weight_unit, rows_rounded=rows_rounded, _ends=None)
        self.__dict__.update(_placed=placed)

    def __reduce__(self) -> tuple[object, ...]:
        # `points` reads a state; a copy and a pickle hold what it returned.
        weighting = self.weight_unit, self.rows_rounded
        return (type(self), (self._pairs, self.rows, partial(tuple, self._held), *weighting))


def bag_curve(bag: BagColumn, weight_unit: Fraction, rows_rounded: int | None) -> ScoreCurve[float]:
    """The curve of all rows in the bag of one state, whose counts are in `weight_unit`."""
    if bag.dropped:
        none = np.empty(0, result_type(bag.rule.values)), np.zeros((2, 0), np.int64)
        return ScoreCurve(*none, True, bag.total, bag.why_dropped, weight_unit, rows_rounded)
    sums = bag.pair_sums(lambda layout: LabelPairs() if layout.form == "planes" else None)
    if sums is None:
        planes = [sorted_pairs(words, counts) for words, counts in bag.planes()]
    else:
        planes = [
            Pairs(won - ties, ties, p, n)
            for won, ties, p, n in (
                store_sums.all_groups().sums.sum(axis=1).tolist() for store_sums in sums
            )
        ]
    pairs, pieces = joined_pairs(planes), bag.pieces()

    return ExactCurve(
        pairs,
        bag.total,
        bag.points(),
        weight_unit,
        rows_rounded,
        lambda: placements_of_keys(pieces(), pairs.positives),
    )


def bucket_curves(
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
    metric: Gridded,
    surplus: Sequence[int],
    weight_unit: Fraction,
    rows_rounded: Sequence[int | None],
) -> list[ScoreCurve[Bounded]]:
    """The curves of tables [truth, bucket], from their occupied cells as in `pairs_of_tables`, and
    the surplus and the rounded rows of each."""
    grid = grid_of(metric)
    b, n = grid.n_buckets, len(surplus)
    edges = np.searchsorted(cells, np.arange(2 * n + 1) * b)
    pairs = pairs_of_tables(cells, counts, edges, b)
    bounds = edges[::2]
    firsts = (np.arange(n) * (2 * b)).repeat(bounds[1:] - bounds[:-1])
    occupied = np.array((cells - firsts, counts))
    return side_by_side(
        ScoreCurve,
        n,
        exact=repeat(False),
        rows=[p + q - extra for (_, _, p, q), extra in zip(pairs, surplus, strict=True)],
        weight_unit=repeat(weight_unit),
        rows_rounded=rows_rounded,
        _counted=pairs,
        _n_buckets=repeat(b),
        _points=repeat(partial(_points, grid, metric.range == "probability")),
        # Copies: a curve that is kept must not keep those of all other keys.
        _cells=[occupied[:, start:end].copy() for start, end in pairwise(bounds.tolist())],
    )


def _points(grid: Grid, in_unit: bool, cells: NDArray[np.int64]) -> BucketPoints:
    """The occupied buckets of a table from its cells and their counts [2, c]: least scores [k],
    counts [2, k] and ends [k]."""
    used, table = occupied_table(cells[0], cells[1], 2, grid.n_buckets)
    ends = grid.ends[used]
    # In [0, 1] no score is above 1.
    return grid.least[used], table, np.fmin(ends, np.nextafter(1, 2)) if in_unit else ends
