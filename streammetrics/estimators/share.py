"""Share: the successes among some rows, divided by their number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, R, RowValues
from streammetrics.estimators.many import FLOATS, Intervals, ManyRequest, wilson_columns
from streammetrics.estimators.request import Arguments, IntervalRequest, Lacking
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.t_interval import critical


@dataclass(frozen=True)
class Share(Estimator[R]):
    """A share of independent rows, with Wilson's interval.

    counts: of a result, and of the arguments of the view, the successes and the rows; or why it
    lacks them. None: there is no formula. each: see `MeanOfValues`.

    >>> from streammetrics.results.rates import Rates
    >>> precision = Share[Rates](lambda rates: (rates.tp, rates.tp + rates.fp))
    >>> precision.estimate(Rates(tp=3, fp=1, fn=0, tn=0))
    0.75
    """

    counts: Callable[..., tuple[int, int] | Lacking | None]
    each: RowValues | None = None

    def estimate(self, result: R, *arguments: object) -> float:
        """Successes / rows, rounded once; nan without rows."""
        counts = self.counts(result, *arguments)
        return math.nan if counts is None or isinstance(counts, Lacking) else ratio(*counts)

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Wilson's, or by the delta method."""
        counts = self.counts(result, *request.arguments)
        if counts is None or isinstance(counts, Lacking):
            return request.lacking(counts)
        return request.widen(request.share(*counts))

    def successes(self, result: R, arguments: Arguments) -> tuple[int, int] | None:
        """The successes and the rows, where the result has them."""
        counts = self.counts(result, *arguments)
        return None if isinstance(counts, Lacking) else counts

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """Wilson's, in one pass where no value is uncertain within a bucket.

        Counts that are no floats are rare, and are taken one by one.
        """
        counts = [self.successes(result, request.arguments) for result in results]
        plain = [pair for pair in counts if pair is not None and pair[1] < FLOATS]
        if len(plain) < len(counts) or request.is_bounded:
            return super().intervals(results, request)
        successes, n = np.array(plain, np.int64).reshape(-1, 2).T
        return wilson_columns(successes, n, critical(request.level))
