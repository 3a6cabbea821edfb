"""ClassCurves: the curves of many classes, each against the rest, and their averages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from streammetrics.core.errors import InputError, shown
from streammetrics.kernels.exact_mean import mean_area
from streammetrics.kernels.rounding import ratio, rounded_down, rounded_up
from streammetrics.kernels.segments import GroupPairs
from streammetrics.results.areas import as_float
from streammetrics.results.bounded import Bounded
from streammetrics.results.score_curve import ScoreCurve

Area: TypeAlias = "float | Bounded"
Areas: TypeAlias = "float | Bounded | tuple[float | Bounded, ...]"  # a tuple where average is None


@dataclass(frozen=True, eq=False, repr=False)
class ClassCurves:
    """A ScoreCurve for each class, of it against the rest, and averages of their areas.

    curves: by class number. exact: areas are floats; otherwise `Bounded`. rows: all that were
    counted. reason: why nothing more is known, when it is not.

    average: "macro", the mean over the classes; "weighted", by how many rows are of the class;
    "micro", the curve of the scores of all classes pooled; None, a tuple with one for each class.
    A class whose own is undefined leaves the mean: an area needs rows of it and of the rest.
    """

    curves: tuple[ScoreCurve, ...]
    exact: bool
    rows: int
    reason: str = ""

    @property
    def macro_auc(self) -> Area:
        """The mean AUC of the classes."""
        return self._mean_area("uniform")

    @property
    def map(self) -> Area:
        """mAP, the mean average precision of the classes."""
        return self._mean_ap(weighted=False)

    def auc(self, average: str | None = "macro") -> Areas:
        """The area under the ROC curve of each class against the rest; means rounded once."""
        if average is None:
            return tuple(curve.auc for curve in self.curves)
        if average == "micro":
            return self._pooled.auc
        return self._mean_area(_weight(average, "auc"))

    def ap(self, average: str | None = "macro") -> Areas:
        """The average precision of each class against the rest; means within an ulp."""
        if average is None:
            return tuple(curve.ap for curve in self.curves)
        if average == "micro":
            return self._pooled.ap
        return self._mean_ap(weighted=_weight(average, "ap") == "positives")

    @property
    def support(self) -> tuple[int | None, ...]:
        """The rows of each class; None where that is no longer known."""
        return tuple(curve.positives for curve in self.curves)

    def _mean_area(self, weight: str) -> Area:
        found = [curve._pairs for curve in self.curves]
        none = np.zeros(len(found), np.int64)
        live = np.array([pairs.all > 0 for pairs in found], np.int64)
        # Pairs as Python integers: no count of them is too large.
        groups = GroupPairs(none, none, live, live, dict(enumerate(found)))
        return as_float(mean_area(groups, weight, bounded=not self.exact))

    def _mean_ap(self, *, weighted: bool) -> Area:
        found = [(curve.ap, (curve.positives or 0) if weighted else 1) for curve in self.curves]
        known = [(ap, weight) for ap, weight in found if not math.isnan(float(ap))]
        values = [(float(ap), weight) for ap, weight in known]
        if self.exact:
            return _mean(values)
        lows = [(ap.low, weight) for ap, weight in known if isinstance(ap, Bounded)]
        highs = [(ap.high, weight) for ap, weight in known if isinstance(ap, Bounded)]
        return Bounded(_mean(values), _mean(lows, -1), _mean(highs, 1))

    @cached_property
    def _pooled(self) -> ScoreCurve:
        """The curve of all scores, of which those of a row's own class are the positives."""
        scores = np.concatenate([curve.scores for curve in self.curves])
        counts = np.concatenate([curve.counts for curve in self.curves], axis=1)
        unique, inverse = np.unique(scores, return_inverse=True)
        summed = np.zeros((2, len(unique)), np.int64)
        for into, more in zip(summed, counts, strict=True):
            np.add.at(into, inverse, more)
        rows = self.rows * len(self.curves)
        return ScoreCurve(unique, summed, self.exact, rows, self.reason)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ClassCurves)
            and (self.exact, self.rows, self.reason) == (other.exact, other.rows, other.reason)
            and self.curves == other.curves
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        why = f", reason={self.reason!r}" if self.reason else ""
        said = f"macro_auc={self.macro_auc!r}, map={self.map!r}, rows={self.rows}"
        return f"ClassCurves({said}, classes={len(self.curves)}{why})"


def _mean(values: Sequence[tuple[float, int]], side: int = 0) -> float:
    """The weighted mean, rounded once: to nearest, down (-1) or up (1); nan of no weight."""
    total = sum(weight for _, weight in values)
    if not total:
        return math.nan
    mean = sum((Fraction(value) * weight for value, weight in values), Fraction(0)) / total
    rounding = {-1: rounded_down, 0: ratio, 1: rounded_up}[side]
    return rounding(*mean.as_integer_ratio())


def _weight(average: str, where: str) -> str:
    weights = {"macro": "uniform", "weighted": "positives"}
    if average not in weights:
        raise InputError(
            expected='"macro", "micro", "weighted" or None',
            came=shown(average),
            where=f"ClassCurves.{where}(average)",
            todo="pass one of these",
        )
    return weights[average]
