"""RegressionErrors: absolute and squared errors of predicted numbers, and R²."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from streammetrics.kernels.rounding import over_root, ratio
from streammetrics.results.units import units_counted


@dataclass(frozen=True, slots=True)
class RegressionErrors:
    """Errors of scores s against labels y; n rows, weights included.

    absolute: Σ |y - s|. squares: Σ (y - s)². labels: Σ y. label_squares: Σ y². All are exact and
    in units of weight, `weight_unit` each, as `units` is; None is infinite. Every figure is
    rounded once.

    >>> sums = [Fraction(x) for x in (2, 2, 6, 14)]
    >>> result = RegressionErrors(3, *sums)  # y = 1, 2, 3 and s = 2, 2, 4
    >>> result.mae, result.mse, result.rmse, result.r2
    (0.6666666666666666, 0.6666666666666666, 0.816496580927726, 0.0)
    """

    units: int
    absolute: Fraction | None
    squares: Fraction | None
    labels: Fraction
    label_squares: Fraction | None
    weight_unit: Fraction = Fraction(1)
    _excess: int = field(default=0, repr=False)  # of units over rows

    @property
    def mae(self) -> float:
        """Mean absolute error, 1/n Σ |y - s|."""
        return math.inf if self.absolute is None else ratio(self.absolute, self.units)

    @property
    def mse(self) -> float:
        """Mean squared error, 1/n Σ (y - s)²."""
        return math.inf if self.squares is None else ratio(self.squares, self.units)

    @property
    def rmse(self) -> float:
        """√mse, of the exact fraction."""
        if self.squares is None:
            return math.inf
        top, bottom = self.squares.numerator, self.squares.denominator * self.units
        if bottom and not top:
            return 0.0
        return over_root(top, top * bottom)

    @property
    def r2(self) -> float:
        """1 - Σ (y - s)² / Σ (y - mean y)²; nan where all labels are equal."""
        if self.label_squares is None or not self.units:
            return math.nan
        spread = self.label_squares - self.labels * self.labels / self.units
        if not spread:
            return math.nan
        return -math.inf if self.squares is None else ratio(spread - self.squares, spread)

    @property
    def rows(self) -> int:
        """All that were counted; those of weight zero are not."""
        return self.units - self._excess

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None where every row weighs 1, so that they are the rows."""
        return units_counted(self.units, self.rows, self.weight_unit)

    @property
    def weight(self) -> Fraction:
        """The weight of all rows together, exactly."""
        return self.units * self.weight_unit
