"""ClassRates: the counts of many classes by truth and prediction, and the rates that follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import whole
from streammetrics.estimators.averages import ClassCells
from streammetrics.estimators.cells import CellFunction
from streammetrics.estimators.share import Share
from streammetrics.kernels.exact.elementary import geometric_mean
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference import agreement
from streammetrics.kernels.inference.agreement import kappa_variance, matthews_variance
from streammetrics.kernels.inference.term_means import Hits, counts_variance
from streammetrics.present.view import HIGHER, LOWER, SHARE, SIGNED, View
from streammetrics.results.one_vs_rest import RECALL, OneVsRest

_POWERS: Final = {"linear": 1, "quadratic": 2}


# How each view is estimated.


def _geometric_variance(rates: ClassRates) -> float | str:
    """A row of class t adds G/m (hit - r_t) / (r_t n_t) for m recalls r."""
    mean = rates.g_mean
    if not mean > 0:
        return "a class without a right prediction makes the mean 0"
    truth, predicted, counts, _ = rates._averaged_rows
    rows = np.array(rates._true, np.float64)[truth]
    recalls = np.array(rates._right, np.float64)[truth] / rows
    psi = ((truth == predicted) - recalls) / (recalls * rows) * (mean / len(rates._recalls))
    return counts_variance(counts, psi)


def _matthews_variance(rates: ClassRates) -> float:
    return matthews_variance(*rates._averaged_rows[:3], rates.n_classes)


def _kappa_variance(rates: ClassRates, weights: str | None = None) -> float:
    power = 0 if weights is None else rates._power(weights)
    return kappa_variance(*rates._averaged_rows[:3], rates.n_classes, power)


def _agreement(variance: Callable[..., float]) -> CellFunction[ClassRates]:
    return CellFunction(variance, lambda rates: rates._units, _least_of_agreement)


def _least_of_agreement(rates: ClassRates, weights: object = None) -> int:
    return min(rates._agreed, rates._units - rates._agreed)


def _right_in_first(rates: ClassRates, k: int) -> tuple[int, int]:
    codes = rates._first[int(k)]
    return codes[1] + codes[3], rates._units


_ACCURACY: Final[Share[ClassRates]] = Share(
    lambda rates: (rates._agreed, rates._units),
    each=lambda metric, batch: batch.labels == batch.predictions,
)
_ERROR_RATE: Final[Share[ClassRates]] = Share(
    lambda rates: (rates._units - rates._agreed, rates._units)
)
_TOP_K: Final[Share[ClassRates]] = Share(_right_in_first)
_GEOMETRIC: Final[CellFunction[ClassRates]] = CellFunction(
    _geometric_variance, lambda rates: rates._units, lambda rates: None, ("delta", "logit")
)
_MATTHEWS: Final = _agreement(_matthews_variance)
_COHEN: Final = _agreement(_kappa_variance)


@dataclass(frozen=True, eq=False, repr=False)
class ClassRates(OneVsRest):
    """Counts of many classes by truth and prediction, and the rates that follow.

    n_classes: the number of classes. cells: int64 [m], ascending, the occupied cells of `matrix`,
    as truth * n_classes + prediction; counts: int64 [m], of these cells, in units of weight:
    `weight_unit` each. Without weights these are rows. Each figure is a ratio of integers, rounded
    once; 0/0 is nan. Averages are those of OneVsRest.

    >>> rates = ClassRates(2, np.array([0, 2, 3]), np.array([5, 1, 2]))
    >>> rates.accuracy, rates.recall(None).tolist(), rates.recall("macro")
    (0.875, [1.0, 0.6666666666666666], 0.8333333333333334)
    >>> rates.rates(1).table("positive_first").tolist()
    [[2, 1], [0, 5]]
    """

    n_classes: int
    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    _first: Mapping[int, Sequence[int]] = field(default_factory=dict)  # k: by 2 * tied + hit
    weight_unit: Fraction = Fraction(1)
    _surplus: int = 0  # of units over rows
    rows_rounded: int | None = None

    @property
    @View(estimator=_ACCURACY, better=HIGHER, range=SHARE)
    def accuracy(self) -> float:
        """The share of rows whose class was predicted; micro precision, recall and F1 as well."""
        return _ACCURACY.estimate(self)

    @property
    @View(estimator=_ERROR_RATE, better=LOWER, range=SHARE)
    def error_rate(self) -> float:
        """The share of rows for which another class was predicted."""
        return _ERROR_RATE.estimate(self)

    @property
    @View(
        estimator=RECALL,
        better=HIGHER,
        range=SHARE,
        undefined="no class has rows of it and of the rest",
    )
    def balanced_accuracy(self) -> float:
        """The mean recall of the classes that occur."""
        return self.recall("macro")

    @property
    @View(estimator=_GEOMETRIC, better=HIGHER, range=SHARE, undefined="no class has rows")
    def g_mean(self) -> float:
        """The geometric mean of the recalls of the classes that occur, the nearest float to it.

        0 if one of them is 0. (Kubat & Matwin, ICML 1997; of many classes: Sun, Kamel & Wang, ICDM
        2006.)
        """
        return geometric_mean([Fraction(*pair) for pair in self._recalls])

    @property
    def _recalls(self) -> list[tuple[int, int]]:
        pairs = zip(self._right, self._true, strict=True)
        return [(right, rows) for right, rows in pairs if rows]

    @property
    @View(
        estimator=_MATTHEWS,
        better=HIGHER,
        range=SIGNED,
        undefined="all rows are of one class, or all predictions are",
    )
    def mcc(self) -> float:
        """Matthews' coefficient for many classes (R_K: Gorodkin, Comput. Biol. Chem. 28, 2004)."""
        return agreement.matthews(self._agreed, self._true, self._predicted)

    @property
    @View(
        estimator=_COHEN,
        better=HIGHER,
        range=SIGNED,
        undefined="all rows and all predictions are of one class",
    )
    def kappa(self) -> float:
        """Cohen: (p_o - p_e) / (1 - p_e), p_e the agreement expected by chance.

        (Educ. Psychol. Meas. 20, 1960.)
        """
        return agreement.kappa(self._agreed, self._true, self._predicted)

    @View(estimator=_COHEN, better=HIGHER, range=SIGNED)
    def weighted_kappa(self, weights: str) -> float:
        """Cohen's kappa of ordered classes, in which confusing i with j costs |i - j|.

        weights: "linear", or "quadratic" for (i - j)². (Psychol. Bull. 70, 1968.)
        """
        power = self._power(weights)
        truth, predicted = np.divmod(self.cells, self.n_classes)
        return agreement.weighted_kappa(truth, predicted, self.counts, self.n_classes, power)

    @View(estimator=_TOP_K, better=HIGHER, range=SHARE)
    def top_k_accuracy(self, k: int) -> float:
        """The share of rows whose class is among the first k; equal scores are in class order.

        k: one of the setting `top_k`. `top_k_ties(k)` counts the rows that this rule decided.
        """
        codes = self._codes_at(k, "top_k_accuracy(k)")
        return ratio(codes[1] + codes[3], self._units)

    @property
    @View(estimator=_TOP_K, better=HIGHER, range=SHARE)
    def top_k_accuracies(self) -> Mapping[int, float]:
        """`top_k_accuracy` of each k of the setting `top_k`."""
        return {k: self.top_k_accuracy(k) for k in self._first}

    def top_k_ties(self, k: int) -> int:
        """The rows, in units of weight, for which the order of equal scores alone decides whether
        their class is among the first k."""
        codes = self._codes_at(k, "top_k_ties(k)")
        return codes[2] + codes[3]

    @property
    def matrix(self) -> NDArray[np.int64]:
        """The table as int64 [truth, prediction], as in scikit-learn, in units of weight."""
        table = np.zeros(self.n_classes**2, np.int64)
        table[self.cells] = self.counts
        return table.reshape(self.n_classes, self.n_classes)

    @property
    def support(self) -> NDArray[np.int64]:
        """The rows of each class, in units of weight; int64 [n_classes]."""
        return np.array(self._true, np.int64)

    @property
    def _units(self) -> int:
        return sum(self._true)

    @cached_property
    def _true(self) -> list[int]:
        return agreement.margins(self.cells // self.n_classes, self.counts, self.n_classes)

    @cached_property
    def _predicted(self) -> list[int]:
        return agreement.margins(self.cells % self.n_classes, self.counts, self.n_classes)

    @cached_property
    def _right(self) -> list[int]:
        truth, predicted = np.divmod(self.cells, self.n_classes)
        same = truth == predicted
        return agreement.margins(truth[same], self.counts[same], self.n_classes)

    @property
    def _agreed(self) -> int:
        return sum(self._right)

    @cached_property
    def _hits(self) -> list[Hits]:
        margins = zip(self._right, self._true, self._predicted, strict=True)
        units = self._units
        return [
            (tp, predicted - tp, true - tp, units - true - predicted + tp)
            for tp, true, predicted in margins
        ]

    @property
    def _averaged_rows(self) -> ClassCells:
        return ClassCells(*np.divmod(self.cells, self.n_classes), self.counts, self._hits)

    def _power(self, weights: object) -> int:
        power = _POWERS.get(weights) if isinstance(weights, str) else None
        if power is None:
            raise self._refused('"linear" or "quadratic"', weights, "weighted_kappa(weights)")
        return power

    def _codes_at(self, k: int, where: str) -> Sequence[int]:
        number = whole(k)
        if number is None or number not in self._first:
            choices = ", ".join(map(str, self._first)) or "none, as the setting top_k is empty"
            raise self._refused(f"a k of the setting top_k: {choices}", k, where)
        return self._first[number]
