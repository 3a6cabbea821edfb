"""MeanResult: the mean of a value of each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from streammetrics.core.interval import Interval
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.sums_variance import mean_variance
from streammetrics.present.direction import Directions, directed
from streammetrics.results.interval import Asked, HasIntervals
from streammetrics.results.weighted import units_counted


@dataclass(frozen=True, slots=True)
class MeanResult(HasIntervals):
    """The mean of a value of each row, with its interval.

    total, squares: Σ v and Σ v², exactly and in units of weight, `weight_unit` each; squares None:
    beyond the floats.

    >>> MeanResult(4, Fraction(1), Fraction(1)).mean
    0.25
    """

    directions: ClassVar[Directions] = directed(none="mean")
    _units: int
    total: Fraction
    squares: Fraction | None = field(repr=False)
    weight_unit: Fraction = Fraction(1)
    _excess: int = field(default=0, repr=False)  # of units over rows

    @property
    def mean(self) -> float:
        """The exact sum over the rows, or their weight, rounded once; nan without rows."""
        return ratio(self.total, self._units)

    @property
    def rows(self) -> int:
        """All that were counted; those of weight zero are not."""
        return self._units - self._excess

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None where every row weighs 1, so that they are the rows."""
        return units_counted(self._units, self.rows, self.weight_unit)

    def _interval(self, asked: Asked) -> Interval | None:
        n = self._units
        if asked.view.name != "mean" or self.squares is None:
            return None
        variance = mean_variance(n, self.total, self.squares)
        return asked.spread(variance, n, df=n - 1.0, methods=("t",))

    def __repr__(self) -> str:
        unit = "" if self.weight_unit == 1 else f", weight_unit={self.weight_unit!r}"
        return f"MeanResult(mean={self.mean!r}, rows={self.rows}{unit})"
