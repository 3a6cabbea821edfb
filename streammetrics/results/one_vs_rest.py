"""OneVsRest: the rates of each class or label against the rest, and their averages."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import (
    refused,
    share,
    weight_of_recall,
    whole,
    worth_of_nothing,
)
from streammetrics.core.errors import InputError
from streammetrics.estimators.averages import Average, AveragedRows
from streammetrics.kernels.inference import term_means
from streammetrics.kernels.inference.term_means import Hits, Term
from streammetrics.present.view import HIGHER, SHARE, View
from streammetrics.results.rates import Rates
from streammetrics.results.rounded_weights import OfWeightedRows

Floats: TypeAlias = NDArray[np.float64]


# How each average is estimated.


def average_of(term: Callable[..., Term], parameters: int = 0) -> Average[OneVsRest]:
    """The estimator of an average of a ratio. term: by the first arguments of the view."""
    return Average(lambda rates: rates._averaged_rows, term, parameters)


RECALL: Final = average_of(lambda: term_means.recall)
_F1: Final = average_of(lambda: term_means.f_beta(Fraction(1)))
_PRECISION: Final = average_of(lambda: term_means.precision)
_SPECIFICITY: Final = average_of(lambda: term_means.specificity)
_JACCARD: Final = average_of(lambda: term_means.jaccard)
_F_BETA: Final = average_of(lambda b: term_means.f_beta(Fraction(b) ** 2), 1)
_F_ALPHA: Final = average_of(lambda a: term_means.f_alpha(Fraction(a)), 1)


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
    @abstractmethod
    def _averaged_rows(self) -> AveragedRows:
        """The rows over whose classes or labels a ratio is averaged."""

    @property
    @View(
        estimator=_F1,
        better=HIGHER,
        range=SHARE,
        undefined="no class has rows, or predictions",
    )
    def macro_f1(self) -> float:
        """The mean of the F1 of each; those that are 0/0 are left out."""
        return self._mean(term_means.f_beta(Fraction(1)), "macro", math.nan)

    @overload
    def precision(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def precision(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(estimator=_PRECISION, better=HIGHER, range=SHARE)
    def precision(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """TP / (TP + FP): the share of rows of the class among those predicted to be of it."""
        return self._averaged(term_means.precision, average, zero_division)

    @overload
    def recall(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def recall(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(estimator=RECALL, better=HIGHER, range=SHARE)
    def recall(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """TP / (TP + FN): the share of the rows of the class that are predicted to be of it."""
        return self._averaged(term_means.recall, average, zero_division)

    @overload
    def specificity(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def specificity(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(estimator=_SPECIFICITY, better=HIGHER, range=SHARE)
    def specificity(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """TN / (TN + FP): the share of the other rows that are not predicted to be of the class."""
        return self._averaged(term_means.specificity, average, zero_division)

    @overload
    def f1(self, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def f1(self, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(estimator=_F1, better=HIGHER, range=SHARE)
    def f1(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> float | Floats:
        """2 TP / (2 TP + FN + FP). Macro: the mean of the F1 of each, not the F1 of means."""
        return self._averaged(term_means.f_beta(Fraction(1)), average, zero_division)

    @overload
    def f_beta(self, b: float, average: str = ..., *, zero_division: float = ...) -> float: ...
    @overload
    def f_beta(self, b: float, average: None, *, zero_division: float = ...) -> Floats: ...
    @View(estimator=_F_BETA, better=HIGHER, range=SHARE)
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
    @View(estimator=_F_ALPHA, better=HIGHER, range=SHARE)
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
    @View(estimator=_JACCARD, better=HIGHER, range=SHARE)
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
