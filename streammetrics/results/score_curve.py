"""ScoreCurve: positives and negatives at each score, or in each bucket of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, Generic, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import (
    decimal_share,
    flag,
    parts,
    refused,
    share,
    threshold,
)
from streammetrics.estimators.area import Area
from streammetrics.estimators.estimator import Function, Linear
from streammetrics.estimators.many import ViewCells
from streammetrics.kernels.curves.area import area, areas_and_ginis, gini
from streammetrics.kernels.curves.area_sums import area_of
from streammetrics.kernels.curves.key_placements import placements_of_many
from streammetrics.kernels.curves.many_steps import FigureColumns, ManySteps, many_steps
from streammetrics.kernels.curves.operating_points import (
    Least,
    best,
    distance_of_classes,
    distances_of_classes,
    gains,
    lifts,
    steps_within,
)
from streammetrics.kernels.curves.precision_recall import (
    average_precision,
    average_precisions,
    partial_area,
    trapezoid,
    trapezoids,
)
from streammetrics.kernels.curves.reduced import without_group
from streammetrics.kernels.curves.steps import UNDEFINED, Figure, Steps, shares, steps
from streammetrics.kernels.exact.rounding import ExactArea, exact_sum
from streammetrics.kernels.inference.area_interval import (
    PlacementColumns,
    Placements,
    placements,
)
from streammetrics.present.view import HIGHER, SHARE, SIGNED, View
from streammetrics.results.areas import relative
from streammetrics.results.curve_points import (
    BestPoints,
    BudgetPoint,
    OperatingPoint,
    PrecisionRecallPoints,
    RocPoints,
    V_co,
    aim_named,
)
from streammetrics.results.has_intervals import Ranks
from streammetrics.results.late_buckets import LateBuckets, batches_of_curves
from streammetrics.results.rates import BoundedRates, Rates
from streammetrics.results.rounded_weights import OfUnits

_AUC: Final[Area[ScoreCurve[float]]] = Area(
    lambda curve: curve._placements, lambda curve: curve.exact
)
_GINI: Final = replace(_AUC, scaled=Linear("auc", 2.0, -1.0))
_OF_POINTS: Final = Function[object](of_points=True)
_CHOSEN: Final = Function[object](chosen=True, of_points=True)
_FIGURES: Final = ("auc", "gini", "ap", "pr_auc_trapezoid", "ks")  # that many curves share
_MADE: Final = ("_points", "_cells", "_n_buckets", "_held", "_placed")


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCurve(Generic[V_co], LateBuckets, OfUnits):
    """The counts of two classes by score, from which every curve and area follows.

    scores: float [k], ascending: the scores that occurred or, for a histogram, the least score of
    each occupied bucket. counts: int64 [2, k], negatives and positives there, in units of weight:
    `weight_unit` each. exact: each column is one score; otherwise it is a bucket, and figures are
    `Bounded` over all orders and ties of its scores. Their value is that for buckets whose rows are
    all tied. rows: the counted rows, without those of weight zero. reason: why nothing more is
    known, if so.

    >>> curve = ScoreCurve(np.array([0.1, 0.4, 0.8]), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
    >>> curve.auc, curve.gini
    (0.875, 0.75)
    """

    scores: NDArray[np.floating] = field()
    counts: NDArray[np.int64] = field()
    exact: bool = field()
    rows: int = field()
    reason: str = ""
    weight_unit: Fraction = Fraction(1)
    rows_rounded: int | None = None
    # float64 [k]: the least score above each bucket; nan where the bucket has no end.
    _ends: NDArray[np.float64] | None = field(default_factory=lambda: None, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # A copy and a pickle hold the buckets, not the grid that they are made from.
        buckets = {name: getattr(self, name) for name in ("scores", "counts", "_ends")}
        return {**{k: v for k, v in self.__dict__.items() if k not in _MADE}, **buckets}

    @cached_property
    @View(estimator=_AUC, better=HIGHER, range=SHARE, origin=0.5, undefined="one class has no rows")
    def auc(self) -> V_co:
        """The share of (positive, negative) pairs that scores order correctly; ties count 1/2."""
        return self._figure(area(self._pairs, bounded=not self.exact))

    @cached_property
    @View(estimator=_GINI, better=HIGHER, range=SIGNED, undefined="one class has no rows")
    def gini(self) -> V_co:
        """2 AUC - 1."""
        return self._figure(gini(self._pairs, bounded=not self.exact))

    @cached_property
    @View(better=HIGHER, range=SHARE, undefined="no positives", estimator=_OF_POINTS)
    def ap(self) -> V_co:
        """Average precision: Σ (R_i - R_(i-1)) P_i over different scores, from the highest down.

        R and P: recall and precision at score >= that one; equal scores enter together, without
        interpolation, as in scikit-learn's average_precision_score. Rounded from 90 bits; nan
        without a positive.
        """
        return self._figure(average_precision(self._steps, bounded=not self.exact))

    @cached_property
    @View(better=HIGHER, range=SHARE, undefined="no positives", estimator=_OF_POINTS)
    def pr_auc_trapezoid(self) -> V_co:
        """Area under the points of `pr` by trapezoids, recall on x, from (0, 1): not `ap`.

        It may be above or below `ap`. A straight line between two points may have values that no
        threshold reaches (Davis and Goadrich 2006, ICML). Rounded from 90 bits; nan without a
        positive.
        """
        return self._figure(trapezoid(self._steps, bounded=not self.exact))

    @cached_property
    @View(better=HIGHER, range=SHARE, undefined="one class has no rows", estimator=_OF_POINTS)
    def ks(self) -> V_co:
        """Kolmogorov-Smirnov: the greatest |TPR - FPR|; nan with one class only."""
        return self._figure(distance_of_classes(self._steps, bounded=not self.exact))

    def roc(self) -> RocPoints:
        """The points of the ROC curve, from (0, 0) to (1, 1)."""
        points = self._steps
        return RocPoints(
            fpr=shares(points.fp, points.negatives),
            tpr=shares(points.tp, points.positives),
            thresholds=self._thresholds,
            fp=points.fp,
            tp=points.tp,
        )

    def pr(self) -> PrecisionRecallPoints:
        """The points of the precision-recall curve, the one at the lowest threshold first."""
        points = self._steps
        tp, fp = points.tp[:0:-1], points.fp[:0:-1]
        return PrecisionRecallPoints(
            precision=np.append(shares(tp, tp + fp), 1.0),
            recall=np.append(shares(tp, points.positives), 0.0),
            thresholds=self._thresholds[:0:-1],
        )

    @View(better=HIGHER, estimator=_OF_POINTS)
    def partial_auc(self, max_fpr: float, *, standardized: bool = False) -> V_co:
        """The area under the ROC curve where FPR <= max_fpr, 0 < max_fpr <= 1: at most max_fpr.

        standardized: scaled so that chance has 1/2 and a perfect order 1 (McClish 1989, Medical
        Decision Making 9), as scikit-learn's roc_auc_score(max_fpr=). nan with one class.

        >>> curve = ScoreCurve(np.arange(3.0), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
        >>> curve.partial_auc(0.5), curve.partial_auc(0.5, standardized=True)
        (0.375, 0.8333333333333334)
        """
        where, expected = "ScoreCurve.partial_auc(max_fpr)", "a rate above 0 and at most 1"
        limit, bounded = share(max_fpr, where, expected), not self.exact
        if not limit:
            raise refused(where, expected, max_fpr)
        scaled = flag(standardized, "ScoreCurve.partial_auc(standardized)")
        figure = partial_area(self._steps, limit, standardized=scaled, bounded=bounded)
        return self._figure(figure)

    def gain(self, k: int = 10) -> tuple[V_co, ...]:
        """Share of all positives among the i/k of the rows with the highest scores, i = 1 to k.

        A cut through tied rows, or through one row, takes a proportional part: the mean over their
        orders. nan without a positive. For a histogram the bounds are certain, but not always tight
        where a cut lies inside a row.

        >>> curve = ScoreCurve(np.arange(3.0), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
        >>> curve.gain(4), curve.lift(4)
        ((0.5, 0.75, 1.0, 1.0), (2.0, 1.0, 1.0, 0.0))
        """
        figures = gains(self._steps, parts(k, "ScoreCurve.gain(k)"), bounded=not self.exact)
        return tuple(map(self._figure, figures))

    def lift(self, k: int = 10, *, cumulative: bool = False) -> tuple[V_co, ...]:
        """Rate of positives in each of k equal parts of the rows, highest scores first, over that
        of all rows; cumulative: in the first i parts. Cuts and bounds are as in `gain`, so the
        bounds are not always tight where a cut lies inside a row; nan without a positive."""
        n, first = parts(k, "ScoreCurve.lift(k)"), flag(cumulative, "ScoreCurve.lift(cumulative)")
        figures = lifts(self._steps, n, cumulative=first, bounded=not self.exact)
        return tuple(map(self._figure, figures))

    @View(estimator=_OF_POINTS)
    def confusion(self, t: float) -> Rates | BoundedRates:
        """The rates at a threshold: positive iff score >= t, in the precision of exact scores.

        `BoundedRates`, with the same names, if t lies inside an occupied bucket of a histogram.

        >>> curve = ScoreCurve(np.arange(3.0), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
        >>> curve.confusion(1.0).table().tolist()
        [[1, 1], [0, 2]]
        """
        limit = threshold(t, "ScoreCurve.confusion(t)")
        if self.exact:  # scores of lower precision were compared in that precision
            with np.errstate(over="ignore"):
                limit = float(self.scores.dtype.type(limit))
        index = int(np.searchsorted(self.scores, limit, "left"))
        above = below = self._rates(index)
        if index and not self.exact and not self._begins_at(limit, index):
            below = self._rates(index - 1)
        if below == above:
            return above
        worst, best = self._rates_of(above.tp, below.fp), self._rates_of(below.tp, above.fp)
        return BoundedRates(worst, best, above)

    @View(estimator=_CHOSEN)
    def best(
        self,
        by: Literal[
            "youden", "product", "distance", "accuracy", "precision", "recall", "f_beta"
        ] = "youden",
        *,
        positives_share: float | Fraction | None = None,
        recall_at_least: float | Fraction | None = None,
        precision_at_least: float | Fraction | None = None,
        beta: float | Fraction | None = None,
    ) -> BestPoints[V_co]:
        """The best operating points: the value, and every threshold that reaches it, the highest
        first, which is the one to choose.

        by: "youden" is TPR - FPR; "product" TPR (1 - FPR); "distance" from (0, 1), the least
        √(FPR² + (1 - TPR)²); "accuracy" q TPR + (1 - q)(1 - FPR) where q of the rows are positive:
        the iso-accuracy line of slope (1 - q)/q; "precision", "recall", and "f_beta", the F of
        `beta`, by default 1. positives_share: q, from 0 to 1, by default that of these rows; a
        Fraction if no float equals it. recall_at_least, precision_at_least: of the thresholds that
        count; a float is the decimal that it is written as. Ties are found exactly, and tied rows
        enter together. Predicting nothing is a point too, except for precision, recall and F. nan
        if no threshold meets the requirements, and with one class only, except for "accuracy" with
        the default q and for precision and F.

        >>> curve = ScoreCurve(np.arange(3.0), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
        >>> found = curve.best("youden")
        >>> found.value, [point.threshold for point in found.points]
        (0.5, [2.0, 1.0])
        >>> found = curve.best("precision", recall_at_least=0.8)
        >>> found.value, found.points[0].threshold
        (0.6666666666666666, 1.0)
        """
        aim_of = aim_named(by, "ScoreCurve.best", positives_share=positives_share, beta=beta)
        least = Least(
            _required(recall_at_least, "ScoreCurve.best(recall_at_least)"),
            _required(precision_at_least, "ScoreCurve.best(precision_at_least)"),
        )
        aim = aim_of(self._steps)
        if aim is None:
            return BestPoints(self._figure(UNDEFINED), (), self.reason)
        optimum = best(self._steps, aim, least, bounded=not self.exact)
        points = tuple(self._point(int(index)) for index in optimum.at)
        return BestPoints(self._figure(optimum.figure), points)

    @View(better=HIGHER, range=SHARE, estimator=_CHOSEN)
    def precision_at_recall(self, recall: float | Fraction) -> V_co:
        """The greatest precision of the thresholds whose recall is at least this: the value of
        best("precision", recall_at_least=recall).

        It is optimistic, since the rows that it is measured on choose the threshold; for a
        threshold fixed beforehand see `confusion`. So are the next two.
        """
        return self.best("precision", recall_at_least=recall).value

    @View(better=HIGHER, range=SHARE, estimator=_CHOSEN)
    def recall_at_precision(self, precision: float | Fraction) -> V_co:
        """The greatest recall of the thresholds whose precision is at least this; nan if none is:
        the value of best("recall", precision_at_least=precision)."""
        return self.best("recall", precision_at_least=precision).value

    @View(better=HIGHER, range=SHARE, estimator=_CHOSEN)
    def best_f_beta(self, b: float | Fraction = 1) -> V_co:
        """The greatest F of any threshold: the value of best("f_beta", beta=b)."""
        return self.best("f_beta", beta=b).value

    @View(estimator=_CHOSEN)
    def threshold_for(self, *, predicted_positive: float | Fraction) -> BudgetPoint[V_co]:
        """The least threshold that predicts at most this share of the rows positive.

        predicted_positive: from 0 to 1; a float is the decimal that it is written as. Tied rows are
        all predicted positive, or none is, so the share that the result states may be lower.

        >>> curve = ScoreCurve(np.arange(3.0), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
        >>> found = curve.threshold_for(predicted_positive=0.5)
        >>> found.threshold, found.share, found.precision, found.recall
        (2.0, 0.25, 1.0, 0.5)
        """
        where = "ScoreCurve.threshold_for(predicted_positive)"
        points = self._steps
        budget = steps_within(points, decimal_share(predicted_positive, where))
        point = self._point(budget.at)
        figures = budget.share(points), budget.precision(points), budget.recall(points)
        positive, precision, recall = map(self._figure, figures)
        return BudgetPoint(point.threshold, positive, precision, recall, point.rates, self.reason)

    @View(better=HIGHER, range=SHARE, estimator=_CHOSEN)
    def precision_at_budget(self, predicted_positive: float | Fraction) -> V_co:
        """The precision of `threshold_for` this share of the rows."""
        return self.threshold_for(predicted_positive=predicted_positive).precision

    @View(better=HIGHER, range=SHARE, estimator=_CHOSEN)
    def recall_at_budget(self, predicted_positive: float | Fraction) -> V_co:
        """The recall of `threshold_for` this share of the rows."""
        return self.threshold_for(predicted_positive=predicted_positive).recall

    def rela_impr(self, base: ScoreCurve) -> float | Bounded:
        """RelaImpr over another model: (auc - 1/2) / (its auc - 1/2) - 1; 1.0 is 100 %.

        Correctly rounded; `Bounded` if one of the two is. nan if one is undefined or the base is
        1/2; if the base may be 1/2, both bounds are infinite.

        >>> good = ScoreCurve(np.arange(5.0), np.array([[1, 0, 1, 0, 0], [0, 1, 0, 1, 1]]), True, 5)
        >>> poor = ScoreCurve(np.arange(5.0), np.array([[1, 0, 0, 1, 0], [0, 1, 1, 0, 1]]), True, 5)
        >>> good.auc, poor.auc, good.rela_impr(poor)
        (0.8333333333333334, 0.6666666666666666, 1.0)
        """
        candidate: object = base
        if not isinstance(candidate, ScoreCurve):
            why = "a ScoreCurve", base, "pass the result of the other model, not its area"
            raise refused("ScoreCurve.rela_impr(base)", *why)
        return relative(self._exact_area, base._exact_area)

    def _point(self, index: int) -> OperatingPoint:
        rates = self._rates_of(int(self._steps.tp[index]), int(self._steps.fp[index]))
        return OperatingPoint(float(self._thresholds[index]), rates)

    def _rates(self, place: int) -> Rates:
        """The rates if the rows from this index on are predicted positive."""
        negatives, positives = self.counts[:, place:]
        return self._rates_of(exact_sum(positives), exact_sum(negatives))

    def _rates_of(self, tp: int, fp: int) -> Rates:
        totals = self._pairs
        predicted_negatives = totals.positives - tp, totals.negatives - fp
        rows = 0 if self.reason else self.rows  # of which nothing is known
        surplus = totals.positives + totals.negatives - rows
        return Rates(tp, fp, *predicted_negatives, self.weight_unit, surplus, self.rows_rounded)

    def _begins_at(self, limit: float, index: int) -> bool:
        """Whether no bucket below this index has a score at or above the limit."""
        if index < len(self.scores) and self.scores[index] == limit:
            return True
        return self._ends is not None and bool(limit >= self._ends[index - 1])

    @cached_property
    def _steps(self) -> Steps:
        return steps(self.counts[0], self.counts[1])

    @cached_property
    def _thresholds(self) -> NDArray[np.floating]:
        """The thresholds of the steps [k + 1]; +inf first, or nan if that may be a score."""
        positions = self._steps.positions
        scores = self.scores[positions]
        highest = len(scores) > 0 and scores[0] == math.inf
        if len(scores) and self._ends is not None:  # the highest bucket may have no end
            highest |= math.isnan(self._ends[positions[0]])
        first = math.nan if highest else math.inf
        return np.concatenate([np.array([first], scores.dtype), scores])

    def _figure(self, figure: Figure) -> V_co:
        return cast("V_co", figure[0] if self.exact else Bounded(*figure))

    @property
    def _exact_area(self) -> ExactArea:
        return area_of(self._pairs, bounded=not self.exact)

    @property
    def positives(self) -> int | None:
        """Units of weight of the positive class (rows, without weights); None if not known."""
        return None if self.reason else self._pairs.positives

    @property
    def _units(self) -> int:
        return self._pairs.positives + self._pairs.negatives

    def _without_group(self, whole: Self, rest: Self, ranks: Ranks) -> ScoreCurve:
        scores, counts = without_group(self, whole, rest, ranks)
        return ScoreCurve(scores, counts, exact=True, rows=rest.rows)

    @classmethod
    def _stacked(cls, curves: Sequence[ScoreCurve]) -> CurveColumns | None:
        """The figures and placements of many curves, those of small ones side by side; None if only
        some are exact."""
        exact, place_of = curves[0].exact, {id(curve): i for i, curve in enumerate(curves)}
        if len(place_of) < len(curves) or any(curve.exact is not exact for curve in curves):
            return None
        figures = np.empty((len(_FIGURES), 3, len(curves)))
        rows: list[Placements | None] = [None] * len(curves)
        for batch, counts in batches_of_curves(curves):
            places, steps = [place_of.pop(id(curve)) for curve in batch], many_steps(*counts)
            for place, row in zip(places, placements_of_many(steps), strict=True):
                rows[place] = row
            figures[:, :, places] = _figures_of_steps(steps, bounded=not exact)
        for place in place_of.values():
            cells = ViewCells.from_values([getattr(curves[place], name) for name in _FIGURES])
            figures[:, 0, place] = cells.values
            if cells.bounds is not None:
                figures[:, 1, place], figures[:, 2, place] = cells.bounds
        every = zip(rows, curves, strict=True)
        placements = PlacementColumns([row or curve._placements for row, curve in every])
        return CurveColumns(figures, placements, exact)

    @cached_property
    def _placements(self) -> Placements:
        """Of the area and of Gini's coefficient, whose intervals are the same."""
        if self._placed is not None and "_held" not in self.__dict__:
            return self._placed()
        return placements(self.counts[0], self.counts[1])


@dataclass(frozen=True)
class CurveColumns:
    """Many curves as one. figures: value, low and high of each of `_FIGURES`, [5, 3, k]."""

    figures: NDArray[np.float64]
    _placements: PlacementColumns
    exact: bool

    def _view_columns(self) -> dict[str, ViewCells]:
        return {
            name: ViewCells(value, None if self.exact else (low, high))
            for name, (value, low, high) in zip(_FIGURES, self.figures, strict=True)
        }


def _figures_of_steps(steps: ManySteps, *, bounded: bool) -> list[FigureColumns]:
    return [
        *areas_and_ginis(steps, bounded=bounded),
        average_precisions(steps, bounded=bounded),
        trapezoids(steps, bounded=bounded),
        distances_of_classes(steps, bounded=bounded),
    ]


def _required(value: float | Fraction | None, where: str) -> Fraction | None:
    return None if value is None else decimal_share(value, where)
