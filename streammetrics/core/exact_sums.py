"""Several exact sums in each state, one for each cell of a table; none where it has no cells."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer
from streammetrics.core.counts import Counts
from streammetrics.core.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts import Column, Part, Slots

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

_SUM: Final = ExactSum()


class ExactSumsColumn(Column):
    """`width` rows of `cells` exact sums: sum j of state i stands at i * cells + j of `sums`."""

    def __init__(self, cells: int, width: int, sums: ExactSumColumn) -> None:
        self.cells, self.width, self.sums = cells, width, sums

    @property
    def mass(self) -> int:
        return self.sums.mass

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes

    def add(
        self, values: NDArray[np.float64], cells: NDArray[np.intp], slots: Slots | None = None
    ) -> None:
        """Add values [n] to these cells [n] of the states at `slots` [n], or of state 0; no NaN."""
        self.sums.add(values, cells if slots is None else slots * self.cells + cells)

    def fractions(self, slot: int = 0) -> tuple[Fraction, ...]:
        """The exact sums of one state's finite values; [cells]."""
        first = slot * self.cells
        return tuple(self.sums.fraction(i) for i in range(first, first + self.cells))

    def finite(self, cell: int, slot: int = 0) -> bool:
        """Whether no infinity was added to this cell."""
        return self.sums.finite(slot * self.cells + cell)

    def widen(self, width: int) -> None:
        self.sums.widen(width * self.cells)
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        self.sums.merge(other.sums, self._all(to))

    def take(self, slots: Slots) -> Self:
        return type(self)(self.cells, len(slots), self.sums.take(self._all(slots)))

    def encode(self, out: Writer) -> None:
        self.sums.encode(out)

    def _all(self, slots: Slots) -> NDArray[np.intp]:
        """Where all sums of these states stand."""
        return (slots[:, None] * self.cells + np.arange(self.cells)).reshape(-1)


class ExactSums(Part[ExactSumsColumn]):
    """A table of exact sums; its axes are as those of Counts."""

    def __init__(self, *axes: int | str) -> None:
        self.table = Counts(*axes)

    def empty(self, owner: Declared, width: int) -> ExactSumsColumn:
        cells = prod(self.table.shape(owner))
        return ExactSumsColumn(cells, width, _SUM.empty(owner, width * cells))

    def decode(self, owner: Declared, width: int, data: Reader) -> ExactSumsColumn:
        cells = prod(self.table.shape(owner))
        return ExactSumsColumn(cells, width, _SUM.decode(owner, width * cells, data))
