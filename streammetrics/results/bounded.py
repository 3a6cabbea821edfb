"""A value that is approximate, with an interval that holds the exact one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounded:
    """low <= exact <= high, for every input and the rounding of the arithmetic included.

    >>> area = Bounded(0.5, low=0.25, high=0.75)
    >>> float(area), area.width
    (0.5, 0.5)
    """

    value: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.value

    @property
    def width(self) -> float:
        """How much is not known: high - low."""
        return self.high - self.low
