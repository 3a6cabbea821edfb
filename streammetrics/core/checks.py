"""The checks of rows: fast for valid rows, precise about invalid ones.

Each returns the array in the form that the kernels need, if possible without a copy. The message
of an error names the first invalid row, and `InputError.rows` holds all of them.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from decimal import Decimal
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.conversion import (
    LARGE,
    among,
    array_of,
    require_strings,
    vector,
    whole,
)
from streammetrics.core.errors import InputError, SettingsError, bad_rows, shown
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.slips import (
    labels_instead,
    refuse_other_spellings,
    refuse_rounded,
    sizes_instead,
)

# Bits of 1.0: every float in [0, 1] but -0.0 has bits up to these.
ONE_BITS_32 = 0x3F800000
ONE_BITS_64 = 0x3FF0000000000000
# Native arrays have these very dtype objects, and `is` is faster than `==`.
_UINT8, _UINT32, _UINT64 = np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.uint64)
_FLOAT32, _FLOAT64, _INT64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
MAX_GRADE = 15
_MAP = "map your {} to these first"


def same_length(n: int, array: Sized, name: str, other: str) -> None:
    """Refuse `array` unless it has as many rows as `other`, which has `n`."""
    if len(array) != n:
        sizes = sizes_instead(array, n) if name == "groups" else None
        raise InputError(
            expected=f"{n} values, one for each row of {other}",
            got=f"{len(array)}",
            where=name,
            hint=sizes or "pass arrays of equal length",
        )


def binary_labels(
    labels: ArrayLike | DictionaryColumn, name: str = "labels", positive: int | str | None = None
) -> NDArray[np.uint8]:
    """Labels as uint8 [n] of 0 and 1; 1 where a label equals `positive`.

    positive=1: labels are 0/1 or False/True, and all others are refused. None, for a metric
    without this setting, is the same.
    """
    if (
        type(labels) is np.ndarray
        and labels.dtype is _UINT8
        and labels.ndim == 1
        and (positive == 1 or positive is None)
        # `argmax` takes a sixth of the time of `max` for a hundred rows.
        and (not len(labels) or labels.item(labels.argmax()) <= 1)
    ):
        return labels
    if isinstance(labels, DictionaryColumn):
        labels = np.array(labels.values, object)[column_codes(labels, name)]
    array: NDArray[Any] = vector(labels, name)
    kind = array.dtype.kind
    if positive is not None and positive != 1:
        return _equal_to(positive, array, name)
    if kind == "b":
        return np.asarray(array.view(np.uint8), np.uint8)
    if kind == "u" or kind == "i":
        if array.dtype.itemsize == 1:
            small: NDArray[np.uint8] = array.view(np.uint8)
            if not len(small) or small.item(small.argmax()) <= 1:
                return small
        elif not len(array) or (
            array.item(array.argmin()) >= 0 and array.item(array.argmax()) <= 1
        ):
            return np.asarray(array, np.uint8)
    elif kind == "f":
        ones = np.equal(array, 1)
        if bool((ones | np.equal(array, 0)).all()):
            return np.asarray(ones, np.uint8)
    elif kind == "O" and all(map(_is_zero_or_one, array)):
        return array.astype(np.uint8)
    if not len(array):
        return np.empty(0, np.uint8)
    advice = "" if positive is None else "name the positive class with positive=, or "
    hint = labels_instead(array) or advice + _MAP.format(name)
    raise _bad_labels(array, name, _not_binary(array), "0 or 1, or False or True", hint)


def check_positive(value: object, where: str) -> int | str:
    """The setting `positive` in canonical form; SettingsError if it cannot be a label."""
    if isinstance(value, (int, str)):
        return int(value) if isinstance(value, bool) else value
    raise SettingsError(
        expected="an integer or a string",
        got=shown(value),
        where=where,
        hint="pass the label of the positive class, or leave it out for 1",
    )


def _equal_to(positive: int | str, array: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """1 where a label equals `positive`; labels of another kind, NaN and infinities are refused."""
    require_strings(array, name)
    kind = array.dtype.kind
    bad: NDArray[np.intp] = np.empty(0, np.intp)
    if kind == "O":
        is_label = _is_text if isinstance(positive, str) else is_whole
        bad = np.flatnonzero([not is_label(v) for v in array])
    elif kind == "f" and isinstance(positive, int):
        bad = np.flatnonzero(~np.isfinite(array) | (np.floor(array) != array))
    elif len(array) and kind not in ("UT" if isinstance(positive, str) else "biu"):
        bad = np.arange(len(array))
    if len(bad):
        label_kind = "strings" if isinstance(positive, str) else "integers"
        expected = f"{label_kind}, like positive={shown(positive)}"
        raise _bad_labels(array, name, bad, expected, "pass labels of the same kind as positive=")
    if not len(array):
        return np.empty(0, np.uint8)
    if isinstance(positive, str):
        refuse_other_spellings(array, positive, name)
    elif kind == "O":
        return np.array([int(v) == positive for v in array], np.uint8)
    elif kind == "f" and not _is_held(positive, array.dtype):
        return np.zeros(len(array), np.uint8)
    return np.asarray(np.equal(array, positive), np.uint8)


def _is_text(label: object) -> bool:
    return isinstance(label, str)


def is_whole(label: object) -> bool:
    """Whether a value is an integer or a whole float, of Python or numpy."""
    if isinstance(label, float | np.floating):
        return bool(label.is_integer())
    return isinstance(label, int | np.integer | np.bool_) and not isinstance(label, np.timedelta64)


def _is_held(integer: int, kind: np.dtype[Any]) -> bool:
    """Whether floats of this type hold an integer exactly: numpy compares with the rounded one."""
    try:
        with np.errstate(over="ignore"):
            nearest = kind.type(integer)
    except OverflowError:
        return False
    return bool(np.isfinite(nearest)) and int(nearest) == integer


def _is_zero_or_one(value: object) -> bool:
    if isinstance(value, Decimal) and value.is_nan():  # a signalling one cannot be compared
        return False
    is_number = isinstance(value, int | float | Decimal | np.bool_ | np.integer | np.floating)
    return is_number and not isinstance(value, np.timedelta64) and (value == 0 or value == 1)


def grades(labels: ArrayLike, name: str = "labels") -> NDArray[np.uint8]:
    """Graded labels, integers from 0 to 15, as uint8 in the given shape."""
    array: NDArray[Any] = array_of(labels, name)
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if not array.size:
        return np.empty(array.shape, np.uint8)
    if (
        array.dtype.kind in "iu"  # these passes take a quarter of the time of those below
        and array.item(array.argmax()) <= MAX_GRADE
        and (array.dtype.kind == "u" or array.item(array.argmin()) >= 0)
    ):
        return array.astype(np.uint8, copy=False)
    if array.dtype.kind in "uif":
        good = (array >= 0) & (array <= MAX_GRADE)
        if array.dtype.kind == "f":
            good &= array == np.floor(array)
    else:
        good = np.array([_is_grade(v) for v in array.ravel()]).reshape(array.shape)
    if bool(good.all()):
        return array.astype(np.uint8, copy=False)
    bad = np.flatnonzero(~good.ravel())
    raise _bad_labels(array.ravel(), name, bad, "integers from 0 to 15", _MAP.format(name))


def _is_grade(value: object) -> bool:
    return is_whole(value) and 0 <= value <= MAX_GRADE  # type: ignore[operator]


def scores(values: ArrayLike, name: str = "scores") -> NDArray[np.floating]:
    """Scores as float32 or float64 [n]; integers become float64; NaN is refused."""
    array = _floats(vector(values, name), name)
    if not len(array):
        return array
    if isnan(array.item(array.argmax())):  # `argmax` stops at a NaN, and is the fastest pass
        bad = np.flatnonzero(np.isnan(array))
        raise bad_rows(array, bad, name, "numbers", f"drop or fix the {len(bad)} NaN row(s)")
    return array


def finite(values: ArrayLike, name: str) -> NDArray[np.floating]:
    """Numbers as `scores` returns them; infinities are refused."""
    array = scores(values, name)
    bad = np.flatnonzero(np.isinf(array))
    if len(bad):
        hint = f"drop or fix the {len(bad)} infinite row(s)"
        raise bad_rows(array, bad, name, "finite numbers", hint)
    return array


def addends(values: ArrayLike, name: str) -> NDArray[np.generic]:
    """Numbers to be summed, as `scores` returns them, but arrays of one-byte numbers unchanged."""
    if (
        type(values) is np.ndarray
        and values.dtype.itemsize == 1
        and values.dtype.kind in "bui"
        and values.ndim == 1
    ):
        return values
    return scores(values, name)


def probabilities(
    values: ArrayLike,
    name: str = "scores",
    hint: str = 'pass probabilities, or use range="real" for scores of any size',
) -> NDArray[np.floating]:
    """Scores in [0, 1] as float32 or float64 [n]; -0.0 becomes 0.0."""
    if type(values) is np.ndarray and values.dtype is _FLOAT32 and values.ndim == 1:
        array: NDArray[np.floating] = values
    else:
        array = _floats(vector(values, name), name)
    if not len(array):
        return array
    # One unsigned maximum refuses NaN, infinities, negatives and values above 1 at once.
    if array.dtype is _FLOAT32:
        bits = array.view(_UINT32)
        if bits.item(bits.argmax()) <= ONE_BITS_32:
            return array
    elif array.dtype is _FLOAT64:
        bits = array.view(_UINT64)
        if bits.item(bits.argmax()) <= ONE_BITS_64:
            return array
    good = (array >= 0) & (array <= 1)
    if bool(good.all()):
        return array + array.dtype.type(0)
    bad = np.flatnonzero(~good)
    if isnan(array[bad[0]]):
        hint = f"drop or fix the {len(bad)} bad row(s)"
    raise bad_rows(array, bad, name, "numbers in [0, 1]", hint)


def numbers(values: ArrayLike, name: str, *, rounding: bool = False) -> NDArray[np.floating]:
    """Any numbers as float32 or float64 [n], NaN included.

    Integers that are not exact in float64 are refused unless `rounding`."""
    return _floats(vector(values, name), name, rounding=rounding)


def _floats(array: NDArray[Any], name: str, *, rounding: bool = False) -> NDArray[np.floating]:
    """Numbers as float32 or float64, NaN included; refuses what is none, and integers of an array
    that are not exact in float64."""
    if array.dtype is _FLOAT64 or array.dtype is _FLOAT32:
        return array
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return array.astype(np.float64 if array.dtype.itemsize == 8 else np.float32)
    if array.dtype.kind in "biu" or not len(array):
        floats: NDArray[np.floating] = array.astype(np.float64)
        if array.dtype.itemsize == 8 and array.dtype.kind != "b" and _has_large(floats):
            refuse_rounded(array, name)
        return floats
    if array.dtype.kind == "O":
        bad = np.flatnonzero([not is_number(v) for v in array])
        if not len(bad):
            if not rounding:
                refuse_rounded(array, name)
            return array.astype(np.float64)
    else:
        bad = np.arange(len(array))
    if isinstance(array[bad[0]], np.longdouble):
        hint = "round them first with astype(numpy.float64)"
        raise _type_error(array, bad, name, "numbers of at most 64 bits", hint)
    if is_missing(array[bad[0]]):
        hint = f"drop or fill the {sum(map(is_missing, array[bad]))} row(s) with a missing value"
        raise bad_rows(array, bad, name, "numbers", hint)
    raise _type_error(array, bad, name, "numbers", "pass floats or integers")


def _type_error(
    array: NDArray[Any], bad: NDArray[np.intp], name: str, expected: str, hint: str
) -> InputError:
    """The error for values of another type."""
    got = f"{shown(array[bad[0]])} of {array.dtype}"
    return bad_rows(array, bad, name, expected, hint, got)


def _has_large(array: NDArray[np.floating]) -> bool:
    """Whether some value may be an integer that was rounded to float64."""
    ends = (array.item(array.argmin()), array.item(array.argmax())) if len(array) else (0, 0)
    return not (ends[0] > -LARGE and ends[1] < LARGE)  # also beside a NaN, which is both ends


def is_number(value: object) -> bool:
    """Whether a value is a number of at most 64 bits, or one that has a float nearest to it."""
    if isinstance(value, int):  # bool too; larger integers have no float64
        return abs(value) < 1 << 1023
    if isinstance(value, Decimal):  # to the nearest float
        return not value.is_snan() and (not value.is_finite() or abs(value) < 1 << 1023)
    if isinstance(value, np.timedelta64):  # a subclass of np.integer
        return False
    if isinstance(value, np.longdouble) and value.dtype.itemsize > 8:
        return False
    return isinstance(value, float | np.bool_ | np.integer | np.floating)


def column_codes(column: DictionaryColumn, name: str) -> NDArray[np.intp]:
    """The codes of a column; InputError for those out of range."""
    codes = integers(column.codes, f"{name}.codes")
    words = codes.view(np.uint64)  # in which negative numbers are large
    if len(words) and words.item(words.argmax()) >= len(column.values):
        bad = np.flatnonzero(words >= len(column.values))
        expected = f"codes from 0 to {len(column.values) - 1}, one for each value"
        hint = "pass a DictionaryColumn(codes, values) whose codes are indices into values"
        raise bad_rows(codes, bad, f"{name}.codes", expected, hint)
    return codes.astype(np.intp, copy=False)


def integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Integers as int64 [n]; floats and integers past int64 are refused."""
    if type(values) is np.ndarray and values.dtype is _INT64 and values.ndim == 1:
        return values
    array: NDArray[Any] = vector(values, name)
    if array.dtype is _INT64:
        return array
    if array.dtype.kind in "bi" or not len(array):
        return array.astype(np.int64)
    if array.dtype.kind == "f" and isinstance(values, (list, tuple)):
        array = np.fromiter(values, object, len(values))  # numpy converts [2**63, 1] to floats
    if array.dtype.kind == "u":
        bad = np.flatnonzero(array > np.iinfo(np.int64).max)
    elif array.dtype.kind == "O":
        bad = np.flatnonzero([not _is_int64(v) for v in array])
    else:
        bad = np.arange(len(array))
    if not len(bad):
        return array.astype(np.int64)
    raise _type_error(array, bad, name, "integers of 64 bits", "pass integers")


def booleans(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    """True and False [n]; numbers are refused, even 0 and 1."""
    array: NDArray[Any] = vector(values, name)
    if array.dtype == np.bool_ or not len(array):
        return array.astype(np.bool_, copy=False)
    bad = np.arange(len(array))
    if array.dtype.kind == "O":
        bad = np.flatnonzero([not isinstance(v, bool | np.bool_) for v in array])
        if not len(bad):
            return array.astype(np.bool_)
    hint = "pass booleans, for instance a comparison"
    raise _type_error(array, bad, name, "True or False", hint)


def _is_int64(value: object) -> bool:
    whole = isinstance(value, int | np.integer | np.bool_)
    if isinstance(value, np.timedelta64):  # a subclass of np.integer
        return False
    return whole and -(2**63) <= value < 2**63  # type: ignore[operator]


def _not_binary(array: NDArray[Any]) -> NDArray[np.intp]:
    if array.dtype.kind in "iuf":
        return np.flatnonzero((array != 0) & (array != 1))
    if array.dtype.kind == "O":
        return np.flatnonzero([not _is_zero_or_one(v) for v in array])
    return np.arange(len(array))


def _bad_labels(
    array: NDArray[Any], name: str, bad: NDArray[np.intp], expected: str, instead: str
) -> InputError:
    first = array[bad[0]]
    if is_missing(first):
        lacks = "a label" if name == "labels" else name
        instead = f"drop or fill the {len(bad)} row(s) without {lacks}"
    elif is_score(first) and name == "labels":
        instead = "were labels and scores swapped?"
    return bad_rows(array, bad, name, expected, instead)


def is_score(value: object) -> bool:
    """Whether a label looks like a score: a float between 0 and 1."""
    return isinstance(value, np.floating | float) and 0 < float(value) < 1


def is_missing(value: object) -> bool:
    """Whether a label is missing: None or nan."""
    return value is None or (isinstance(value, np.floating | float) and isnan(value))


def check_choice(value: object, choices: Sequence[str], where: str) -> None:
    """Refuse a setting that is not one of the choices."""
    if not among(value, choices):
        expected, hint = f"one of {', '.join(choices)}", "choose one of them"
        raise SettingsError(expected=expected, got=shown(value), where=where, hint=hint)


def check_max_rows(value: object, where: str) -> None:
    """Refuse a limit that is not a positive number of rows, or None."""
    if value is not None and (type(value) is not int or not 1 <= value < 1 << 63):
        raise SettingsError(
            expected="a number of rows from 1, or None for no limit",
            got=shown(value),
            where=where,
            hint="pass the maximum number of rows in a state",
        )


def check_number(
    value: object,
    least: int,
    most: int,
    where: str,
    hint: str = "pass the total number, including those that never occur",
) -> int:
    """A setting as a whole number from `least` to `most`, of any integer type."""
    number = whole(value)
    if number is None or not least <= number <= most:
        raise SettingsError(
            expected=f"a whole number from {least} to {most}",
            got=shown(value),
            where=where,
            hint=hint,
        )
    return number
