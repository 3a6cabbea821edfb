"""RatesBetween: rates of which the counts are known between certain ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.rounding import ratio
from streammetrics.results.bounded import Bounded
from streammetrics.results.direction import Directions, directed
from streammetrics.results.rates import Rates
from streammetrics.results.units import OfRoundedWeights

Table: TypeAlias = tuple[int, int, int, int]  # of tp, fp, fn and tn


@dataclass(frozen=True, slots=True)
class RatesBetween(OfRoundedWeights):
    """Counts and rates at a threshold of which only the bucket is known, or of rounded weights.

    Any of the bucket's rows may lie at or above the threshold; a weight that was rounded may be
    half a unit more or less. Every rate of `Rates` rises or stays with each true positive and
    negative, and falls or stays with each false one (error_rate, fpr and fnr the other way
    round), so each is between its values at two tables. Each is `Bounded`, with the names of
    `Rates`.

    worst: the fewest true ones and the most false ones; of a bucket none of its positives are at
    or above the threshold, and all its negatives are. best: the other way round. value: the counts
    as they are, and of a bucket those of rows that are tied at its least score: none of them is
    at or above the threshold. Of rounded weights the ends are in units half as large, and
    rows_rounded is how many rows had theirs rounded, those that were to nothing included. Where a
    rate is undefined at an end, the other end is the limit of what it can be (of mcc: 0); where
    the value is undefined it is nan.

    >>> from streammetrics import HistogramAUC
    >>> metric = HistogramAUC(grid="equal", resolution=1)
    >>> metric.update([0, 1, 1, 0], [0.1, 0.6, 0.7, 0.8])
    >>> found = metric.compute().confusion(0.75)
    >>> found.recall
    Bounded(value=0.0, low=0.0, high=1.0)
    >>> found.worst.table().tolist(), found.best.table().tolist()
    ([[1, 1], [2, 0]], [[2, 0], [0, 2]])
    """

    directions: ClassVar[Directions] = directed(none="tp fp fn tn")
    worst: Rates
    best: Rates
    value: Rates
    rows_rounded: int | None = None

    @property
    def accuracy(self) -> Bounded:
        """(TP + TN) / all."""
        return self._between(lambda rates: rates.accuracy)

    @property
    def error_rate(self) -> Bounded:
        """(FP + FN) / all."""
        return self._between(lambda rates: rates.error_rate)

    @property
    def precision(self) -> Bounded:
        """TP / (TP + FP)."""
        return self._between(lambda rates: rates.precision)

    @property
    def recall(self) -> Bounded:
        """TP / (TP + FN)."""
        return self._between(lambda rates: rates.recall)

    @property
    def specificity(self) -> Bounded:
        """TN / (TN + FP)."""
        return self._between(lambda rates: rates.specificity)

    @property
    def fpr(self) -> Bounded:
        """FP / (TN + FP)."""
        return self._between(lambda rates: rates.fpr)

    @property
    def fnr(self) -> Bounded:
        """FN / (TP + FN)."""
        return self._between(lambda rates: rates.fnr)

    @property
    def npv(self) -> Bounded:
        """TN / (TN + FN)."""
        return self._between(lambda rates: rates.npv)

    @property
    def balanced_accuracy(self) -> Bounded:
        """(recall + specificity) / 2."""
        if self.rows_rounded is None:
            return self._between(lambda rates: rates.balanced_accuracy)
        # Where both classes may have other sizes, either rate may be undefined by itself.
        found = self.recall, self.specificity
        low, high = (sum(ends) / 2 for ends in zip(*((r.low, r.high) for r in found), strict=True))
        return _outwards(self.value.balanced_accuracy, low, high)

    @property
    def mcc(self) -> Bounded:
        """Matthews."""
        return self._between(lambda rates: rates.mcc, least=-1.0, worst=0.0, best=0.0)

    @property
    def kappa(self) -> Bounded:
        """Cohen."""
        found = self._between(lambda rates: rates.kappa, least=-1.0, best=0.0)
        if self.rows_rounded is None:
            return found
        # Where both classes and predictions may have other sizes, a kappa below 0 does not fall
        # with each false one.
        low = max(min(found.low, self._kappa(self.worst, self.best)), -1.0)
        high = max(found.high, self._kappa(self.best, self.worst))
        return _outwards(found.value, low, high, -1.0)

    @property
    def jaccard(self) -> Bounded:
        """TP / (TP + FP + FN)."""
        return self._between(lambda rates: rates.jaccard)

    @property
    def f1(self) -> Bounded:
        """2 P R / (P + R)."""
        return self._between(lambda rates: rates.f1)

    @property
    def tp(self) -> Bounded:
        """True positives."""
        return self._between(lambda rates: rates.tp)

    @property
    def fp(self) -> Bounded:
        """False positives."""
        return self._between(lambda rates: rates.fp)

    @property
    def fn(self) -> Bounded:
        """False negatives."""
        return self._between(lambda rates: rates.fn)

    @property
    def tn(self) -> Bounded:
        """True negatives."""
        return self._between(lambda rates: rates.tn)

    @property
    def positives(self) -> int:
        """TP + FN, in units of weight."""
        return self.value.positives

    def table(self, layout: Literal["sklearn", "positive_first"] = "sklearn") -> NDArray[np.int64]:
        """The counts of `value` as int64 [truth, prediction]; see `Rates.table`."""
        return self.value.table(layout)

    def f_beta(self, b: float, *, zero_division: float = math.nan) -> Bounded:
        """(1 + b²) P R / (b² P + R), as `Rates.f_beta`: f_beta(1) is `f1`."""
        return self._with_worth(
            lambda rates, worth: rates.f_beta(b, zero_division=worth), zero_division
        )

    def f_alpha(self, a: float, *, zero_division: float = math.nan) -> Bounded:
        """1 / (a / P + (1 - a) / R), as `Rates.f_alpha`: f_alpha(1) is `precision`, f_alpha(0)
        `recall`."""
        return self._with_worth(
            lambda rates, worth: rates.f_alpha(a, zero_division=worth), zero_division
        )

    def _with_worth(self, rate: Callable[[Rates, float], float], worth: float) -> Bounded:
        """An F where 0/0 is worth this, which widens it if some table between the ends is 0/0."""
        rate(self.value, worth)  # refuses what it cannot be
        found = self._between(lambda rates: rate(rates, math.nan))
        fewest = Rates(self.worst.tp, self.best.fp, self.best.fn, 0)
        if math.isnan(worth) or not math.isnan(rate(fewest, math.nan)):
            return found
        ends = [end for end in (found.low, found.high) if not math.isnan(end)] + [float(worth)]
        return Bounded(rate(self.value, worth), min(ends), max(ends))

    def _kappa(self, end: Rates, other: Rates) -> float:
        """Kappa is 1 - s (t + s) / (t s + FP² + FN² + 2 TP TN) with s = FP + FN and t = TP + TN:
        it falls with s, rises with the squares, and with each true one. So all of these at one
        end, but the squares at the other, are a certain end of it."""
        s, t = end.fp + end.fn, end.tp + end.tn
        if end._determinant >= 0:
            return end.kappa
        every = t * s + other.fp**2 + other.fn**2 + 2 * end.tp * end.tn
        return ratio(every - s * (t + s), every) if every else -math.inf

    def _between(
        self,
        rate: Callable[[Rates], float],
        *,
        least: float = 0.0,
        worst: float | None = None,
        best: float | None = None,
    ) -> Bounded:
        """The rate between its ends. worst, best: what it tends to where it is undefined at that
        end alone; None: what it is at the other."""
        value, a, b = rate(self.value), rate(self.worst), rate(self.best)
        if isinstance(value, int):  # a count, in units: the ends may be in halves of them
            halves = int(self.value.weight_unit / self.worst.weight_unit)
            return Bounded(value, int(min(a, b)) // halves, -(-int(max(a, b)) // halves))
        if math.isnan(a) != math.isnan(b):
            a, b = (_or(worst, b), b) if math.isnan(a) else (a, _or(best, a))
        return _outwards(value, min(a, b), max(a, b), least)


def with_doubt(
    value: Rates, worst: Rates, best: Rates, rounded: Table, rows_rounded: int
) -> RatesBetween:
    """The rates between two tables if so many rows of each cell had their weight rounded.

    rows_rounded: how many these are together.
    """
    return RatesBetween(
        _moved(worst, value.rows, rounded, -1),
        _moved(best, value.rows, rounded, 1),
        value,
        rows_rounded,
    )


def _moved(end: Rates, rows: int, rounded: Table, side: int) -> Rates:
    """Half a unit a row more true ones and fewer false ones (side=1), or the other way round."""
    cells = zip((end.tp, end.fp, end.fn, end.tn), rounded, (side, -side, -side, side), strict=True)
    tp, fp, fn, tn = (max(2 * cell + way * doubt, 0) for cell, doubt, way in cells)
    return Rates(tp, fp, fn, tn, end.weight_unit / 2, tp + fp + fn + tn - rows)


def _or(limit: float | None, other: float) -> float:
    return other if limit is None else limit


def _outwards(value: float, low: float, high: float, least: float = 0.0) -> Bounded:
    """Nearest floats are half a unit off at most; 0 and the limits of the range are exact."""
    if low not in (0.0, least):
        low = math.nextafter(low, -math.inf)
    if high not in (0.0, 1.0):
        high = math.nextafter(high, math.inf)
    return Bounded(value, low, high)
