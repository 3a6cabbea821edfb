"""Rates: what two classes, counted by truth and prediction, have to say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.rounding import over_root, ratio
from streammetrics.results.arguments import refused, share, weight_of_recall, worth_of_nothing
from streammetrics.results.direction import Directions, directed
from streammetrics.results.interval import Asked, HasIntervals, Interval
from streammetrics.results.rates_interval import rates_interval
from streammetrics.results.units import units_counted


@dataclass(frozen=True, slots=True, repr=False)
class Rates(HasIntervals):
    """Counts of truth against prediction, and every rate that follows from them.

    tp, fp, fn, tn: true and false positives, false and true negatives, in units of weight:
    `weight_unit` each. Without weights these are rows. A rate is one division of exact integers,
    rounded once; 0/0 is nan. P is precision, R recall.

    >>> rates = Rates(tp=1, fp=1, fn=0, tn=1)
    >>> rates.precision, rates.recall, rates.specificity
    (0.5, 1.0, 0.5)
    """

    directions: ClassVar[Directions] = directed(
        higher="accuracy precision recall specificity npv balanced_accuracy mcc kappa jaccard "
        "f1 f_beta f_alpha",
        lower="error_rate fpr fnr",
    )
    tp: int
    fp: int
    fn: int
    tn: int
    weight_unit: Fraction = Fraction(1)
    _excess: int = 0  # of units over rows

    @property
    def accuracy(self) -> float:
        """(TP + TN) / all."""
        return ratio(self.tp + self.tn, self._units)

    @property
    def error_rate(self) -> float:
        """(FP + FN) / all."""
        return ratio(self.fp + self.fn, self._units)

    @property
    def precision(self) -> float:
        """TP / (TP + FP): the share of the predicted positives that are."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """TP / (TP + FN), also called sensitivity and TPR."""
        return ratio(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float:
        """TN / (TN + FP), also called TNR."""
        return ratio(self.tn, self.tn + self.fp)

    @property
    def fpr(self) -> float:
        """FP / (TN + FP), the false positive rate."""
        return ratio(self.fp, self.tn + self.fp)

    @property
    def fnr(self) -> float:
        """FN / (TP + FN), the false negative rate."""
        return ratio(self.fn, self.tp + self.fn)

    @property
    def npv(self) -> float:
        """TN / (TN + FN): the share of the predicted negatives that are."""
        return ratio(self.tn, self.tn + self.fn)

    @property
    def balanced_accuracy(self) -> float:
        """(recall + specificity) / 2."""
        positives, negatives = self.positives, self.tn + self.fp
        return ratio(self.tp * negatives + self.tn * positives, 2 * positives * negatives)

    @property
    def mcc(self) -> float:
        """Matthews: (TP TN - FP FN) / √((TP + FP)(TP + FN)(TN + FP)(TN + FN)).

        (Biochim. Biophys. Acta 405, 1975.)
        """
        margins = (self.tp + self.fp) * (self.tp + self.fn) * (self.tn + self.fp)
        return over_root(self._determinant, margins * (self.tn + self.fn))

    @property
    def kappa(self) -> float:
        """Cohen: (p_o - p_e) / (1 - p_e), p_e the agreement expected by chance.

        (Educ. Psychol. Meas. 20, 1960.)
        """
        by_chance = (self.tp + self.fp) * (self.fp + self.tn)
        by_chance += (self.tp + self.fn) * (self.fn + self.tn)
        return ratio(2 * self._determinant, by_chance)

    @property
    def jaccard(self) -> float:
        """TP / (TP + FP + FN)."""
        return ratio(self.tp, self.tp + self.fp + self.fn)

    @property
    def f1(self) -> float:
        """2 P R / (P + R) = 2 TP / (2 TP + FN + FP)."""
        return ratio(2 * self.tp, 2 * self.tp + self.fn + self.fp)

    @property
    def rows(self) -> int:
        """All that were counted; those of weight zero are not."""
        return self._units - self._excess

    @property
    def positives(self) -> int:
        """TP + FN, in units of weight."""
        return self.tp + self.fn

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None where every row weighs 1, so that they are the rows."""
        return units_counted(self._units, self.rows, self.weight_unit)

    @property
    def weight(self) -> Fraction:
        """The weight of all rows together, exactly."""
        return self._units * self.weight_unit

    def f_beta(self, b: float, *, zero_division: float = math.nan) -> float:
        """(1 + b²) P R / (b² P + R): recall counts b times as much as precision; b >= 0.

        f_beta(1) is `f1`. As a ratio of counts, (1 + b²) TP / ((1 + b²) TP + b² FN + FP), which is
        0 rather than undefined where nothing is predicted positive. zero_division: what 0/0 is
        worth, nan, 0 or 1. InputError for other numbers. (van Rijsbergen, 1979, chapter 7.)

        >>> Rates(tp=1, fp=1, fn=0, tn=1).f_beta(2)
        0.8333333333333334
        """
        square = weight_of_recall(b, "Rates.f_beta(b)") ** 2
        worth = worth_of_nothing(zero_division, "Rates.f_beta(zero_division)")
        hits = (1 + square) * self.tp
        return _or(ratio(hits, hits + square * self.fn + self.fp), worth)

    def f_alpha(self, a: float, *, zero_division: float = math.nan) -> float:
        """1 / (a / P + (1 - a) / R), the F of b² = 1/a - 1; 0 <= a <= 1 is the weight of P.

        f_alpha(1) is `precision`, f_alpha(0) `recall`, f_alpha(0.5) `f1`: with zero_division
        (nan, 0 or 1) they are these where 0/0 is to be worth that. InputError for other numbers.

        >>> Rates(tp=1, fp=1, fn=0, tn=1).f_alpha(0.5)
        0.6666666666666666
        >>> nothing = Rates(tp=0, fp=0, fn=1, tn=1)
        >>> nothing.precision, nothing.f_alpha(1, zero_division=0)
        (nan, 0.0)
        """
        weight = share(a, "Rates.f_alpha(a)")
        worth = worth_of_nothing(zero_division, "Rates.f_alpha(zero_division)")
        bottom = self.tp + weight * self.fp + (1 - weight) * self.fn
        return _or(ratio(self.tp, bottom), worth)

    def table(self, layout: Literal["sklearn", "positive_first"] = "sklearn") -> NDArray[np.int64]:
        """The counts as int64 [truth, prediction].

        "sklearn": [[TN, FP], [FN, TP]]. "positive_first": [[TP, FN], [FP, TN]].
        """
        if layout == "sklearn":
            return np.array([[self.tn, self.fp], [self.fn, self.tp]], np.int64)
        if layout == "positive_first":
            return np.array([[self.tp, self.fn], [self.fp, self.tn]], np.int64)
        raise refused(
            "Rates.table(layout)", '"sklearn" or "positive_first"', layout, "name one of the two"
        )

    def _interval(self, asked: Asked) -> Interval | None:
        return rates_interval(asked, self.tp, self.fp, self.fn, self.tn)

    def __repr__(self) -> str:
        counts = f"tp={self.tp}, fp={self.fp}, fn={self.fn}, tn={self.tn}"
        unit = "" if self.weight_unit == 1 else f", weight_unit={self.weight_unit!r}"
        return f"Rates({counts}{unit})"

    @property
    def _units(self) -> int:
        return self.tp + self.fp + self.fn + self.tn

    @property
    def _determinant(self) -> int:
        return self.tp * self.tn - self.fp * self.fn


def _or(value: float, worth: float) -> float:
    return worth if math.isnan(value) else value
