"""Columns as operands of an expression: their values, and the rows that have none."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import column_codes
from streammetrics.core.conversion import require_strings, vector
from streammetrics.core.errors import InputError, bad_rows, shown
from streammetrics.core.expressions.field_kinds import FieldKind
from streammetrics.core.expressions.numbers import Numbers, float_numbers, mixed, whole_numbers
from streammetrics.core.rows import DictionaryColumn

Flags: TypeAlias = "NDArray[np.bool_]"
_INT64: Final = 1 << 63
_WORDS: Final[dict[FieldKind, tuple[str, str]]] = {
    "number": ("numbers", "write a condition on it, or name another column"),
    "bool": ("True or False", "compare it with a number, as in clicks == 1"),
    "text": ("texts", "compare it with a number, or name another column"),
}


class TextValues(NamedTuple):
    """Texts [n]: row i has `values[codes[i]]`."""

    codes: NDArray[np.intp]
    values: Sequence[str]


class Operand(NamedTuple):
    """The values of a column [n], and which rows have none: null, or beyond 64 bits."""

    values: Numbers | Flags | TextValues
    null: Flags | None = None
    beyond: Flags | None = None

    def __len__(self) -> int:
        return len(self.values.codes if isinstance(self.values, TextValues) else self.values)


def operand_of(column: object, name: str, kind: FieldKind | None) -> Operand:
    """A column of a table as an operand of this kind, None: of the kind that it has.

    name: for errors. InputError for a column of another kind.
    """
    if isinstance(column, DictionaryColumn):
        operand = _dictionary_operand(column, name)
    elif isinstance(column, list | tuple):
        operand = _object_operand(column, name)
    else:
        operand = _array_operand(vector(column, name), name)
    own_kind = kind_of(operand)
    if kind is None or own_kind == kind:
        return operand
    if not len(operand) or (operand.null is not None and operand.null.all()):
        return Operand(_nothing(kind, len(operand)), operand.null)
    expected, hint = _WORDS[kind]
    got = "True and False" if own_kind == "bool" else _WORDS[own_kind][0]
    raise InputError(expected=expected, got=got, where=f"column {name!r}", hint=hint)


def kind_of(operand: Operand) -> FieldKind:
    """The kind of the values."""
    values = operand.values
    return (
        "number"
        if isinstance(values, Numbers)
        else "text"
        if isinstance(values, TextValues)
        else "bool"
    )


def _nothing(kind: FieldKind, n: int) -> Numbers | Flags | TextValues:
    """Values in place of nulls."""
    if kind == "bool":
        return np.zeros(n, np.bool_)
    if kind == "text":
        return TextValues(np.zeros(n, np.intp), ("",))
    return whole_numbers(np.zeros(n, np.int64))


def _dictionary_operand(column: DictionaryColumn, name: str) -> Operand:
    """A dictionary-encoded column, converted once for each different value."""
    if not len(column):
        return Operand(TextValues(np.zeros(0, np.intp), ()))
    inner = _object_operand(column.values, name)
    codes = column_codes(column, name)
    null = None if inner.null is None else inner.null[codes]
    beyond = None if inner.beyond is None else inner.beyond[codes]
    values = inner.values
    if isinstance(values, TextValues):
        return Operand(TextValues(values.codes[codes], values.values), null, beyond)
    if isinstance(values, Numbers):
        return Operand(values.take(codes), null, beyond)
    return Operand(values[codes], null, beyond)


def _array_operand(array: NDArray[Any], name: str) -> Operand:
    kind = array.dtype.kind
    if kind == "b":
        return Operand(np.asarray(array, np.bool_))
    if kind == "i":
        return Operand(whole_numbers(array.astype(np.int64, copy=False)))
    if kind == "u":
        large = array >= _INT64 if array.dtype.itemsize == 8 else np.zeros(1, np.bool_)
        if not large.any():
            return Operand(whole_numbers(array.astype(np.int64)))
        return Operand(whole_numbers(np.where(large, 0, array).astype(np.int64)), beyond=large)
    if kind == "f" and array.dtype.itemsize <= 8:
        return Operand(float_numbers(array.astype(np.float64, copy=False)))
    if kind == "U":
        values, codes = np.unique(array, return_inverse=True)
        return Operand(TextValues(codes.astype(np.intp), tuple(values.tolist())))
    if kind == "T":
        require_strings(array, name)
    if kind in "OT":
        return _object_operand(array.tolist(), name)
    if not len(array):
        return Operand(float_numbers(np.zeros(0)))
    got = f"{shown(array[0])} of {array.dtype}"
    expected = "numbers of at most 64 bits, True or False, or texts"
    raise bad_rows(array, np.arange(len(array)), name, expected, "convert the column first", got)


def _object_operand(values: Sequence[object], name: str) -> Operand:
    """Values of any type, of which None is a null. A value is read by itself, never by its
    neighbours, so that it does not matter how the rows are cut into batches."""
    kinds = {type(value) for value in values}
    null: Flags | None = None
    if type(None) in kinds:
        null = np.fromiter((value is None for value in values), np.bool_, len(values))
        kinds.discard(type(None))
    if all(issubclass(kind, str) for kind in kinds) and kinds:
        return Operand(_texts(values), null)
    if kinds and kinds <= {bool, np.bool_}:
        return Operand(np.fromiter(map(bool, values), np.bool_, len(values)), null)
    numbers = _plain_numbers(values, kinds, null)
    return _numbers(values, name, null) if numbers is None else Operand(numbers, null)


def _plain_numbers(values: Sequence[Any], kinds: set[type], null: Flags | None) -> Numbers | None:
    """Floats and whole numbers of Python; None if some are of another type, or beyond 64 bits."""
    if not kinds <= {float, int}:
        return None
    numbers = values if null is None else [0 if value is None else value for value in values]
    if int not in kinds:
        return float_numbers(np.array(numbers, np.float64))
    whole = np.fromiter((type(value) is not float for value in numbers), np.bool_, len(numbers))
    try:
        if float not in kinds:
            return whole_numbers(np.array(numbers, np.int64))
        ints = [value if is_whole else 0 for value, is_whole in zip(numbers, whole, strict=True)]
        return mixed(np.array(numbers, np.float64), np.array(ints, np.int64), whole)
    except OverflowError:
        return None


def _texts(values: Sequence[Any]) -> TextValues:
    numbers: dict[str, int] = {}
    codes = [0 if value is None else numbers.setdefault(value, len(numbers)) for value in values]
    return TextValues(np.array(codes, np.intp), tuple(numbers))


def _numbers(values: Sequence[object], name: str, null: Flags | None) -> Operand:
    """Whole numbers and floats, one by one."""
    n = len(values)
    floats, ints = np.zeros(n), np.zeros(n, np.int64)
    whole, beyond = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    bad: list[int] = []
    for row, value in enumerate(values):
        if value is None:
            whole[row] = True
        elif isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
            whole[row], beyond[row] = True, not -_INT64 <= value < _INT64
            ints[row] = 0 if beyond[row] else int(value)
        elif _is_float(value):
            floats[row] = float(value)  # type: ignore[arg-type]
        else:
            bad.append(row)
    if bad:
        first = values[bad[0]]
        got = f"{shown(first)} of {type(first).__name__}"
        expected = "numbers alone, True and False alone, or texts alone"
        hint = "convert the column first"
        raise bad_rows([], np.array(bad, np.intp), name, expected, hint, got)
    if null is not None and not (whole & ~null).any():  # nulls go with either
        whole[:] = False
    return Operand(mixed(floats, ints, whole), null, beyond if beyond.any() else None)


def _is_float(value: object) -> bool:
    if isinstance(value, Decimal):  # to the nearest float, as in a column of scores
        return not value.is_snan()
    return isinstance(value, float | np.floating) and not (
        isinstance(value, np.longdouble) and value.dtype.itemsize > 8
    )
