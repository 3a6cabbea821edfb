"""ClassCurves: the curves of many classes, each against the rest, and their averages."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import among
from streammetrics.core.errors import InputError, shown
from streammetrics.estimators.estimator import NoFormula
from streammetrics.kernels.curves.area_sums import mean_area
from streammetrics.kernels.curves.precision_recall import Exact, unrounded
from streammetrics.kernels.curves.segments import GroupPairs
from streammetrics.kernels.exact.rounding import ExactArea, mean_of
from streammetrics.present.view import HIGHER, SHARE, View
from streammetrics.results.areas import as_float
from streammetrics.results.has_intervals import USERS
from streammetrics.results.rounded_weights import RoundedWeights
from streammetrics.results.score_curve import ScoreCurve

Area: TypeAlias = "float | Bounded"
Areas: TypeAlias = "float | Bounded | tuple[float | Bounded, ...]"  # a tuple where average is None

_SHARED_ROWS: Final[NoFormula[ClassCurves]] = NoFormula(
    f"areas of classes share their rows, and their covariances are not kept; {USERS}",
    lambda curves: curves.rows,
)


@dataclass(frozen=True, eq=False, repr=False)
class ClassCurves(RoundedWeights):
    """A ScoreCurve for each class against the rest, and averages of their areas.

    curves: by class number. exact: areas are floats; otherwise they are `Bounded`. rows: the
    counted rows, without those of weight zero. reason: why nothing more is known, if so.
    weight_unit: the unit of all other counts of rows.

    average: "macro", the mean over the classes; "weighted", by the rows of each class; "micro", the
    curve of the scores of all classes pooled; None, a tuple with one value for each class. A class
    whose value is undefined is left out of the mean: an area needs rows of it and of the rest.
    """

    curves: tuple[ScoreCurve, ...]
    exact: bool
    rows: int
    reason: str = ""
    weight_unit: Fraction = Fraction(1)

    @property
    @View(
        estimator=_SHARED_ROWS,
        better=HIGHER,
        range=SHARE,
        undefined="no class has rows of it and of the rest",
    )
    def macro_auc(self) -> Area:
        """The mean AUC of the classes."""
        return self._mean_area("uniform")

    @property
    @View(estimator=_SHARED_ROWS, better=HIGHER, range=SHARE, undefined="no class has rows")
    def map(self) -> Area:
        """mAP, the mean average precision of the classes."""
        return self._mean_ap("uniform")

    @View(estimator=_SHARED_ROWS, better=HIGHER, range=SHARE, origin=0.5)
    def auc(self, average: str | None = "macro") -> Areas:
        """The area under the ROC curve of each class against the rest; means rounded once."""
        if average is None:
            return tuple(curve.auc for curve in self.curves)
        if among(average, ("micro",)):
            return self._pooled.auc
        return self._mean_area(_weight(average, "auc"))

    @View(estimator=_SHARED_ROWS, better=HIGHER, range=SHARE)
    def ap(self, average: str | None = "macro") -> Areas:
        """The average precision of each class against the rest; means rounded once, from 90 bits
        of each."""
        if average is None:
            return tuple(curve.ap for curve in self.curves)
        if among(average, ("micro",)):
            return self._pooled.ap
        return self._mean_ap(_weight(average, "ap"))

    @property
    def support(self) -> tuple[int | None, ...]:
        """The rows of each class, in units of weight; None if no longer known."""
        return tuple(curve.positives for curve in self.curves)

    @property
    def rows_rounded(self) -> int | None:
        """Rows whose weight was rounded, including those rounded to 0 units; None without
        round_weights=True."""
        return self.curves[0].rows_rounded

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None if every row weighs 1, or if they are no longer known."""
        return self.curves[0].weight_units

    @property
    def weight(self) -> Fraction | None:
        """The total weight of all rows, exact; None if it is no longer known."""
        return self.curves[0].weight

    def _mean_area(self, weight: str) -> Area:
        curve_pairs = [curve._pairs for curve in self.curves]
        none = np.zeros(len(curve_pairs), np.int64)
        live = np.array([pairs.all > 0 for pairs in curve_pairs], np.int64)
        # Pairs as Python integers: no count of them is too large.
        groups = GroupPairs(none, none, live, live, dict(enumerate(curve_pairs)))
        mean = mean_area(groups, weight, bounded=not self.exact)
        return as_float(mean)

    def _mean_ap(self, weight: str) -> Area:
        plain = weight == "uniform"
        value, low, high = (
            mean_of((exact[end], 1 if plain else positives) for exact, positives in self._aps)
            for end in range(3)
        )
        return as_float(ExactArea(value, low, high, not self.exact))

    @cached_property
    def _aps(self) -> list[tuple[Exact, int]]:
        """AP of each class that has one, before it is rounded, and the units of the class."""
        pairs = [(unrounded(curve._steps, bounded=not self.exact), curve) for curve in self.curves]
        return [(exact, curve.positives or 0) for exact, curve in pairs if exact is not None]

    @cached_property
    def _pooled(self) -> ScoreCurve:
        """The curve of all scores; the positives are the scores of a row's own class."""
        scores = np.concatenate([curve.scores for curve in self.curves])
        counts = np.concatenate([curve.counts for curve in self.curves], axis=1)
        unique, inverse = np.unique(scores, return_inverse=True)
        summed = np.zeros((2, len(unique)), np.int64)
        for into, row in zip(summed, counts, strict=True):
            np.add.at(into, inverse, row)
        rows = self.rows * len(self.curves)
        return ScoreCurve(unique, summed, self.exact, rows, self.reason, self.weight_unit)


def _weight(average: str, where: str) -> str:
    weights = {"macro": "uniform", "weighted": "positives"}
    if not among(average, weights):
        raise InputError(
            expected='"macro", "micro", "weighted" or None',
            got=shown(average),
            where=f"ClassCurves.{where}(average)",
            hint="pass one of these",
        )
    return weights[average]
