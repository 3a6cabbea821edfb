"""What one look at a column tells, so that the metrics that read it need not check it each.

A metric says what its columns must be so that `check` certainly takes them (`_looks`). Where all of
them are, its rows can be made later, of many batches at once. A look takes only what is common: an
array of numbers. All else is left to `check`, which is slower, takes more, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from math import inf, isnan
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Keep: TypeAlias = Callable[[object], bytes | None]

_ARRAY: Final = np.ndarray
# The dtypes of native arrays are these very objects, and `is` is quicker than `==`.
_BOOL, _UINT8, _INT64 = np.dtype(np.bool_), np.dtype(np.uint8), np.dtype(np.int64)
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_EXACT: Final = 1 << 53
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
# 1.0: floats in [0, 1], but -0.0, have bits up to these.
ONE_BITS_32: Final = 0x3F800000
ONE_BITS_64: Final = 0x3FF0000000000000


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


def keeper(look: Look, kind: object) -> Keep:
    """What makes a column [n], n at least 1, the bytes that `check` would make of it.

    kind: the dtype of such a column once it is checked. None for a column that does not pass the
    look, or that `check` would make of another dtype.
    """

    def keep(column: object) -> bytes | None:
        if type(column) is not _ARRAY or column.ndim != 1 or not len(column):
            return None
        found = see(column)
        if found is None:
            return None
        if found.dtype is not kind:
            given = found.dtype
            if kind is not _FLOAT64 or given.kind == "f" or given.itemsize == 1:
                return None
            found = found.astype(_FLOAT64)  # as every check has integers; bytes it may leave
        return found.tobytes()

    see = _LOOKS[look]
    return keep


def refuse(column: object) -> bytes | None:
    """Keep no column."""
    return None


def _integers(column: NDArray[Any]) -> NDArray[Any] | None:
    return column if column.dtype is _INT64 else None


def _numbers(column: NDArray[Any]) -> NDArray[Any] | None:
    kind = column.dtype
    if kind is _FLOAT64 or kind is _FLOAT32:
        return None if isnan(column.item(column.argmax())) else column
    if kind.kind not in "biu":
        return None
    if kind.itemsize < 8:
        return column
    low, high = column.item(column.argmin()), column.item(column.argmax())
    return column if low >= -_EXACT and high <= _EXACT else None  # each of these is a float64


def _finite(column: NDArray[Any]) -> NDArray[Any] | None:
    if column.dtype is not _FLOAT64 and column.dtype is not _FLOAT32:
        return _numbers(column)
    high, low = column.item(column.argmax()), column.item(column.argmin())
    return column if -inf < low and high < inf else None  # argmax and argmin stop at a NaN


def _unit(column: NDArray[Any]) -> NDArray[Any] | None:
    kind = column.dtype
    if kind is _FLOAT32:
        bits, one = column.view(_UINT32), ONE_BITS_32
    elif kind is _FLOAT64:
        bits, one = column.view(_UINT64), ONE_BITS_64
    else:
        return None
    return column if bits.item(bits.argmax()) <= one else None


def binary(column: NDArray[np.generic]) -> NDArray[np.generic] | None:
    """Labels, at least one, as uint8; None for what may be something else."""
    kind = column.dtype
    if kind is _UINT8:
        return column if column.item(column.argmax()) <= 1 else None
    if kind is _INT64:
        words = column.view(_UINT64)  # in which negative numbers are large
        return column.astype(_UINT8) if words.item(words.argmax()) <= 1 else None
    if kind is _BOOL:
        return column.view(_UINT8)
    if kind is not _FLOAT64 and kind is not _FLOAT32:
        return None
    ones = column == 1
    return ones.view(np.uint8) if bool((ones | (column == 0)).all()) else None


_LOOKS: Final = (_integers, _numbers, _finite, _unit, binary)  # by the number of the look
