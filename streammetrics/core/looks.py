"""What one look at a column tells, so that each of several metrics that read it need not look.

A metric says what its columns must be so that `check` certainly takes them (`_looks`). Where all of
them are, its rows can be made later, of many batches at once. A look takes only what is common: an
array of numbers. All else is left to `check`, which is slower, takes more, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from math import inf, isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.stage import clean_labels, in_unit

_ARRAY: Final = np.ndarray
_FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))
_INT64: Final = np.dtype(np.int64)


class Look(IntEnum):
    """What a column [n] is; from NUMBERS on, each is all of those before it."""

    INTEGERS = 0  # of 64 bits
    NUMBERS = 1  # none of them NaN
    FINITE = 2
    UNIT = 3  # floats within [0, 1], none of them -0.0
    BINARY = 4  # 0 or 1, or False or True


def look_at(column: object, look: Look) -> NDArray[np.generic] | None:
    """The column, labels as uint8; None where it is not sure that it is what it should be."""
    if type(column) is not _ARRAY or column.ndim != 1 or not len(column):
        return None
    return _LOOKS[look](column)


def joined(looks: set[Look]) -> Look | None:
    """What a column must be to be all of these; None where no look tells that."""
    return None if len(looks) > 1 and Look.INTEGERS in looks else max(looks)


def _integers(column: NDArray[Any]) -> NDArray[Any] | None:
    return column if column.dtype is _INT64 else None


def _numbers(column: NDArray[Any]) -> NDArray[Any] | None:
    if column.dtype in _FLOATS:
        return None if isnan(column.item(column.argmax())) else column
    return column if column.dtype.kind in "biu" else None


def _finite(column: NDArray[Any]) -> NDArray[Any] | None:
    if column.dtype not in _FLOATS:
        return _numbers(column)
    high, low = column.item(column.argmax()), column.item(column.argmin())
    return column if -inf < low and high < inf else None  # argmax and argmin stop at a NaN


def _unit(column: NDArray[Any]) -> NDArray[Any] | None:
    return column if in_unit(column) else None


def _binary(column: NDArray[Any]) -> NDArray[Any] | None:
    if column.dtype not in _FLOATS:
        return clean_labels(column)
    ones = column == 1
    return ones.view(np.uint8) if bool((ones | (column == 0)).all()) else None


_LOOKS: Final[Mapping[Look, Callable[[NDArray[Any]], NDArray[Any] | None]]] = {
    Look.INTEGERS: _integers,
    Look.NUMBERS: _numbers,
    Look.FINITE: _finite,
    Look.UNIT: _unit,
    Look.BINARY: _binary,
}
