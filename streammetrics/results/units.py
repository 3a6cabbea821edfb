"""What results say of weights: rows are rows, and weights are counted in units."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from streammetrics.results.bounded import Bounded
from streammetrics.results.interval import Asked, HasIntervals, Interval, widened
from streammetrics.results.view_texts import value_of


class Counted(Protocol):
    """A result that says of how many rows and of what weight it is."""

    @property
    def rows(self) -> int: ...
    @property
    def weight_units(self) -> int | None: ...
    @property
    def weight(self) -> Fraction: ...
    @property
    def weight_unit(self) -> Fraction: ...


class HasValue(Protocol):
    """A result whose value is another one: that of the weights as they were rounded."""

    @property
    def value(self) -> Counted: ...


class OfRoundedWeights(HasIntervals):
    """What results of rounded weights say of their rows: what their `value` says."""

    __slots__ = ()

    @property
    def rows(self: HasValue) -> int:
        """All that were counted; those of weight zero, or that were rounded to it, are not."""
        return self.value.rows

    @property
    def weight_units(self: HasValue) -> int | None:
        """All units of weight; None where every row weighs 1."""
        return self.value.weight_units

    @property
    def weight(self: HasValue) -> Fraction:
        """The weight of all rows together, as it was rounded."""
        return self.value.weight

    @property
    def weight_unit(self: HasValue) -> Fraction:
        """What one unit weighs."""
        return self.value.weight_unit

    def _interval(self: HasValue, asked: Asked) -> Interval | None:
        """That of the value, widened by what the view's bounds leave open."""
        value, bounds = self.value, value_of(self, asked.view.text)
        assert isinstance(value, HasIntervals)
        found = value._interval(asked)
        return widened(found, bounds) if found and isinstance(bounds, Bounded) else found


def units_counted(units: int, rows: int, unit: Fraction) -> int | None:
    """The units where they say more than the rows do; None where every row weighs 1."""
    return None if units == rows and unit == 1 else units
