"""ExactUplift: how well scores order the effect of a treatment, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, cast

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
    Real,
    Slots,
    Unit,
    Weights,
    check_choice,
    check_max_rows,
)
from streammetrics.core import ScoreForm
from streammetrics.policies.uplift import Uplift, checked_share, kinds
from streammetrics.results.late_buckets import Points
from streammetrics.results.uplift_curve import UpliftCurve


class ExactUplift(Accumulator, schema="exact-uplift/1"):
    """How well scores order the effect of a randomised treatment, exactly.

    Settings
        score_type: "auto" (default) compares scores as they are, and keeps them in 4 bytes instead
        of 8 while float32 represents all of them; "float64" compares the same in 8 bytes. "float32"
        rounds to float32; scores equal as float32 are then ties.
        max_rows: a state of more rows keeps only their number, and its result is undefined.
        treated_share: the share of rows that the randomisation treats, such as 0.5 or "1/3"; the
        result then tests it. None (default): not declared.
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    State
        The multiset of (score, arm, outcome): 8 bytes for each different one, and as much for each
        of up to 2**24 unsorted rows; 16 bytes with scores that float32 does not represent. With
        weights also the units of weight of each.
    Result
        UpliftCurve: the uplift curve, the Qini coefficient, AUUC, the uplift in equal parts of the
        rows, and the average treatment effect, as floats.
    Undefined
        nan without rows of both arms, and past `max_rows`.
    Exactness
        Exact; each figure is rounded once.
    Cost
        An update costs about two sorts of its own scores, however many rows the state has.
    Source
        Radcliffe 2007, Direct Marketing Analytics Journal; Devriendt et al. 2020, IEEE TKDE.

    >>> from streammetrics import ExactUplift
    >>> metric = ExactUplift()
    >>> metric.update([1, 0, 1, 0], [0.9, 0.7, 0.2, 0.1], [1, 0, 0, 1])
    >>> metric.compute().qini, metric.compute().ate
    (0.25, 0.0)
    """

    score_type: str = "auto"
    max_rows: int | None = None
    treated_share: float | Fraction | str | None = None
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(labels=Binary(), scores=Real(), treated=Binary(), weights=Weights())
    bag = Bag("score_type", labels=4, weighted=True)  # 2 * treated + label
    rounded = Counts("round_weights")  # rows whose weight was rounded

    def check_settings(self) -> None:
        check_choice(self.score_type, SCORE_TYPES, "ExactUplift.score_type")
        check_max_rows(self.max_rows, "ExactUplift.max_rows")
        self._set("treated_share", checked_share(self.treated_share, "ExactUplift.treated_share"))

    if TYPE_CHECKING:

        def update(
            self,
            labels: ArrayLike,
            scores: ArrayLike,
            treated: ArrayLike,
            *,
            weights: ArrayLike | None = None,
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self.bag.add(batch.scores, kinds(batch), slots, units=batch.quanta)

    def _score_form(self) -> ScoreForm:
        return ScoreForm(Uplift, 4, kinds, score_type=self.score_type)

    def compute(self) -> UpliftCurve[float]:
        """The curve of all rows."""
        self._flush()
        bag = self.bag
        points: Points = np.empty(0), np.zeros((4, 0), np.int64)
        if not bag.dropped:
            points = bag.points()()
        return UpliftCurve(
            points[0],
            points[1].reshape(2, 2, -1),
            exact=True,
            rows=bag.total,
            reason=bag.why_dropped if bag.dropped else "",
            weight_unit=Fraction(self.weight_unit),
            rows_rounded=int(self.rounded.dense().sum()) if self.round_weights else None,
            declared_share=cast("Fraction | None", self.treated_share),  # as it was checked
        )
