"""The checks of rows of many classes: class numbers, and tables with a column for each class."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.conversion import listed, plain, shape_of, vector, whole
from streammetrics.core.errors import InputError, SettingsError, shown

_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def check_number(value: object, least: int, most: int, where: str) -> int:
    """A setting as a whole number from `least` to `most`, of any integer type."""
    found = whole(value)
    if found is None or not least <= found <= most:
        raise SettingsError(
            expected=f"a whole number from {least} to {most}",
            got=shown(value),
            where=where,
            hint="pass how many there are, those that never occur included",
        )
    return found


def class_numbers(values: ArrayLike, n_classes: int, name: str) -> NDArray[np.integer]:
    """Class numbers [n] from 0 to n_classes - 1, in the integer type that they came in.

    Whole floats become int64; names of classes are refused.
    """
    array: NDArray[Any] = vector(values, name)
    kind = array.dtype.kind
    if kind in "iu" and array.dtype.isnative:
        # As unsigned numbers negative ones are the largest of all; `argmax` is quicker than `max`.
        bits = array if kind == "u" else array.view(_UNSIGNED[array.dtype.itemsize])
        if not len(bits) or bits.item(bits.argmax()) < n_classes:
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
    if isinstance(value, np.timedelta64) or not isinstance(value, int | np.integer | np.bool_):
        return False
    return bool(0 <= int(value) < n_classes)


def _not_a_class(
    array: NDArray[Any], n_classes: int, name: str, bad: NDArray[np.intp]
) -> InputError:
    return InputError(
        expected=f"a class number from 0 to {n_classes - 1}",
        got=shown(array[bad[0]]),
        where=f"{name}[{bad[0]}]",
        hint=_class_instead(array[bad[0]], len(bad)),
        rows=bad,
    )


def _class_instead(value: object, n_rows: int) -> str:
    if checks.is_missing(value):
        return f"drop or fill the {n_rows} row(s) without a class"
    if checks.is_score(value):
        return "were labels and scores swapped?"
    number = plain(value)
    if not isinstance(number, int | float):
        return "number your classes first, from 0"
    if number < 0 or (isinstance(number, float) and not number.is_integer()):
        return "number your classes by whole numbers from 0"
    return "pass n_classes as large as it must be"


def score_table(
    values: NDArray[np.generic], n_columns: int, name: str, *, in_unit: bool = False
) -> NDArray[np.floating]:
    """Scores [n, n_columns] as float32 or float64, no NaN; `in_unit`: all in [0, 1]."""
    values = _table(values, n_columns, name)
    check = checks.probabilities if in_unit else checks.scores
    try:
        return check(values.reshape(-1), name).reshape(values.shape)
    except InputError as error:
        raise _of_cell(error, n_columns, name) from None


def label_table(
    values: NDArray[np.generic], n_columns: int, name: str = "labels"
) -> NDArray[np.uint8]:
    """Labels [n, n_columns] as uint8 of 0 and 1."""
    values = _table(values, n_columns, name)
    try:
        return checks.binary_labels(values.reshape(-1), name).reshape(values.shape)
    except InputError as error:
        raise _of_cell(error, n_columns, name) from None


def _table(array: NDArray[Any], n_columns: int, name: str) -> NDArray[Any]:
    """The array as [n, n_columns]; an empty list is a table of no rows."""
    if array.shape == (0,):
        return array.reshape(0, n_columns)
    if array.ndim != 2 or array.shape[1] != n_columns:
        raise InputError(
            expected=f"an array [n, {n_columns}]",
            got=shape_of(array),
            where=name,
            hint=listed(array, name) or "pass one column for each class or label",
        )
    return array


def _of_cell(error: InputError, n_columns: int, name: str) -> InputError:
    """The same error about rows and columns, not about the cells in a line."""
    where, rows = error.where, error.rows
    if len(rows):
        row, column = divmod(int(rows[0]), n_columns)
        where, rows = f"{name}[{row}, {column}]", np.unique(rows // n_columns)
    return InputError(
        expected=error.expected, got=error.got, where=where, hint=error.hint, rows=rows
    )
