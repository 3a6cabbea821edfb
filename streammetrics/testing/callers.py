"""The caller's side of an update: arrays of the types that callers hold, and what they do next."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.content import contents
from streammetrics.core.errors import StateError
from streammetrics.core.rows import Coded

_NARROW: Final = {"i": np.uint8, "f": np.float32}


def as_array(column: object, *, narrow: bool) -> object:
    """A list as the array that a caller would hold; anything else as a copy of itself.

    Of objects where the values are mixed; `narrow`: in a narrower type where that holds the same
    values, since some types are taken without a copy.
    """
    if not isinstance(column, list):
        return copy.deepcopy(column)
    kinds = set(map(type, column))
    short = kinds == {int} and all(-(1 << 63) <= value < 1 << 63 for value in column)
    if not short and kinds not in ({bool}, {float}, {str}):
        objects = np.empty(len(column), object)
        objects[:] = column
        return objects
    array = np.array(column)
    if narrow and array.dtype.kind in _NARROW:
        with np.errstate(all="ignore"):
            smaller = array.astype(_NARROW[array.dtype.kind])
        if smaller.astype(array.dtype).tobytes() == array.tobytes():
            return smaller
    return array


def is_kept(column: object, before: object) -> bool:
    """Whether an update left a column as it was."""
    if isinstance(column, Coded) and isinstance(before, Coded):
        return column.values == before.values and column.codes.tolist() == before.codes.tolist()
    if isinstance(column, np.ndarray) and isinstance(before, np.ndarray):
        if column.dtype != before.dtype or column.dtype.hasobject:
            return column.dtype == before.dtype and repr(column.tolist()) == repr(before.tolist())
        return column.shape == before.shape and column.tobytes() == before.tobytes()
    return column is before or repr(column) == repr(before)


def spoil(column: object) -> None:
    """Change an array, as a caller may who uses it again."""
    array = column.codes if isinstance(column, Coded) else column
    if isinstance(array, np.ndarray):
        array[...] = array[::-1].copy() if array.dtype.kind in "OU" else 1


def completed(state: Accumulator, empty: Accumulator, columns: Mapping[str, object]) -> Accumulator:
    """A state from bytes, ready for these columns.

    Some settings are known by the hash of their content alone then: an update must refuse, and
    goes on in the metric that has them.
    """
    if all(content.known for content in contents(state.settings())):
        return state
    before = state.to_bytes()
    try:
        state.update(**columns)
    except StateError:
        assert state.to_bytes() == before, (
            "an update without the content of a setting did something"
        )
        return empty + state
    raise AssertionError("an update went without the content of a setting")
