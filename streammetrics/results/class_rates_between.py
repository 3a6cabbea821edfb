"""ClassRatesBetween: figures of many classes where the weights of rows were rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.agreement_ends import (
    Between,
    Margin,
    chance_between,
    kappa_ends,
    matthews_ends,
    seen_between,
)
from streammetrics.results.bounded import Bounded
from streammetrics.results.class_rates import ClassRates
from streammetrics.results.one_vs_rest_between import OneVsRestBetween, bounded, share
from streammetrics.results.units import OfRoundedWeights


@dataclass(frozen=True, repr=False)
class ClassRatesBetween(OneVsRestBetween, OfRoundedWeights):
    """The figures of `ClassRates`, by the same names, between what the rows may make of them.

    value: those of the weights as they were rounded. rounded: the counts of the rows whose weight
    was, a row each: half a unit more or less each at most. `matrix`, `support`, `cells` and
    `counts` are of the weights as they were rounded.

    >>> from streammetrics import MulticlassConfusion
    >>> metric = MulticlassConfusion(2, weight_unit="1/10", round_weights=True)
    >>> metric.update([0, 1, 1], [0, 1, 0], weights=[1, 0.72, 0.5])
    >>> found = metric.compute()
    >>> found.error_rate
    Bounded(value=0.22727272727272727, low=0.2222222222222222, high=0.23255813953488375)
    >>> found.rows_rounded, found.support.tolist()
    (1, [10, 12])
    """

    value: ClassRates
    rounded: ClassRates

    @property
    def accuracy(self) -> Bounded:
        """The share of rows whose class was predicted; micro precision, recall and F1 as well."""
        right, wrong = self._right_and_wrong
        return share(self.value.accuracy, (right[0], wrong[0]), (right[1], wrong[1]))

    @property
    def error_rate(self) -> Bounded:
        """The share of rows for which another class was predicted."""
        right, wrong = self._right_and_wrong
        return share(self.value.error_rate, (wrong[0], right[0]), (wrong[1], right[1]))

    @property
    def balanced_accuracy(self) -> Bounded:
        """The mean recall of the classes that occur."""
        return self.recall("macro")

    @property
    def mcc(self) -> Bounded:
        """Matthews' coefficient for many classes."""
        seen, by_chance = self._seen(0), self._by_chance(0)
        of_each = [chance_between(one, one, 0) for one in self._margins]
        return bounded(self.value.mcc, matthews_ends(seen, by_chance, of_each))

    @property
    def kappa(self) -> Bounded:
        """Cohen."""
        return bounded(self.value.kappa, kappa_ends(self._seen(0), self._by_chance(0)))

    def weighted_kappa(self, weights: str) -> Bounded:
        """Cohen's kappa of ordered classes; weights: "linear" or "quadratic"."""
        power = self.value._power(weights)
        found = kappa_ends(self._seen(power), self._by_chance(power))
        return bounded(self.value.weighted_kappa(weights), found)

    def top_k_accuracy(self, k: int) -> Bounded:
        """The share of rows whose class is among the first k; k: one of the setting `top_k`."""
        where = "top_k_accuracy(k)"
        codes, rounded = self.value._of(k, where), self.rounded._of(k, where)
        return share(self.value.top_k_accuracy(k), _hit_or_not(codes), _hit_or_not(rounded))

    @property
    def top_k_accuracies(self) -> Mapping[int, Bounded]:
        """`top_k_accuracy` of each k of the setting `top_k`."""
        return {k: self.top_k_accuracy(k) for k in self.value._first}

    def top_k_ties(self, k: int) -> Bounded:
        """The rows, in units of weight, whose class is among the first k or not by the order of
        equal scores alone."""
        found, rounded = self.value.top_k_ties(k), self.rounded.top_k_ties(k)
        return Bounded(found, max(2 * found - rounded, 0) // 2, found + (rounded + 1) // 2)

    @property
    def matrix(self) -> NDArray[np.int64]:
        """The table as int64 [truth, prediction], as scikit-learn has it, in units of weight."""
        return self.value.matrix

    @property
    def support(self) -> NDArray[np.int64]:
        """The rows of each class, in units of weight; int64 [n_classes]."""
        return self.value.support

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return self.value.n_classes

    @property
    def cells(self) -> NDArray[np.int64]:
        """The cells of `matrix` that are occupied, as truth * n_classes + prediction."""
        return self.value.cells

    @property
    def counts(self) -> NDArray[np.int64]:
        """The units of weight of these cells."""
        return self.value.counts

    @property
    def _value(self) -> ClassRates:
        return self.value

    @property
    def _rounded(self) -> ClassRates:
        return self.rounded

    @property
    def _right_and_wrong(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The units and the rounded rows whose class was predicted, and those of the others."""
        right = self.value._agreed, self.rounded._agreed
        return right, (self.value._units - right[0], self.rounded._units - right[1])

    def _seen(self, power: int) -> Between:
        if power == 0:
            right, wrong = self._right_and_wrong
            return seen_between([(0, *right), (1, *wrong)])
        both = zip(self.value._by_distance, self.rounded._by_distance, strict=True)
        return seen_between((d**power, *pair) for d, pair in enumerate(both))

    def _by_chance(self, power: int) -> Between:
        return chance_between(*self._margins, power)

    @property
    def _margins(self) -> tuple[Margin, Margin]:
        found, rounded = self.value, self.rounded
        return (found._true, rounded._true), (found._predicted, rounded._predicted)

    def __repr__(self) -> str:
        said = f"accuracy={self.accuracy!r}, macro_f1={self.macro_f1!r}, kappa={self.kappa!r}"
        first = "".join(f", top_{k}={self.top_k_accuracy(k)!r}" for k in self.value._first)
        rows = f"rows={self.rows}, rows_rounded={self.rows_rounded}"
        return f"ClassRatesBetween({said}{first}, {rows}, n_classes={self.n_classes})"


def _hit_or_not(codes: Sequence[int]) -> tuple[int, int]:
    return codes[1] + codes[3], codes[0] + codes[2]
