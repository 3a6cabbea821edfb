"""Extremes: the least and the greatest of floats, in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer, require
from streammetrics.core.parts.many_slots import AnySlots, ManySlots
from streammetrics.core.parts.part import Column, Extreme, ExtremeColumn, Part, Slots
from streammetrics.core.parts.score_bits import are_codes, codes_of, floats_of, ordered_integers

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

Floats = NDArray[np.float64]
_ENDS: Final = Extreme("min"), Extreme("max")


class ExtremesColumn(Column):
    """The least and the greatest float of each slot: least, greatest [width], which are inf and
    -inf where nothing was added. -0.0 is 0.0."""

    def __init__(self, least: Floats, greatest: Floats) -> None:
        self.least, self.greatest = least, greatest
        self.width = len(least)

    @property
    def total_count(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return self.least.nbytes + self.greatest.nbytes

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether anything was added to each state: bool [width]."""
        return self.least <= self.greatest

    def add(self, values: NDArray[np.floating], slots: AnySlots | None = None) -> None:
        """Add values [n] to the states at `slots` [n], or to state 0; no NaN."""
        if isinstance(slots, ManySlots):
            for rows, row_slots in slots.each():
                self.add(values if rows is None else values[rows], row_slots)
            return
        if slots is None and len(values):
            values = values[[values.argmin(), values.argmax()]]
        targets = np.zeros(len(values), np.intp) if slots is None else slots
        floats = values.astype(np.float64, copy=False)
        beyond = floats < self.least.take(targets)
        beyond |= floats > self.greatest.take(targets)
        if beyond.any():  # few, once a slot has some rows
            self._extend(targets[beyond], floats[beyond], floats[beyond])

    def extremes_of(self, slots: Slots) -> tuple[Floats, Floats]:
        """The least and the greatest of these states, [slots] each; nan where nothing was added."""
        least, greatest = self.least[slots], self.greatest[slots]
        none = least > greatest
        least[none] = greatest[none] = np.nan
        return least, greatest

    def widen(self, width: int) -> None:
        infinities = np.full(width - self.width, np.inf)
        self.least = np.concatenate([self.least, infinities])
        self.greatest = np.concatenate([self.greatest, -infinities])
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        self._extend(to, other.least, other.greatest)

    def take(self, slots: Slots) -> Self:
        return type(self)(self.least[slots], self.greatest[slots])

    def encode(self, out: Writer) -> None:
        is_known = self.known
        for end, values in zip(_ENDS, (self.least, self.greatest), strict=True):
            ExtremeColumn(end.sign, ordered_integers(values), is_known).encode(out)

    def _extend(self, slots: Slots, low: Floats, high: Floats) -> None:
        np.minimum.at(self.least, slots, low + 0.0)  # not -0.0
        np.maximum.at(self.greatest, slots, high + 0.0)


class Extremes(Part[ExtremesColumn]):
    """The least and the greatest of the floats that were added."""

    def empty(self, owner: Declared, width: int) -> ExtremesColumn:
        return ExtremesColumn(np.full(width, np.inf), np.full(width, -np.inf))

    def idempotent(self, owner: Declared) -> bool:
        return True

    def decode(self, owner: Declared, width: int, data: Reader) -> ExtremesColumn:
        column = self.empty(owner, width)
        low, high = (end.decode(owner, width, data) for end in _ENDS)
        for extreme, values in ((low, column.least), (high, column.greatest)):
            ordered = extreme.values[extreme.known]
            require(are_codes(codes_of(ordered), "float64"), "extremes that are no floats")
            values[extreme.known] = floats_of(ordered)
        same = np.array_equal(low.known, high.known) and np.array_equal(low.known, column.known)
        require(same, "a least value without a greatest, or above it")
        return column
