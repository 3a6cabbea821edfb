"""Averaged: what is averaged over classes or labels, by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar, overload

from streammetrics.core.errors import InputError
from streammetrics.kernels import term_means
from streammetrics.kernels.term_means import Term
from streammetrics.results.arguments import refused, share, weight_of_recall, worth_of_nothing
from streammetrics.results.direction import Directions, directed

One = TypeVar("One")  # a figure
Each = TypeVar("Each")  # one for each class or label


class Averaged(ABC, Generic[One, Each]):
    """Averages over classes or labels, for results that count true and false positives of each.

    average: "macro", the plain mean; "weighted", by how many rows are of the class; "micro", of
    the summed counts; None, one for each. zero_division: what 0/0 is worth: nan (default; it then
    leaves the mean), 0 or 1. A mean of nothing is `zero_division`. An argument that is none of
    these is an InputError.
    """

    directions: ClassVar[Directions] = directed(
        higher="macro_f1 precision recall specificity f1 f_beta f_alpha jaccard",
    )
    _kinds: ClassVar[tuple[str, ...]] = ("macro", "micro", "weighted")

    @abstractmethod
    def _each(self, term: Term, zero_division: float) -> Each: ...

    @abstractmethod
    def _mean(self, term: Term, average: str, zero_division: float) -> One: ...

    @property
    def macro_f1(self) -> One:
        """The mean of the F1 of each; those that are 0/0 leave it."""
        return self._mean(term_means.f_beta(Fraction(1)), "macro", math.nan)

    @overload
    def precision(self, average: str = ..., *, zero_division: float = ...) -> One: ...
    @overload
    def precision(self, average: None, *, zero_division: float = ...) -> Each: ...
    def precision(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> One | Each:
        """TP / (TP + FP): the share that is right of what was predicted to be of the class."""
        return self._averaged(term_means.precision, average, zero_division)

    @overload
    def recall(self, average: str = ..., *, zero_division: float = ...) -> One: ...
    @overload
    def recall(self, average: None, *, zero_division: float = ...) -> Each: ...
    def recall(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> One | Each:
        """TP / (TP + FN): the share that was found of what is of the class."""
        return self._averaged(term_means.recall, average, zero_division)

    @overload
    def specificity(self, average: str = ..., *, zero_division: float = ...) -> One: ...
    @overload
    def specificity(self, average: None, *, zero_division: float = ...) -> Each: ...
    def specificity(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> One | Each:
        """TN / (TN + FP): the share that was left of what is not of the class."""
        return self._averaged(term_means.specificity, average, zero_division)

    @overload
    def f1(self, average: str = ..., *, zero_division: float = ...) -> One: ...
    @overload
    def f1(self, average: None, *, zero_division: float = ...) -> Each: ...
    def f1(self, average: str | None = "macro", *, zero_division: float = math.nan) -> One | Each:
        """2 TP / (2 TP + FN + FP). Macro: the mean of the F1 of each, not the F1 of means."""
        return self._averaged(term_means.f_beta(Fraction(1)), average, zero_division)

    @overload
    def f_beta(self, b: float, average: str = ..., *, zero_division: float = ...) -> One: ...
    @overload
    def f_beta(self, b: float, average: None, *, zero_division: float = ...) -> Each: ...
    def f_beta(
        self, b: float, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> One | Each:
        """(1 + b²) TP / ((1 + b²) TP + b² FN + FP): recall counts b times as much as precision.

        b: a finite number of at least 0. (van Rijsbergen, 1979, chapter 7.)
        """
        square = weight_of_recall(b, f"{type(self).__name__}.f_beta(b)") ** 2
        return self._averaged(term_means.f_beta(square), average, zero_division)

    @overload
    def f_alpha(self, a: float, average: str = ..., *, zero_division: float = ...) -> One: ...
    @overload
    def f_alpha(self, a: float, average: None, *, zero_division: float = ...) -> Each: ...
    def f_alpha(
        self, a: float, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> One | Each:
        """1 / (a / P + (1 - a) / R), the F of b² = 1/a - 1; 0 <= a <= 1 is the weight of P."""
        weight = share(a, f"{type(self).__name__}.f_alpha(a)")
        return self._averaged(term_means.f_alpha(weight), average, zero_division)

    @overload
    def jaccard(self, average: str = ..., *, zero_division: float = ...) -> One: ...
    @overload
    def jaccard(self, average: None, *, zero_division: float = ...) -> Each: ...
    def jaccard(
        self, average: str | None = "macro", *, zero_division: float = math.nan
    ) -> One | Each:
        """TP / (TP + FP + FN)."""
        return self._averaged(term_means.jaccard, average, zero_division)

    def _averaged(self, term: Term, average: str | None, zero_division: float) -> One | Each:
        zero = worth_of_nothing(zero_division, f"{type(self).__name__}.zero_division")
        if average is None:
            return self._each(term, zero)
        if not _one_of(average, self._kinds):
            kinds = ", ".join(f'"{kind}"' for kind in self._kinds)
            raise self._refused(f"{kinds} or None", average, "average")
        return self._mean(term, average, zero)

    def _refused(self, expected: str, came: object, where: str) -> InputError:
        return refused(f"{type(self).__name__}.{where}", expected, came, "pass one of these")


def _one_of(value: object, names: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value in names
