"""OneVsRest: what each class or label says as one against the rest, and their averages."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import InputError, shown
from streammetrics.kernels import term_means
from streammetrics.kernels.term_means import Hits, Term
from streammetrics.results.rates import Rates

Averaged: TypeAlias = "float | NDArray[np.float64]"  # an array where `average` is None


class OneVsRest(ABC):
    """Averages over classes or labels, for results that count true and false positives of each.

    average: "macro", the plain mean; "weighted", by how many rows are of the class; "micro", of
    the summed counts; None, an array with a value for each. zero_division: what 0/0 is worth: nan
    (default; it then leaves the mean), 0 or 1. A mean of nothing is `zero_division`. Each value
    is a ratio of integers, rounded once. An average or a zero_division that is none of these is
    an InputError.
    """

    _kinds: ClassVar[str] = '"macro", "micro", "weighted" or None'

    @property
    @abstractmethod
    def rows(self) -> int:
        """All that were counted."""

    @property
    @abstractmethod
    def _hits(self) -> Sequence[Hits]: ...

    @property
    def macro_f1(self) -> float:
        """The mean of the F1 of each; those that are 0/0 leave it."""
        return self._mean(term_means.f_beta(Fraction(1)), "macro", math.nan)

    def precision(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> Averaged:
        """TP / (TP + FP): the share that is right of what was predicted to be of the class."""
        return self._averaged(term_means.precision, average, zero_division)

    def recall(self, average: str | None = "macro", *, zero_division: float = math.nan) -> Averaged:
        """TP / (TP + FN): the share that was found of what is of the class."""
        return self._averaged(term_means.recall, average, zero_division)

    def f1(self, average: str | None = "macro", *, zero_division: float = math.nan) -> Averaged:
        """2 TP / (2 TP + FN + FP). Macro: the mean of the F1 of each, not the F1 of means."""
        return self._averaged(term_means.f_beta(Fraction(1)), average, zero_division)

    def f_beta(
        self, b: float, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> Averaged:
        """(1 + b²) TP / ((1 + b²) TP + b² FN + FP): recall counts b times as much as precision.

        b: a finite number of at least 0. (van Rijsbergen, 1979, chapter 7.)
        """
        if not 0 <= b < math.inf:
            raise self._refused("a finite number of at least 0", b, "f_beta(b)")
        return self._averaged(term_means.f_beta(Fraction(b) ** 2), average, zero_division)

    def jaccard(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> Averaged:
        """TP / (TP + FP + FN)."""
        return self._averaged(term_means.jaccard, average, zero_division)

    def rates(self, number: int) -> Rates:
        """The Rates of one class or label, by its number: it against the rest.

        With them its specificity, NPV, MCC and kappa, and its table in both layouts.
        """
        if type(number) is not int or not 0 <= number < len(self._hits):
            raise self._refused(f"a number from 0 to {len(self._hits) - 1}", number, "rates")
        tp, fp, fn = self._hits[number]
        return Rates(tp=tp, fp=fp, fn=fn, tn=self.rows - tp - fp - fn)

    def _averaged(self, term: Term, average: str | None, zero_division: float) -> Averaged:
        if not (zero_division in (0, 1) or math.isnan(zero_division)):
            raise self._refused("0, 1 or nan", zero_division, "zero_division")
        if average is None:
            values = [term_means.value(term(hits), zero_division) for hits in self._hits]
            return np.array(values, np.float64)
        return self._mean(term, average, zero_division)

    def _mean(self, term: Term, average: str, zero_division: float) -> float:
        if average == "micro":
            return term_means.value(term(self._summed), zero_division)
        if average not in ("macro", "weighted"):
            raise self._refused(self._kinds, average, "average")
        plain = average == "macro"
        return term_means.mean(
            ((term((tp, fp, fn)), 1 if plain else tp + fn) for tp, fp, fn in self._hits),
            zero_division,
        )

    @property
    def _summed(self) -> Hits:
        tp, fp, fn = (sum(part) for part in zip(*self._hits, strict=True))
        return tp, fp, fn

    def _refused(self, expected: str, came: object, where: str) -> InputError:
        return InputError(
            expected=expected,
            came=shown(came),
            where=f"{type(self).__name__}.{where}",
            todo="pass one of these",
        )
