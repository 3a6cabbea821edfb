"""Histogram: the base class of every metric that counts rows in buckets of scores.

A grid of fixed buckets (`kernels/tables/grids.py`) rounds each score, so states of bounded size
merge exactly. What such metrics share is here: the settings of the grid, the way from rows to
cells, and results of many states without a copy of all their counts at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.parts.many_slots import AnySlots
from streammetrics.core.parts.part import Slots
from streammetrics.core.parts.weighted_counts import WeightedCounts
from streammetrics.core.rows import distinct
from streammetrics.kernels.tables.grids import check_grid, grid_of

R = TypeVar("R")
_AT_ONCE: Final = 6 << 20  # cells that are copied together: 100 MB if all are occupied


# Without this the annotated names of a class without a schema are no settings; Declared fixes them.
@dataclass(eq=False, repr=False)
class Histogram(Accumulator, Generic[R]):  # type: ignore[misc]
    """Counts of rows by kind and bucket: a subclass declares its inputs and makes its result.

    The settings `grid`, `resolution`, `range`, `floor`, `ceiling` and `edges` are its first ones.
    `_kinds` is the number of kinds of rows that are counted apart, such as 2 for two labels.
    `Probability("_in_unit")` is an input of scores in the range of the grid.

    >>> from streammetrics.authoring import Histogram, Inputs, Probability
    >>> class Occupied(Histogram[int], schema="docs-occupied/1"):
    ...     inputs = Inputs(scores=Probability("_in_unit"))
    ...     def _kinds_and_scores(self, batch):
    ...         return None, batch.scores
    ...     def _results(self, slots):
    ...         return [len(cells) for cells, _ in self.counts.each_occupied(slots)]
    ...     def compute(self):
    ...         self._flush()
    ...         return self._compute_all(SLOT_0)[0]
    >>> from streammetrics.authoring import SLOT_0
    >>> buckets = Occupied(grid="edges", edges=(0.5, 0.9))
    >>> buckets.update([0.1, 0.2, 0.95])
    >>> buckets.compute()
    2
    """

    _many_slots: ClassVar[bool] = True
    _kinds: ClassVar[int] = 1

    grid: str = "relative"
    resolution: int = 8
    range: str = "real"
    floor: float = 2**-24
    ceiling: float = 2.0**24
    edges: tuple[float, ...] = ()

    counts = WeightedCounts("_kinds", "buckets")  # [kind, bucket]

    def check_settings(self) -> None:
        for name, value in check_grid(self).items():
            self._set(name, value)

    @property
    def _in_unit(self) -> bool:
        """Whether scores must be in [0, 1]."""
        return self.range == "probability"

    @property
    def buckets(self) -> int:
        """The number of buckets of the grid."""
        return grid_of(self).n_buckets

    @abstractmethod
    def _kinds_and_scores(
        self, batch: Batch
    ) -> tuple[NDArray[np.uint8] | None, NDArray[np.floating]]:
        """The kind of each row, from 0 to below `_kinds` (None: all 0), and its score; [n]."""

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        quanta = batch.quanta
        for piece, cells in grid_of(self).cells(*self._kinds_and_scores(batch)):
            piece_slots = None if slots is None else slots[piece]
            self.counts.add_rows(cells, piece_slots, None if quanta is None else quanta[piece])

    @abstractmethod
    def _results(self, slots: Slots) -> Iterable[R]:
        """The result of each of these states, few enough to copy their counts."""

    def _compute_all(self, slots: Slots) -> list[R]:
        step = max(1, _AT_ONCE // (self._kinds * self.buckets))
        parts = [slots[i : i + step] for i in range(0, len(slots), step)]
        return [result for part in parts for result in self._results(part)]


def occupied_table(
    cells: NDArray[np.int64], counts: NDArray[np.int64], kinds: int, buckets: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The occupied buckets [k] of one state, ascending, and its counts by kind [kinds, k].

    cells, counts: [c], as `CountsColumn.occupied` of a table [kinds, buckets].

    >>> used, table = occupied_table(np.array([1, 7]), np.array([5, 2]), 2, 4)
    >>> used.tolist(), table.tolist()
    ([1, 3], [[5, 0], [0, 2]])
    """
    kind, bucket = np.divmod(cells, buckets)
    used, column = distinct(bucket, buckets)
    table = np.zeros((kinds, len(used)), np.int64)
    table[kind, column] = counts
    return used, table
