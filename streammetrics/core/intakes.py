"""Intakes: which values of a column its check would surely accept, whatever the other rows are.

Rows whose columns all pass their intakes wait as they were given (`given_rows.py`). An intake knows
only common values; all others are left to the check, which accepts more and reports errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from math import inf, isfinite
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import plain_array
from streammetrics.core.ids.key_forms import SCALARS
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.slips import are_milliseconds
from streammetrics.core.validators import BITS, VALIDATORS, Validator, strongest
from streammetrics.core.weights import whole_units

# What is kept of a column: numbers as an array, or one number of a list as it is; keys and ids of
# other kinds as a list; lists as a tuple. None: only the check can decide.
Kept: TypeAlias = "NDArray[Any] | float | list[Any] | tuple[list[Any], ...]"
Intake: TypeAlias = Callable[[object], "Kept | None"]

MOST_ROWS: Final = 1 << 13  # of a batch that waits; a pass of the kernels over more costs less
_WIDEST: Final = 64  # columns of a table that waits
_MOST_ITEMS: Final = 256  # of lists that wait; of arrays a third: the check of more costs less
_LIST: Final = 8  # items in whose time a list is looked at
_EXACT: Final = 1 << 53  # integers up to this one are exact in float64
_MOST_UNITS: Final = 1 << 20  # of a weight that waits: the total of all that wait is an int64
_ARRAY: Final = np.ndarray
_INT64, _FLOAT32, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64)
_NUMBERS: Final = {_INT64, _FLOAT32, _FLOAT64, np.dtype(np.uint8), np.dtype(np.bool_)}


def _array(values: object) -> NDArray[Any] | None:
    """The array itself, or that of a short list of numbers; None for all others."""
    if type(values) is _ARRAY:  # intakes ask this first, which saves the call
        return values
    if (type(values) is not list and type(values) is not tuple) or len(values) > MOST_ROWS:
        return None
    return plain_array(values)


def _exact(n: int) -> int | None:
    return n if -_EXACT <= n <= _EXACT else None


# What is kept of a list of one number, by its type: such a list waits without an array. The check
# turns -0.0 into 0.0 where a validator does.
_LONE: Final[Mapping[Validator, Mapping[type, Callable[[Any], Kept | None]]]] = {
    Validator.INTEGERS: {int: lambda n: n if -(1 << 63) <= n < 1 << 63 else None},
    Validator.NUMBERS: {float: lambda x: x if x == x else None, int: _exact},
    Validator.FINITE: {float: lambda x: x if isfinite(x) else None, int: _exact},
    Validator.AMOUNTS: {float: lambda x: x if 0 <= x < inf else None},
    Validator.UNIT: {float: lambda x: x if 0 <= x <= 1 else None},
    Validator.BINARY: {int: BITS.get, float: BITS.get, bool: BITS.get},
}


def _validating(validator: Validator) -> Intake:
    validate, lone = VALIDATORS[validator], _LONE[validator]

    def intake(values: object) -> Kept | None:
        if type(values) is list and len(values) == 1:
            keep = lone.get(type(values[0]))
            if keep is not None:
                return keep(values[0])
        array = values if type(values) is _ARRAY else _array(values)
        if array is None or array.ndim != 1 or not len(array):
            return None
        return validate(array)

    return intake


NUMBERS: Final[Mapping[Validator, Intake]] = {v: _validating(v) for v in Validator}
integers: Final = NUMBERS[Validator.INTEGERS]
_VALIDATOR_OF: Final = {intake: validator for validator, intake in NUMBERS.items()}


def common(intakes: Collection[Intake | None]) -> Intake | None:
    """The intake of a column that several metrics read; None if there is none."""
    different = set(intakes)
    if len(different) == 1:
        return different.pop()
    validators = {_VALIDATOR_OF.get(intake) for intake in different if intake}
    known_validators = {validator for validator in validators if validator is not None}
    if None in different or len(known_validators) != len(different):
        return None
    validator = strongest(known_validators)
    return None if validator is None else NUMBERS[validator]


_INTEGERS, _FLOATS = {int}, {float}  # the types of the items of a list
_BIT_SET: Final = frozenset((0, 1))


def _bit_row(row: list[Any]) -> NDArray[Any] | None:
    are_bits = set(map(type, row)) == _INTEGERS and _BIT_SET.issuperset(row)
    return np.array([row], np.uint8) if are_bits else None


def _number_row(row: list[Any]) -> NDArray[Any] | None:
    # A sum is NaN if a number is.
    are_numbers = set(map(type, row)) == _FLOATS and (total := sum(row)) == total
    return np.array([row]) if are_numbers else None


def _unit_row(row: list[Any]) -> NDArray[Any] | None:
    table = _number_row(row)
    return table if table is not None and min(row) >= 0 and max(row) <= 1 else None


# The table of one row that is a list, in half the time of that of any list of lists.
_ROWS: Final = {
    Validator.BINARY: _bit_row,
    Validator.UNIT: _unit_row,
    Validator.NUMBERS: _number_row,
}


@lru_cache(maxsize=256)
def table_intake(width: int, validator: Validator) -> Intake:
    """Tables [n, width] whose values a validator accepts; none that are wide, since a metric keeps
    less of their rows."""
    validate, row_table = VALIDATORS[validator], _ROWS.get(validator)

    def intake(values: object) -> Kept | None:
        if type(values) is list and len(values) == 1 and row_table and width <= _WIDEST:
            row = values[0]
            if type(row) is list and len(row) == width and (table := row_table(row)) is not None:
                return table
        array = values if type(values) is _ARRAY else _array(values)
        if array is None or array.ndim != 2 or array.shape[1] != width or not array.size:
            return None
        if width > _WIDEST:
            return None
        flat = validate(array.reshape(-1))
        return None if flat is None else flat.reshape(array.shape)

    return intake


@lru_cache(maxsize=256)
def class_intake(n_classes: int, table: Validator | None, *, only_table: bool = False) -> Intake:
    """Class numbers below n_classes; or, with a validator, tables [n, n_classes]."""
    table_of = None if table is None else table_intake(n_classes, table)

    def intake(values: object) -> Kept | None:
        array = values if type(values) is _ARRAY else _array(values)
        if array is None or not array.size:
            return None
        if array.ndim == 2 and table_of:
            return table_of(array)
        if array.ndim != 1 or array.dtype.kind not in "iu" or not array.dtype.isnative:
            return None
        if array.dtype is _INT64:  # negative ones are the largest of all as unsigned numbers
            bits = array.view(np.uint64)
            within = bits.item(bits.argmax()) < n_classes
        else:
            within = array.item(array.argmax()) < n_classes and array.item(array.argmin()) >= 0
        return array if within and not only_table else None

    return intake


@lru_cache(maxsize=256)
def weight_intake(unit: Fraction, *, rounding: bool) -> Intake:
    """Weights of few units; multiples of the unit, unless they are rounded."""
    most = float(_MOST_UNITS * unit)
    bottom, is_part = unit.denominator, unit.numerator == 1

    def is_whole(weight: float) -> bool:
        return 0 <= weight <= most and (rounding or round(weight * bottom) / bottom == weight)

    def intake(values: object) -> Kept | None:
        if type(values) is list and len(values) == 1 and is_part and type(values[0]) is float:
            return values[0] if is_whole(values[0]) else None
        array = values if type(values) is _ARRAY else _array(values)
        if array is None or array.ndim != 1 or not len(array):
            return None
        kind = array.dtype
        if kind is not _FLOAT64 and kind is not _INT64 and kind is not _FLOAT32:
            return None
        if len(array) == 1 and is_part and kind is not _FLOAT32:
            return array if is_whole(array.item()) else None
        if not (array.item(array.argmin()) >= 0 and array.item(array.argmax()) <= most):
            return None
        if rounding or (kind is _INT64 and is_part):
            return array
        return array if kind is not _INT64 and whole_units(array, unit) is not None else None

    return intake


@lru_cache(maxsize=256)
def range_intake(least: float, most: float) -> Intake:
    """Numbers from `least` to `most`, of which integers are exact in float64."""

    def intake(values: object) -> Kept | None:
        if type(values) is list and len(values) == 1 and type(values[0]) is float:
            return values[0] if least <= values[0] <= most else None
        array = values if type(values) is _ARRAY else _array(values)
        if array is None or array.ndim != 1 or not len(array) or array.dtype not in _NUMBERS:
            return None
        low, high = array.item(array.argmin()), array.item(array.argmax())
        is_exact = array.dtype.kind == "f" or -_EXACT <= low <= high <= _EXACT
        return array if low >= least and high <= most and is_exact else None

    return intake


def integer_intake(least: int) -> Intake:
    """Integers of at least this one."""

    def intake(values: object) -> Kept | None:
        array = _array(values)
        if array is None or integers(array) is None or array.item(array.argmin()) < least:
            return None
        return array

    return intake


def name_intake(names: Collection[str]) -> Intake:
    """Strings that are among these names."""
    known_names = frozenset(names)
    return lambda values: (
        column if known_names.issuperset(column := texts(values) or [""]) else None
    )


@lru_cache(maxsize=256)
def label_intake(positive: str) -> Intake:
    """Strings, of which none differs from `positive` in case or spaces alone."""
    spelling = positive.strip().casefold()

    def intake(values: object) -> Kept | None:
        column = texts(values)
        other_texts = set(column or ()) - {positive}
        return None if any(text.strip().casefold() == spelling for text in other_texts) else column

    return intake


def _list_intake(
    kind: type, accepts: Callable[[list[Any]], bool], *, may_be_empty: bool = False
) -> Intake:
    """Few lists of few items of one type, of which each is accepted."""
    kinds, dtype_kinds = {kind}, "f" if kind is float else "iu"

    def fits(row: list[Any]) -> bool:
        if not row:
            return may_be_empty
        return set(map(type, row)) == kinds and accepts(row)

    def intake(values: object) -> Kept | None:
        if type(values) is _ARRAY:
            if values.ndim != 2 or 3 * (values.size + _LIST * len(values)) > _MOST_ITEMS:
                return None
            dtype = values.dtype
            if not values.size or dtype.kind not in dtype_kinds or dtype.itemsize > 8:
                return None
            copies = values.tolist()
            return tuple(copies) if all(map(accepts, copies)) else None
        rows = values
        if type(rows) is not list or not rows or (room := _MOST_ITEMS - _LIST * len(rows)) < 0:
            return None
        if len(rows) == 1 and type(row := rows[0]) is list:  # in half the time of several
            return (row.copy(),) if len(row) <= room and fits(row) else None
        for row in rows:
            is_array = type(row) is _ARRAY and row.ndim == 1
            if (type(row) is not list and not is_array) or (room := room - len(row)) < 0:
                return None
        copies = [row.tolist() if type(row) is _ARRAY else row.copy() for row in rows]
        return tuple(copies) if all(map(fits, copies)) else None

    return intake


@lru_cache(maxsize=256)
def item_lists(n_items: int) -> Intake:
    """Lists of item numbers below `n_items`, each at most once in a list."""
    return _list_intake(
        int,
        lambda row: min(row) >= 0 and max(row) < n_items and len({*row}) == len(row),
        may_be_empty=True,
    )


@lru_cache(maxsize=256)
def grade_lists(most: int) -> Intake:
    """Lists of grades of at most `most`."""
    return _list_intake(int, frozenset(range(most + 1)).issuperset)


# A sum is NaN if a score is; so is that of both infinities, which the check accepts.
score_lists: Final = _list_intake(float, lambda row: (total := sum(row)) == total)


class Beside(NamedTuple):
    """An intake of one of `n` columns that wait together or not at all."""

    intake: Intake
    n: int
    columns: object

    def __call__(self, values: object) -> Kept | None:
        return self.intake(values)


def together(*intakes: Intake) -> Sequence[Intake]:
    """Intakes of columns that wait together or not at all."""
    columns = object()
    return [cast("Intake", Beside(intake, len(intakes), columns)) for intake in intakes]


def keys(values: object) -> Kept | None:
    """Keys of a map, if their types are those of keys: strings, integers, None, and tuples of
    these. `Dictionary` decides on their sizes."""
    if type(values) is _ARRAY:
        if values.ndim != 1 or not 0 < len(values) <= MOST_ROWS:
            return None
        if values.dtype is _INT64:
            return values
        return values.tolist() if values.dtype.kind == "U" else None
    if type(values) is DictionaryColumn:
        values = _decoded(values)
    if type(values) is not list or not 0 < len(values) <= MOST_ROWS:
        return None
    if len(values) == 1 and type(values[0]) is str:
        return values
    kinds = set(map(type, values))
    if tuple in kinds and len(kinds) == 1:
        kinds = set(map(type, chain.from_iterable(values)))  # True is 1 to a dict
    return values if kinds <= SCALARS else None


def texts(values: object) -> list[str] | None:
    """Ids that are strings."""
    if type(values) is list and len(values) == 1 and type(values[0]) is str:
        return values
    column = keys(values)
    return column if type(column) is list and set(map(type, column)) == {str} else None


def unit_ids(values: object) -> Kept | None:
    """Ids of units: integers, or strings."""
    is_array = type(values) is _ARRAY and values.dtype.kind != "U"
    if is_array or (type(values) is list and set(map(type, values)) == {int}):
        return integers(values)
    return texts(values)


def times(values: object) -> Kept | None:
    """Times in milliseconds."""
    column = integers(values)
    if column is None or isinstance(column, int):
        return None if column is None or not are_milliseconds(column, column) else column
    array = cast("NDArray[Any]", column)
    ends = array.item(array.argmin()), array.item(array.argmax())
    return array if are_milliseconds(*ends) else None


def _decoded(keys_column: DictionaryColumn) -> list[Any] | None:
    """The keys of a short dictionary-encoded column as a list."""
    codes, values = keys_column.codes, keys_column.values
    if type(codes) is not _ARRAY or codes.dtype is not _INT64 or codes.ndim != 1:
        return None
    if not 0 < len(codes) <= MOST_ROWS or codes.item(codes.argmin()) < 0:
        return None
    if codes.item(codes.argmax()) >= len(values):
        return None
    return [*map(values.__getitem__, codes.tolist())]


class Plans(dict[tuple[str, ...], tuple[Intake, ...]]):
    """The intakes of the given columns by their names; none if only `check` can decide."""

    def __init__(self, intakes: Mapping[str, Intake | None], arguments: Mapping[str, bool]) -> None:
        """arguments: those of `update`, each with whether it is required."""
        super().__init__()
        self._intakes = intakes
        self._required = frozenset(name for name, required in arguments.items() if required)

    def __missing__(self, names: tuple[str, ...]) -> tuple[Intake, ...]:
        intakes = [self._intakes.get(name) for name in names]
        members = [intake for intake in intakes if isinstance(intake, Beside)]
        are_whole = all(
            [i.columns for i in members].count(member.columns) == member.n for member in members
        )
        certain = tuple(i.intake if isinstance(i, Beside) else i for i in intakes if i)
        if len(certain) < len(names) or not are_whole or not self._required <= set(names):
            certain = ()
        if len(self) > _MOST_PLANS:
            self.clear()
        self[names] = certain
        return certain


_MOST_PLANS: Final = 64  # orders of the names
