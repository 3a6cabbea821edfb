"""Distribution: the values of rows in order, from which any quantile follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, Generic, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import FLOAT64, as_float, decimal_share, refused
from streammetrics.core.interval import Interval
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.parts.exact_sums import SCALES, of_scales
from streammetrics.estimators.estimator import Behind
from streammetrics.kernels.curves.ordered import Ordered
from streammetrics.kernels.curves.steps import UNDEFINED, Figure, figure
from streammetrics.kernels.exact.exact_products import exact_parts, ordinary
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up
from streammetrics.kernels.inference.quantile_ranks import (
    fixed_ranks,
    rank_of,
    uniform_band,
)
from streammetrics.kernels.inference.t_interval import Bounds, less
from streammetrics.present.estimand import Asked
from streammetrics.present.view import NONE, POSITIVE, SHARE, View, declaration
from streammetrics.present.views import ViewText
from streammetrics.results.curve_points import V_co
from streammetrics.results.rounded_weights import OfUnits

_EXTREMES: Final = "the least and the greatest value of more rows are not known"
Share = float | Fraction
_HALF: Final = Fraction(1, 2)
_QUARTER: Final = Fraction(1, 4)
_NAMED: Final = {
    "median": _HALF,
    "p90": Fraction(9, 10),
    "p95": Fraction(19, 20),
    "p99": Fraction(99, 100),
}


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Generic[V_co], OfUnits):
    """The values of rows in ascending order, with their counts.

    values: float64 [k]; low, high: float64 [k], the least and the greatest possible value at each
    place, equal where values are exact. counts: int64 [k], in units of weight, `weight_unit` each.
    exact: whether each place is one value; otherwise it is a bucket, and figures are `Bounded` over
    all values that its rows can have. rows: the counted rows, without those of weight zero.
    minimum, maximum: exact; nan without rows. reason: why nothing more is known, if so.

    The p-quantile is the least x with a share of at least p of the rows at or below it: an observed
    value, never one between two (numpy's "inverted_cdf", R's type 1, SQL's percentile_disc). p and
    the shares that are trimmed are the decimals that they are written as.

    >>> x = np.array([1.0, 2.0, 3.0, 9.0])
    >>> found = Distribution(x, x, x, np.ones(4, int), True, 4)
    >>> found.median, found.quantile(0.9), found.trimmed_mean(0.25)
    (2.0, 9.0, 2.5)
    """

    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    counts: NDArray[np.int64]
    exact: bool
    rows: int
    reason: str = ""
    weight_unit: Fraction = Fraction(1)
    rows_rounded: int | None = None

    @property
    @View(better=NONE, undefined="no rows", headline=1, band=True)
    def median(self) -> V_co:
        """The quantile of 1/2."""
        return self._quantile(_HALF)

    @property
    @View(better=NONE, undefined="no rows", headline=2, band=True)
    def p90(self) -> V_co:
        """The quantile of 0.9."""
        return self._quantile(_NAMED["p90"])

    @property
    @View(better=NONE, undefined="no rows", headline=3, band=True)
    def p95(self) -> V_co:
        """The quantile of 0.95."""
        return self._quantile(_NAMED["p95"])

    @property
    @View(better=NONE, undefined="no rows", headline=4, band=True)
    def p99(self) -> V_co:
        """The quantile of 0.99."""
        return self._quantile(_NAMED["p99"])

    @property
    @View(better=NONE, range=POSITIVE, undefined="no rows", band=True)
    def iqr(self) -> V_co:
        """The quantile of 3/4 less that of 1/4."""
        return self._between(_QUARTER, 3 * _QUARTER)

    @cached_property
    @View(better=NONE, undefined="no rows")
    def mean(self) -> V_co:
        """The mean, rounded once."""
        return self._trimmed(0, winsorised=False)

    @property
    @View(better=NONE, undefined="no rows", no_interval=_EXTREMES)
    def minimum(self) -> float:
        """The least value; nan without rows."""
        return float(self.low[0]) if len(self.low) else math.nan

    @property
    @View(better=NONE, undefined="no rows", no_interval=_EXTREMES)
    def maximum(self) -> float:
        """The greatest value; nan without rows."""
        return float(self.high[-1]) if len(self.high) else math.nan

    @View(better=NONE, band=True)
    def quantile(self, p: float | Fraction) -> V_co:
        """The least value with a share of at least p of the rows at or below it; 0 <= p <= 1."""
        return self._quantile(decimal_share(p, "Distribution.quantile(p)"))

    @View(better=NONE, range=POSITIVE, band=True)
    def inter_quantile_range(self, low: float | Fraction, high: float | Fraction) -> V_co:
        """The quantile of `high` less that of `low`; 0 <= low <= high <= 1.

        Its interval follows from those of both quantiles at 1 - α/2 each, which hold together at
        1 - α by Bonferroni's inequality: never shorter than it should be, whatever the
        distribution. (Conover 1999, section 3.2.)

        >>> from streammetrics import ExactQuantiles
        >>> metric = ExactQuantiles()
        >>> metric.update(range(1, 101))
        >>> print(metric.compute().interval("inter_quantile_range(0.25, 0.75)"))
        50, 95 % CI 29 to 69 (ranks, n = 100)
        """
        where = "Distribution.inter_quantile_range"
        p, q = decimal_share(low, f"{where}(low)"), decimal_share(high, f"{where}(high)")
        if p > q:
            raise refused(f"{where}(low, high)", "low at most high", (low, high), "swap them")
        return self._between(p, q)

    @View(better=NONE, range=SHARE, band=True)
    def share_below(self, x: float) -> V_co:
        """The share of the rows that are below x."""
        return self._share(self._ordered.below, x, "Distribution.share_below(x)")

    @View(better=NONE, range=SHARE, band=True)
    def share_up_to(self, x: float) -> V_co:
        """The share of the rows that are at or below x."""
        return self._share(self._ordered.at_most, x, "Distribution.share_up_to(x)")

    def band(self, level: float = 0.95) -> float:
        """The greatest distance, at this level, of the share of rows up to each x from that of the
        distribution of the rows: for all x and at all looks together, if rows are independent.
        Infinite without rows, and if they are weighted. `interval(view, method="band")` follows
        from it. (Howard and Ramdas 2022, theorem 2.)
        """
        share = as_float(level)
        if share is None or not 0 < share < 1:
            where = "Distribution.band(level)"
            raise refused(where, "a number between 0 and 1, such as 0.95", level)
        n = 0 if self._no_interval() else self._ordered.n
        return uniform_band(n, 1 - share, 1)

    @View(better=NONE)
    def trimmed_mean(self, share: float | Fraction) -> V_co:
        """The mean without this share of the rows at each end, rounded down to whole rows, as in
        scipy and R; 0 <= share < 1/2. Rounded once."""
        return self._trimmed(self._dropped(share, "trimmed_mean"), winsorised=False)

    @View(better=NONE)
    def winsorised_mean(self, share: float | Fraction) -> V_co:
        """The mean with the rows that `trimmed_mean` leaves out at the nearest value that it
        keeps."""
        return self._trimmed(self._dropped(share, "winsorised_mean"), winsorised=True)

    # -- figures ---------------------------------------------------------------------------------
    @cached_property
    def _ordered(self) -> Ordered:
        return Ordered(self.values, self.low, self.high, self.counts)

    def _figure(self, found: Figure) -> V_co:
        return cast("V_co", found[0] if self.exact else Bounded(*found))

    def _quantile(self, p: Fraction) -> V_co:
        n = self._ordered.n
        return self._figure(self._ordered.at(rank_of(n, p)) if n else UNDEFINED)

    def _between(self, p: Fraction, q: Fraction) -> V_co:
        ordered, n = self._ordered, self._ordered.n
        if not n:
            return self._figure(UNDEFINED)
        a, b = ordered.at(rank_of(n, p)), ordered.at(rank_of(n, q))
        if not all(map(math.isfinite, (*a, *b))):
            bounds = b[0] - a[0], b[1] - a[2], b[2] - a[1]
            defined = not any(map(math.isnan, bounds))  # if not, all rows are the same infinity
            return self._figure(
                (bounds[0], max(0.0, bounds[1]), bounds[2]) if defined else UNDEFINED
            )
        value, low, high = (
            Fraction(x) - Fraction(y) for x, y in ((b[0], a[0]), (b[1], a[2]), (b[2], a[1]))
        )
        return self._figure(figure(value, max(low, Fraction(0)), high, bounded=not self.exact))

    def _share(self, count: Callable[[float], tuple[int, int]], x: float, where: str) -> V_co:
        value, n = as_float(x), self._ordered.n
        if value is None:
            raise refused(where, FLOAT64, x)
        if not n:
            return self._figure(UNDEFINED)
        fewest, most = count(value)
        low, high = Fraction(fewest, n), Fraction(most, n)
        return self._figure(figure((low + high) / 2, low, high, bounded=not self.exact))

    def _dropped(self, share: float | Fraction, name: str) -> int:
        where = f"Distribution.{name}(share)"
        exact_share = decimal_share(share, where)
        if exact_share >= _HALF:
            raise refused(where, "a share below 1/2", share, "pass 0.1 to trim a tenth at each end")
        return math.floor(exact_share * self._ordered.n)

    def _trimmed(self, dropped: int, *, winsorised: bool) -> V_co:
        ordered = self._ordered
        if not ordered.n:
            return self._figure(UNDEFINED)
        counts = ordered.kept(dropped)
        counts = _moved_inside(counts, dropped) if winsorised else counts
        places = np.flatnonzero(counts)
        units, n = counts[places], int(counts.sum())
        value, low, high = (
            _mean(column[places], units, n)
            for column in (ordered.values, ordered.low, ordered.high)
        )
        if not dropped and (low, high) == (-math.inf, math.inf):  # as both extremes are
            return self._figure(UNDEFINED)
        down, up = (ratio, ratio) if self.exact else (rounded_down, rounded_up)
        return self._figure((_rounded(value, ratio), _rounded(low, down), _rounded(high, up)))

    @property
    def _units(self) -> int:
        return self._ordered.n

    # -- intervals -------------------------------------------------------------------------------
    def _interval(self, asked: Asked) -> Interval | None:
        name = asked.name
        if ps := self._ps_of(asked.parsed):
            return self._by_ranks(asked, ps)
        if name in ("share_below", "share_up_to"):
            fewest, most = self._counted(asked.parsed)
            interval = asked.share(fewest, self._ordered.n)
            return replace(interval, upper=asked.share(most, self._ordered.n).upper)
        if name in ("mean", "trimmed_mean"):
            return self._by_yuen(asked)
        return None

    def _counted(self, view: ViewText) -> tuple[int, int]:
        """The fewest and the most rows that a share below a value has."""
        count = self._ordered.below if view.name == "share_below" else self._ordered.at_most
        (x,) = view.arguments or ()
        return count(float(x))

    def _p_of(self, view: ViewText) -> Fraction | None:
        """The p of a view that is a quantile."""
        if view.name == "quantile":
            (p,) = view.arguments or ()
            return decimal_share(p, "Distribution.quantile(p)")
        return _NAMED.get(view.name)

    def _behind(self, view: ViewText) -> Behind | None:
        """Woodruff's interval: that of the share of rows up to the quantile, mapped by the inverse
        of the distribution function. (Woodruff 1952, J. Am. Stat. Assoc. 47.)"""
        p, ordered, n = self._p_of(view), self._ordered, self._ordered.n
        if p is None or not n or p in (0, 1):
            return None
        # At the ends of a bucket, rows are counted exactly.
        _, start, end = ordered.at(rank_of(n, p))
        shares = f"share_up_to({end!r})", f"share_below({start!r})"
        return Behind(*shares, float(p), self._between_shares, "woodruff")

    def _without(self, view: ViewText) -> str:
        extreme = any(p in (0, 1) for p in self._ps_of(view))
        return _EXTREMES if extreme else declaration(self, view.name).no_interval

    def _range_of(self, view: ViewText) -> tuple[str, str] | None:
        ps = self._ps_of(view)
        return (f"quantile({float(ps[0])})", f"quantile({float(ps[1])})") if len(ps) == 2 else None

    def _between_shares(self, lower: Share, upper: Share) -> tuple[float, float]:
        """The values between which a quantile is if its share is between these."""
        ordered, n = self._ordered, self._ordered.n
        first = rank_of(n, Fraction(lower)) if lower > 0 else 0
        return ordered.between(first, rank_of(n, Fraction(upper)) if upper <= 1 else n + 1)

    def _band(self, asked: Asked) -> Interval:
        view, n, reach = asked.parsed, self._ordered.n, self.band(asked.level)
        if not n:
            return asked.none("no rows")
        off = Fraction(reach)
        if view.name in ("share_below", "share_up_to"):
            fewest, most = self._counted(view)
            bounds = float(Fraction(fewest, n) - off), float(Fraction(most, n) + off)
            return asked.bounds(bounds, math.nan, n, "band")
        ps = self._ps_of(view)
        ends = [self._between_shares(p - off, p + off) for p in ps]
        return self._of_ends(asked, ps, ends, "band")

    def _ps_of(self, view: ViewText) -> tuple[Fraction, ...]:
        """The p of a quantile, or those of a range of quantiles."""
        if view.name == "iqr":
            return _QUARTER, 3 * _QUARTER
        if view.name == "inter_quantile_range":
            where = "Distribution.inter_quantile_range(low, high)"
            return tuple(decimal_share(p, where) for p in view.arguments or ())
        p = self._p_of(view)
        return () if p is None else (p,)

    def _by_ranks(self, asked: Asked, ps: Sequence[Fraction]) -> Interval:
        """Between two order statistics, whatever the distribution; those of a range of quantiles
        hold together."""
        n, method = self._ordered.n, asked.choose("ranks")
        if not n:
            return asked.none("no rows")
        alpha = (1 - Fraction(str(asked.level))) / len(ps)
        ranks = [fixed_ranks(n, p, 1 - alpha) for p in ps if p not in (0, 1)]
        return self._of_ends(asked, ps, [self._ordered.between(*pair) for pair in ranks], method)

    def _of_ends(
        self, asked: Asked, ps: Sequence[Fraction], ends: Sequence[Bounds], method: str
    ) -> Interval:
        """The interval of a quantile, or of a range of two, from that of each."""
        n = self._ordered.n
        if any(p in (0, 1) for p in ps):
            return asked.none(_EXTREMES, n=n)
        bounds, *rest = ends
        if rest:
            bounds = less(rest[0], bounds)
        if bounds == (-math.inf, math.inf):
            return asked.none(f"too few rows: {n}", n=n)
        return asked.bounds(bounds, math.nan, n, method)

    def _by_yuen(self, asked: Asked) -> Interval:
        """Student's t with the variance of the winsorised rows. (Yuen 1974, Biometrika 61.)"""
        ordered, n = self._ordered, self._ordered.n
        share = asked.arguments[0] if asked.arguments else 0
        dropped = math.floor(decimal_share(share, "Distribution.trimmed_mean(share)") * n)
        left, variance = n - 2 * dropped, math.nan
        counts = _moved_inside(ordered.kept(dropped), dropped) if n else ordered.counts
        places = np.flatnonzero(counts)
        values, units = ordered.values[places], counts[places]
        if left > 1 and np.isfinite(values).all():
            sums = total(values, None, units), total(values, values, units)
            squares = (n * sums[1] - sums[0] ** 2) / n  # Σ (x - mean)²
            variance = ratio(squares, left * (left - 1))
        interval = asked.spread(variance, n, df=left - 1.0, methods=("t",))
        return asked.widen(interval)


def _moved_inside(counts: NDArray[np.int64], dropped: int) -> NDArray[np.int64]:
    """The counts that were kept, with those dropped at each end at the nearest value kept."""
    used = np.flatnonzero(counts)
    counts[used[0]] += dropped
    counts[used[-1]] += dropped
    return counts


def _mean(values: NDArray[np.float64], units: NDArray[np.int64], n: int) -> Fraction | float:
    """Σ units · values / n without rounding; infinite if a value is, nan if both infinities are."""
    infinite = set(values[np.isinf(values)].tolist())
    if infinite:
        return infinite.pop() if len(infinite) == 1 else math.nan
    return total(values, None, units) / n


def _rounded(mean: Fraction | float, to: Callable[[int, int], float]) -> float:
    return mean if isinstance(mean, float) else to(*mean.as_integer_ratio())


def total(
    a: NDArray[np.float64], b: NDArray[np.float64] | None, units: NDArray[np.int64]
) -> Fraction:
    """Σ units · a · b without rounding, of finite values; b None: 1. All [k].

    >>> total(np.array([1e16, 1.0, -1e16]), None, np.array([1, 2, 1]))
    Fraction(2, 1)
    """
    sums = ExactSumColumn(len(SCALES))
    far = not (ordinary(a) and (b is None or ordinary(b)))
    for scale, part in exact_parts(a, b, units, far=far):
        sums.add(part, np.full(len(part), scale, np.intp))
    return of_scales(sums.units(np.arange(len(SCALES))).fractions())
