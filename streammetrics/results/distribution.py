"""Distribution: the values of rows in order, from which any quantile follows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Generic, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import FLOAT64, as_float, decimal_share, refused
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.parts.exact_sums import SCALES, scaled_sum
from streammetrics.estimators.mean import TrimmedMean, WinsorisedSums
from streammetrics.estimators.quantile import EXTREME, Quantile, QuantileRange, ShareOfOrdered
from streammetrics.kernels.curves.ordered import Ordered
from streammetrics.kernels.curves.steps import UNDEFINED, Figure, figure
from streammetrics.kernels.exact.exact_products import exact_parts, ordinary
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up
from streammetrics.kernels.inference.quantile_ranks import (
    rank_of,
    uniform_band,
)
from streammetrics.present.view import NONE, POSITIVE, SHARE, View
from streammetrics.results.curve_points import V_co
from streammetrics.results.rounded_weights import OfUnits

_HALF: Final = Fraction(1, 2)
_P90: Final = Fraction(9, 10)
_P95: Final = Fraction(19, 20)
_P99: Final = Fraction(99, 100)
_QUARTERS: Final = Fraction(1, 4), Fraction(3, 4)


# How the views are estimated.


def _quantile(p: Callable[..., Fraction]) -> Quantile[Distribution]:
    """Of p by the arguments of the view."""
    return Quantile(_rows_of, p)


def _range(ps: Callable[..., tuple[Fraction, Fraction]]) -> QuantileRange[Distribution]:
    return QuantileRange(_rows_of, ps)


def _rows_of(distribution: Distribution) -> Ordered:
    return distribution._ordered


def _p(p: float | Fraction) -> Fraction:
    return decimal_share(p, "Distribution.quantile(p)")


def _ps(low: float | Fraction, high: float | Fraction) -> tuple[Fraction, Fraction]:
    where = "Distribution.inter_quantile_range"
    p, q = decimal_share(low, f"{where}(low)"), decimal_share(high, f"{where}(high)")
    if p > q:
        raise refused(f"{where}(low, high)", "low at most high", (low, high), "swap them")
    return p, q


def _share_of(count: Callable[[Ordered, float], tuple[int, int]]) -> ShareOfOrdered[Distribution]:
    return ShareOfOrdered(
        lambda distribution, x: count(distribution._ordered, float(x)),
        lambda distribution: distribution._ordered.n,
    )


_TRIMMED: Final[TrimmedMean[Distribution]] = TrimmedMean(
    lambda distribution, share: distribution._winsorised(share)
)
_MEAN: Final[TrimmedMean[Distribution]] = TrimmedMean(
    lambda distribution: distribution._winsorised(0)
)


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
    @View(estimator=_quantile(lambda: _HALF), better=NONE, undefined="no rows", headline=1)
    def median(self) -> V_co:
        """The quantile of 1/2."""
        return self._quantile(_HALF)

    @property
    @View(estimator=_quantile(lambda: _P90), better=NONE, undefined="no rows", headline=2)
    def p90(self) -> V_co:
        """The quantile of 0.9."""
        return self._quantile(_P90)

    @property
    @View(estimator=_quantile(lambda: _P95), better=NONE, undefined="no rows", headline=3)
    def p95(self) -> V_co:
        """The quantile of 0.95."""
        return self._quantile(_P95)

    @property
    @View(estimator=_quantile(lambda: _P99), better=NONE, undefined="no rows", headline=4)
    def p99(self) -> V_co:
        """The quantile of 0.99."""
        return self._quantile(_P99)

    @property
    @View(
        estimator=_range(lambda: _QUARTERS),
        better=NONE,
        range=POSITIVE,
        undefined="no rows",
    )
    def iqr(self) -> V_co:
        """The quantile of 3/4 less that of 1/4."""
        return self._bounds_between(*_QUARTERS)

    @cached_property
    @View(estimator=_MEAN, better=NONE, undefined="no rows")
    def mean(self) -> V_co:
        """The mean, rounded once."""
        return self._trimmed(0, winsorised=False)

    @property
    @View(better=NONE, undefined="no rows", estimator=EXTREME)
    def minimum(self) -> float:
        """The least value; nan without rows."""
        return float(self.low[0]) if len(self.low) else math.nan

    @property
    @View(better=NONE, undefined="no rows", estimator=EXTREME)
    def maximum(self) -> float:
        """The greatest value; nan without rows."""
        return float(self.high[-1]) if len(self.high) else math.nan

    @View(estimator=_quantile(_p), better=NONE)
    def quantile(self, p: float | Fraction) -> V_co:
        """The least value with a share of at least p of the rows at or below it; 0 <= p <= 1."""
        return self._quantile(_p(p))

    @View(estimator=_range(_ps), better=NONE, range=POSITIVE)
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
        return self._bounds_between(*_ps(low, high))

    @View(estimator=_share_of(Ordered.rows_below), better=NONE, range=SHARE)
    def share_below(self, x: float) -> V_co:
        """The share of the rows that are below x."""
        return self._share(self._ordered.rows_below, x, "Distribution.share_below(x)")

    @View(estimator=_share_of(Ordered.rows_at_most), better=NONE, range=SHARE)
    def share_up_to(self, x: float) -> V_co:
        """The share of the rows that are at or below x."""
        return self._share(self._ordered.rows_at_most, x, "Distribution.share_up_to(x)")

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

    @View(estimator=_TRIMMED, better=NONE)
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

    def _figure(self, figure: Figure) -> V_co:
        return cast("V_co", figure[0] if self.exact else Bounded(*figure))

    def _quantile(self, p: Fraction) -> V_co:
        n = self._ordered.n
        return self._figure(self._ordered.value_at(rank_of(n, p)) if n else UNDEFINED)

    def _bounds_between(self, p: Fraction, q: Fraction) -> V_co:
        ordered, n = self._ordered, self._ordered.n
        if not n:
            return self._figure(UNDEFINED)
        a, b = ordered.value_at(rank_of(n, p)), ordered.value_at(rank_of(n, q))
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

    def _winsorised(self, share: float | Fraction) -> WinsorisedSums:
        """The sums of a trimmed mean's variance."""
        ordered, n = self._ordered, self._ordered.n
        dropped = self._dropped(share, "trimmed_mean")
        left = n - 2 * dropped
        counts = _moved_inside(ordered.kept(dropped), dropped) if n else ordered.counts
        places = np.flatnonzero(counts)
        values, units = ordered.values[places], counts[places]
        if left < 2 or not np.isfinite(values).all():
            return WinsorisedSums(n, left, None)
        sums = total(values, None, units), total(values, values, units)
        return WinsorisedSums(n, left, (n * sums[1] - sums[0] ** 2) / n)


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
    a: NDArray[np.float64], b: NDArray[np.float64] | None, units: NDArray[np.int64] | None
) -> Fraction:
    """Σ units · a · b without rounding, of finite values; b or units None: 1. All [k].

    >>> total(np.array([1e16, 1.0, -1e16]), None, np.array([1, 2, 1]))
    Fraction(2, 1)
    """
    sums = ExactSumColumn(len(SCALES))
    far = not (ordinary(a) and (b is None or ordinary(b)))
    for scale, part in exact_parts(a, b, units, far=far):
        sums.add(part, np.full(len(part), scale, np.intp))
    return scaled_sum(sums.units(np.arange(len(SCALES))).fractions())
