"""BinaryConfusion: two classes, counted by truth and by prediction at a threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.parts import Slots
from streammetrics.core.rows import Rows
from streammetrics.core.weighted_counts import WeightedCounts
from streammetrics.core.weights import (
    ONE,
    Unit,
    unit_of,
    weighed,
    weighted_rows,
)
from streammetrics.kernels.confusion import binary_cells, binary_counts
from streammetrics.results.rates import Rates

_CELLS: Final = np.arange(4)


class BinaryConfusion(Accumulator, schema="binary-confusion/2"):
    """True and false, positives and negatives, of scores against a threshold.

    Settings
        threshold: a row is predicted positive iff score >= threshold, compared exactly in
        either precision. positive: the label of the positive class; with the default 1, labels
        are 0/1 or False/True. weight_unit: what weights are multiples of, a Fraction, an integer
        or a string such as "1/10". Weights that are not are refused.
    Rows
        labels: [n]. scores: [n], no NaN. weights: [n], at least 0, or 1 each; a row of weight 0 is
        as if absent.
    State
        Four counts, of units of weight, and by how much these exceed the rows.
    Result
        Rates.
    Undefined
        A rate 0/0 is nan.
    Exactness
        Counts are exact; a rate is rounded once.
    Cost
        0.4 ns a row in large batches, about 20 with weights; 40 bytes.
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

    threshold: float = 0.5
    positive: int | str = 1
    weight_unit: Unit = 1

    counts = WeightedCounts(2, 2)  # [truth, prediction]

    def check_settings(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, (int, float)):
            raise _refused("threshold", "a number", self.threshold)
        if math.isnan(self.threshold):
            raise _refused("threshold", "a number", self.threshold)
        self._set("threshold", self.threshold + 0.0)  # -0.0 is 0.0, 1 is 1.0
        if not isinstance(self.positive, (int, str)):
            raise _refused("positive", "an integer or a string", self.positive)
        if isinstance(self.positive, bool):
            self._set("positive", int(self.positive))
        self._set("weight_unit", unit_of(self.weight_unit, "BinaryConfusion(weight_unit)"))

    def update(
        self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
    ) -> None:
        """Count rows; labels [n], scores [n], weights [n] or 1 each."""
        plain = weights is None and self.weight_unit is ONE and self.positive == 1
        if not (plain and self._update_clean(labels, scores)):
            self._update(self.check(labels, scores, weights=weights))

    def check(
        self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
    ) -> Rows:
        """The rows that `update` would count."""
        truth = checks.binary_labels(labels, "labels", self.positive)
        values = checks.scores(scores)
        checks.same_length(len(truth), values, "scores", "labels")
        return weighted_rows(len(truth), (truth, values), weights, self.weight_unit)

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        rows, units, slots = weighed(rows, slots)
        labels, scores = rows.columns
        assert isinstance(labels, np.ndarray) and isinstance(scores, np.ndarray)
        if units is not None:
            self.counts.add_units(binary_cells(labels, scores, self.threshold), slots, units)
        elif slots is None:
            self.counts.add(_CELLS, None, binary_counts(labels, scores, self.threshold))
        else:
            self.counts.add(binary_cells(labels, scores, self.threshold), slots)

    def compute(self) -> Rates:
        """The rates at the threshold."""
        self._flush()
        tn, fp, fn, tp = self.counts.dense().ravel().tolist()
        unit, excess = Fraction(self.weight_unit), int(self.counts.excess[0])
        return Rates(tp=tp, fp=fp, fn=fn, tn=tn, weight_unit=unit, _excess=excess)


def _refused(name: str, expected: str, came: object) -> SettingsError:
    return SettingsError(
        expected=expected,
        came=shown(came),
        where=f"BinaryConfusion({name})",
        todo=f"pass another {name}, or leave it out for the default",
    )
