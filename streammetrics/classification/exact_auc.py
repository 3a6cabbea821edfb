"""ExactAUC: the area under the ROC curve of all rows, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.authoring import (
    SCORE_TYPES,
    Accumulator,
    Bag,
    Batch,
    Binary,
    Counts,
    Inputs,
    JointScores,
    Real,
    Slots,
    Unit,
    Weights,
    check_choice,
    check_max_rows,
    checks,
)
from streammetrics.classification.histogram_auc import HistogramAUC
from streammetrics.classification.score_curves import bag_curve
from streammetrics.core import DriftOf, ScoreForm, labels_of, result_type, typed_values
from streammetrics.results.score_curve import ScoreCurve


class ExactAUC(Accumulator, schema="exact-auc/3"):
    """The share of (positive, negative) pairs that scores order correctly; ties count 1/2.

    Settings
        score_type: "auto" (default) compares scores as they are, and keeps them in 4 bytes instead
        of 8 while float32 represents all of them, as it does if they come as float32; "float64"
        compares the same in 8 bytes. "float32" rounds to float32; scores equal as float32 are then
        ties.
        max_rows: a state of more rows keeps only their number, and its result is undefined.
        positive: the label of the positive class; with the default 1, labels are 0/1 or False/True.
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    State
        The multiset of (score, label): at most 8 bytes (of float32: 4) for each different pair, and
        as much for each of up to 2**24 unsorted rows; a state that is read while it grows keeps two
        bits more. With weights also the units of weight of each pair, the number of rows, and the
        rows with a rounded weight by label.
    Result
        ScoreCurve: ROC, PR, AUC, AP, KS, lift and every operating point, as floats.
    Undefined
        nan with one class only, and past `max_rows`.
    Exactness
        Exact: ratios of integers, correctly rounded; `ap` and `pr_auc_trapezoid`, which are sums of
        many terms, are rounded from 90 bits.
    Cost
        An update costs about two sorts of its own scores, however many rows the state has; about 20
        ns more a row with weights. A read costs the rows that are new since the last one, if they
        are few and all together weigh less than two billion units. An interval of the area reads
        all rows once more, in about the time of an update, and in less than 2 MB.
    Source
        Mann & Whitney 1947, Ann. Math. Stat. 18; Hanley & McNeil 1982, Radiology 143.

    >>> from streammetrics import ExactAUC
    >>> metric = ExactAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> metric.compute().auc
    0.875
    """

    _drift_of: ClassVar[DriftOf] = "scores"

    score_type: str = "auto"
    max_rows: int | None = None
    positive: int | str = 1
    weight_unit: Unit = 1
    round_weights: bool = False
    inputs = Inputs(labels=Binary("positive"), scores=Real(), weights=Weights())
    bag = Bag(weighted=True)
    rounded = Counts("round_weights", 2)  # rows whose weight was rounded, by truth

    def check_settings(self) -> None:
        check_choice(self.score_type, SCORE_TYPES, "ExactAUC.score_type")
        check_max_rows(self.max_rows, "ExactAUC.max_rows")
        self._set("positive", checks.check_positive(self.positive, "ExactAUC.positive"))

    if TYPE_CHECKING:

        def update(
            self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self.bag.add(batch.scores, batch.labels, slots, units=batch.quanta)

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        self.rounded.add(batch.labels.astype(np.intp), slots)

    def _joint_rows(self) -> JointScores:
        kind = result_type(self.score_type)
        return JointScores(
            lambda rows: typed_values(rows.scores, kind).astype(np.float64, copy=False),
            self.max_rows,
        )

    def _score_form(self) -> ScoreForm:
        return ScoreForm(HistogramAUC, 2, labels_of, score_type=self.score_type)

    def compute(self) -> ScoreCurve[float]:
        """The curve of all rows."""
        self._flush()
        rows_rounded = int(self.rounded.dense().sum()) if self.round_weights else None
        return bag_curve(self.bag, Fraction(self.weight_unit), rows_rounded)
