"""ExactQuantiles: every quantile of all rows, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.authoring import (
    SCORE_TYPES,
    SLOT_0,
    Accumulator,
    Bag,
    Batch,
    Counts,
    Inputs,
    Real,
    Slots,
    Unit,
    Weights,
    check_choice,
    check_max_rows,
)
from streammetrics.core import DriftOf
from streammetrics.results.distribution import Distribution


class ExactQuantiles(Accumulator, schema="exact-quantiles/1"):
    """Every quantile of all rows, and means without their ends, exactly.

    Settings
        value_type: "auto" (default) keeps values as they are, in 4 bytes instead of 8 while float32
        represents all of them; "float64" keeps the same in 8 bytes; "float32" rounds.
        max_rows: a state of more rows keeps only their number, and its result is undefined.
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    State
        The multiset of values: at most 8 bytes (of float32: 4) for each different one, and as much
        for each of up to 2**24 unsorted rows. With weights also the units of weight of each value.
    Result
        Distribution: any quantile, share below a value, trimmed and winsorised mean, as floats.
    Undefined
        nan without rows, and past `max_rows`.
    Exactness
        Exact; means are rounded once.
    Cost
        An update costs about two sorts of its own values, however many rows the state has.
    Source
        Hyndman & Fan 1996, The American Statistician 50, definition 1.

    >>> from streammetrics import ExactQuantiles
    >>> metric = ExactQuantiles()
    >>> metric.update([3, 1, 4, 1, 5, 9, 2, 6])
    >>> metric.compute().median, metric.compute().quantile(0.9)
    (3.0, 9.0)
    """

    _drift_of: ClassVar[DriftOf] = "values"

    value_type: str = "auto"
    max_rows: int | None = None
    weight_unit: Unit = 1
    round_weights: bool = False
    inputs = Inputs(values=Real(), weights=Weights())
    bag = Bag("value_type", labels=1, weighted=True)
    rounded = Counts("round_weights")  # rows whose weight was rounded

    def check_settings(self) -> None:
        check_choice(self.value_type, SCORE_TYPES, "ExactQuantiles.value_type")
        check_max_rows(self.max_rows, "ExactQuantiles.max_rows")

    if TYPE_CHECKING:

        def update(self, values: ArrayLike, *, weights: ArrayLike | None = None) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self.bag.add(batch.values, None, slots, units=batch.quanta)

    def compute(self) -> Distribution[float]:
        """The values of all rows in order."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[Distribution[float]]:
        is_single, unit = self.bag.width == len(slots) == 1, Fraction(self.weight_unit)
        bag, rounded = self.bag if is_single else self.bag.take(slots), self.rounded.totals(slots)
        distributions: list[Distribution[float]] = []
        for i, (scores, counts) in enumerate(bag.points_of_each()):
            # Copies: a result that is kept must not keep the values of all other keys.
            values = scores.astype(np.float64)
            columns = values, values, values, counts[0].copy()
            why = bag.reason(i) if bag.over[i] else ""
            distributions.append(
                Distribution(*columns, True, int(bag.totals[i]), why, unit, rounded[i])
            )
        return distributions
