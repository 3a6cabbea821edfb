"""Validators: what a plain array certainly is, found in one or two passes.

They decide whether rows can take the buffer's fast path, and which columns a `Panel` reads once for
all its metrics.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf, isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import ONE_BITS_32, ONE_BITS_64
from streammetrics.core.conversion import has_booleans, plain_array

# Native arrays have these very dtype objects, and `is` is faster than `==`.
_BOOL, _UINT8, _INT64 = np.dtype(np.bool_), np.dtype(np.uint8), np.dtype(np.int64)
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_ZERO, _ONE = np.zeros(()), np.ones(())  # compared in half the time of Python's numbers
_EXACT: Final = 1 << 53
BITS: Final = {bit: np.full(1, bit, np.uint8) for bit in (0, 1)}


class Validator(IntEnum):
    """A property that a plain array [n] certainly has; BINARY implies UNIT, and so on to NUMBERS.

    A validator knows only common columns. All others are left to the input's own check, which is
    slower, accepts more, and reports errors.
    """

    INTEGERS = 0  # of 64 bits, none of them a boolean
    NUMBERS = 1  # none of them NaN
    FINITE = 2
    AMOUNTS = 3  # finite, at least 0, and no float is -0.0
    UNIT = 4  # floats within [0, 1]; -0.0 becomes 0.0
    BINARY = 5  # 0 or 1, or False or True


def validated(column: object, validator: Validator) -> NDArray[np.generic] | None:
    """The column as an array, labels as uint8; None unless the check would certainly accept it."""
    array = plain_array(column)
    if array is None or array.ndim != 1 or not len(array):
        return None
    if validator is Validator.INTEGERS and has_booleans(column, array):
        return None
    return VALIDATORS[validator](array)


def strongest(validators: set[Validator]) -> Validator | None:
    """The validator that implies all of these; None if there is none."""
    if len(validators) > 1 and Validator.INTEGERS in validators:
        return None
    return max(validators)


def _integers(column: NDArray[Any]) -> NDArray[Any] | None:
    return column if column.dtype is _INT64 else None


def _numbers(column: NDArray[Any]) -> NDArray[Any] | None:
    kind = column.dtype
    if kind is _FLOAT64 or kind is _FLOAT32:
        return None if isnan(column.item(column.argmax())) else column  # argmax stops at a NaN
    if kind.kind not in "biu":
        return None
    if kind.itemsize < 8:
        return column
    low, high = column.item(column.argmin()), column.item(column.argmax())
    return column if low >= -_EXACT and high <= _EXACT else None  # exact in float64


def _finite(column: NDArray[Any]) -> NDArray[Any] | None:
    if column.dtype is not _FLOAT64 and column.dtype is not _FLOAT32:
        return _numbers(column)
    high, low = column.item(column.argmax()), column.item(column.argmin())
    return column if -inf < low and high < inf else None


def _amounts(column: NDArray[Any]) -> NDArray[Any] | None:
    kind = column.dtype
    if kind is not _FLOAT64 and kind is not _FLOAT32:
        numbers = _numbers(column)
        return None if numbers is None or numbers.item(numbers.argmin()) < 0 else numbers
    # As unsigned integers, the bits of negative numbers and of NaN exceed those of infinity.
    words, infinite = (_UINT32, 0x7F800000) if kind is _FLOAT32 else (_UINT64, 0x7FF << 52)
    bits = column.view(words)
    return column if bits.item(bits.argmax()) < infinite else None


def _unit(column: NDArray[Any]) -> NDArray[Any] | None:
    kind = column.dtype
    if kind is not _FLOAT64 and kind is not _FLOAT32:
        return None
    if len(column) == 1 and 0 < column.item() <= 1:  # half the time for a single row
        return column
    # As unsigned integers, the bits of floats in [0, 1] except -0.0 are at most those of 1.
    words, limit = (_UINT32, ONE_BITS_32) if kind is _FLOAT32 else (_UINT64, ONE_BITS_64)
    bits = column.view(words)
    if bits.item(bits.argmax()) <= limit:
        return column
    if column.item(column.argmin()) != 0 or column.item(column.argmax()) > 1:
        return None
    positive: NDArray[Any] = column + kind.type(0)  # 0.0 for -0.0
    return positive


def _binary(column: NDArray[Any]) -> NDArray[Any] | None:
    kind = column.dtype
    if kind is _UINT8:
        return column if column.item(column.argmax()) <= 1 else None
    if len(column) == 1 and kind.kind in "uif" and kind.itemsize <= 8:  # half the time for one row
        return BITS.get(column.item())
    if kind is _INT64:
        words = column.view(_UINT64)  # in which negative numbers are large
        return column.astype(_UINT8) if words.item(words.argmax()) <= 1 else None
    if kind is _BOOL:
        return column.view(_UINT8)
    if kind is not _FLOAT64 and kind is not _FLOAT32:
        return None
    ones, is_binary = np.equal(column, _ONE), np.equal(column, _ZERO)
    is_binary |= ones
    return ones.view(_UINT8) if is_binary.item(is_binary.argmin()) else None  # faster than `all`


# By the validator's number.
VALIDATORS: Final = (_integers, _numbers, _finite, _amounts, _unit, _binary)
