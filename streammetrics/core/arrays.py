"""Columns as people have them, as numpy arrays; no library but numpy is imported for it.

pandas, polars, pyarrow and torch all hand over an array when numpy asks (`__array__`), and what has
`to_numpy` or `__dlpack__` alone is asked for that. Two things get lost on that way, so they are
asked for by the names that these libraries have for them: values that are missing (of a column of
integers numpy would make floats and NaN), and gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import InputError, shown

# These say for themselves what they hold; other columns are asked for what is missing.
_KNOWN = (np.ndarray, list, tuple)


def vector(values: object, name: str) -> NDArray[np.generic]:
    """`values` as a 1-D array; a missing value is refused where a library knows of such."""
    array = values if type(values) is np.ndarray else _array(values, name)
    if array.ndim != 1:
        raise InputError(
            expected="a one-dimensional array [n]",
            came=shape_of(array),
            where=name,
            todo=_flattened(array, name),
        )
    if not isinstance(values, _KNOWN):
        _refuse_missing(_missing(values), name)
    return array


def shape_of(array: NDArray[np.generic]) -> str:
    """What an array that is none of rows is, for a message: its shape, or the one value in it."""
    if array.ndim:
        return f"shape {list(array.shape)}"
    value = array.item()
    return shown(value) if listed(array, "") is None else f"a {type(value).__name__}"


def listed(array: NDArray[np.generic], name: str) -> str | None:
    """What to do with what numpy takes for one value although it has several, as a generator."""
    value = None if array.ndim else array.item()
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    return f"pass a list, as list({name}) makes one" if several else None


def _flattened(array: NDArray[Any], name: str) -> str:
    todo = "pass one value for each row"
    if not array.ndim:
        single = todo if array.item() is None else f"{todo} (wrap a single value in a list)"
        return listed(array, name) or single
    if array.ndim == 2 and array.shape[1] == 1:
        return f"{todo}, as ravel() does"
    if array.ndim == 2 and name == "scores" and array.shape[1] == 2:
        return f"{todo}: of two classes the column of the positive class, proba[:, 1]"
    if array.ndim == 2 and name == "labels":
        return f"{todo}: where they are one-hot, pass argmax(axis=1)"
    return todo


def require_strings(array: NDArray[np.generic], name: str) -> None:
    """Refuse a missing value among numpy's strings of any length."""
    if array.dtype.kind == "T":
        _refuse_missing(np.array([not isinstance(v, str) for v in array], np.bool_), name)


def array_of(values: object, name: str) -> NDArray[np.generic]:
    """`values` as an array of any shape; a column of lists of one length has a row for each."""
    if type(values) is np.ndarray:
        return values
    array = _array(values, name)
    if array.dtype == object and array.ndim == 1:
        lists = all(isinstance(v, (list, np.ndarray)) for v in array)
        if lists and len(set(map(len, array))) == 1:
            return np.array(array.tolist())
    return array


def _array(values: object, name: str) -> NDArray[Any]:
    try:
        if isinstance(values, (list, tuple)):
            array = np.asarray(values)
            return _unmixed(values, array) if array.dtype.kind == "U" else array
        if not isinstance(values, np.ndarray):
            return _of_library(values)
    except (ValueError, TypeError, RuntimeError, BufferError) as error:
        raise _no_array(values, name, error) from None
    _refuse_missing(np.ma.getmaskarray(values), name)
    return np.asarray(values)


def _of_library(values: Any) -> NDArray[Any]:
    if hasattr(values, "detach"):
        return _of_tensor(values.detach())
    array: NDArray[Any] = np.asarray(values)
    if array.dtype != object:
        return array
    if array.ndim == 0 and hasattr(values, "to_numpy"):
        array = np.asarray(values.to_numpy())
    elif array.ndim == 0 and hasattr(values, "__dlpack__"):
        array = np.from_dlpack(values)
    elif array.ndim == 2:  # a table of nullable columns, each value an object
        numbers = np.array(array.tolist())
        array = numbers if numbers.dtype.kind in "biuf" else array
    return array


def _of_tensor(tensor: Any) -> NDArray[Any]:
    try:
        return np.asarray(tensor)
    except TypeError:  # numpy has no bfloat16, of which every value is a float32
        if not tensor.is_floating_point():
            raise
        return np.asarray(tensor.float())


def _no_array(values: object, name: str, error: Exception) -> InputError:
    device = str(getattr(values, "device", "cpu"))
    if device != "cpu":
        return InputError(
            expected="values in the memory of the CPU",
            came=f"{type(values).__name__} on {device}",
            where=name,
            todo="copy them there first, as tensor.cpu() does",
        )
    return InputError(
        expected="an array, in which all rows are of one length",
        came=f"{type(values).__name__} ({shown(str(error))})",
        where=name,
        todo="pass one value, or one row of values, for each row",
    )


def _unmixed(values: Sequence[object], array: NDArray[Any]) -> NDArray[Any]:
    """The values as they are where numpy wrote 0.5 beside "x" as a string: only "x" is wrong."""
    if array.ndim != 1 or all(isinstance(v, str) for v in values):
        return array
    return np.fromiter(values, object, len(values))


def _missing(values: object) -> NDArray[np.bool_]:
    """Where a column has no value, as its library says: polars and pyarrow, or pandas."""
    ask = getattr(values, "is_null", None) or getattr(values, "isna", None)
    return np.asarray(ask(), np.bool_) if callable(ask) else np.zeros(0, np.bool_)


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    if not missing.any():
        return
    rows = np.unique(np.nonzero(missing)[0])
    places = np.argwhere(missing)
    raise InputError(
        expected="a value in each row",
        came="a missing one",
        where=f"{name}[{', '.join(map(str, places[0].tolist()))}]",
        todo=f"drop or fill the {len(rows)} row(s) where one is missing",
        rows=rows,
    )
