"""Rates: the counts of two classes by truth and prediction, and the rates that follow."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import (
    among,
    refused,
    share,
    weight_of_recall,
    worth_of_nothing,
)
from streammetrics.estimators.cells import CellFunction, FScore
from streammetrics.estimators.many import FLOATS, ViewCells
from streammetrics.estimators.share import Share
from streammetrics.kernels.exact.rounding import quotient_by_root, ratio
from streammetrics.kernels.inference.agreement import (
    two_class_kappa_variance,
    two_class_matthews_variance,
)
from streammetrics.present.view import HIGHER, LOWER, NONE, SHARE, SIGNED, View, declared_views
from streammetrics.results.deferred import side_by_side
from streammetrics.results.rounded_weights import OfWeightedRows

Value = TypeVar("Value", float, Bounded)
Rate: TypeAlias = "Callable[[Rates], float]"


# How each rate is estimated. P is precision, R recall.

_ACCURACY: Final[Share[Rates]] = Share(lambda rates: (rates.tp + rates.tn, rates._units))
_ERROR_RATE: Final[Share[Rates]] = Share(lambda rates: (rates.fp + rates.fn, rates._units))
_PRECISION: Final[Share[Rates]] = Share(lambda rates: (rates.tp, rates.tp + rates.fp))
_RECALL: Final[Share[Rates]] = Share(lambda rates: (rates.tp, rates.tp + rates.fn))
_SPECIFICITY: Final[Share[Rates]] = Share(lambda rates: (rates.tn, rates.tn + rates.fp))
_FPR: Final[Share[Rates]] = Share(lambda rates: (rates.fp, rates.tn + rates.fp))
_FNR: Final[Share[Rates]] = Share(lambda rates: (rates.fn, rates.tp + rates.fn))
_NPV: Final[Share[Rates]] = Share(lambda rates: (rates.tn, rates.tn + rates.fn))
_JACCARD: Final[Share[Rates]] = Share(lambda rates: (rates.tp, rates.tp + rates.fp + rates.fn))


def _balanced_variance(rates: Rates) -> float:
    tp, fp, fn, tn = rates._cells
    p, n = max(tp + fn, 1) ** 3, max(tn + fp, 1) ** 3  # without rows the rate itself is nan
    return ratio(tp * fn * n + tn * fp * p, 4 * p * n)


def _geometric_variance(rates: Rates) -> float | str:
    tp, fp, fn, tn = rates._cells
    if not tp * tn:
        return "a class without a right prediction makes the mean 0"
    p, n = tp + fn, tn + fp
    return ratio(tn * fn * n + tp * fp * p, 4 * p * p * n * n)  # from those of the shares


def _cell_function(variance: Callable[[Rates], float | str], *methods: str) -> CellFunction[Rates]:
    return CellFunction(
        variance, lambda rates: rates._units, lambda rates: min(rates._cells), methods
    )


_BALANCED: Final = _cell_function(_balanced_variance, "delta", "logit")
_GEOMETRIC: Final = _cell_function(_geometric_variance, "delta", "logit")
_MATTHEWS: Final = _cell_function(lambda rates: two_class_matthews_variance(rates._cells), "delta")
_COHEN: Final = _cell_function(lambda rates: two_class_kappa_variance(rates._cells), "delta")


def _f_score(weight: Callable[..., Fraction]) -> FScore[Rates]:
    """Of the weight of precision, by the arguments of the view."""
    return FScore(lambda rates: (rates.tp, rates.fp, rates.fn), weight)


_F1: Final = _f_score(lambda: Fraction(1, 2))
_F_ALPHA: Final = _f_score(Fraction)
_F_BETA: Final = _f_score(lambda b, *_: 1 / (1 + Fraction(b) ** 2))


class NamedRates(OfWeightedRows, Generic[Value]):
    """Every rate of two classes by its name, each a float or, inside a bucket, `Bounded`.

    A rate is one division of exact integers, rounded once; 0/0 is nan. P is precision, R recall.
    """

    __slots__ = ()

    @abstractmethod
    def _rate(self, rate: Rate) -> Value: ...

    @abstractmethod
    def _f(self, rate: Rate, worth: float) -> Value:
        """A rate, with `worth` as the value of 0/0."""

    @property
    @View(estimator=_ACCURACY, better=HIGHER, range=SHARE, headline=1)
    def accuracy(self) -> Value:
        """(TP + TN) / all."""
        return self._rate(_ACCURACY.estimate)

    @property
    @View(estimator=_ERROR_RATE, better=LOWER, range=SHARE)
    def error_rate(self) -> Value:
        """(FP + FN) / all."""
        return self._rate(_ERROR_RATE.estimate)

    @property
    @View(
        estimator=_PRECISION,
        better=HIGHER,
        range=SHARE,
        undefined="no row is predicted positive",
        headline=2,
    )
    def precision(self) -> Value:
        """TP / (TP + FP): the share of predicted positives that are positive."""
        return self._rate(_PRECISION.estimate)

    @property
    @View(estimator=_RECALL, better=HIGHER, range=SHARE, undefined="no positives", headline=3)
    def recall(self) -> Value:
        """TP / (TP + FN), also called sensitivity and TPR."""
        return self._rate(_RECALL.estimate)

    @property
    @View(estimator=_SPECIFICITY, better=HIGHER, range=SHARE, undefined="no negatives")
    def specificity(self) -> Value:
        """TN / (TN + FP), also called TNR."""
        return self._rate(_SPECIFICITY.estimate)

    @property
    @View(estimator=_FPR, better=LOWER, range=SHARE, undefined="no negatives")
    def fpr(self) -> Value:
        """FP / (TN + FP), the false positive rate."""
        return self._rate(_FPR.estimate)

    @property
    @View(estimator=_FNR, better=LOWER, range=SHARE, undefined="no positives")
    def fnr(self) -> Value:
        """FN / (TP + FN), the false negative rate."""
        return self._rate(_FNR.estimate)

    @property
    @View(estimator=_NPV, better=HIGHER, range=SHARE, undefined="no row is predicted negative")
    def npv(self) -> Value:
        """TN / (TN + FN): the share of predicted negatives that are negative."""
        return self._rate(_NPV.estimate)

    @property
    @View(estimator=_BALANCED, better=HIGHER, range=SHARE, undefined="one class has no rows")
    def balanced_accuracy(self) -> Value:
        """(recall + specificity) / 2."""
        return self._rate(_balanced_accuracy)

    @property
    @View(estimator=_GEOMETRIC, better=HIGHER, range=SHARE, undefined="one class has no rows")
    def g_mean(self) -> Value:
        """√(recall · specificity), the geometric mean of the recalls of both classes.

        The nearest float to it. (Kubat & Matwin, ICML 1997.)
        """
        return self._rate(_g_mean)

    @property
    @View(
        estimator=_MATTHEWS,
        better=HIGHER,
        range=SIGNED,
        undefined="all rows are of one class, or all predictions are",
    )
    def mcc(self) -> Value:
        """Matthews: (TP TN - FP FN) / √((TP + FP)(TP + FN)(TN + FP)(TN + FN)).

        (Biochim. Biophys. Acta 405, 1975.)
        """
        return self._rate(_mcc)

    @property
    @View(
        estimator=_COHEN,
        better=HIGHER,
        range=SIGNED,
        undefined="all rows and all predictions are of one class",
    )
    def kappa(self) -> Value:
        """Cohen: (p_o - p_e) / (1 - p_e), p_e the agreement expected by chance.

        (Educ. Psychol. Meas. 20, 1960.)
        """
        return self._rate(_kappa)

    @property
    @View(
        estimator=_JACCARD,
        better=HIGHER,
        range=SHARE,
        undefined="no positives, and none are predicted",
    )
    def jaccard(self) -> Value:
        """TP / (TP + FP + FN)."""
        return self._rate(_JACCARD.estimate)

    @property
    @View(
        estimator=_F1, better=HIGHER, range=SHARE, undefined="no positives, and none are predicted"
    )
    def f1(self) -> Value:
        """2 P R / (P + R) = 2 TP / (2 TP + FN + FP)."""
        return self._rate(lambda rates: ratio(2 * rates.tp, 2 * rates.tp + rates.fn + rates.fp))

    @View(estimator=_F_BETA, better=HIGHER, range=SHARE)
    def f_beta(self, b: float, *, zero_division: float = math.nan) -> Value:
        """(1 + b²) P R / (b² P + R): recall counts b times as much as precision; b >= 0.

        f_beta(1) is `f1`. As a ratio of counts, (1 + b²) TP / ((1 + b²) TP + b² FN + FP), which is
        0 rather than undefined where nothing is predicted positive. zero_division: the value of
        0/0, nan, 0 or 1. InputError for other numbers. (van Rijsbergen, 1979, chapter 7.)

        >>> Rates(tp=1, fp=1, fn=0, tn=1).f_beta(2)
        0.8333333333333334
        """
        square = weight_of_recall(b, "Rates.f_beta(b)") ** 2
        worth = worth_of_nothing(zero_division, "Rates.f_beta(zero_division)")

        def f(rates: Rates) -> float:
            hits = (1 + square) * rates.tp
            return ratio(hits, hits + square * rates.fn + rates.fp)

        return self._f(f, worth)

    @View(estimator=_F_ALPHA, better=HIGHER, range=SHARE)
    def f_alpha(self, a: float, *, zero_division: float = math.nan) -> Value:
        """1 / (a / P + (1 - a) / R), the F of b² = 1/a - 1; 0 <= a <= 1 is the weight of P.

        f_alpha(1) is `precision`, f_alpha(0) `recall`, f_alpha(0.5) `f1`, with zero_division (nan,
        0 or 1) as the value of 0/0. InputError for other numbers.

        >>> Rates(tp=1, fp=1, fn=0, tn=1).f_alpha(0.5)
        0.6666666666666666
        >>> nothing = Rates(tp=0, fp=0, fn=1, tn=1)
        >>> nothing.precision, nothing.f_alpha(1, zero_division=0)
        (nan, 0.0)
        """
        weight = share(a, "Rates.f_alpha(a)")
        worth = worth_of_nothing(zero_division, "Rates.f_alpha(zero_division)")
        return self._f(
            lambda rates: ratio(rates.tp, rates.tp + weight * rates.fp + (1 - weight) * rates.fn),
            worth,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rates(NamedRates[float]):
    """Counts of truth against prediction, and every rate that follows from them.

    tp, fp, fn, tn: true and false positives, false and true negatives, in units of weight:
    `weight_unit` each. Without weights these are rows.

    >>> rates = Rates(tp=1, fp=1, fn=0, tn=1)
    >>> rates.precision, rates.recall, rates.specificity
    (0.5, 1.0, 0.5)
    """

    tp: int
    fp: int
    fn: int
    tn: int
    weight_unit: Fraction = Fraction(1)
    _surplus: int = 0  # of units over rows
    rows_rounded: int | None = None

    @property
    def positives(self) -> int:
        """TP + FN, in units of weight."""
        return self.tp + self.fn

    def table(self, layout: Literal["sklearn", "positive_first"] = "sklearn") -> NDArray[np.int64]:
        """The counts as int64 [truth, prediction].

        "sklearn": [[TN, FP], [FN, TP]]. "positive_first": [[TP, FN], [FP, TN]].
        """
        if among(layout, ("sklearn",)):
            return np.array([[self.tn, self.fp], [self.fn, self.tp]], np.int64)
        if among(layout, ("positive_first",)):
            return np.array([[self.tp, self.fn], [self.fp, self.tn]], np.int64)
        raise refused(
            "Rates.table(layout)", '"sklearn" or "positive_first"', layout, "name one of the two"
        )

    @classmethod
    def _stacked(cls, results: Sequence[Rates]) -> Rates | None:
        """The rates of many results, whose counts are columns, int64 [k]; None if one has 2**53
        rows or more, which are no floats."""
        cells = [rates._cells for rates in results]
        if max(map(sum, cells)) >= FLOATS:
            return None
        return side_by_side(cls, 1, *([column] for column in np.array(cells, np.int64).T))[0]

    def _view_columns(self) -> dict[str, ViewCells]:
        """The shares of many results, each in one division."""
        estimators = {name: view.estimator for name, view in declared_views(Rates).items()}
        return {
            name: ViewCells(estimator.estimates(self))
            for name, estimator in estimators.items()
            if isinstance(estimator, Share)
        }

    def _rate(self, rate: Rate) -> float:
        return rate(self)

    def _f(self, rate: Rate, worth: float) -> float:
        number = rate(self)
        return worth if math.isnan(number) else number

    @property
    def _cells(self) -> tuple[int, int, int, int]:
        return self.tp, self.fp, self.fn, self.tn

    @property
    def _units(self) -> int:
        return self.tp + self.fp + self.fn + self.tn

    @property
    def _determinant(self) -> int:
        return self.tp * self.tn - self.fp * self.fn


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundedRates(NamedRates[Bounded]):
    """Counts and rates at a threshold inside a bucket, any of whose rows may lie at or above it.

    Every rate of `Rates` is nondecreasing in true positives and negatives and nonincreasing in
    false ones (error_rate, fpr and fnr: the reverse), so each is between its values at two tables.
    The rates have the names of `Rates`; they and the counts are `Bounded`.

    worst: none of the bucket's positives are at or above the threshold, and all its negatives are.
    best: the reverse. value: for a bucket whose rows are all tied at its least score: none of them
    is at or above the threshold. If a rate is undefined at one of the two tables, its limit there
    is its value at the other (mcc, and kappa at `best`: 0); an undefined value is nan.

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
    value: Rates

    @property
    @View(better=NONE)
    def tp(self) -> Bounded:
        """True positives."""
        return Bounded(self.value.tp, self.worst.tp, self.best.tp)

    @property
    @View(better=NONE)
    def fp(self) -> Bounded:
        """False positives."""
        return Bounded(self.value.fp, self.best.fp, self.worst.fp)

    @property
    @View(better=NONE)
    def fn(self) -> Bounded:
        """False negatives."""
        return Bounded(self.value.fn, self.best.fn, self.worst.fn)

    @property
    @View(better=NONE)
    def tn(self) -> Bounded:
        """True negatives."""
        return Bounded(self.value.tn, self.worst.tn, self.best.tn)

    @property
    def positives(self) -> int:
        """TP + FN, in units of weight."""
        return self.value.positives

    @property
    def weight_unit(self) -> Fraction:
        """The weight of one unit."""
        return self.value.weight_unit

    @property
    def rows_rounded(self) -> int | None:
        """Rows whose weight was rounded; see `Rates`."""
        return self.value.rows_rounded

    def table(self, layout: Literal["sklearn", "positive_first"] = "sklearn") -> NDArray[np.int64]:
        """The counts of `value` as int64 [truth, prediction]; see `Rates.table`."""
        return self.value.table(layout)

    @property
    def _units(self) -> int:
        return self.value._units

    @property
    def _surplus(self) -> int:
        return self.value._surplus

    def _rate(self, rate: Rate) -> Bounded:
        if rate is _mcc:
            return self._rate_bounds(rate, least=-1.0, worst=0.0, best=0.0)
        return (
            self._rate_bounds(rate, least=-1.0, best=0.0)
            if rate is _kappa
            else self._rate_bounds(rate)
        )

    def _f(self, rate: Rate, worth: float) -> Bounded:
        """The rate, widened to hold `worth` if some table between the two is 0/0."""
        figure = self._rate_bounds(rate)
        fewest = Rates(self.worst.tp, self.best.fp, self.best.fn, 0)
        if math.isnan(worth) or not math.isnan(rate(fewest)):
            return figure
        bounds = [end for end in (figure.low, figure.high) if not math.isnan(end)] + [worth]
        value = worth if math.isnan(figure.value) else figure.value
        return Bounded(value, min(bounds), max(bounds))

    def _rate_bounds(
        self,
        rate: Rate,
        *,
        least: float = 0.0,
        worst: float | None = None,
        best: float | None = None,
    ) -> Bounded:
        """The rate at the two tables, rounded outwards. worst, best: its limit where it is
        undefined at that table alone; None: its value at the other. least: its least possible
        value."""
        value, a, b = rate(self.value), rate(self.worst), rate(self.best)
        if math.isnan(a) and not math.isnan(b):
            a = b if worst is None else worst
        elif math.isnan(b) and not math.isnan(a):
            b = a if best is None else best
        low, high = min(a, b), max(a, b)
        # The nearest float is off by half a unit at most; 0 and the limits of the range are exact.
        if low not in (0.0, least):
            low = math.nextafter(low, -math.inf)
        if high not in (0.0, 1.0):
            high = math.nextafter(high, math.inf)
        return Bounded(value, low, high)

    @property
    def _at_value(self) -> Rates:
        """What estimators read: the uncertainty within the bucket widens their intervals."""
        return self.value


def _balanced_accuracy(rates: Rates) -> float:
    positives, negatives = rates.positives, rates.tn + rates.fp
    return ratio(rates.tp * negatives + rates.tn * positives, 2 * positives * negatives)


def _g_mean(rates: Rates) -> float:
    """√(TP TN / (P N)), as the nearest float."""
    right = rates.tp * rates.tn
    margins = rates.positives * (rates.tn + rates.fp)
    return quotient_by_root(right, right * margins) if right or not margins else 0.0


def _mcc(rates: Rates) -> float:
    margins = (rates.tp + rates.fp) * (rates.tp + rates.fn) * (rates.tn + rates.fp)
    return quotient_by_root(rates._determinant, margins * (rates.tn + rates.fn))


def _kappa(rates: Rates) -> float:
    by_chance = (rates.tp + rates.fp) * (rates.fp + rates.tn)
    by_chance += (rates.tp + rates.fn) * (rates.fn + rates.tn)
    return ratio(2 * rates._determinant, by_chance)
