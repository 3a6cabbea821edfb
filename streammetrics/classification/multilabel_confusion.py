"""MultilabelConfusion: rows with any number of labels, counted by truth and by prediction."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    Batch,
    Counts,
    CountsColumn,
    Inputs,
    Slots,
    Table,
    Unit,
    WeightedCounts,
    Weights,
    check_number,
    side_by_side,
)
from streammetrics.classification.binary_confusion import check_threshold
from streammetrics.kernels.tables import class_cells
from streammetrics.results.label_rates import LabelRates

MAX_LABELS: Final = 10_000  # `sizes` has its cube of cells; indices of several states fit int64


class MultilabelConfusion(Accumulator, schema="multilabel-confusion/2"):
    """Predictions of several labels, each of which a row has or does not have.

    Settings
        n_labels: the number of labels. threshold: a label is predicted iff its score >= threshold,
        compared exactly in either precision. weight_unit: weights are multiples of it: a Fraction,
        an integer, or a string such as "1/10". Others are refused or, with round_weights=True,
        rounded and counted in the result.
    State
        Four counts per label, and the number of rows with t true labels, p predicted labels and h
        that are both. Averages over rows come from these counts, so no value of a row is rounded.
        Counts are in units of weight, with their surplus over the rows. With round_weights=True the
        same counts of the rows whose weight was rounded.
    Result
        LabelRates.
    Undefined
        0/0 is nan; such a label or row is left out of the average (`zero_division`).
    Exactness
        Counts are exact; every figure is a ratio of integers, rounded once, averages included.
    Cost
        3 ns per label of a row in large batches, 6 with weights. 32 bytes per label; 16 for each
        different (t, p, h).
    Source
        Tsoumakas, Katakis & Vlahavas 2010, "Mining Multi-label Data", section 6.

    >>> from streammetrics import MultilabelConfusion
    >>> metric = MultilabelConfusion(3)
    >>> metric.update([[1, 0, 1], [0, 1, 0]], [[.9, .6, .5], [.1, .8, .2]])
    >>> result = metric.compute()
    >>> result.precision("micro"), result.precision("samples"), result.precision(None).tolist()
    (0.75, 0.8333333333333334, [1.0, 0.5, 1.0])
    >>> result.hamming_loss, result.subset_accuracy
    (0.16666666666666666, 0.5)
    """

    _reads_each_row = True

    n_labels: int
    threshold: float = 0.5
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(
        labels=Table("n_labels", labels=True),
        scores=Table("n_labels"),
        weights=Weights(per_row="n_labels"),
    )
    cells = Counts("n_labels", 4)  # [label, 2 * truth + prediction]
    sizes = WeightedCounts("n_sizes", "n_sizes", "n_sizes")  # [true, predicted, both]
    # The same of rows whose weight was rounded.
    rounded = Counts("round_weights", "n_labels", 4)
    rounded_sizes = Counts("round_weights", "n_sizes", "n_sizes", "n_sizes")

    def check_settings(self) -> None:
        n_labels = check_number(self.n_labels, 1, MAX_LABELS, "MultilabelConfusion.n_labels")
        self._set("n_labels", n_labels)
        self._set("threshold", check_threshold(self.threshold, "MultilabelConfusion.threshold"))

    @property
    def n_sizes(self) -> int:
        """The number of possible label counts of a row: 0 to n_labels."""
        return self.n_labels + 1

    if TYPE_CHECKING:

        def update(
            self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
        ) -> None: ...

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        batch = super()._read_rows(given)
        columns: Mapping[str, Any] = batch.columns  # sooner than by attribute
        codes = class_cells.label_codes(columns["labels"], columns["scores"], self.threshold)
        return Batch(batch.n, {"codes": codes})

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        if batch.quanta is not None:
            self.sizes.add_surplus(slots, batch.quanta)
        self._count(batch, slots, self.cells, self.sizes)

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        self._count(batch, slots, self.rounded, self.rounded_sizes)

    def _count(
        self, batch: Batch, slots: Slots | None, into: CountsColumn, into_sizes: CountsColumn
    ) -> None:
        k, quanta = self.n_labels, batch.quanta
        for piece, columns, sizes in class_cells.label_columns(batch.codes):
            if slots is None and quanta is None and len(sizes) >= class_cells.FEW_ROWS:
                into.add(np.arange(4 * k), None, class_cells.label_counts(columns))
                into_sizes.add(sizes)
                continue
            piece_slots = None if slots is None else slots[piece]
            units = None if quanta is None else quanta[piece]
            of_labels = [None if c is None else np.tile(c, k) for c in (piece_slots, units)]
            into.add(class_cells.label_cells(columns), *of_labels)
            into_sizes.add(sizes, piece_slots, units)

    def compute(self) -> LabelRates:
        """The rates that follow from the counts."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[LabelRates]:
        occupied = self.sizes.each_occupied(slots)
        shape = (self.n_sizes,) * 3
        return side_by_side(
            LabelRates,
            len(slots),
            matrix=map(np.copy, self.cells.tables(slots).reshape(-1, self.n_labels, 2, 2)),
            sizes=[np.stack(np.unravel_index(indices, shape)) for indices, _ in occupied],
            sizes_counts=[counts for _, counts in occupied],
            weight_unit=repeat(Fraction(self.weight_unit)),
            _surplus=self.sizes.surplus[slots].tolist(),
            rows_rounded=self.rounded_sizes.totals(slots),
        )
