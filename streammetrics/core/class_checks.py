"""Checks of rows of many classes: class numbers, and tables with a column for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.checks import (
    binary_labels,
    is_missing,
    is_score,
    is_whole,
    probabilities,
    scores,
)
from streammetrics.core.conversion import listed, plain, shape_of, vector
from streammetrics.core.errors import InputError, bad_rows

_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)


def class_numbers(values: ArrayLike, n_classes: int, name: str) -> NDArray[np.integer]:
    """Class numbers [n] from 0 to n_classes - 1, in the given integer type.

    Whole floats become int64; names of classes are refused.
    """
    array: NDArray[Any] = vector(values, name)
    dtype = array.dtype
    # As unsigned, negative numbers are the largest; `argmax` is faster than `max`.
    if dtype is _INT64:
        bits = array.view(_UINT64)
        if not len(bits) or bits.item(bits.argmax()) < n_classes:
            return array
    kind = dtype.kind
    if kind in "iu" and dtype.isnative:
        bits = array if kind == "u" else array.view(f"u{dtype.itemsize}")
        # Of a narrow type negative numbers may be below n_classes as unsigned.
        most = n_classes if kind == "u" else min(n_classes, 1 << 8 * dtype.itemsize - 1)
        if not len(bits) or bits.item(bits.argmax()) < most:
            return array
    elif kind == "b":
        return array.view(np.uint8)
    elif kind == "f":
        bad = np.flatnonzero(~((array >= 0) & (array < n_classes) & (array == np.floor(array))))
        if not len(bad):
            return array.astype(np.int64)
        raise _not_a_class(array, n_classes, name, bad)
    elif not len(array):
        return np.empty(0, np.int64)
    bad = np.flatnonzero([not _is_class(value, n_classes) for value in array])
    if len(bad):
        raise _not_a_class(array, n_classes, name, bad)
    return array.astype(np.int64)


def _is_class(value: object, n_classes: int) -> bool:
    return is_whole(value) and 0 <= int(value) < n_classes  # type: ignore[call-overload]


def _not_a_class(
    array: NDArray[Any], n_classes: int, name: str, bad: NDArray[np.intp]
) -> InputError:
    expected = f"a class number from 0 to {n_classes - 1}"
    return bad_rows(array, bad, name, expected, _class_instead(array[bad[0]], len(bad)))


def _class_instead(value: object, n_rows: int) -> str:
    if is_missing(value):
        return f"drop or fill the {n_rows} row(s) without a class"
    if is_score(value):
        return "were labels and scores swapped?"
    number = plain(value)
    if not isinstance(number, int | float):
        return "number your classes from 0"
    if number < 0 or (isinstance(number, float) and not number.is_integer()):
        return "number your classes with whole numbers from 0"
    return "increase n_classes"


def score_table(
    values: NDArray[np.generic], n_columns: int, name: str, *, in_unit: bool = False
) -> NDArray[np.floating]:
    """Scores [n, n_columns] as float32 or float64, no NaN; `in_unit`: all in [0, 1]."""
    values = _table(values, n_columns, name)
    check = probabilities if in_unit else scores
    try:
        return check(values.reshape(-1), name).reshape(values.shape)
    except InputError as error:
        raise _cell_error(error, n_columns, name) from None


def label_table(
    values: NDArray[np.generic], n_columns: int, name: str = "labels"
) -> NDArray[np.uint8]:
    """Labels [n, n_columns] as uint8 of 0 and 1."""
    values = _table(values, n_columns, name)
    try:
        return binary_labels(values.reshape(-1), name).reshape(values.shape)
    except InputError as error:
        raise _cell_error(error, n_columns, name) from None


def _table(array: NDArray[Any], n_columns: int, name: str) -> NDArray[Any]:
    """The array as [n, n_columns]; an empty list is a table of no rows."""
    if array.ndim == 2 and array.shape[1] == n_columns:
        return array
    if array.shape == (0,):
        return array.reshape(0, n_columns)
    raise InputError(
        expected=f"an array [n, {n_columns}]",
        got=shape_of(array),
        where=name,
        hint=listed(array, name) or "pass one column for each class or label",
    )


def _cell_error(error: InputError, n_columns: int, name: str) -> InputError:
    """The same error, with indices of flat cells converted to rows and columns."""
    if not len(error.rows):
        return error
    row, column = divmod(int(error.rows[0]), n_columns)
    return error.of_rows(f"{name}[{row}, {column}]", np.unique(error.rows // n_columns))
