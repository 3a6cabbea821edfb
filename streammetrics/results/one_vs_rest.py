"""OneVsRest: the rates of each class or label against the rest, and their averages."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import (
    exact,
    refused,
    share,
    weight_of_recall,
    whole,
    worth_of_nothing,
)
from streammetrics.core.errors import InputError
from streammetrics.core.interval import Interval
from streammetrics.kernels.inference import term_means
from streammetrics.kernels.inference.term_means import (
    Hits,
    Term,
    counts_variance,
    hit_influence,
    mean_influence,
)
from streammetrics.kernels.inference.variances import mean_variance, ratio_variance
from streammetrics.present.estimand import Asked
from streammetrics.present.view import HIGHER, SHARE, View
from streammetrics.present.views import ViewText
from streammetrics.results.has_intervals import USERS
from streammetrics.results.rates import Rates
from streammetrics.results.rounded_weights import OfWeightedRows

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

_TERMS: Final[dict[str, Term]] = {
    "precision": term_means.precision,
    "recall": term_means.recall,
    "specificity": term_means.specificity,
    "jaccard": term_means.jaccard,
    "balanced_accuracy": term_means.recall,
}
_AT: Final = {"f_beta": 1, "f_alpha": 1}  # the position of `average` among the arguments, else 0


class OneVsRest(OfWeightedRows):
    """Averages over classes or labels, from the exact counts of each in units of weight.

    average: "macro", the plain mean; "weighted", by the rows of each class; "micro", of the summed
    counts; None, an array with one value for each. zero_division: the value of 0/0: nan (default;
    left out of the mean), 0 or 1. A mean of nothing is `zero_division`. Other arguments raise
    InputError. Each value is a ratio of integers, rounded once.
    """

    _kinds: ClassVar[tuple[str, ...]] = ("macro", "micro", "weighted")

    @property
    @abstractmethod
    def _hits(self) -> Sequence[Hits]:
        """True positives, false positives, false negatives and true negatives of each."""

    @property
    @View(better=HIGHER, range=SHARE, undefined="no class has rows, or predictions")
    def macro_f1(self) -> float:
        """The mean of the F1 of each; those that are 0/0 are left out."""
        return self._mean(term_means.f_beta(Fraction(1)), "macro", math.nan)

    @overload
    def precision(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def precision(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(better=HIGHER, range=SHARE)
    def precision(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """TP / (TP + FP): the share of rows of the class among those predicted to be of it."""
        return self._averaged(term_means.precision, average, zero_division)

    @overload
    def recall(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def recall(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(better=HIGHER, range=SHARE)
    def recall(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """TP / (TP + FN): the share of the rows of the class that are predicted to be of it."""
        return self._averaged(term_means.recall, average, zero_division)

    @overload
    def specificity(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def specificity(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(better=HIGHER, range=SHARE)
    def specificity(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """TN / (TN + FP): the share of the other rows that are not predicted to be of the class."""
        return self._averaged(term_means.specificity, average, zero_division)

    @overload
    def f1(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def f1(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(better=HIGHER, range=SHARE)
    def f1(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """2 TP / (2 TP + FN + FP). Macro: the mean of the F1 of each, not the F1 of means."""
        return self._averaged(term_means.f_beta(Fraction(1)), average, zero_division)

    @overload
    def f_beta(self, b: float, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def f_beta(self, b: float, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(better=HIGHER, range=SHARE)
    def f_beta(
        self, b: float, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """(1 + b²) TP / ((1 + b²) TP + b² FN + FP): recall counts b times as much as precision.

        b: a finite number of at least 0. (van Rijsbergen, 1979, chapter 7.)
        """
        square = weight_of_recall(b, f"{type(self).__name__}.f_beta(b)") ** 2
        return self._averaged(term_means.f_beta(square), average, zero_division)

    @overload
    def f_alpha(self, a: float, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def f_alpha(self, a: float, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(better=HIGHER, range=SHARE)
    def f_alpha(
        self, a: float, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """1 / (a / P + (1 - a) / R), the F of b² = 1/a - 1; 0 <= a <= 1 is the weight of P."""
        weight = share(a, f"{type(self).__name__}.f_alpha(a)")
        return self._averaged(term_means.f_alpha(weight), average, zero_division)

    @overload
    def jaccard(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def jaccard(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(better=HIGHER, range=SHARE)
    def jaccard(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """TP / (TP + FP + FN)."""
        return self._averaged(term_means.jaccard, average, zero_division)

    def _averaged(self, term: Term, average: str | None, zero_division: float) -> float | Floats:
        zero = worth_of_nothing(zero_division, f"{type(self).__name__}.zero_division")
        if average is None:
            return self._each(term, zero)
        choice: object = average
        if not (isinstance(choice, str) and choice in self._kinds):
            kinds = ", ".join(f'"{kind}"' for kind in self._kinds)
            raise self._refused(f"{kinds} or None", average, "average")
        return self._mean(term, average, zero)

    def _refused(self, expected: str, got: object, where: str) -> InputError:
        return refused(f"{type(self).__name__}.{where}", expected, got, "pass one of these")

    def rates(self, number: int) -> Rates:
        """The Rates of one class or label, by its number, against the rest.

        They include its NPV, MCC and kappa, and its table in both layouts.
        """
        hits = self._hits[self._number(number)]
        return Rates(*hits, self.weight_unit, self._surplus, self.rows_rounded)

    def _number(self, number: int) -> int:
        """The number of a class or label as an int."""
        index = whole(number)
        if index is None or not 0 <= index < len(self._hits):
            raise self._refused(f"a whole number from 0 to {len(self._hits) - 1}", number, "rates")
        return index

    def _each(self, term: Term, zero_division: float) -> Floats:
        values = [term_means.value(term(hits), zero_division) for hits in self._hits]
        return np.array(values, np.float64)

    def _mean(self, term: Term, average: str, zero_division: float) -> float:
        if average == "micro":
            return term_means.value(term(self._summed), zero_division)
        plain = average == "macro"
        return term_means.mean(
            ((term(hits), 1 if plain else hits[0] + hits[2]) for hits in self._hits),
            zero_division,
        )

    @property
    def _summed(self) -> Hits:
        tp, fp, fn, tn = (sum(part) for part in zip(*self._hits, strict=True))
        return tp, fp, fn, tn


def weight_of_precision(view: ViewText) -> Fraction | None:
    """The a of f_alpha(a), or of f_beta(b) and F1: 1 / (1 + b²); None for other views."""
    if view.name in ("f1", "macro_f1"):
        return Fraction(1, 2)
    argument = exact(view.arguments[0]) if view.arguments else None
    if view.name == "f_alpha":
        return argument
    return None if argument is None or view.name != "f_beta" else 1 / (1 + argument * argument)


def averaged_term(view: ViewText) -> tuple[Term, str] | None:
    """The ratio that a view averages, and the kind of average; None for other views."""
    weight = weight_of_precision(view)
    term = _TERMS.get(view.name) if weight is None else term_means.f_alpha(weight)
    if term is None:
        return None
    arguments = (view.arguments or ())[_AT.get(view.name, 0) :]
    return term, str(arguments[0]) if arguments else "macro"


def mean_interval(
    asked: Asked, truth: Ints, predicted: Ints, counts: Ints, hits: Sequence[Hits]
) -> Interval | None:
    """The interval of an average over classes (one class per row); by delta, micro by Wilson.

    truth, predicted, counts: [m], cells. hits: of each class. Every micro average is an increasing
    function of accuracy.
    """
    averaging = averaged_term(asked.parsed)
    if averaging is None:
        return None
    term, average = averaging
    n = sum(counts.tolist())
    if average == "micro":
        return _micro(asked, term, sum(class_hits[0] for class_hits in hits), n, len(hits))
    psi = mean_influence(truth, predicted, hits, term, by_rows=average == "weighted")
    return asked.spread(counts_variance(counts, psi), n, methods=("delta", "logit"))


def averaged_influence(
    view: ViewText, truth: Ints, predicted: Ints, hits: Sequence[Hits]
) -> NDArray[np.float64] | None:
    """The ψ of the cells for a macro or weighted average; None for other views."""
    averaging = averaged_term(view)
    if averaging is None or averaging[1] == "micro":
        return None
    term, average = averaging
    return mean_influence(truth, predicted, hits, term, by_rows=average == "weighted")


def _micro(asked: Asked, term: Term, right: int, n: int, classes: int) -> Interval:
    def through(accuracy: float) -> float:
        top, bottom = accuracy.as_integer_ratio()
        above, below = term(_pooled(top, bottom, classes))
        return term_means.value((above, below), 0.0)

    if through(0.25) == 0.25:  # accuracy; the others are Jaccard and specificity
        return asked.share(right, n)
    of_hits = np.array(hit_influence(_pooled(right, n, classes), term))
    psi = [float((of_hits * row).sum()) for row in (_pooled(1, 1, classes), _pooled(0, 1, classes))]
    variance = counts_variance(np.array([right, n - right]), np.array(psi))
    return asked.mapped(right, n, through, variance)


def _pooled(right: int, n: int, classes: int) -> Hits:
    """The counts summed over classes, for n rows of which `right` are predicted right."""
    return right, n - right, n - right, (classes - 2) * n + right


def of_rows_interval(asked: Asked, rows: Iterable[tuple[Hits, int]]) -> Interval | None:
    """The interval of an average over the labels of rows: "micro", a ratio of sums over rows, or
    "samples", a mean over rows.

    rows: the counts of each kind of row, and the number of such rows.
    """
    averaging = averaged_term(asked.parsed)
    if averaging is None:
        return None
    term, average = averaging
    terms = [(*term(hits), count) for hits, count in rows]
    n = sum(count for _, _, count in terms)
    if average == "micro":
        y, m = (sum(row[place] * row[2] for row in terms) for place in (0, 1))
        yy, ym, mm = (
            sum(row[i] * row[j] * row[2] for row in terms) for i, j in ((0, 0), (0, 1), (1, 1))
        )
        variance = ratio_variance(n, y, m, (yy, ym, mm))
        return asked.spread(variance, n, df=n - 1.0, methods=("t",))
    if average == "samples":
        shares = [(Fraction(y, m), count) for y, m, count in terms if m]
        return of_values(asked, shares)
    why = f"labels of one row are not independent, and their covariances are not kept; {USERS}"
    return asked.none(why, n=n, formula=False)


def of_values(asked: Asked, values: Sequence[tuple[Fraction, int]]) -> Interval:
    """The interval of a mean over rows, from the different values and their numbers of rows."""
    n = sum(count for _, count in values)
    first = sum((value * count for value, count in values), Fraction(0))
    squares = sum((value * value * count for value, count in values), Fraction(0))
    return asked.spread(mean_variance(n, first, squares), n, df=n - 1.0, methods=("t",))
