"""MulticlassAUC: the area under the ROC curve, and AP, of each class against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.authoring import (
    AUTO,
    SCORE_TYPES,
    SLOT_0,
    Accumulator,
    Bags,
    Batch,
    Classes,
    Counts,
    Inputs,
    Slots,
    Table,
    Unit,
    WeightedCounts,
    Weights,
    check_choice,
    check_grid,
    check_max_rows,
    check_number,
    grid_of,
    refused_setting,
)
from streammetrics.classification.score_curves import bag_curve, bucket_curves
from streammetrics.core import ScoreForm, labels_of
from streammetrics.kernels.tables.class_cells import scored_cells
from streammetrics.results.class_curves import ClassCurves

MAX_CLASSES: Final = 1 << 15
_OF_A_GRID: Final = ("grid", "resolution", "range", "floor", "ceiling", "edges")
_OF_A_BAG: Final = ("score_type", "max_rows")
if TYPE_CHECKING:
    from streammetrics.results.score_curve import ScoreCurve

_NO_SCORES: Final = "float64"  # the score_type that the bytes of buckets have always had


class MulticlassAUC(Accumulator, schema="multiclass-auc/2"):
    """ROC and precision-recall areas of many classes, each against the rest.

    Settings
        n_classes: the number of classes. exact: keep every score, for exact areas; otherwise scores
        are counted in buckets, the state does not grow with rows, and areas have certain bounds.
        grid, resolution, range, floor, ceiling, edges: the buckets, as in HistogramAUC. score_type,
        max_rows: with exact=True, as in ExactAUC. weight_unit: weights are multiples of it: a
        Fraction, an integer, or a string such as "1/10". Others are refused or, with
        round_weights=True, rounded and counted in the result.
    Rows
        labels: [n] class numbers from 0 to n_classes - 1; or [n, n_classes] of 0/1 or False/True,
        where a row may be of several classes or of none. scores: [n, n_classes], no NaN; in [0, 1]
        for buckets of range="probability". weights: [n], at least 0, by default 1; a row of weight
        0 is ignored.
    State
        For each class the counts by label and bucket, or the multiset of (score, label), in units
        of weight; their surplus over the rows. With round_weights=True the number of rows with a
        rounded weight, by class and in all.
    Result
        ClassCurves: `auc(average)`, `ap(average)`, `map`, `curves`.
    Undefined
        The area of a class is nan, and left out of averages, without rows of it or of the rest.
    Exactness
        AUC and its averages: exact, correctly rounded. AP and its averages: rounded once, from 90
        bits of each. From buckets: low <= exact <= high for every input, rounding included.
    Cost
        10 ns a score in buckets, 36 with exact=True; with weights 33 and 43. State: n_classes times
        that of HistogramAUC or ExactAUC.
    Source
        Fawcett 2006, Pattern Recogn. Lett. 27, section 9.2 (each class against the rest, weighted
        by its number of rows); Everingham et al. 2010, Int. J. Comput. Vis. 88 (mAP).

    >>> from streammetrics import MulticlassAUC
    >>> metric = MulticlassAUC(3, exact=True)
    >>> metric.update([0, 1, 2, 2], [[.8, .1, .1], [.3, .4, .3], [.5, .2, .3], [.2, .3, .5]])
    >>> result = metric.compute()
    >>> result.auc("macro"), result.auc(None), result.map
    (0.9583333333333334, (1.0, 1.0, 0.875), 0.9444444444444444)
    """

    n_classes: int
    exact: bool = False
    score_type: str = "auto"
    max_rows: int | None = None
    grid: str = "relative"
    resolution: int = 8
    range: str = "probability"
    floor: float = 2**-24
    ceiling: float = 2.0**24
    edges: tuple[float, ...] = ()
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(
        labels=Classes("n_classes", table="labels"),
        scores=Table("n_classes", where="_in_unit"),
        weights=Weights(per_row="n_classes"),
    )
    counts = WeightedCounts("n_histograms", 2, "buckets")  # [class, truth, bucket]
    bags = Bags("n_bags", weighted=True)
    rounded = Counts("round_weights", "n_classes")  # rows whose weight was rounded, by class
    all_rounded = Counts("round_weights")  # all rows whose weight was rounded

    def check_settings(self) -> None:
        n_classes = check_number(self.n_classes, 2, MAX_CLASSES, "MulticlassAUC.n_classes")
        self._set("n_classes", n_classes)
        if type(self.exact) is not bool:
            raise refused_setting(self, "exact", "True or False")
        check_choice(self.score_type, SCORE_TYPES, "MulticlassAUC.score_type")
        check_max_rows(self.max_rows, "MulticlassAUC.max_rows")
        if not self.exact and self.score_type == AUTO:
            self._set("score_type", _NO_SCORES)
        for name in _OF_A_GRID if self.exact else _OF_A_BAG:
            default = _NO_SCORES if name == "score_type" else getattr(type(self), name)
            if getattr(self, name) != default:
                expected = "none with" if self.exact else "none without"
                raise refused_setting(self, name, f"{expected} exact=True")
            self._set(name, default)  # 8.0 equals 8
        for name, value in check_grid(self).items():
            self._set(name, value)

    @property
    def buckets(self) -> int:
        """The number of buckets of the grid."""
        return grid_of(self).n_buckets

    @property
    def n_histograms(self) -> int:
        """The number of histograms of a state."""
        return 0 if self.exact else self.n_classes

    @property
    def n_bags(self) -> int:
        """The number of bags of scores of a state."""
        return self.n_classes if self.exact else 0

    @property
    def _in_unit(self) -> bool:
        """Whether scores must be in [0, 1]."""
        return not self.exact and self.range == "probability"

    if TYPE_CHECKING:

        def update(
            self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        quanta = batch.quanta
        if quanta is not None and not self.exact:
            self.counts.add_surplus(slots, quanta)  # of the rows, not of their cells
        for piece, classes, labels, values in scored_cells(batch.labels, batch.scores):
            cell_slots = None if slots is None else np.repeat(slots[piece], self.n_classes)
            weights = None if quanta is None else np.repeat(quanta[piece], self.n_classes)
            if self.exact:
                self.bags.add(values, labels, classes, cell_slots, weights)
                continue
            classes *= 2 * self.buckets
            for part, cells in grid_of(self).cells(labels, values):
                self.counts.add(
                    cells + classes[part],
                    None if cell_slots is None else cell_slots[part],
                    None if weights is None else weights[part],
                )

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        truth = batch.labels
        self.all_rounded.add(np.zeros(batch.n, np.intp), slots)
        if truth.ndim == 2:
            rows, classes = np.nonzero(truth)
            self.rounded.add(classes, None if slots is None else slots[rows])
        else:
            self.rounded.add(truth.astype(np.intp), slots)

    def _score_form(self) -> ScoreForm:
        score_type = self.score_type if self.exact else None
        return ScoreForm(MulticlassAUC, 2, labels_of, self.n_classes, score_type)

    def compute(self) -> ClassCurves:
        """The curves of all classes."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[ClassCurves]:
        unit, k = Fraction(self.weight_unit), self.n_classes
        rounded = [n for n in self.all_rounded.totals(slots) for _ in range(k)]
        curves: Sequence[ScoreCurve]
        if self.exact:
            bags = (slots[:, None] * k + np.arange(k)).reshape(-1).tolist()
            curves = [
                bag_curve(self.bags.bag(bag), unit, n) for bag, n in zip(bags, rounded, strict=True)
            ]
        else:
            surplus = np.repeat(self.counts.surplus[slots], k).tolist()
            curves = bucket_curves(*self.counts.cells_of(slots), self, surplus, unit, rounded)
        return [
            ClassCurves(
                tuple(slot_curves), self.exact, slot_curves[0].rows, slot_curves[0].reason, unit
            )
            for slot_curves in (curves[i : i + k] for i in range(0, len(curves), k))
        ]
