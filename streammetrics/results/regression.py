"""RegressionErrors: absolute and squared errors of predicted numbers, and R²."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from streammetrics.kernels.rounding import over_root, ratio
from streammetrics.kernels.sums_variance import mean_variance
from streammetrics.results.direction import Directions, directed
from streammetrics.results.interval import Asked, HasIntervals, Interval
from streammetrics.results.units import units_counted


@dataclass(frozen=True, slots=True)
class RegressionErrors(HasIntervals):
    """Errors of scores s against labels y; n rows, weights included.

    absolute: Σ |y - s|. squares: Σ (y - s)². labels: Σ y. label_squares: Σ y². All are exact and
    in units of weight, `weight_unit` each; None is infinite, where a score is. Every figure is
    rounded once, and infinite past the largest float.

    >>> sums = [Fraction(x) for x in (2, 2, 6, 14)]
    >>> result = RegressionErrors(3, *sums)  # y = 1, 2, 3 and s = 2, 2, 4
    >>> result.mae, result.mse, result.rmse, result.r2
    (0.6666666666666666, 0.6666666666666666, 0.816496580927726, 0.0)
    """

    directions: ClassVar[Directions] = directed(higher="r2", lower="mae mse rmse")
    _units: int
    absolute: Fraction | None
    squares: Fraction | None
    labels: Fraction
    label_squares: Fraction
    weight_unit: Fraction = Fraction(1)
    _excess: int = field(default=0, repr=False)  # of units over rows

    @property
    def mae(self) -> float:
        """Mean absolute error, 1/n Σ |y - s|."""
        return math.inf if self.absolute is None else ratio(self.absolute, self._units)

    @property
    def mse(self) -> float:
        """Mean squared error, 1/n Σ (y - s)²."""
        return math.inf if self.squares is None else ratio(self.squares, self._units)

    @property
    def rmse(self) -> float:
        """√mse, of the exact fraction."""
        if self.squares is None:
            return math.inf
        top, bottom = self.squares.numerator, self.squares.denominator * self._units
        if bottom and not top:
            return 0.0
        return over_root(top, top * bottom)

    @property
    def r2(self) -> float:
        """1 - Σ (y - s)² / Σ (y - mean y)²; nan where all labels are equal."""
        if not self._units:
            return math.nan
        spread = self.label_squares - self.labels * self.labels / self._units
        if not spread:
            return math.nan
        return -math.inf if self.squares is None else ratio(spread - self.squares, spread)

    @property
    def rows(self) -> int:
        """All that were counted; those of weight zero are not."""
        return self._units - self._excess

    @property
    def rows_rounded(self) -> None:
        """None: no weight was rounded; `RegressionBetween` says how many were."""
        return

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None where every row weighs 1, so that they are the rows."""
        return units_counted(self._units, self.rows, self.weight_unit)

    @property
    def weight(self) -> Fraction:
        """The weight of all rows together, exactly."""
        return self._units * self.weight_unit

    def _interval(self, asked: Asked) -> Interval | None:
        n, name = self._units, asked.view.name
        if name != "mae" or self.absolute is None or self.squares is None:
            return None
        variance = mean_variance(n, self.absolute, self.squares)
        return asked.spread(variance, n, df=n - 1.0, methods=("t",))

    def __repr__(self) -> str:
        figures = f"mae={self.mae!r}, mse={self.mse!r}, rmse={self.rmse!r}, r2={self.r2!r}"
        unit = "" if self.weight_unit == 1 else f", weight_unit={self.weight_unit!r}"
        return f"RegressionErrors({figures}, rows={self.rows}{unit})"
