"""Quantile: the value of a rank of rows in order, ranges of two, and shares below a value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import (
    Behind,
    Estimator,
    NoInterval,
    OverUsers,
    QuantileRows,
    R,
)
from streammetrics.estimators.request import Arguments, IntervalRequest
from streammetrics.kernels.curves.ordered import Ordered
from streammetrics.kernels.inference.quantile_ranks import fixed_ranks, rank_of, uniform_band
from streammetrics.kernels.inference.t_interval import Bounds, less

EXTREMES: Final = "the least and the greatest value of more rows are not known"
EXTREME: Final = NoInterval[object](EXTREMES)


@dataclass(frozen=True)
class Quantile(Estimator[R]):
    """The p-quantile of independent rows, with the interval of two order statistics.

    ordered: the rows of a result. p: of the arguments of the view. up_to, below: the names of the
    views that are the share of rows up to a value, and below it.
    """

    ordered: Callable[[R], Ordered]
    p: Callable[..., Fraction]
    up_to: str = "share_up_to"
    below: str = "share_below"

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Between two order statistics, whatever the distribution."""
        rows, p = self.ordered(result), self.p(*request.arguments)
        return _rank_interval(request, rows, (p,))

    def band(self, result: R, request: IntervalRequest) -> Interval | None:
        """Where the shares of rows up to the ends are as far from p as the band reaches."""
        rows, p = self.ordered(result), self.p(*request.arguments)
        return _band_interval(request, rows, (p,))

    def never(self, result: R, arguments: Arguments) -> str:
        """Of the least and the greatest value."""
        return EXTREMES if self.p(*arguments) in (0, 1) else ""

    def over_users(self, result: R, arguments: Arguments) -> OverUsers:
        """Woodruff's interval: that of the share of rows up to the quantile, mapped by the inverse
        of the distribution function. (Woodruff 1952, J. Am. Stat. Assoc. 47.)"""
        quantile = self.quantile(result, arguments)
        if quantile is None or not quantile.rows.n:
            return OverUsers()
        p, rows = quantile
        # At the ends of a bucket, rows are counted exactly.
        _, start, end = rows.value_at(rank_of(rows.n, p))
        views = f"{self.up_to}({end!r})", f"{self.below}({start!r})"
        behind = Behind(*views, float(p), quantile.values_between, "woodruff")
        return OverUsers(behind=behind)

    def quantile(self, result: R, arguments: Arguments) -> QuantileRows | None:
        """Of every p but 0 and 1."""
        p = self.p(*arguments)
        return None if p in (0, 1) else QuantileRows(p, self.ordered(result))


@dataclass(frozen=True)
class QuantileRange(Estimator[R]):
    """The quantile of q less that of p, with an interval from those of both at 1 - α/2 each, which
    hold together at 1 - α by Bonferroni's inequality.

    ordered: the rows of a result. ps: p and q, of the arguments of the view. quantile_view: the
    name of the view that is the quantile of its argument.
    """

    ordered: Callable[[R], Ordered]
    ps: Callable[..., tuple[Fraction, Fraction]]
    quantile_view: str = "quantile"

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Between two order statistics of each quantile."""
        return _rank_interval(request, self.ordered(result), self.ps(*request.arguments))

    def band(self, result: R, request: IntervalRequest) -> Interval | None:
        """From the bands of both quantiles."""
        return _band_interval(request, self.ordered(result), self.ps(*request.arguments))

    def never(self, result: R, arguments: Arguments) -> str:
        """Of a range that ends at the least or the greatest value."""
        return EXTREMES if {0, 1} & {*self.ps(*arguments)} else ""

    def over_users(self, result: R, arguments: Arguments) -> OverUsers:
        """Both quantiles."""
        p, q = self.ps(*arguments)
        ends = f"{self.quantile_view}({float(p)})", f"{self.quantile_view}({float(q)})"
        return OverUsers(ends=ends)


@dataclass(frozen=True)
class ShareOfOrdered(Estimator[R]):
    """The share of the rows below a value, or up to it: on a grid between two counts.

    counts: of a result and of the value, the fewest and the most rows that it can be. rows: all.
    """

    counts: Callable[..., tuple[int, int]]
    rows: Callable[[R], int]

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Wilson's, from that of the fewest rows to that of the most."""
        (fewest, most), n = self.counts(result, *request.arguments), self.rows(result)
        return replace(request.share(fewest, n), upper=request.share(most, n).upper)

    def band(self, result: R, request: IntervalRequest) -> Interval | None:
        """As far from the counted shares as the band reaches."""
        n = self.rows(result)
        if not n:
            return request.none("no rows")
        reach = _reach(request, n)
        fewest, most = self.counts(result, *request.arguments)
        bounds = float(Fraction(fewest, n) - reach), float(Fraction(most, n) + reach)
        return request.bounds(bounds, math.nan, n, "band")


def _rank_interval(request: IntervalRequest, rows: Ordered, ps: tuple[Fraction, ...]) -> Interval:
    """Between order statistics, of several quantiles so that their intervals hold together."""
    n, method = rows.n, request.choose("ranks")
    if not n:
        return request.none("no rows")
    alpha = (1 - Fraction(str(request.level))) / len(ps)
    ranks = [fixed_ranks(n, p, 1 - alpha) for p in ps if p not in (0, 1)]
    return _interval_of_ends(request, n, ps, [rows.values_between(*pair) for pair in ranks], method)


def _band_interval(request: IntervalRequest, rows: Ordered, ps: tuple[Fraction, ...]) -> Interval:
    n = rows.n
    if not n:
        return request.none("no rows")
    reach = _reach(request, n)
    ends = [QuantileRows(p, rows).values_between(p - reach, p + reach) for p in ps]
    return _interval_of_ends(request, n, ps, ends, "band")


def _reach(request: IntervalRequest, n: int) -> Fraction:
    return Fraction(uniform_band(n, 1 - request.level, 1))


def _interval_of_ends(
    request: IntervalRequest, n: int, ps: tuple[Fraction, ...], ends: list[Bounds], method: str
) -> Interval:
    """The interval of a quantile, or of a range of two, from that of each."""
    if {0, 1} & {*ps}:
        return request.none(EXTREMES, n=n)
    bounds, *later_bounds = ends
    if later_bounds:
        bounds = less(later_bounds[0], bounds)
    if bounds == (-math.inf, math.inf):
        return request.none(f"too few rows: {n}", n=n)
    return request.bounds(bounds, math.nan, n, method)
