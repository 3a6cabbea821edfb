"""Conversion of given columns to numpy arrays; no library but numpy is imported for it.

Columns of pandas, polars, pyarrow and torch convert by `__array__`, and others by `to_numpy` or
`__dlpack__`. Two things are lost in conversion, so these libraries' own methods handle them:
missing values (numpy would convert a column of integers to floats and NaN), and gradients.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, Final, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import InputError, SettingsError, shown, table_instead
from streammetrics.core.rows import DictionaryColumn, Ragged, offsets_of

K = TypeVar("K")

# Conversion of single values, among them numpy's scalars, to plain Python ones.

FLOAT64: Final = "a number in the range of float64 (an integer only if float64 holds it exactly)"


def plain(value: object) -> object:
    """Integers, floats, bools and strings of numpy as Python's, exactly; other values unchanged.

    Tuples and lists are converted by element. A longdouble is no float, a timedelta64 no integer.

    >>> plain(np.float32(0.5)), plain(np.int64(3)), plain((np.float64(1), 2))
    (0.5, 3, (1.0, 2))
    """
    if isinstance(value, np.str_):
        return str.__str__(value)  # `item` would drop zero characters at the end
    if isinstance(value, np.generic):
        is_scalar = isinstance(value, (np.bool_, np.integer, np.floating))
        return value.item() if is_scalar and not isinstance(value, np.timedelta64) else value
    if type(value) is tuple or type(value) is list:
        return type(value)(map(plain, value))
    return value


def whole(value: object) -> int | None:
    """A whole number of any integer type, or None for anything else, such as True.

    >>> whole(np.int64(3)), whole(3.0)
    (3, None)
    """
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several numbers
        return None


def exact(value: object) -> Fraction | None:
    """A finite number as its exact fraction, or None for anything else, such as True.

    >>> exact(np.float32(0.5)), exact("1/2")
    (Fraction(1, 2), None)
    """
    scalar = plain(value)
    if isinstance(scalar, bool) or not isinstance(scalar, (int, float, Fraction, Decimal)):
        return None
    try:
        return Fraction(scalar)
    except (OverflowError, ValueError):  # infinite, or nan
        return None


def as_float(value: object) -> float | None:
    """A number as the nearest float, infinities included; None for any other value, for nan, for
    an integer that is not exact in float64, and for a fraction beyond the largest float.

    >>> as_float(np.float32(0.5)), as_float(10**400), as_float(2**53 + 1)
    (0.5, None, None)
    """
    scalar = plain(value)
    if isinstance(scalar, bool) or not isinstance(scalar, (int, float, Fraction, Decimal)):
        return None
    try:
        number = float(scalar)
    except (OverflowError, ValueError):  # a Decimal may be a signalling nan
        return None
    if number != number or (isinstance(scalar, int) and int(number) != scalar):
        return None
    return number + 0.0  # -0.0 is 0.0


def numeric(value: object) -> float:
    """`as_float`, and nan for what has none, which no range holds.

    >>> numeric("0.5"), 0 < numeric(None) < 1
    (nan, False)
    """
    number = as_float(value)
    return math.nan if number is None else number


def among(value: object, choices: Iterable[str]) -> bool:
    """Whether a value is one of these strings; False for arrays and others that compare by element.

    >>> among("a", ("a", "b")), among(np.array(["a"]), ("a", "b"))
    (True, False)
    """
    return isinstance(value, str) and value in choices


# The arguments of the methods of results, as plain Python numbers, or an InputError.


def refused(where: str, expected: str, got: object, hint: str = "pass another value") -> InputError:
    """The error for one argument of a method."""
    return InputError(expected=expected, got=shown(got), where=where, hint=hint)


def instance(value: object, kind: type[K], where: str, expected: str, hint: str) -> K:
    """The value, if it is of this class; InputError for any other.

    >>> instance(3, int, "n", "an integer", "pass one")
    3
    """
    if isinstance(value, kind):
        return value
    raise refused(where, expected, value, hint)


def flag(
    value: object, where: str, kind: type[InputError] | type[SettingsError] = InputError
) -> bool:
    """True or False, also of numpy; numbers are refused, and whatever else has a truth value."""
    scalar = plain(value)
    if isinstance(scalar, bool):
        return scalar
    raise kind(expected="True or False", got=shown(value), where=where, hint="pass one of these")


def share(value: object, where: str, expected: str = "a share from 0 to 1") -> Fraction:
    """A number from 0 to 1."""
    fraction = exact(value)
    if fraction is not None and 1 < fraction <= 100:
        raise refused(where, expected, value, f"if it is a percentage, pass {shown(value)} / 100")
    if fraction is None or not 0 <= fraction <= 1:
        raise refused(where, expected, value)
    return fraction


def decimal_share(value: object, where: str) -> Fraction:
    """A number from 0 to 1; a float is the decimal that it is written as.

    >>> decimal_share(0.07, "p"), decimal_share(np.float32(0.07), "p")
    (Fraction(7, 100), Fraction(7, 100))
    """
    if isinstance(value, (float, np.floating)) and 0 <= value <= 1:
        return Fraction(str(value))
    return share(value, where)


def weight_of_recall(b: object, where: str) -> Fraction:
    """The b of an F-measure: a finite number of at least 0."""
    weight = exact(b)
    if weight is None or weight < 0:
        raise refused(where, "a finite number of at least 0", b, "pass 1 for equal weights")
    return weight


def parts(k: object, where: str) -> int:
    """A number of parts, at least 1 and few enough to compute each."""
    number = whole(k)
    if number is None or not 1 <= number <= _MOST_PARTS:
        expected = f"a number of parts, 1 to {_MOST_PARTS:,}"
        raise refused(where, expected, k, "pass 10 for tenths of the rows")
    return number


_MOST_PARTS: Final = 10_000


def threshold(t: object, where: str) -> float:
    """A number to compare scores with; it may be infinite."""
    number = as_float(t)
    if number is None:
        raise refused(where, FLOAT64, t)
    return number


def worth_of_nothing(zero_division: object, where: str) -> float:
    """The value of 0/0: nan, 0 or 1."""
    scalar = plain(zero_division)
    if isinstance(scalar, (int, float)) and (scalar in (0, 1) or math.isnan(scalar)):
        return float(scalar)
    raise refused(where, "0, 1 or nan", zero_division, "pass one of these")


# Columns of other types are asked for their missing values.
_KNOWN = (np.ndarray, list, tuple)
_BOOLEANS: Final = frozenset((bool, np.bool_))
_FEW: Final = 16  # values of a list
LARGE: Final = 2.0**53  # from here on floats may be rounded integers


def vector(values: object, name: str) -> NDArray[np.generic]:
    """`values` as a 1-D array; values that their library reports as missing are refused.

    Of a list of floats and integers it is one of objects, where an array of floats would round one.
    """
    if type(values) is np.ndarray and values.ndim == 1:
        return values
    array = _array(values, name)
    if array.ndim != 1:
        raise InputError(
            expected="a one-dimensional array [n]",
            got=shape_of(array),
            where=name,
            hint=table_instead(values) or _flattened(array, name),
        )
    if not isinstance(values, _KNOWN):
        _refuse_missing(_missing(values), name)
    return array


def plain_array(column: object) -> NDArray[np.generic] | None:
    """The array itself, or that of a list of numbers, of False and True as 0 and 1; None for all
    that only a check can read."""
    if type(column) is np.ndarray:
        return column
    if type(column) is not list and type(column) is not tuple:
        return None
    try:
        array = np.asarray(column)
    except Exception:  # as in `converted`
        return None
    if array.size > 1 and has_rounded(column, array):
        return None
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def has_rounded(given: object, array: NDArray[np.generic]) -> bool:
    """Whether numpy may have rounded an integer when it made this array of a list, of lists of one
    length, or of a frame; or made floats of a list of integers alone."""
    if array.dtype.kind != "f" or array.size < 2:  # a single integer stays one
        return False
    values: Any = given
    small = array.item(array.argmax()) < LARGE and array.item(array.argmin()) > -LARGE  # no NaN
    if small and (array.ndim > 1 or not isinstance(values[0], int | np.integer)):
        return False
    cells = values if array.ndim == 1 else _cells(values).reshape(-1)
    are_integers = {issubclass(kind, int | np.integer) for kind in set(map(type, cells))}
    if small or len(are_integers) == 1:
        return False not in are_integers
    return any(isinstance(v, int | np.integer) and not -LARGE < v < LARGE for v in cells)


def _cells(values: Any) -> NDArray[np.object_]:
    """The values of a list, of lists of one length, or of a frame as objects of their own types,
    where numpy, pandas and polars would convert all to one."""
    if hasattr(values, "iter_columns"):
        return np.column_stack([np.asarray(c).astype(object) for c in values.iter_columns()])
    return np.array(values.to_numpy(object) if hasattr(values, "iloc") else values, object)


def has_booleans(values: object, array: NDArray[np.generic]) -> bool:
    """Whether numpy took False or True for 0 or 1 when it made this array of integers of a list.

    >>> has_booleans([1, True], np.array([1, 1])), has_booleans([1, 0], np.array([1, 0]))
    (True, False)
    """
    if not isinstance(values, (list, tuple)) or array.dtype.kind not in "iu":
        return False
    if len(values) > _FEW:  # to see all types takes longer than to see whether one is 0 or 1
        bits = array.view(f"u{array.itemsize}")  # in which negative numbers are large
        if bits.item(bits.argmin()) > 1:
            return False
    return not _BOOLEANS.isdisjoint(map(type, values))


def shape_of(array: NDArray[np.generic]) -> str:
    """The shape of an array, or the value of one without axes, for a message."""
    if array.ndim:
        return f"shape {list(array.shape)}"
    value = array.item()
    return shown(value) if listed(array, "") is None else f"a {type(value).__name__}"


def listed(array: NDArray[np.generic], name: str) -> str | None:
    """The hint for an iterable that numpy takes as one value, such as a generator."""
    value = None if array.ndim else array.item()
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    return f"pass list({name})" if several else None


def _flattened(array: NDArray[Any], name: str) -> str:
    hint = "pass one value for each row"
    if not array.ndim:
        single = hint if array.item() is None else f"{hint} (wrap a single value in a list)"
        return listed(array, name) or single
    if array.ndim == 2 and 1 in array.shape:
        return f"{hint}, for example with ravel()"
    if array.ndim == 2 and name == "scores" and array.shape[1] == 2:
        return f"{hint}: for two classes, the column of the positive class, proba[:, 1]"
    if array.ndim == 2 and name == "labels":
        return f"{hint}: if they are one-hot, pass argmax(axis=1)"
    return hint


def require_strings(array: NDArray[np.generic], name: str) -> None:
    """Refuse missing values in an array of numpy's StringDType."""
    if array.dtype.kind == "T":
        _refuse_missing(np.array([not isinstance(v, str) for v in array], np.bool_), name)


def array_of(values: object, name: str) -> NDArray[np.generic]:
    """`values` as an array of any shape; a column of lists of one length has a row for each."""
    if type(values) is np.ndarray:
        return values
    array = _array(values, name)
    if array.dtype.kind == "O" and array.ndim == 1:
        lists = all(isinstance(v, (list, np.ndarray)) for v in array)
        if lists and len(set(map(len, array))) == 1:
            return _array(array.tolist(), name)
    return array


def list_column(values: object, name: str) -> Ragged[np.generic] | None:
    """A column whose rows are lists of different lengths; None for every other column.

    Lists of lists, and columns of lists of pandas, polars and pyarrow. InputError for a row that is
    not a list beside rows that are.

    >>> found = list_column([[1, 0], [1]], "labels")
    >>> found.values.tolist(), found.offsets.tolist()
    ([1, 0, 1], [0, 2, 3])
    """
    if isinstance(values, (list, tuple)):
        rows: Sequence[Any] = values
        kinds = set(map(type, values))
        if kinds <= {bool, int, float} or (
            kinds <= {list, tuple} and len(set(map(len, rows))) == 1
        ):
            return None
    elif len(getattr(values, "shape", ())) > 1:
        return None
    else:
        array = _array(values, name)
        if array.dtype != object or array.ndim != 1:
            return None
        rows = array.tolist()
    several = [_is_list(row) for row in rows]
    if not any(several):
        return None
    if not all(several):
        position = several.index(False)
        raise InputError(
            expected="a list in each row",
            got=shown(rows[position]),
            where=f"{name}[{position}]",
            hint="pass [] for a list without items",
            rows=np.flatnonzero(~np.array(several)),
        )
    sizes = [len(row) for row in rows]
    if len(set(sizes)) == 1 and not isinstance(values, np.ndarray):
        return None
    filled: list[Any] = [
        row if isinstance(row, (list, tuple)) else _array(row, name) for row in rows if len(row)
    ]
    if filled and all(isinstance(row, np.ndarray) for row in filled) and have_one_type(filled):
        flat: NDArray[np.generic] = np.concatenate(filled)
    else:
        flat = _array(list(chain.from_iterable(filled)), name)
    if flat.ndim != 1:
        raise _no_array(values, name, ValueError("lists inside lists inside lists"))
    return Ragged(flat, offsets_of(np.array(sizes, np.int64)))


def have_one_type(arrays: Sequence[NDArray[np.generic]]) -> bool:
    """Whether joining arrays changes no value: of int64 beside uint64 numpy makes floats."""
    return len({array.dtype for array in arrays}) == 1


def _is_list(row: object) -> bool:
    if isinstance(row, np.ndarray):
        return row.ndim == 1
    return isinstance(row, (list, tuple)) or (hasattr(row, "__array__") and hasattr(row, "__len__"))


def converted(values: object, name: str) -> NDArray[np.generic]:
    """A list, or a column of another library, as an array of any shape, or InputError. Missing
    values are not refused."""
    try:
        if not isinstance(values, (list, tuple)):
            return _library_array(values)
        return _unmixed(values, np.asarray(values))
    except MemoryError:
        raise
    except Exception as error:  # each library has its own
        raise _no_array(values, name, error) from None


def _array(values: object, name: str) -> NDArray[Any]:
    if not isinstance(values, (np.ndarray, DictionaryColumn)):
        return converted(values, name)
    if isinstance(values, DictionaryColumn):
        raise InputError(
            expected="numbers",
            got=f"texts or categories, such as {shown(next(iter(values.values), ''))}",
            where=name,
            hint="convert the column first",
        )
    _refuse_missing(np.ma.getmaskarray(values), name)
    return np.asarray(values)


def _library_array(values: Any) -> NDArray[Any]:
    if hasattr(values, "detach"):
        return _tensor_array(values.detach())
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind == "U":  # which lacks the zeros at the end of a string
        return np.asarray(values, object)
    if array.dtype != object:
        return _cells(values) if array.ndim == 2 and has_rounded(values, array) else array
    if array.ndim == 0 and hasattr(values, "to_numpy"):
        array = np.asarray(values.to_numpy())
    elif array.ndim == 0 and hasattr(values, "__dlpack__"):
        array = np.from_dlpack(values)
    elif array.ndim == 2:  # a table of nullable columns, each value an object
        numbers = np.array(array.tolist())
        is_exact = numbers.dtype.kind in "biuf" and not has_rounded(array, numbers)
        array = numbers if is_exact else array
    return array


def _tensor_array(tensor: Any) -> NDArray[Any]:
    try:
        return np.asarray(tensor)
    except TypeError:  # numpy has no bfloat16, but each one is a float32
        if not tensor.is_floating_point():
            raise
        return np.asarray(tensor.float())


def _no_array(values: object, name: str, error: Exception) -> InputError:
    device = str(getattr(values, "device", "cpu"))
    if device != "cpu":
        return InputError(
            expected="values in the memory of the CPU",
            got=f"{type(values).__name__} on {device}",
            where=name,
            hint="copy them first, for example with tensor.cpu()",
        )
    is_list = isinstance(values, (list, tuple))
    return InputError(
        expected="an array whose rows have equal lengths" if is_list else "what numpy can convert",
        got=f"{type(values).__name__} ({shown(str(error))})",
        where=name,
        hint="pass one value, or one row of values, for each row"
        if is_list
        else "convert the column first, for example to int64 or float64",
    )


def _unmixed(values: Sequence[Any], array: NDArray[Any]) -> NDArray[Any]:
    """The given values as objects, if numpy changed some when it made this array of them: it makes
    strings of a mix such as 0.5, "x", of which only "x" is wrong, and leaves out the zeros at the
    end of a string; it makes floats of integers, and times of durations beside times."""
    if array.dtype.kind == "U":
        is_whole = array.ndim != 1 or all(isinstance(v, str) and v[-1:] != "\0" for v in values)
    elif array.dtype.kind == "M":
        is_whole = np.timedelta64 not in set(map(type, values))
    else:
        is_whole = not has_rounded(values, array)
    return array if is_whole else _cells(values)


def _missing(values: object) -> NDArray[np.bool_]:
    """A mask of missing values, from the column's library: polars and pyarrow, or pandas."""
    ask = getattr(values, "is_null", None) or getattr(values, "isna", None)
    return np.asarray(ask(), np.bool_) if callable(ask) else np.zeros(0, np.bool_)


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    if not missing.any():
        return
    rows = np.unique(np.nonzero(missing)[0])
    positions = np.argwhere(missing)
    raise InputError(
        expected="a value in each row",
        got="a missing value",
        where=f"{name}[{', '.join(map(str, positions[0].tolist()))}]",
        hint=f"drop or fill the {len(rows)} row(s) with a missing value",
        rows=rows,
    )
