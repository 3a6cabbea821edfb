"""MulticlassConfusion: many classes, counted by truth and by prediction."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    Batch,
    Classes,
    Counts,
    CountsColumn,
    InputError,
    Inputs,
    SettingsError,
    Slots,
    Unit,
    WeightedCounts,
    Weights,
    check_number,
    require,
    shown,
    side_by_side,
    whole,
)
from streammetrics.core import exact_total
from streammetrics.kernels.tables.class_cells import class_cells, first_positions, largest
from streammetrics.results.class_rates import ClassRates

MAX_CLASSES: Final = 1 << 15  # a table of all pairs takes 8 GB


class MulticlassConfusion(Accumulator, schema="multiclass-confusion/2"):
    """How often each class was predicted for each true class, and the rates that follow.

    Settings
        n_classes: the number of classes, including those that never occur. top_k: the numbers k of
        `top_k_accuracy(k)`, which needs scores. weight_unit: weights are multiples of it: a
        Fraction, an integer, or a string such as "1/10". Others are refused or, with
        round_weights=True, rounded and counted in the result.
    Rows
        labels: [n] class numbers from 0 to n_classes - 1. predictions: [n] class numbers, or
        [n, n_classes] scores without NaN: the class with the largest score is predicted and, of
        equal scores, the smallest class number. The first k classes follow the same order, so that
        top-1 accuracy is accuracy. weights: [n], at least 0, by default 1; a row of weight 0 is
        ignored.
    State
        A count for each pair of a true and a predicted class, sparse while few occur; for each k
        how often the true class was among the first k, and how often ties decided that. Counts are
        in units of weight, with their surplus over the rows. With round_weights=True the same
        counts of the rows whose weight was rounded.
    Result
        ClassRates.
    Undefined
        0/0 is nan; such a class is left out of macro and weighted averages (`zero_division`).
    Exactness
        Counts are exact; every figure is a ratio of integers, rounded once, averages included.
    Cost
        2 ns a row of class numbers in large batches; 26 with scores of 10 classes; about 2 more
        with weights. 8 bytes a cell, or 16 an occupied cell while few are.
    Source
        Sokolova & Lapalme 2009, Inf. Process. Manag. 45.

    >>> from streammetrics import MulticlassConfusion
    >>> metric = MulticlassConfusion(3, top_k=(2,))
    >>> metric.update([0, 1, 2, 2], [[.8, .1, .1], [.3, .4, .3], [.5, .2, .3], [.2, .3, .5]])
    >>> result = metric.compute()
    >>> result.accuracy, result.f1("macro"), result.top_k_accuracy(2)
    (0.75, 0.7777777777777778, 1.0)
    >>> result.matrix.tolist()
    [[1, 0, 0], [0, 1, 0], [1, 0, 1]]
    """

    _reads_each_row = True

    n_classes: int
    top_k: tuple[int, ...] = ()
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(
        labels=Classes("n_classes"),
        predictions=Classes("n_classes", table="scores", only_table="top_k"),
        weights=Weights(per_row="_counts_per_row"),
    )
    cells = WeightedCounts("n_classes", "n_classes")  # [truth, prediction]
    first = Counts("n_top_k", 4)  # [k, 2 * tied + hit]
    # The same of rows whose weight was rounded.
    rounded = Counts("round_weights", "n_classes", "n_classes")
    rounded_first = Counts("round_weights", "n_top_k", 4)

    def check_settings(self) -> None:
        most = check_number(self.n_classes, 2, MAX_CLASSES, "MulticlassConfusion.n_classes")
        self._set("n_classes", most)
        ks: object = self.top_k
        numbers = [whole(k) for k in ks] if isinstance(ks, tuple | list) else [None]
        within = {k for k in numbers if k is not None and 1 <= k <= most}
        if not all(k in within for k in numbers):
            raise SettingsError(
                expected=f"whole numbers from 1 to {self.n_classes}, such as (1, 3)",
                got=shown(ks),
                where="MulticlassConfusion.top_k",
                hint="pass each k for top_k_accuracy, or leave it out",
            )
        self._set("top_k", tuple(sorted(within)))

    @property
    def n_top_k(self) -> int:
        """The number of k in `top_k`."""
        return len(self.top_k)

    @property
    def _counts_per_row(self) -> int:
        """The most counts of one part that a row adds to: `first` has one for each k."""
        return max(1, self.n_top_k)

    if TYPE_CHECKING:

        def update(
            self, labels: ArrayLike, predictions: ArrayLike, *, weights: ArrayLike | None = None
        ) -> None: ...

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        batch = super()._read_rows(given)
        scores: Any = batch.columns["predictions"]  # sooner than by attribute
        # Scores are reduced here and not kept: a pending batch costs a few bytes a row.
        if scores.ndim == 2:
            if self.top_k:
                batch.columns["first"] = first_positions(batch.labels, scores, self.top_k)
            batch.columns["predictions"] = largest(scores)
        elif self.top_k:
            batch.columns["first"] = self._without_scores(batch.n)
        return batch

    def _without_scores(self, n: int) -> NDArray[np.uint8]:
        """`first_positions` of no rows; InputError for any row, which needs scores."""
        if n:
            raise InputError(
                expected=f"scores [n, {self.n_classes}], because top_k={self.top_k}",
                got="one predicted class for each row",
                where="predictions",
                hint="pass the scores of all classes, or leave top_k out",
            )
        return np.empty((0, self.n_top_k), np.uint8)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        if batch.quanta is not None:
            self.cells.add_surplus(slots, batch.quanta)
        self._count(batch, slots, self.cells, self.first)

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        self._count(batch, slots, self.rounded, self.rounded_first)

    def _count(
        self, batch: Batch, slots: Slots | None, into: CountsColumn, into_first: CountsColumn
    ) -> None:
        quanta = batch.quanta
        for piece, cells in class_cells(batch.labels, batch.predictions, self.n_classes):
            piece_slots = None if slots is None else slots[piece]
            into.add(cells, piece_slots, None if quanta is None else quanta[piece])
        for j in range(self.n_top_k):
            into_first.add(batch.first[:, j].astype(np.intp) + 4 * j, slots, quanta)

    def _require_possible(self) -> None:
        if self.top_k:
            pairs: list[tuple[CountsColumn, CountsColumn]] = [(self.cells, self.first)]
            pairs += [(self.rounded, self.rounded_first)] if self.round_weights else []
            for cells, first in pairs:
                for slot in range(self._width):
                    units = exact_total(cells.occupied(slot)[1])
                    by_k = first.dense(slot).reshape(-1, 4).tolist()
                    require(all(sum(of_k) == units for of_k in by_k), "ranks for different rows")
                    hits = [of_k[1] + of_k[3] for of_k in by_k]
                    require(hits == sorted(hits), "fewer hits for a larger k")

    def compute(self) -> ClassRates:
        """The rates that follow from the counts."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[ClassRates]:
        occupied = self.cells.each_occupied(slots)
        first = self.first.tables(slots).reshape(len(slots), len(self.top_k), 4).tolist()
        return side_by_side(
            ClassRates,
            len(slots),
            n_classes=repeat(self.n_classes),
            cells=[cells for cells, _ in occupied],
            counts=[counts for _, counts in occupied],
            _first=[dict(zip(self.top_k, by_k, strict=True)) for by_k in first],
            weight_unit=repeat(Fraction(self.weight_unit)),
            _surplus=self.cells.surplus[slots].tolist(),
            rows_rounded=self.rounded.totals(slots),
        )
