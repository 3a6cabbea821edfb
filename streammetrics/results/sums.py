"""Results of exact sums over rows: a mean, a ratio, and the errors of predicted numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final, TypeAlias

from streammetrics.core.interval import Interval
from streammetrics.core.parts.exact_sums import of_scales
from streammetrics.core.parts.float_bits import dyadic, nearest
from streammetrics.core.weights import units_counted
from streammetrics.kernels.exact.rounding import over_root, ratio
from streammetrics.kernels.inference.pooled_variance import skewness_number_of_rounded
from streammetrics.kernels.inference.variances import mean_variance
from streammetrics.present.view import HIGHER, LOWER, NONE, POSITIVE, SHARE, Range, View
from streammetrics.present.views import ViewText
from streammetrics.results.has_intervals import USERS, Asked, HasIntervals
from streammetrics.results.rounded_weights import OfWeightedRows

_SQUARES: Final = "Moments keeps them, for the mean of a value (Welch's interval of two)"
Dyadic: TypeAlias = tuple[int, int]  # units, and n: units / 2 ** n

# MeanResult: the mean of one value per row.


class _MeanSums:
    """The sums of a mean before they are fractions; the squares are None beyond the floats, and the
    cubes if they are unknown."""

    _sums: tuple[Dyadic, Dyadic | None, Dyadic | None]

    @cached_property
    def total(self) -> Fraction:
        return dyadic(*self._sums[0])

    @cached_property
    def squares(self) -> Fraction | None:
        return None if self._sums[1] is None else dyadic(*self._sums[1])

    @cached_property
    def _cubes(self) -> Fraction | None:
        return None if self._sums[2] is None else dyadic(*self._sums[2])


@dataclass(frozen=True, eq=False, repr=False)
class MeanResult(_MeanSums, HasIntervals):
    """The mean of one value per row, with its interval.

    total: Σ v, exact and in units of weight, `weight_unit` each. squares: Σ v² over rows, each v²
    rounded; None: beyond the floats.

    >>> MeanResult(4, Fraction(1), Fraction(1)).mean
    0.25
    """

    _units: int
    total: Fraction = field()
    squares: Fraction | None = field(repr=False)
    weight_unit: Fraction = Fraction(1)
    _surplus: int = field(default=0, repr=False)  # of units over rows
    # Σ v³ over rows, each v³ rounded; None: unknown.
    _cubes: Fraction | None = field(default_factory=lambda: None, repr=False)

    @property
    @View(better=NONE)
    def mean(self) -> float:
        """The exact sum over the rows, or their weight, rounded once; nan without rows."""
        return ratio(self.total, self._units)

    @property
    def rows(self) -> int:
        """The counted rows, without those of weight zero."""
        return self._units - self._surplus

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None if every row weighs 1, so that they are the rows."""
        return units_counted(self._units, self.rows, self.weight_unit)

    def _interval(self, asked: Asked) -> Interval | None:
        n = self._units
        if asked.view.name != "mean" or self.squares is None:
            return None
        variance = mean_variance(n, self.total, self.squares)
        return asked.spread(variance, n, df=n - 1.0, methods=("t",))

    def _skewness_number(self, view: ViewText) -> float:
        if view.name != "mean" or self._surplus or self.squares is None:
            return math.nan
        return skewness_number_of_rounded(self._units, self.total, self.squares, self._cubes)


class _QuotientSums:
    """Both sums of a ratio before they are rounded: in units of 2 ** -n, and n."""

    _sums: tuple[int, int, int] | None = None

    @cached_property
    def numerator(self) -> float:
        units, _, shift = self._sums or (0, 0, 0)
        return nearest(units, shift)

    @cached_property
    def denominator(self) -> float:
        _, units, shift = self._sums or (0, 0, 0)
        return nearest(units, shift)

    @cached_property
    def exact(self) -> tuple[Fraction, Fraction] | None:
        if self._sums is None:
            return None
        numerator, denominator, shift = self._sums
        return dyadic(numerator, shift), dyadic(denominator, shift)


def _range_of_share(ratio: Quotient) -> Range | None:
    """None is known of other ratios, nor without rows."""
    return SHARE if ratio.is_share and ratio.rows else None


@dataclass(frozen=True, eq=False, repr=False)
class Quotient(_QuotientSums, HasIntervals):
    """A ratio of sums, with the sums and the number of rows.

    numerator, denominator: the sums, correctly rounded; they may be infinite or nan.
    exact: both sums without rounding, or None where one is not finite. is_share: every row is 0 or
    1 over 1, so that the ratio is a share of rows.

    >>> Quotient(1.0, 3.0, (Fraction(1), Fraction(3)), rows=3).ratio
    0.3333333333333333
    """

    numerator: float = field(metadata=View(better=NONE))
    denominator: float = field(metadata=View(better=NONE))
    exact: tuple[Fraction, Fraction] | None = field(repr=False)
    rows: int = field()
    is_share: bool = False

    @property
    @View(better=NONE, range=_range_of_share, undefined="the denominator is 0")
    def ratio(self) -> float:
        """The exact numerator over the exact denominator, rounded once; nan where that is 0."""
        if self._sums is not None:
            return ratio(self._sums[0], self._sums[1])
        if self.exact is None:
            return self.numerator / self.denominator if self.denominator else math.nan
        return ratio(*self.exact)

    def _interval(self, asked: Asked) -> Interval | None:
        if self.exact is None or asked.view.name != "ratio":
            return None
        if not self.is_share and self.rows:
            why = "rows are not all 0 or 1 over 1, and sums of squares are not kept"
            return asked.none(f"{why}; {_SQUARES}, and {USERS}", n=self.rows)
        return asked.share(int(self.exact[0]), self.rows)


class _ErrorSums:
    """Σ |y - s|, Σ y, Σ y², Σ s² and Σ y s, each at all SCALES, before they are fractions; and the
    sum of cubes, None if it is unknown."""

    _sums: tuple[Sequence[Sequence[Dyadic]], Dyadic | None]

    @cached_property
    def absolute(self) -> Fraction | None:
        return self._total(0)

    @cached_property
    def squares(self) -> Fraction | None:
        return self._total(2) - 2 * self._total(4) + self._total(3)

    @cached_property
    def labels(self) -> Fraction:
        return self._total(1)

    @cached_property
    def label_squares(self) -> Fraction:
        return self._total(2)

    @cached_property
    def _cubes(self) -> Fraction | None:
        cubes = self._sums[1]
        return None if cubes is None else dyadic(*cubes)

    def _total(self, i: int) -> Fraction:
        return of_scales([dyadic(*part) for part in self._sums[0][i]])


@dataclass(frozen=True, eq=False, repr=False)
class RegressionErrors(_ErrorSums, OfWeightedRows):
    """Errors of scores s against labels y; n rows, weights included.

    absolute: Σ |y - s|. squares: Σ (y - s)². labels: Σ y. label_squares: Σ y². All are exact and
    in units of weight, `weight_unit` each; None: infinite, because a score is. Every figure is
    rounded once, and infinite past the largest float.

    >>> sums = [Fraction(x) for x in (2, 2, 6, 14)]
    >>> result = RegressionErrors(3, *sums)  # y = 1, 2, 3 and s = 2, 2, 4
    >>> result.mae, result.mse, result.rmse, result.r2
    (0.6666666666666666, 0.6666666666666666, 0.816496580927726, 0.0)
    """

    _n: int  # units of weight
    absolute: Fraction | None = field()
    squares: Fraction | None = field()
    labels: Fraction = field()
    label_squares: Fraction = field()
    weight_unit: Fraction = Fraction(1)
    _surplus: int = 0  # of units over rows
    rows_rounded: int | None = None
    # Σ |y - s|³ over rows, each rounded; None: unknown.
    _cubes: Fraction | None = field(default_factory=lambda: None, repr=False)

    @property
    @View(better=LOWER, range=POSITIVE)
    def mae(self) -> float:
        """Mean absolute error, 1/n Σ |y - s|."""
        return math.inf if self.absolute is None else ratio(self.absolute, self._units)

    @property
    @View(better=LOWER, range=POSITIVE)
    def mse(self) -> float:
        """Mean squared error, 1/n Σ (y - s)²."""
        return math.inf if self.squares is None else ratio(self.squares, self._units)

    @property
    @View(better=LOWER, range=POSITIVE)
    def rmse(self) -> float:
        """√mse, of the exact fraction."""
        if self.squares is None:
            return math.inf
        top, bottom = self.squares.numerator, self.squares.denominator * self._units
        if bottom and not top:
            return 0.0
        return over_root(top, top * bottom)

    @property
    @View(better=HIGHER, undefined="all labels are equal, or a score is infinite")
    def r2(self) -> float:
        """1 - Σ (y - s)² / Σ (y - mean y)²; nan where all labels are equal."""
        if not self._units:
            return math.nan
        spread = self.label_squares - self.labels * self.labels / self._units
        if not spread:
            return math.nan
        return -math.inf if self.squares is None else ratio(spread - self.squares, spread)

    @property
    def _units(self) -> int:
        return self._n

    def _interval(self, asked: Asked) -> Interval | None:
        n, name = self._units, asked.view.name
        if name != "mae" or self.absolute is None or self.squares is None:
            return None
        variance = mean_variance(n, self.absolute, self.squares)
        return asked.spread(variance, n, df=n - 1.0, methods=("t",))

    def _skewness_number(self, view: ViewText) -> float:
        if view.name != "mae" or self._surplus or self.absolute is None or self.squares is None:
            return math.nan
        return skewness_number_of_rounded(self._units, self.absolute, self.squares, self._cubes)
