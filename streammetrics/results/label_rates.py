"""LabelRates: the counts of several labels of each row, and the rates that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.estimators.averages import LabelRows, sums_of_values
from streammetrics.estimators.mean import MeanOfValues, MomentSums
from streammetrics.estimators.share import Share
from streammetrics.kernels.inference import term_means
from streammetrics.kernels.inference.term_means import Hits, Term
from streammetrics.present.view import HIGHER, LOWER, SHARE, SIGNED, View
from streammetrics.results.has_intervals import USERS
from streammetrics.results.one_vs_rest import OneVsRest
from streammetrics.results.rates import Rates

_ONE_KIND: Final = "no class has rows and predictions of both kinds"
_DEPENDENT: Final = (
    f"labels of one row are not independent, and their covariances are not kept; {USERS}"
)


def _label_sums(rates: LabelRates, *, right: bool) -> MomentSums:
    """Of the share of the labels of a row that are right, or wrong."""
    labels, values = len(rates.matrix), []
    for (_, fp, fn, _), units in rates._row_hits:
        values.append((Fraction(labels - fp - fn if right else fp + fn, labels), units))
    return sums_of_values(values)


_SUBSET_ACCURACY: Final[Share[LabelRates]] = Share(lambda rates: rates._all_right)
_ACCURACY: Final[MeanOfValues[LabelRates]] = MeanOfValues(partial(_label_sums, right=True))
_ERROR_RATE: Final[MeanOfValues[LabelRates]] = MeanOfValues(partial(_label_sums, right=False))


@dataclass(frozen=True, eq=False, repr=False)
class LabelRates(OneVsRest):
    """Counts of each label by truth and prediction, and the rates that follow.

    matrix: int64 [labels, 2, 2], a table [[TN, FP], [FN, TP]] for each label, as in scikit-learn.
    sizes: int64 [3, m], the combinations that occur of the numbers of true labels, predicted
    labels, and labels that are both; sizes_counts: int64 [m], the rows of each. Counts are in units
    of weight, `weight_unit` each; without weights these are rows. A figure is a ratio of integers,
    rounded once; 0/0 is nan. Averages are those of OneVsRest, and "samples": the mean over rows,
    where 0/0 is treated as for classes.

    >>> table = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    >>> rates = LabelRates(table, np.array([[1, 1], [1, 1], [0, 1]]), np.array([1, 1]))
    >>> rates.hamming_loss, rates.subset_accuracy, rates.f1("samples")
    (0.5, 0.5, 0.5)
    """

    matrix: NDArray[np.int64]
    sizes: NDArray[np.int64]
    sizes_counts: NDArray[np.int64]
    weight_unit: Fraction = Fraction(1)
    _surplus: int = 0  # of units over rows
    rows_rounded: int | None = None
    _kinds: ClassVar[tuple[str, ...]] = ("macro", "micro", "weighted", "samples")

    def __post_init__(self) -> None:
        self.__dict__["matrix"] = self.matrix.reshape(-1, 2, 2)

    @property
    @View(estimator=_SUBSET_ACCURACY, better=HIGHER, range=SHARE)
    def subset_accuracy(self) -> float:
        """The share of rows with every label right."""
        return _SUBSET_ACCURACY.estimate(self)

    @property
    @View(estimator=_ERROR_RATE, better=LOWER, range=SHARE)
    def hamming_loss(self) -> float:
        """The share of the labels of all rows that are wrong."""
        return self._pooled.error_rate

    @property
    @View(estimator=_ERROR_RATE, better=LOWER, range=SHARE)
    def error_rate(self) -> float:
        """The share of the labels of all rows that are wrong: `hamming_loss`."""
        return self._pooled.error_rate

    @property
    @View(estimator=_ACCURACY, better=HIGHER, range=SHARE)
    def accuracy(self) -> float:
        """The share of the labels of all rows that are right: 1 - hamming_loss.

        scikit-learn's `accuracy_score` of several labels is `subset_accuracy`.
        """
        return self._pooled.accuracy

    @property
    @View(better=HIGHER, range=SHARE, undefined="no class has rows of it and of the rest")
    def balanced_accuracy(self) -> float:
        """The balanced accuracy of the labels of all rows, pooled; of one: `rates(label)`."""
        return self._pooled.balanced_accuracy

    @property
    @View(better=HIGHER, range=SIGNED, undefined=_ONE_KIND)
    def mcc(self) -> float:
        """The MCC of the labels of all rows, pooled; of one label: `rates(label)`."""
        return self._pooled.mcc

    @property
    @View(better=HIGHER, range=SIGNED, undefined=_ONE_KIND)
    def kappa(self) -> float:
        """The kappa of the labels of all rows, pooled; of one label: `rates(label)`."""
        return self._pooled.kappa

    @property
    def positives(self) -> int:
        """The true labels of all rows, in units of weight."""
        return self._pooled.positives

    @property
    def support(self) -> NDArray[np.int64]:
        """The rows that have each label, in units of weight; int64 [labels]."""
        rows: NDArray[np.int64] = self.matrix[:, 1].sum(axis=1)
        return rows

    @cached_property
    def _units(self) -> int:
        return int(self.sizes_counts.sum())

    @property
    def _all_right(self) -> tuple[int, int]:
        """The units of the rows with every label right, and of all rows."""
        true, predicted, overlap = self.sizes
        right = self.sizes_counts[(true == overlap) & (predicted == overlap)]
        return int(right.sum()), self._units

    @cached_property
    def _pooled(self) -> Rates:
        tn, fp, fn, tp = self.matrix.reshape(-1, 4).sum(axis=0).tolist()
        return Rates(tp=tp, fp=fp, fn=fn, tn=tn)

    @cached_property
    def _hits(self) -> list[Hits]:
        return [(tp, fp, fn, tn) for tn, fp, fn, tp in self.matrix.reshape(-1, 4).tolist()]

    @cached_property
    def _row_hits(self) -> Sequence[tuple[Hits, int]]:
        """The counts of a row of each combination, and the units of weight of these rows."""
        true, predicted, overlap = self.sizes
        tn = len(self.matrix) - true - predicted + overlap
        hits = np.stack([overlap, predicted - overlap, true - overlap, tn], axis=1).tolist()
        pairs = zip(map(tuple, hits), self.sizes_counts.tolist(), strict=True)
        return cast("list[tuple[Hits, int]]", list(pairs))

    @property
    def _averaged_rows(self) -> LabelRows:
        return LabelRows(self._row_hits, _DEPENDENT)

    def _mean(self, term: Term, average: str, zero_division: float) -> float:
        if average == "samples":
            terms = ((term(hits), units) for hits, units in self._row_hits)
            return term_means.mean(terms, zero_division)
        return super()._mean(term, average, zero_division)
