"""Base classes of results of rows with weights, which may have been rounded to units."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction

from streammetrics.core.errors import shown
from streammetrics.core.weights import units_counted
from streammetrics.results.has_intervals import HasIntervals


class RoundedWeights(HasIntervals):
    """A result of rows whose weights may have been rounded to units.

    Every figure is that of the rounded weights, and is exact for them.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def weight_unit(self) -> Fraction:
        """The weight of one unit."""

    @property
    @abstractmethod
    def rows_rounded(self) -> int | None:
        """Rows whose weight was rounded, including those rounded to 0 units; None without
        round_weights=True."""

    @property
    def rounded_by_at_most(self) -> Fraction | None:
        """The greatest error of the weight of each of `rows_rounded`: half a unit; None without
        round_weights=True."""
        return None if self.rows_rounded is None else self.weight_unit / 2

    def _notes(self) -> Iterator[str]:
        if self.weight_unit != 1:
            unit = shown(self.weight_unit.numerator), shown(self.weight_unit.denominator)
            yield f"counts are in units of weight, {'/'.join(unit)} each"


class OfWeightedRows(RoundedWeights):
    """A result with rounded weights that holds its counts or sums in units of weight."""

    __slots__ = ()

    @property
    @abstractmethod
    def _units(self) -> int: ...

    @property
    @abstractmethod
    def _surplus(self) -> int:
        """The surplus of units over rows."""

    @property
    def rows(self) -> int:
        """The counted rows, without those whose weight is zero or was rounded to zero."""
        return self._units - self._surplus

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None if every row weighs 1, so that they are the rows."""
        return units_counted(self._units, self.rows, self.weight_unit)

    @property
    def weight(self) -> Fraction:
        """The total weight of all rows, exact; rounded weights count as rounded."""
        return self._units * self.weight_unit


class OfUnits(RoundedWeights):
    """A result that holds its counts in units of weight, unless `reason` says why not."""

    __slots__ = ()

    rows: int
    reason: str

    @property
    @abstractmethod
    def _units(self) -> int: ...

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None if every row weighs 1, or if they are no longer known."""
        return None if self.reason else units_counted(self._units, self.rows, self.weight_unit)

    @property
    def weight(self) -> Fraction | None:
        """The total weight of all rows, exact; None if it is no longer known."""
        return None if self.reason else self._units * self.weight_unit
