"""How far a figure may be off where weights were rounded to units, by half a unit each at most.

Let a class have R rounded rows among W units. With w the units of a row and w* what it weighs,
Σ |w*/W* - w/W| <= Σ |w* - w| / W + |W - W*| / W <= R / W, so the share of the weight that any part
of the rows has is off by half of that at most, R / 2W. That is all that TPR or FPR can be off at
any threshold, and the figures that follow from them add up what they use.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final


@dataclass(frozen=True)
class Doubt:
    """Rounded rows of each class, and the units that the classes have."""

    of_positives: int = 0
    of_negatives: int = 0
    units_of_positives: int = 0
    units_of_negatives: int = 0

    def __bool__(self) -> bool:
        return bool(self.of_positives or self.of_negatives)

    @cached_property
    def tpr(self) -> Fraction:
        """How far a share of the positives may be off."""
        return _share(self.of_positives, self.units_of_positives)

    @cached_property
    def fpr(self) -> Fraction:
        """How far a share of the negatives may be off."""
        return _share(self.of_negatives, self.units_of_negatives)

    @property
    def both(self) -> Fraction:
        """The two together."""
        return self.tpr + self.fpr

    @cached_property
    def rows(self) -> Fraction:
        """How far a share of all rows may be off."""
        units = self.units_of_positives + self.units_of_negatives
        return _share(self.of_positives + self.of_negatives, units)

    @property
    def tp(self) -> int:
        """By how many units a sum over positives may be off, rounded up."""
        return -(-self.of_positives // 2)

    @property
    def fp(self) -> int:
        """By how many units a sum over negatives may be off, rounded up."""
        return -(-self.of_negatives // 2)


NONE: Final = Doubt()


def _share(rounded: int, units: int) -> Fraction:
    return min(Fraction(rounded, 2 * units), Fraction(1)) if units else Fraction(rounded > 0)
