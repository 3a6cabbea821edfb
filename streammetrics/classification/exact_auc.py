"""ExactAUC: the area under the ROC curve of all rows, exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.classification.state_curves import bag_curve
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.bag_checks import check_choice, check_max_rows
from streammetrics.core.checks import binary_labels, check_positive, same_length
from streammetrics.core.checks import scores as checked_scores
from streammetrics.core.multiset.bag import Bag
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import Rows
from streammetrics.core.weights import (
    ONE,
    Unit,
    check_weight_settings,
    rounded_labels,
    weighed,
    weighted_rows,
)
from streammetrics.results.score_curve import ScoreCurve


class ExactAUC(Accumulator, schema="exact-auc/3"):
    """The share of the pairs of a positive and a negative that scores order so; tied pairs 1/2.

    Settings
        score_type: "float64", or "float32" for half the state and time; scores that differ
        beyond it are ties then.
        max_rows: past so many rows a state keeps their number, drops the rows, and is undefined.
        positive: the label of the positive class; with the default 1, labels are 0/1 or False/True.
        weight_unit: what weights are multiples of, a Fraction, an integer or a string such as
        "1/10". Weights that are no multiples are refused, or with round_weights=True rounded to the
        nearest one; the result says how many rows that was done to.
    Rows
        labels: [n]. scores: [n], no NaN; infinities are first and last.
        weights: [n], at least 0, or 1 each; a row of weight 0 is as if absent.
    State
        The multiset of (score, label): 8 bytes (float32: 4) for each different pair, or less, and
        as much for each of up to 2**24 rows that are not sorted yet; with weights the units of
        weight of each, the number of rows, and how many of each label had their weight rounded.
    Result
        ScoreCurve: ROC, PR, AUC, AP, KS, lift and every operating point, as floats.
    Undefined
        nan with one class only, and past `max_rows`.
    Exactness
        Exact: ratios of integers, correctly rounded; `ap` and `pr_auc_trapezoid`, which are sums of
        many, are rounded from 90 bits.
    Cost
        An update costs its rows, about two sorts of as many scores, however many there are; about
        20 ns more a row with weights.
    Source
        Mann & Whitney 1947, Ann. Math. Stat. 18; Hanley & McNeil 1982, Radiology 143.

    >>> from streammetrics import ExactAUC
    >>> metric = ExactAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> metric.compute().auc
    0.875
    """

    score_type: str = "float64"
    max_rows: int | None = None
    positive: int | str = 1
    weight_unit: Unit = 1
    round_weights: bool = False
    bag = Bag(weighted=True)
    rounded = Counts("round_weights", 2)  # rows whose weight was, by truth

    def check_settings(self) -> None:
        check_choice(self.score_type, ("float32", "float64"), "ExactAUC.score_type")
        check_max_rows(self.max_rows, "ExactAUC.max_rows")
        self._set("positive", check_positive(self.positive, "ExactAUC.positive"))
        check_weight_settings(self)

    @cached_property
    def _plain(self) -> bool:
        return self.weight_unit is ONE and self.positive == 1

    def update(
        self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
    ) -> None:
        """Count rows: labels [n], scores [n], weights [n] or 1 each; all or none."""
        if weights is not None or not self._stage.take_looked(labels, scores):
            self._update(self.check(labels, scores, weights=weights))

    def check(
        self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
    ) -> Rows:
        y, s = binary_labels(labels, "labels", self.positive), checked_scores(scores)
        same_length(len(y), s, "scores", of="labels")
        return weighted_rows(len(y), (y, s), weights, self.weight_unit, self.round_weights)

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        if self.round_weights:
            self.rounded.add(*rounded_labels(rows, slots))
        rows, units, slots = weighed(rows, slots)
        labels, scores = rows.columns
        assert isinstance(labels, np.ndarray) and isinstance(scores, np.ndarray)
        self.bag.add(scores, labels, slots, units=units)

    def compute(self) -> ScoreCurve:
        """The curve of all rows."""
        self._flush()
        rows_rounded = int(self.rounded.dense().sum()) if self.round_weights else None
        return bag_curve(self.bag, Fraction(self.weight_unit), rows_rounded)
