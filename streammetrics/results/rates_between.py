"""RatesBetween: rates at a threshold inside a bucket of scores, between their certain ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from streammetrics.results.bounded import Bounded
from streammetrics.results.rates import Rates


@dataclass(frozen=True, slots=True)
class RatesBetween:
    """Counts and rates at a threshold of which only the bucket is known.

    Any of the bucket's rows may lie at or above the threshold. Every rate of `Rates` rises or
    stays with each true positive and falls or stays with each false one (error_rate, fpr and fnr
    the other way round), so each is between its values at two tables. Each is `Bounded`, with
    the names of `Rates`.

    worst: none of the bucket's positives are at or above the threshold, all its negatives are.
    best: all its positives and none of its negatives. The value is that of a bucket whose rows are
    tied at its least score: none of them. Where a rate is undefined at an end, the other end is
    the limit of what it can be (of mcc: 0); where the value is undefined it is nan.

    >>> from streammetrics import HistogramAUC
    >>> metric = HistogramAUC(grid="equal", resolution=1)
    >>> metric.update([0, 1, 1, 0], [0.1, 0.6, 0.7, 0.8])
    >>> found = metric.compute().confusion(0.75)
    >>> found.recall
    Bounded(value=0.0, low=0.0, high=1.0)
    >>> found.worst.table().tolist(), found.best.table().tolist()
    ([[1, 1], [2, 0]], [[2, 0], [0, 2]])
    """

    worst: Rates
    best: Rates

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
        return self._between(lambda rates: rates.balanced_accuracy)

    @property
    def mcc(self) -> Bounded:
        """Matthews."""
        return self._between(lambda rates: rates.mcc, least=-1.0, undefined=0.0)

    @property
    def kappa(self) -> Bounded:
        """Cohen."""
        return self._between(lambda rates: rates.kappa, least=-1.0)

    @property
    def jaccard(self) -> Bounded:
        """TP / (TP + FP + FN)."""
        return self._between(lambda rates: rates.jaccard)

    @property
    def f1(self) -> Bounded:
        """2 P R / (P + R)."""
        return self._between(lambda rates: rates.f1)

    @property
    def rows(self) -> int:
        """All that were counted."""
        return self.worst.rows

    @property
    def positives(self) -> int:
        """TP + FN, in units of weight."""
        return self.worst.positives

    def f_beta(self, b: float) -> Bounded:
        """(1 + b²) P R / (b² P + R)."""
        return self._between(lambda rates: rates.f_beta(b))

    def f_alpha(self, a: float) -> Bounded:
        """1 / (a / P + (1 - a) / R)."""
        return self._between(lambda rates: rates.f_alpha(a))

    def _between(
        self,
        rate: Callable[[Rates], float],
        *,
        least: float = 0.0,
        undefined: float | None = None,
    ) -> Bounded:
        none = replace(self.best, tp=self.worst.tp, fn=self.worst.fn)
        value, a, b = rate(none), rate(self.worst), rate(self.best)
        if isinstance(value, int):
            return Bounded(value, min(a, b), max(a, b))
        if math.isnan(a) != math.isnan(b):
            end = undefined if undefined is not None else b if math.isnan(a) else a
            a, b = (end, b) if math.isnan(a) else (a, end)
        low, high = min(a, b), max(a, b)
        # Nearest floats are half a unit off at most; 0 and the limits of the range are exact.
        if low not in (0.0, least):
            low = math.nextafter(low, -math.inf)
        if high not in (0.0, 1.0):
            high = math.nextafter(high, math.inf)
        return Bounded(value, low, high)
