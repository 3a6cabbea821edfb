"""Area: the area under the ROC curve, and the mean of the areas of groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, Linear, R
from streammetrics.estimators.many import Intervals, ManyRequest
from streammetrics.estimators.request import WITHIN_BUCKETS, Arguments, IntervalRequest
from streammetrics.kernels.inference.area_interval import (
    AreaBounds,
    AreaEstimate,
    Placements,
    area_bounds,
    many_area_bounds,
)

_GUARDED: Final = "the variance is poorly known: the interval contains Hanley and McNeil's"


@dataclass(frozen=True)
class Area(Estimator[R]):
    """The area under the ROC curve, with DeLong's interval, from the placements of its rows.

    placements: of the rows of each class among those of the other, of a result. exact: whether each
    bucket is one score; otherwise the uncertainty within buckets widens the interval, if it is more
    than a quarter of the standard error. scaled: the view is not the area, but a function of it.
    """

    placements: Callable[[R], Placements]
    exact: Callable[[R], bool]
    scaled: Linear | None = None

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """DeLong's, on the logit scale, guarded where a class has few rows."""
        estimate = self._estimate(result)
        bounds = area_bounds(*estimate[:4], request.level, resolution=estimate.resolution)
        return self._interval(result, request, estimate, bounds)

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """The same; what guards them is found side by side."""
        estimates = [self._estimate(result) for result in results]
        bounds = many_area_bounds(estimates, request.level)
        columns = zip(results, request.each(), estimates, bounds, strict=True)
        return Intervals.of([self._interval(*column) for column in columns])

    def linear(self, result: R, arguments: Arguments) -> Linear | None:
        """The area, of a function of it."""
        return self.scaled

    def _estimate(self, result: R) -> AreaEstimate:
        placements = self.placements(result)
        hidden = 0.0 if self.exact(result) else placements.resolution
        classes = float(placements.positives), float(placements.negatives)
        return AreaEstimate(placements.area, placements.variance, placements.df, classes, hidden)

    def _interval(
        self, result: R, request: IntervalRequest, estimate: AreaEstimate, bounds: AreaBounds
    ) -> Interval:
        method, placements = request.choose("delong"), self.placements(result)
        n, p = placements.negatives, placements.positives
        if not (n and p):
            kind = "rows" if not n + p else "negatives" if p else "positives"
            return request.none(f"no {kind}", n=n + p)
        reasons = (_GUARDED, bounds.guarded), (WITHIN_BUCKETS, bounds.widened)
        interval = Interval(
            estimate.area,
            bounds.lower,
            bounds.upper,
            se=math.sqrt(estimate.variance),
            level=request.level,
            df=estimate.df,
            method=method,
            n=n + p,
            n_eff=float(n + p),
            deff=1.0,
            resolution=estimate.resolution,
            reason="; ".join(why for why, true in reasons if true),
        )
        if self.scaled is None:
            return interval
        interval = interval.scaled(self.scaled.times, self.scaled.plus)
        return replace(interval, estimate=request.estimate)


class GroupSpread(Protocol):
    """The number of groups, and the variance of a mean over them, nan for fewer than two."""

    @property
    def units(self) -> int: ...

    @property
    def variance(self) -> float: ...


@dataclass(frozen=True)
class MeanOverGroups(Estimator[R]):
    """A weighted mean over independent groups, a ratio of sums over them, with Student's t.

    spread: of a result; None if its state lacks it.
    """

    spread: Callable[[R], GroupSpread | None]

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Student's, with the groups less 1 degrees of freedom."""
        spread = self.spread(result)
        if spread is None:
            return None
        n = spread.units
        df = float(n - 1) if n > 1 else math.nan
        return request.widen(
            request.spread(spread.variance, n, df=df, methods=("t",), units="groups")
        )
