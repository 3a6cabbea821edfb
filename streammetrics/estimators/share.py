"""Share: the successes among some rows, divided by their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, R
from streammetrics.estimators.many import Intervals, ManyRequest, wilson_columns
from streammetrics.estimators.request import IntervalRequest
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.t_interval import critical

_FLOATS: Final = 1 << 53  # below it, counts are floats


@dataclass(frozen=True)
class Share(Estimator[R]):
    """A share of independent rows, with Wilson's interval.

    counts: of a result, and of the arguments of the view, the successes and the rows; or why these
    are not known, which no further rows change.

    >>> from streammetrics.results.rates import Rates
    >>> precision = Share[Rates](lambda rates: (rates.tp, rates.tp + rates.fp))
    >>> precision.estimate(Rates(tp=3, fp=1, fn=0, tn=0))
    0.75
    """

    counts: Callable[..., tuple[int, int]]

    def estimate(self, result: R, *arguments: object) -> float:
        """Successes / rows, rounded once; nan without rows."""
        return ratio(*self.counts(result, *arguments))

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Wilson's, or by the delta method."""
        return request.widen(request.share(*self.counts(result, *request.arguments)))

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """Wilson's, in one pass where no value is uncertain within a bucket."""
        counts = [self.counts(result, *request.arguments) for result in results]
        if any(isinstance(value, Bounded) for value in request.values) or any(
            n >= _FLOATS for _, n in counts
        ):
            return super().intervals(results, request)
        successes, n = np.array(counts, np.int64).reshape(-1, 2).T
        return wilson_columns(successes, n, critical(request.level))
