"""Area: the area under the ROC curve, and the mean of the areas of groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, cast

import numpy as np

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, Linear, OverUsers, R
from streammetrics.estimators.many import Intervals, ManyRequest, texts
from streammetrics.estimators.request import WITHIN_BUCKETS, Arguments, IntervalRequest
from streammetrics.kernels.inference.area_interval import (
    PlacementColumns,
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
        method, placements = request.choose("delong"), self.placements(result)
        n, p = placements.negatives, placements.positives
        if not (n and p):
            return request.none(_missing(p, n), n=n + p)
        estimate = placements.estimate
        if self.exact(result):
            estimate = estimate._replace(resolution=0.0)
        bounds = area_bounds(estimate, request.level)
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
            reason=_reason(bounds.guarded, bounds.widened),
        )
        if self.scaled is None:
            return interval
        interval = interval.scaled(self.scaled.times, self.scaled.plus)
        return replace(interval, estimate=request.estimate)

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """The same, side by side."""
        if request.stacked is None:
            placements = PlacementColumns([*map(self.placements, results)])
            exact = np.array([*map(self.exact, results)], bool)
        else:
            stacked = cast("R", request.stacked)
            placements = cast("PlacementColumns", self.placements(stacked))
            exact = np.full(len(results), self.exact(stacked))
        table = placements.table.copy()
        table[5, exact] = 0.0
        bounds = many_area_bounds(table, request.level)
        lower, upper = bounds.lower, bounds.upper
        if self.scaled is not None:
            ends = (self.scaled.times * end + self.scaled.plus for end in (lower, upper))
            lower, upper = ends if self.scaled.times > 0 else reversed([*ends])
        k, rows = len(results), placements.rows
        reasons = texts("", k)
        for i in np.flatnonzero(bounds.guarded | bounds.widened).tolist():
            reasons[i] = _reason(bool(bounds.guarded[i]), bool(bounds.widened[i]))
        n = np.array([placements.positives + placements.negatives for placements in rows], np.int64)
        for i in np.flatnonzero((table[3] == 0) | (table[4] == 0)).tolist():
            reasons[i] = _missing(*rows[i][:2])
        return Intervals(lower, upper, n, texts("delong", k), reasons)

    def over_users(self, result: R, arguments: Arguments) -> OverUsers:
        """The area, of a function of it."""
        return OverUsers(linear=self.scaled)


def _missing(p: int, n: int) -> str:
    return f"no {'rows' if not n + p else 'negatives' if p else 'positives'}"


def _reason(guarded: bool, widened: bool) -> str:
    reasons = (_GUARDED, guarded), (WITHIN_BUCKETS, widened)
    return "; ".join(why for why, true in reasons if true)


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
