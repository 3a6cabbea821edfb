"""HistogramAUC: the area under the ROC curve from counts in score buckets, with its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    Batch,
    Binary,
    Bounded,
    Counts,
    Histogram,
    InputError,
    Inputs,
    JointBuckets,
    PlainCells,
    Probability,
    SettingsError,
    Slots,
    Unit,
    Weights,
    as_float,
    checks,
    shown,
)
from streammetrics.classification.counted_rows import add_counts
from streammetrics.classification.score_curves import bucket_curves
from streammetrics.core import DriftOf, ScoreForm, labels_of
from streammetrics.kernels.tables.grids import grid_of
from streammetrics.results.score_curve import ScoreCurve

A = TypeVar("A", bound=Accumulator)


class HistogramAUC(Histogram[ScoreCurve[Bounded]], schema="histogram-auc/3"):
    """The area under the ROC curve, with certain bounds, in a state of bounded size.

    Settings
        grid: the buckets of scores. "relative": of relative width 2**-resolution, toward 0 and,
        mirrored, toward 1 (with range="real" toward 0 from either sign). Scores nearer to 0 or 1
        than `floor` share a bucket; so do, with range="real", those of size `ceiling` or more on
        either side. "equal": 2**resolution buckets of equal width over [0, 1]. "edges": between the
        given `edges`; a score at an edge is in the bucket above it.
        range: "probability", scores in [0, 1], or "real", any score. positive: the label of the
        positive class; with the default 1, labels are 0/1 or False/True.
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    State
        Counts by label and bucket, in units of weight; only the occupied ones while these are few.
        Their surplus over the rows, and the rows with a rounded weight by label. The grid is a
        function of the settings alone, so states merge exactly.
    Result
        ScoreCurve: ROC, PR, AUC, AP, KS, lift and every operating point. Figures are Bounded.
    Undefined
        nan with one class only.
    Exactness
        low <= exact <= high for every input, rounding included. Half the width of the AUC's
        interval is Σ_b pos_b neg_b / 2PN over the buckets b. On clicks with scores near 0 the
        default gives a width of 0.0012, where 16,384 equal buckets give 0.0050.
    Cost
        2 ns a row of float32, about 4 with weights; 188 kB if all of the default grid is occupied.
    Source
        Hanley & McNeil 1982, Radiology 143.

    >>> from streammetrics import HistogramAUC
    >>> metric = HistogramAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> metric.compute().auc
    Bounded(value=0.75, low=0.75, high=0.75)
    """

    _drift_of: ClassVar[DriftOf] = "scores"
    _kinds: ClassVar[int] = 2

    range: str = "probability"
    positive: int | str = 1
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(labels=Binary("positive"), scores=Probability("_in_unit"), weights=Weights())
    rounded = Counts("round_weights", 2)  # rows whose weight was rounded, by truth

    def check_settings(self) -> None:
        super().check_settings()
        self._set("positive", checks.check_positive(self.positive, "HistogramAUC(positive)"))

    if TYPE_CHECKING:

        def update(
            self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
        ) -> None: ...

    def _kinds_and_scores(self, batch: Batch) -> tuple[NDArray[np.uint8], NDArray[np.floating]]:
        return batch.labels, batch.scores

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        self.rounded.add(batch.labels.astype(np.intp), slots)

    def _joint_rows(self) -> JointBuckets:
        """Scores of one bucket are ties, which adds noise to the difference. With 64 buckets the
        error of two models with correlation 0.95 is 14 % too wide, with 243 buckets 1 %."""
        grid = _PROBABILITIES if self.range == "probability" else _REAL
        coarse = grid if self.buckets > grid.buckets else self
        return JointBuckets(
            coarse.buckets, lambda rows: grid_of(coarse).buckets(rows.scores).astype(np.intp)
        )

    def _score_form(self) -> ScoreForm:
        return ScoreForm(HistogramAUC, self._kinds, labels_of)

    def _plain_cells(self) -> PlainCells | None:
        return PlainCells(buckets=self.buckets) if self.grid == "equal" else None

    def from_counts(self, labels: ArrayLike, buckets: ArrayLike, counts: ArrayLike) -> Self:
        """A state with these settings from counts of rows, such as an SQL aggregate.

        labels: [k] of 0 and 1, where 1 is the positive class. buckets: [k], bucket numbers from 0;
        with grid="equal" floor(score * 2**resolution), which floats give exactly, and the last
        bucket for a score of 1. counts: [k], the rows of each pair; a pair may repeat. Each row
        weighs 1. InputError for other values, SettingsError if the settings allow weights.

        >>> from streammetrics import HistogramAUC
        >>> metric = HistogramAUC(grid="equal", resolution=2)
        >>> state = metric.from_counts([0, 1, 1], [1, 1, 3], [5, 1, 4])
        >>> fed = metric.empty()
        >>> fed.update([0] * 5 + [1] * 5, [0.3] * 6 + [1.0] * 4)
        >>> state == fed
        True
        """
        state = self.empty()
        return add_counts(state, state.counts, labels, ("buckets", buckets, self.buckets), counts)

    def resolution_for(
        self,
        labels: ArrayLike,
        scores: ArrayLike,
        *,
        max_width: float,
        weights: ArrayLike | None = None,
    ) -> int:
        """The least `resolution` whose interval of the AUC is at most `max_width` wide on a sample.

        labels, scores, weights: [n], as for `update`, such as the rows of the smallest slice that
        matters. The other settings are those of this metric, whose own rows do not matter. It is a
        choice for this sample and no guarantee for other rows: those of both classes with equal
        scores share a bucket of any grid. A result always states its own interval. Cost: an update
        for each resolution tried. SettingsError for grid="edges", InputError if no resolution does.

        >>> from streammetrics import HistogramAUC
        >>> scores = [i / 10_000 for i in range(10_000)]
        >>> HistogramAUC().resolution_for([0, 1] * 5_000, scores, max_width=0.002)
        7
        """
        where = f"{type(self).__name__}.resolution_for"
        if self.grid == "edges" or not 0 < (as_float(max_width) or 0) < 1:
            raise SettingsError(
                expected='a max_width above 0 and below 1, and a grid other than "edges"',
                got=f'max_width={shown(max_width)}, grid="{self.grid}"',
                where=where,
                hint='pass max_width=0.002, for example, with grid="relative"',
            )
        width = np.nan
        for metric in self._each_resolution():
            metric.update(labels, scores, weights=weights)
            auc = metric.compute().auc
            width = auc.high - auc.low
            if not width > max_width:
                break
        if not width <= max_width:
            raise InputError(
                expected=f"rows of both classes whose interval can be {max_width} wide",
                got="rows of one class" if np.isnan(width) else f"a width of {width:.3g} at least",
                where=where,
                hint="equal scores of both classes share a bucket of any grid: use ExactAUC, or "
                "pass a greater max_width or a sample of both classes",
            )
        return metric.resolution

    def _each_resolution(self) -> Iterator[Self]:
        """The empty metric with each resolution that is possible with its other settings."""
        for resolution in count():
            try:
                yield type(self)(
                    grid=self.grid,
                    resolution=resolution,
                    range=self.range,
                    floor=self.floor,
                    ceiling=self.ceiling,
                    positive=self.positive,
                    weight_unit=self.weight_unit,
                    round_weights=self.round_weights,
                )
            except SettingsError:  # above the greatest, or too many buckets
                return

    def compute(self) -> ScoreCurve[Bounded]:
        """The curve, with certain bounds on its areas."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _results(self, slots: Slots) -> list[ScoreCurve[Bounded]]:
        surplus, rounded = self.counts.surplus[slots].tolist(), self.rounded.totals(slots)
        unit = Fraction(self.weight_unit)
        return bucket_curves(*self.counts.cells_of(slots), self, surplus, unit, rounded)


# The grids of the joint counts of two models, unless their own are not finer.
_PROBABILITIES: Final = HistogramAUC(resolution=3, floor=2.0**-16)  # 243 buckets
_REAL: Final = HistogramAUC(resolution=3, range="real", floor=2.0**-6, ceiling=2.0**6)
