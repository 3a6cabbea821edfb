"""A part that holds several exact sums side by side: one for each measure of a metric."""

from __future__ import annotations

from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer
from streammetrics.core.declared import Declared
from streammetrics.core.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts import Column, Part, Slots


class MeasureSumsColumn(Column):
    """`sums[j]` holds the sums of measure j, one for each of `width` slots."""

    def __init__(self, sums: list[ExactSumColumn], width: int) -> None:
        self.sums, self.width = sums, width

    @property
    def mass(self) -> int:
        return max((column.mass for column in self.sums), default=0)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.sums)

    def add(self, measure: int, values: NDArray[np.float64], slots: Slots | None) -> None:
        """Add values [n] of one measure to the states at `slots`, or all to state 0."""
        self.sums[measure].add(values, slots)

    def fraction(self, measure: int, slot: int = 0) -> Fraction:
        """The exact sum of one measure's values."""
        return self.sums[measure].fraction(slot)

    def widen(self, width: int) -> None:
        self.width = width
        for column in self.sums:
            column.widen(width)

    def merge(self, other: Self, to: Slots) -> None:
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.merge(theirs, to)

    def take(self, slots: Slots) -> Self:
        return type(self)([column.take(slots) for column in self.sums], len(slots))

    def encode(self, out: Writer) -> None:
        for column in self.sums:
            column.encode(out)


class MeasureSums(Part[MeasureSumsColumn]):
    """An exact sum for each entry of the owner's setting `measures`."""

    def empty(self, owner: Declared, width: int) -> MeasureSumsColumn:
        part = ExactSum()
        return MeasureSumsColumn([part.empty(owner, width) for _ in _measures(owner)], width)

    def decode(self, owner: Declared, width: int, data: Reader) -> MeasureSumsColumn:
        part = ExactSum()
        sums = [part.decode(owner, width, data) for _ in _measures(owner)]
        return MeasureSumsColumn(sums, width)


def _measures(owner: Declared) -> tuple[object, ...]:
    measures: tuple[object, ...] = owner.__dict__["measures"]
    return measures
