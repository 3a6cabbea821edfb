"""Several exact sums in each state, one for each cell of a table; none where it has no cells."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ldexp, prod
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bytes.codec import Reader, damaged
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts.part import Part, SeveralColumn, Slots

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared


_SUM: Final = ExactSum()


class ExactSumsColumn(SeveralColumn[ExactSumColumn]):
    """`width` states of `n` exact sums each, one for each cell."""

    def add(
        self, values: NDArray[np.float64], cells: NDArray[np.intp], slots: Slots | None = None
    ) -> None:
        """Add values [m] to these cells [m] of the states at `slots` [m], or of state 0; no NaN."""
        self.inner.add(values, cells if slots is None else slots * self.n + cells)

    def fractions(self, slot: int = 0) -> tuple[Fraction, ...]:
        """The exact sums of one state's finite values; [n]."""
        first = slot * self.n
        return tuple(self.inner.fraction(i) for i in range(first, first + self.n))

    def finite(self, cell: int, slot: int = 0) -> bool:
        """Whether no infinity was added to this cell."""
        return self.inner.finite(slot * self.n + cell)


class ExactSums(Part[ExactSumsColumn]):
    """A table of exact sums; its axes are as those of Counts."""

    def __init__(self, *axes: int | str) -> None:
        self.table = Counts(*axes)

    def empty(self, owner: Declared, width: int) -> ExactSumsColumn:
        cells = prod(self.table.shape(owner))
        return ExactSumsColumn(_SUM.empty(owner, width * cells), cells, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> ExactSumsColumn:
        cells = prod(self.table.shape(owner))
        return ExactSumsColumn(_SUM.decode(owner, width * cells, data), cells, width)


# Whole numbers without end in a table of exact sums.

_DIGITS: Final = 53  # binary digits of a float64


def add_whole(sums: ExactSumsColumn, values: Sequence[int]) -> None:
    """Add integers of at least 0 and below 2**1024, one for each cell, to state 0."""
    floats: list[float] = []
    cells: list[int] = []
    for cell, value in enumerate(values):
        place = 0
        while value >> place:
            floats.append(ldexp(value >> place & (1 << _DIGITS) - 1, place))
            cells.append(cell)
            place += _DIGITS
    sums.add(np.array(floats, np.float64), np.array(cells, np.intp))


def require_whole(sums: ExactSumsColumn) -> None:
    """StateError for bytes of other numbers than `add_whole` adds."""
    for slot in range(sums.width):
        finite = all(sums.finite(cell, slot) for cell in range(sums.n))
        if not finite or any(v < 0 or v.denominator != 1 for v in sums.fractions(slot)):
            raise damaged("totals that are no whole numbers")
