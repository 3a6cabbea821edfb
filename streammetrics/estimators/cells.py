"""CellFunction: a function of the cells of a confusion matrix, and F of two classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, R
from streammetrics.estimators.many import (
    FLOATS,
    Intervals,
    ManyRequest,
    texts,
    wilson_columns,
)
from streammetrics.estimators.request import Arguments, IntervalRequest
from streammetrics.kernels.inference.proportions import f_beta_variance
from streammetrics.kernels.inference.t_interval import critical

Number = TypeVar("Number", float, NDArray[np.float64])


@dataclass(frozen=True)
class CellFunction(Estimator[R]):
    """A smooth function of the cells, by the delta method.

    variance: of a result, and of the arguments of the view; a text: why there is none for these
    rows; None: there is no formula. rows: the independent rows of a result. least: the least count
    that the view depends on. methods: of the interval, the best one first.
    """

    variance: Callable[..., float | str | None]
    rows: Callable[[R], int]
    least: Callable[..., int | None]
    methods: tuple[str, ...] = ("delta",)

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """On the scale of the view, or of its logit."""
        variance, n = self.variance(result, *request.arguments), self.rows(result)
        if variance is None:
            return None
        if isinstance(variance, str):
            return request.none(variance, n=n)
        return request.widen(request.spread(variance, n, methods=self.methods))

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """The same, side by side where each has a formula."""
        variances = [self.variance(result, *request.arguments) for result in results]
        numbers = [x if isinstance(x, float) else math.nan for x in variances]
        whys = [x if isinstance(x, str) else "" for x in variances]
        if request.is_bounded or None in variances:
            return super().intervals(results, request)
        return request.spread(
            numbers, [*map(self.rows, results)], method=self.methods[0], whys=whys
        )

    def least_cell(self, result: R, arguments: Arguments) -> int | None:
        """The least count that the view depends on."""
        return self.least(result, *arguments)


@dataclass(frozen=True)
class FScore(Estimator[R]):
    """1 / (a / P + (1 - a) / R): Wilson's interval where it is the precision, the recall or, mapped
    from that of Jaccard's index, F1; otherwise on the logit.

    hits: of a result, its true positives, false positives and false negatives. weight: of the
    arguments of the view, the a.
    """

    hits: Callable[[R], tuple[int, int, int]]
    weight: Callable[..., Fraction]

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Wilson's, mapped from his, or by the delta method."""
        return request.widen(self._value_interval(result, request))

    def _value_interval(self, result: R, request: IntervalRequest) -> Interval:
        tp, fp, fn = self.hits(result)
        a, n = self.weight(*request.arguments), tp + fp + fn
        if a in (0, 1):
            return request.share(tp, tp + fp if a else tp + fn)
        variance = f_beta_variance(tp, fp, fn, 1 / a - 1)
        if a == Fraction(1, 2):
            return request.mapped(tp, n, f1_from_jaccard, variance)
        return request.spread(variance, n, methods=("logit", "delta"))

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """The same, side by side of F1."""
        if self.weight(*request.arguments) != Fraction(1, 2) or request.is_bounded:
            return super().intervals(results, request)
        if request.stacked is None:
            hits = [self.hits(result) for result in results]
            if max(map(sum, hits), default=0) >= FLOATS:
                return super().intervals(results, request)
            tp, fp, fn = np.array(hits, np.int64).reshape(-1, 3).T
        else:
            tp, fp, fn = cast(
                "tuple[NDArray[np.int64], ...]", self.hits(cast("R", request.stacked))
            )
        shares = wilson_columns(tp, tp + fp + fn, critical(request.level))
        with np.errstate(invalid="ignore"):
            ends = (f1_from_jaccard(end) for end in (shares.lower, shares.upper))
            lower, upper = (
                np.where(shares.n > 0, f1, end)
                for f1, end in zip(ends, (shares.lower, shares.upper), strict=True)
            )
        return shares._replace(lower=lower, upper=upper, methods=texts("mapped", len(tp)))

    def least_cell(self, result: R, arguments: Arguments) -> int | None:
        """The true positives, or the errors."""
        tp, fp, fn = self.hits(result)
        return min(tp, fp + fn)


def f1_from_jaccard(jaccard: Number) -> Number:
    """F1 = 2 J / (1 + J).

    >>> f1_from_jaccard(0.5)
    0.6666666666666666
    """
    return 2.0 * jaccard / (1.0 + jaccard)
