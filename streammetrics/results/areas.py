"""Areas under the ROC curve: as results give them, and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import Interval
from streammetrics.kernels.curves.area import improvement
from streammetrics.kernels.curves.area_sums import AreaSpread
from streammetrics.kernels.exact.rounding import ExactArea, rounded, rounded_down, rounded_up
from streammetrics.kernels.inference.area_interval import area_bounds, placements
from streammetrics.present.direction import Directions, directed
from streammetrics.results.interval import Asked, HasIntervals

_GUARDED = "few rows are misplaced: widened to hold Hanley and McNeil's interval"
_COARSE = "widened by what buckets leave open"


@dataclass(frozen=True, slots=True)
class SlidingArea(HasIntervals):
    """An area with the rows behind it.

    auc: the exact area, correctly rounded; nan where the window has one class only.
    rows, positives: how many the window holds.

    >>> SlidingArea(0.75, rows=4, positives=2).auc
    0.75
    """

    directions: ClassVar[Directions] = directed(higher="auc")
    auc: float
    rows: int
    positives: int

    def _interval(self, asked: Asked) -> Interval | None:
        why = f"no formula for {asked.view.text} of a sliding window"
        return asked.none(f"{why}; Windows(ExactAUC(), size_s) has one", n=self.rows, formula=False)


def as_float(area: ExactArea) -> float | Bounded:
    """The area, correctly rounded, or with its bounds, rounded outwards; nan where undefined."""
    if not area.defined:
        return Bounded(math.nan, math.nan, math.nan) if area.bounded else math.nan
    value = rounded(area.value)
    if not area.bounded:
        return value
    return Bounded(value, rounded(area.low, rounded_down), rounded(area.high, rounded_up))


def relative(measured: ExactArea, base: ExactArea) -> float | Bounded:
    """RelaImpr of two areas."""
    value, low, high = improvement(measured, base)
    return Bounded(value, low, high) if measured.bounded or base.bounded else value


def curve_interval(asked: Asked, counts: NDArray[np.int64], *, exact: bool) -> Interval | None:
    """Of the area, and of Gini's coefficient, of negatives and positives [2, k]: DeLong's.

    exact: each place is one score; otherwise what the buckets hide widens it, where that is more
    than a quarter of the standard error.
    """
    if asked.view.name not in ("auc", "gini"):
        return None
    method = asked.choose("delong")
    found = placements(counts[0], counts[1])
    n, p = found.negatives, found.positives
    if not (n and p):
        what = "rows" if not n + p else "negatives" if p else "positives"
        return asked.none(f"no {what}", n=n + p)
    area, variance, df = found.area, found.variance, found.df
    hidden = 0.0 if exact else found.resolution
    bounds = area_bounds(area, variance, df, (p, n), asked.level, resolution=hidden)
    said = [why for why, true in ((_GUARDED, bounds.guarded), (_COARSE, bounds.widened)) if true]
    interval = Interval(
        area,
        bounds.lower,
        bounds.upper,
        se=float(np.sqrt(variance)),
        level=asked.level,
        df=df,
        method=method,
        n=n + p,
        n_eff=float(n + p),
        deff=1.0,
        resolution=hidden,
        reason="; ".join(said),
    )
    if asked.view.name == "auc":
        return interval
    return replace(interval.scaled(2.0, -1.0), estimate=asked.estimate)


def groups_interval(asked: Asked, spread: AreaSpread) -> Interval:
    """Of GAUC, a ratio of sums over independent groups, of which those with both labels count."""
    n = spread.units
    df = float(n - 1) if n > 1 else math.nan
    return asked.spread(spread.variance, n, df=df, methods=("t",), units="groups")
