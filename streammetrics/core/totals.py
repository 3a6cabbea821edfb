"""What metrics of totals share: whole numbers without end in a table of exact sums, and no rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import ldexp
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

from streammetrics.core.codec import damaged
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.core.exact_sums import ExactSumsColumn

if TYPE_CHECKING:
    from streammetrics.core.accumulator import Accumulator

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
        came=f"max_rows={metric.settings()['max_rows']}",
        where=f"{type(metric).__name__}, to be sealed",
        todo="leave max_rows out; a task holds the rows of its bucket only",
    )


def no_rows(state: Accumulator) -> NoReturn:
    """Refuse rows: what is sealed is complete."""
    raise InputError(
        expected="a state that takes rows",
        came=f"a sealed one of {type(state).__name__}",
        where="update",
        todo="compute the whole scope again from its rows, and seal that",
    )
