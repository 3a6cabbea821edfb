"""Several exact sums in each state, one for each cell of a table; none where it has no cells."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ldexp, prod
from typing import TYPE_CHECKING, Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.bytes.codec import Reader, Writer, damaged
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts.part import Column, Part, Slots

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared


_SUM: Final = ExactSum()


class ExactSumsColumn(Column):
    """`width` rows of `cells` exact sums: sum j of state i stands at i * cells + j of `sums`."""

    def __init__(self, cells: int, width: int, sums: ExactSumColumn) -> None:
        self.cells, self.width, self.sums = cells, width, sums

    @property
    def total_count(self) -> int:
        return self.sums.total_count

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


# What metrics of totals share: whole numbers without end in a table of exact sums, and no rows.

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
        finite = all(sums.finite(cell, slot) for cell in range(sums.cells))
        if not finite or any(v < 0 or v.denominator != 1 for v in sums.fractions(slot)):
            raise damaged("totals that are no whole numbers")


def unlimited(metric: Accumulator) -> SettingsError:
    """The error for a metric with a limit of rows, which the parts of a whole would not meet."""
    return SettingsError(
        expected="max_rows=None, since each part that is sealed has fewer rows than the whole",
        got=f"max_rows={metric.settings()['max_rows']}",
        where=f"{type(metric).__name__}, to be sealed",
        hint="leave max_rows out; a task holds the rows of its bucket only",
    )


class WithoutRows(Accumulator):
    """What takes no rows: states of it are made from others, and merge."""

    def update(self, **columns: object) -> None:
        """Refuse all rows: they are complete."""
        self._refuse()

    def check(self, **columns: object) -> Batch:
        """Refuse all rows."""
        self._refuse()

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(
            expected="a state that takes rows",
            got=f"a sealed one of {type(self).__name__}",
            where="update",
            hint="compute the whole scope again from its rows, and seal that",
        )
