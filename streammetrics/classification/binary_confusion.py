"""BinaryConfusion: two classes, counted by truth and by prediction at a threshold."""

from __future__ import annotations

from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    FLOAT64,
    SLOT_0,
    Accumulator,
    AnySlots,
    Batch,
    Binary,
    Counts,
    Inputs,
    JointBuckets,
    PlainCells,
    Rates,
    Real,
    SettingsError,
    Slots,
    Unit,
    WeightedCounts,
    Weights,
    as_float,
    checks,
    shown,
    side_by_side,
)
from streammetrics.classification.counted_rows import add_counts
from streammetrics.kernels.tables.class_cells import binary_cells, binary_counts

_CELLS: Final = np.arange(4)


class BinaryConfusion(Accumulator, schema="binary-confusion/3"):
    """True and false positives and negatives of scores at a threshold.

    Settings
        threshold: a row is predicted positive iff score >= threshold, compared exactly in
        either precision. positive: the label of the positive class; with the default 1, labels
        are 0/1 or False/True.
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    State
        Four counts in units of weight, and their surplus over the rows. With round_weights=True
        four counts of the rows whose weight was rounded.
    Result
        Rates.
    Undefined
        A rate 0/0 is nan.
    Exactness
        Counts are exact; a rate is rounded once.
    Cost
        0.4 ns a row in large batches, about 6 with weights; 40 bytes.
    Source
        Sokolova & Lapalme 2009, Inf. Process. Manag. 45.

    >>> from streammetrics import BinaryConfusion
    >>> metric = BinaryConfusion(threshold=0.5)
    >>> metric.update([1, 0, 0], [0.7, 0.3, 0.5])
    >>> rates = metric.compute()
    >>> rates.precision, rates.recall
    (0.5, 1.0)
    >>> rates.table().tolist()
    [[1, 1], [0, 1]]
    """

    _many_slots: ClassVar[bool] = True

    threshold: float = 0.5
    positive: int | str = 1
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(labels=Binary("positive"), scores=Real(), weights=Weights())
    counts = WeightedCounts(2, 2)  # [truth, prediction]
    rounded = Counts("round_weights", 2, 2)  # rows whose weight was rounded

    def check_settings(self) -> None:
        threshold = check_threshold(self.threshold, "BinaryConfusion(threshold)")
        self._set("threshold", threshold)  # 1 and 1.0 are one setting
        self._set("positive", checks.check_positive(self.positive, "BinaryConfusion(positive)"))

    if TYPE_CHECKING:

        def update(
            self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        if slots is None and batch.quanta is None:
            counts = binary_counts(batch.labels, batch.scores, self.threshold)
            self.counts.add(_CELLS, None, counts)
        else:
            self.counts.add_rows(self._cells(batch), slots, batch.quanta)

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        self.rounded.add(self._cells(batch), slots)

    def _cells(self, batch: Batch) -> NDArray[np.intp]:
        return binary_cells(batch.labels, batch.scores, self.threshold)

    def _joint_rows(self) -> JointBuckets:
        return JointBuckets(2, lambda rows: self._cells(rows) & 1, _rates_of_table)

    def _plain_cells(self) -> PlainCells:
        return PlainCells(threshold=float(self.threshold))

    def from_counts(self, labels: ArrayLike, predictions: ArrayLike, counts: ArrayLike) -> Self:
        """A state with these settings from counts of rows, such as an SQL aggregate.

        labels: [k] of 0 and 1, where 1 is the positive class. predictions: [k] of 0 and 1; 1 is
        score >= threshold. counts: [k], the rows of each pair; a pair may repeat. Each row weighs
        1. InputError for other values, SettingsError if the settings allow weights.

        >>> from streammetrics import BinaryConfusion
        >>> state = BinaryConfusion().from_counts([0, 1, 1], [0, 0, 1], [90, 2, 8])
        >>> state.compute().recall
        0.8
        """
        state = self.empty()
        return add_counts(state, state.counts, labels, ("predictions", predictions, 2), counts)

    def compute(self) -> Rates:
        """The rates at the threshold."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[Rates]:
        tn, fp, fn, tp = self.counts.columns(slots)
        return side_by_side(
            Rates,
            len(slots),
            tp=tp,
            fp=fp,
            fn=fn,
            tn=tn,
            weight_unit=repeat(Fraction(self.weight_unit)),
            _surplus=self.counts.surplus[slots].tolist(),
            rows_rounded=self.rounded.totals(slots),
        )


def _rates_of_table(table: NDArray[np.int64]) -> Rates:
    """The rates of rows of weight 1 by truth and prediction, [2, 2]."""
    tn, fp, fn, tp = table.ravel().tolist()
    return Rates(tp, fp, fn, tn)


def check_threshold(value: object, where: str) -> float:
    """The threshold that scores are compared with, as a float64; SettingsError otherwise."""
    threshold = as_float(value) if isinstance(value, (int, float)) else None
    if threshold is None:
        raise SettingsError(
            expected=FLOAT64,
            got=shown(value),
            where=where,
            hint="pass a number, or leave it out for 0.5",
        )
    return threshold
