"""What results say of rows and weights: rows are rows, and weights are counted in units."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from streammetrics.results.interval import HasIntervals


class RoundedWeights(HasIntervals):
    """A result of rows whose weights may have been rounded to units.

    Every figure is that of the rounded weights, and is exact for them.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def weight_unit(self) -> Fraction:
        """What one unit weighs."""

    @property
    @abstractmethod
    def rows_rounded(self) -> int | None:
        """Rows whose weight was rounded, those that became 0 units included; None without
        round_weights=True."""

    @property
    def rounded_by_at_most(self) -> Fraction | None:
        """How much more or less each of `rows_rounded` may weigh: half a unit; None without
        round_weights=True."""
        return None if self.rows_rounded is None else self.weight_unit / 2

    def _said_of_weights(self) -> str:
        """The end of a repr: how many rows were rounded, and the unit, where there is one."""
        rounded = "" if self.rows_rounded is None else f", rows_rounded={self.rows_rounded}"
        unit = "" if self.weight_unit == 1 else f", weight_unit={self.weight_unit!r}"
        return rounded + unit


class OfWeightedRows(RoundedWeights):
    """The same of a result that holds its counts or sums in units of weight."""

    __slots__ = ()

    @property
    @abstractmethod
    def _units(self) -> int: ...

    @property
    @abstractmethod
    def _surplus(self) -> int:
        """Of units over rows."""

    @property
    def rows(self) -> int:
        """All that were counted; those of weight zero, or that were rounded to it, are not."""
        return self._units - self._surplus

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None where every row weighs 1, so that they are the rows."""
        return units_counted(self._units, self.rows, self.weight_unit)

    @property
    def weight(self) -> Fraction:
        """The weight of all rows together, exactly; rounded weights as they were rounded."""
        return self._units * self.weight_unit


def units_counted(units: int, rows: int, unit: Fraction) -> int | None:
    """The units where they say more than the rows do; None where every row weighs 1."""
    return None if units == rows and unit == 1 else units
