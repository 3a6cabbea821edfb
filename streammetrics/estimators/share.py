"""Share: the successes among some rows, divided by their number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, R, RowValues
from streammetrics.estimators.many import FLOATS, Intervals, ManyRequest, wilson_columns
from streammetrics.estimators.request import Arguments, IntervalRequest, Lacking
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.t_interval import critical

Ints: TypeAlias = NDArray[np.int64]


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

    def estimates(self, stacked: R, *arguments: object) -> NDArray[np.float64]:
        """`estimate` of many results; stacked: as in `ManyRequest`."""
        successes, n = self._columns(stacked, *arguments)
        shares: NDArray[np.float64] = np.full(len(n), np.nan)
        np.divide(successes, n, out=shares, where=n != 0)
        return shares

    def _columns(self, stacked: R, *arguments: object) -> tuple[Ints, Ints]:
        return cast("tuple[Ints, Ints]", self.counts(stacked, *arguments))

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
        if request.stacked is not None and not request.is_bounded:
            stacked = self._columns(cast("R", request.stacked), *request.arguments)
            return wilson_columns(*stacked, critical(request.level))
        counts = [self.successes(result, request.arguments) for result in results]
        plain = [pair for pair in counts if pair is not None and pair[1] < FLOATS]
        if len(plain) < len(counts) or request.is_bounded:
            return super().intervals(results, request)
        successes, n = np.array(plain, np.int64).reshape(-1, 2).T
        return wilson_columns(successes, n, critical(request.level))
