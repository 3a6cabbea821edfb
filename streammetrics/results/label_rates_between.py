"""LabelRatesBetween: figures of several labels where the weights of rows were rounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.term_ends import Weighted, halves, mean_ends, term_ends
from streammetrics.kernels.term_means import Hits, Term
from streammetrics.results.bounded import Bounded
from streammetrics.results.label_rates import LabelRates
from streammetrics.results.one_vs_rest_between import OneVsRestBetween, bounded, share
from streammetrics.results.rates_between import RatesBetween, with_doubt
from streammetrics.results.units import OfRoundedWeights


@dataclass(frozen=True, repr=False)
class LabelRatesBetween(OneVsRestBetween, OfRoundedWeights):
    """The figures of `LabelRates`, by the same names, between what the rows may make of them.

    value: those of the weights as they were rounded. rounded: the counts of the rows whose weight
    was, a row each: half a unit more or less each at most. `matrix`, `support`, `positives`,
    `sizes` and `sizes_counts` are of the weights as they were rounded.

    >>> from streammetrics import MultilabelConfusion
    >>> metric = MultilabelConfusion(2, weight_unit="1/10", round_weights=True)
    >>> metric.update([[1, 0], [0, 1]], [[0.9, 0.1], [0.6, 0.8]], weights=[1, 0.52])
    >>> found = metric.compute()
    >>> found.subset_accuracy, found.rows_rounded
    (Bounded(value=0.6666666666666666, low=0.6451612903225806, high=0.6896551724137931), 1)
    """

    value: LabelRates
    rounded: LabelRates
    _kinds: ClassVar[tuple[str, ...]] = LabelRates._kinds

    @property
    def subset_accuracy(self) -> Bounded:
        """The share of rows with every label right."""
        (right, units), (rounded, rows) = self.value._all_right, self.rounded._all_right
        parts, of_rounded = (right, units - right), (rounded, rows - rounded)
        return share(self.value.subset_accuracy, parts, of_rounded)

    @property
    def hamming_loss(self) -> Bounded:
        """The share of the labels of all rows that are wrong."""
        return self._pooled.error_rate

    @property
    def error_rate(self) -> Bounded:
        """The share of the labels of all rows that are wrong: `hamming_loss`."""
        return self._pooled.error_rate

    @property
    def accuracy(self) -> Bounded:
        """The share of the labels of all rows that are right: 1 - hamming_loss."""
        return self._pooled.accuracy

    @property
    def balanced_accuracy(self) -> Bounded:
        """That of the labels of all rows, pooled; of one label: `rates(label)`."""
        return self._pooled.balanced_accuracy

    @property
    def mcc(self) -> Bounded:
        """That of the labels of all rows, pooled; of one label: `rates(label)`."""
        return self._pooled.mcc

    @property
    def kappa(self) -> Bounded:
        """That of the labels of all rows, pooled; of one label: `rates(label)`."""
        return self._pooled.kappa

    @property
    def positives(self) -> int:
        """Labels that rows have, in all; in units of weight."""
        return self.value.positives

    @property
    def matrix(self) -> NDArray[np.int64]:
        """A table [[TN, FP], [FN, TP]] for each label, in units of weight; int64 [labels, 2, 2]."""
        return self.value.matrix

    @property
    def support(self) -> NDArray[np.int64]:
        """The rows that have each label, in units of weight; int64 [labels]."""
        return self.value.support

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The combinations of how many labels rows have; see `LabelRates`. int64 [3, m]."""
        return self.value.sizes

    @property
    def sizes_counts(self) -> NDArray[np.int64]:
        """The units of weight of each combination; int64 [m]."""
        return self.value.sizes_counts

    @property
    def _value(self) -> LabelRates:
        return self.value

    @property
    def _rounded(self) -> LabelRates:
        return self.rounded

    @property
    def _pooled(self) -> RatesBetween:
        found = self.value._pooled
        return with_doubt(found, found, found, self.rounded._summed, self.rows_rounded)

    def _of_rows(self) -> Iterator[tuple[Hits, int, int]]:
        """What rows of each combination say, their units, and how many of them were rounded."""
        units, rounded = dict(self.value._of_rows), dict(self.rounded._of_rows)
        for hits in {**units, **rounded}:
            yield hits, units.get(hits, 0), rounded.get(hits, 0)

    def _mean(self, term: Term, average: str, zero_division: float) -> Bounded:
        if average != "samples":
            return super()._mean(term, average, zero_division)
        terms = (
            Weighted(term_ends(term, hits, (0, 0, 0, 0)), *halves(units, rounded))
            for hits, units, rounded in self._of_rows()
        )
        value = self.value._mean(term, average, zero_division)
        return bounded(value, mean_ends(terms, zero_division))

    def __repr__(self) -> str:
        said = f"subset_accuracy={self.subset_accuracy!r}, hamming_loss={self.hamming_loss!r}"
        f1 = f"macro_f1={self.macro_f1!r}, samples_f1={self.f1('samples')!r}"
        rows = f"rows={self.rows}, rows_rounded={self.rows_rounded}"
        return f"LabelRatesBetween({said}, {f1}, {rows}, labels={len(self.matrix)})"
