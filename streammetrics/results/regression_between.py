"""RegressionBetween: errors of predicted numbers of which the weights were rounded."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.figure import UNDEFINED
from streammetrics.kernels.rounding import root_down, root_up
from streammetrics.kernels.weight_ends import INFINITE, Ends, about, figure, quotient
from streammetrics.results.bounded import Bounded
from streammetrics.results.regression import RegressionErrors
from streammetrics.results.units import OfRoundedWeights


@dataclass(frozen=True, slots=True)
class RegressionBetween(OfRoundedWeights):
    """Figures between certain ends, whatever the rows weigh: half a unit more or less than what
    it was rounded to, at most. Each is `Bounded`, with the names of `RegressionErrors`.

    value: the figures and sums of the units. rounded: the same of the rounded rows, those that
    became 0 units included, as if each weighed one unit. A mean is between the least sum over the
    most weight and the most over the least; the spread of the labels grows with each weight.

    >>> from streammetrics import Regression
    >>> metric = Regression(round_weights=True)
    >>> metric.update([3, -0.5, 2, 7], [2.5, 0, 2, 8], weights=[1, 1.25, 1, 1])
    >>> metric.compute().mae
    Bounded(value=0.5, low=0.38888888888888884, high=0.6428571428571429)
    """

    value: RegressionErrors
    rounded: RegressionErrors

    @property
    def mae(self) -> Bounded:
        """Mean absolute error, 1/n Σ |y - s|."""
        ends = self._mean(self.value.absolute, self.rounded.absolute)
        return Bounded(*(UNDEFINED if ends is None else figure(self.value.mae, ends)))

    @property
    def mse(self) -> Bounded:
        """Mean squared error, 1/n Σ (y - s)²."""
        ends = self._mean(self.value.squares, self.rounded.squares)
        return Bounded(*(UNDEFINED if ends is None else figure(self.value.mse, ends)))

    @property
    def rmse(self) -> Bounded:
        """√mse."""
        ends = self._mean(self.value.squares, self.rounded.squares)
        if ends is None:
            return Bounded(*UNDEFINED)
        low = ends.low if isinstance(ends.low, float) else root_down(Fraction(ends.low))
        high = ends.high if isinstance(ends.high, float) else root_up(Fraction(ends.high))
        return Bounded(self.value.rmse, low, high)

    @property
    def r2(self) -> Bounded:
        """1 - Σ (y - s)² / Σ (y - mean y)²; undefined where all labels are equal."""
        spread = self._spread
        if not spread.high:
            return Bounded(*UNDEFINED)
        squares = _sum(self.value.squares, self.rounded.squares)
        missed = INFINITE if squares == INFINITE else quotient(squares, spread)
        return Bounded(*figure(self.value.r2, Ends(1 - missed.high, 1 - missed.low)))

    @property
    def rows_rounded(self) -> int:
        """Rows whose weight was rounded, those that became 0 units included."""
        return self.rounded._units

    def __repr__(self) -> str:
        figures = f"mae={self.mae!r}, mse={self.mse!r}, rmse={self.rmse!r}, r2={self.r2!r}"
        rows = f"rows={self.rows}, rows_rounded={self.rows_rounded}"
        unit = "" if self.weight_unit == 1 else f", weight_unit={self.weight_unit!r}"
        return f"RegressionBetween({figures}, {rows}{unit})"

    def _mean(self, units: Fraction | None, rounded: Fraction | None) -> Ends | None:
        """Ends of a mean; None where there are no rows."""
        below = about(self.value._units, self.rounded._units)
        if not below.high:
            return None
        above = _sum(units, rounded)
        return INFINITE if above == INFINITE else quotient(above, below)

    @property
    def _spread(self) -> Ends:
        """Ends of Σ (y - mean y)², which is the least Σ (y - c)² of all c, so that it grows with
        each weight; 0 without rows."""
        one, other = self.value, self.rounded
        low, high = (
            one.label_squares
            + side * other.label_squares
            - (one.labels + side * other.labels) ** 2 / (one._units + side * other._units)
            if one._units + side * other._units > 0
            else Fraction(0)
            for side in (Fraction(-1, 2), Fraction(1, 2))
        )
        return Ends(max(low, Fraction(0)), high)  # no row weighs less than nothing


def _sum(units: Fraction | None, rounded: Fraction | None) -> Ends:
    """A row of a unit weighs something, so that an infinite error of it is infinite."""
    return INFINITE if units is None else about(units, rounded)
