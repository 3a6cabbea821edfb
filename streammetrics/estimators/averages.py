"""Average: a mean over classes or labels of a ratio of counts, such as macro F1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, R
from streammetrics.estimators.mean import MeanOfValues, MomentSums, RatioOfSums, RatioSums
from streammetrics.estimators.request import Arguments, IntervalRequest, Lacking
from streammetrics.kernels.inference import term_means
from streammetrics.kernels.inference.term_means import (
    Hits,
    Term,
    cells_number,
    counts_variance,
    hit_influence,
    mean_influence,
)

Ints: TypeAlias = NDArray[np.int64]


class AveragedRows(Protocol):
    """The rows over whose classes or labels a ratio is averaged."""

    def interval(self, request: IntervalRequest, term: Term, average: str) -> Interval | None:
        """The interval of an average, "macro" or another kind."""
        ...

    def least_cell(self, term: Term, average: str) -> int | None:
        """The number of rows that decide an average; None if unknown."""
        ...


@dataclass(frozen=True)
class Average(Estimator[R]):
    """An average of a ratio over the classes or labels of a result.

    rows: of a result. term: the ratio, by the first arguments of the view, as many as `parameters`.
    The next argument is the kind of average, by default that of `kind`.
    """

    rows: Callable[[R], AveragedRows]
    term: Callable[..., Term]
    parameters: int = 0
    kind: str = "macro"

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Of the rows."""
        return self.rows(result).interval(request, *self._average(request.arguments))

    def least_cell(self, result: R, arguments: Arguments) -> int | None:
        """The number of rows that decide it, so that each class counts as much as in it."""
        return self.rows(result).least_cell(*self._average(arguments))

    def _average(self, arguments: Arguments) -> tuple[Term, str]:
        kinds = arguments[self.parameters :]
        term = self.term(*arguments[: self.parameters])
        return term, str(kinds[0]) if kinds else self.kind


class ClassCells(NamedTuple):
    """Rows with one class each, as occupied cells. truth, predicted, counts: [m]. hits: the counts
    of each class against the rest."""

    truth: Ints
    predicted: Ints
    counts: Ints
    hits: Sequence[Hits]

    def interval(self, request: IntervalRequest, term: Term, average: str) -> Interval | None:
        """By the delta method; micro by Wilson's, as every micro average is an increasing function
        of accuracy."""
        n = sum(self.counts.tolist())
        if average == "micro":
            return self._micro(request, term, n)
        variance = counts_variance(self.counts, self._influence(term, average))
        return request.spread(variance, n, methods=("delta", "logit"))

    def least_cell(self, term: Term, average: str) -> int | None:
        """The rows that decide a macro or a weighted average; None of micro."""
        if average == "micro":
            return None
        return cells_number(self.counts, self._influence(term, average))

    def _influence(self, term: Term, average: str) -> NDArray[np.float64]:
        by_rows = average == "weighted"
        return mean_influence(self.truth, self.predicted, self.hits, term, by_rows=by_rows)

    def _micro(self, request: IntervalRequest, term: Term, n: int) -> Interval:
        right, classes = sum(tp for tp, *_ in self.hits), len(self.hits)

        def f_of_accuracy(accuracy: float) -> float:
            top, bottom = accuracy.as_integer_ratio()
            above, below = term(_pooled(top, bottom, classes))
            return term_means.value((above, below), 0.0)

        if f_of_accuracy(0.25) == 0.25:  # accuracy; the others are Jaccard and specificity
            return request.share(right, n)
        of_hits = np.array(hit_influence(_pooled(right, n, classes), term))
        rows = _pooled(1, 1, classes), _pooled(0, 1, classes)
        psi = np.array([float((of_hits * row).sum()) for row in rows])
        variance = counts_variance(np.array([right, n - right]), psi)
        return request.mapped(right, n, f_of_accuracy, variance)


def _pooled(right: int, n: int, classes: int) -> Hits:
    """The counts summed over classes, for n rows of which `right` are predicted right."""
    return right, n - right, n - right, (classes - 2) * n + right


@dataclass(frozen=True, slots=True)
class LabelRows:
    """Rows with several labels each, by the counts of their labels.

    kinds: the counts of a row of each kind, and the number of such rows. dependent: why averages
    over labels have no interval, whose rows are not independent.
    """

    kinds: Sequence[tuple[Hits, int]]
    dependent: str

    def interval(self, request: IntervalRequest, term: Term, average: str) -> Interval | None:
        """Of "micro", a ratio of sums over rows, and of "samples", a mean over rows."""
        terms = [(*term(hits), count) for hits, count in self.kinds]
        if average == "micro":
            micro = RatioOfSums[LabelRows](lambda *_: _ratio_sums(terms))
            return micro.interval(self, request)
        if average == "samples":
            values = [(Fraction(y, m), count) for y, m, count in terms if m]
            samples = MeanOfValues[LabelRows](lambda *_: sums_of_values(values))
            return samples.interval(self, request)
        n = sum(count for _, _, count in terms)
        return request.lacking(Lacking(self.dependent, n, formula=False))

    def least_cell(self, term: Term, average: str) -> int | None:
        """Not known."""
        return None


def _ratio_sums(terms: Sequence[tuple[int, int, int]]) -> RatioSums:
    y, m = (sum(row[place] * row[2] for row in terms) for place in (0, 1))
    yy, ym, mm = (
        sum(row[i] * row[j] * row[2] for row in terms) for i, j in ((0, 0), (0, 1), (1, 1))
    )
    return RatioSums(sum(count for _, _, count in terms), y, m, (yy, ym, mm))


def sums_of_values(values: Sequence[tuple[Fraction, int]]) -> MomentSums:
    """The sums of the values of rows, from the different values and their numbers of rows."""
    total = sum((value * count for value, count in values), Fraction(0))
    squares = sum((value * value * count for value, count in values), Fraction(0))
    return MomentSums(sum(count for _, count in values), total, squares)
