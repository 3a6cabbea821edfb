"""Common mistakes in the columns that users pass, and their fixes, for error messages.

Each check decides by a row alone, never by its neighbours, so that the same rows are refused
however they are split into updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Never, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import (
    FOR_A_TABLE,
    ArgumentError,
    InputError,
    argument_hint,
    bad_rows,
    meant,
    nearest,
    shown,
    table_instead,
)
from streammetrics.core.rows import exact_total

F = TypeVar("F", bound=Callable[..., object])
_NAMED: Final = 5  # arguments that an error names
MISSING: Final = object()  # in place of an argument that was not given
_EXACT_BITS: Final = np.uint64(53)  # of an integer that is exact in float64
# The Unix times of 1995-05-09 to 2052-05-22 in seconds. In milliseconds these are days 9 to 30 of
# 1970, where no log has events.
_FIRST_S: Final = 800_000_000
_AFTER_S: Final = 2_600_000_000
FIRST_MS: Final = _FIRST_S * 1000  # no time in seconds, but one in milliseconds
_FACTORS: Final = ((1, "seconds"), (10**6, "microseconds"), (10**9, "nanoseconds"))


def refuse_other_spellings(labels: NDArray[np.generic], positive: str, name: str) -> None:
    """Refuse strings that differ from `positive` in case or in surrounding spaces alone."""
    texts: list[str] = labels.tolist()
    spelling = positive.strip().casefold()
    likely = {
        label for label in set(texts) if label != positive and label.strip().casefold() == spelling
    }
    if not likely:
        return
    rows = np.flatnonzero([label in likely for label in texts])
    first = texts[rows[0]]
    expected = f"the positive class spelled as in positive={shown(positive)}, or another class"
    hint = f"pass positive={shown(first)} if that is the spelling, or labels of 0 and 1"
    got = f"{shown(first)}, which differs only in case or spaces"
    raise bad_rows(texts, rows, name, expected, hint, got)


def labels_instead(labels: NDArray[np.generic]) -> str | None:
    """The hint for labels other than 0 and 1, if the mistake is clear; else None."""
    array: NDArray[Any] = labels
    if array.dtype.kind in "if" and bool(((array == -1) | (array == 1)).all()):
        return "for classes -1 and 1, pass labels == 1"
    if array.dtype.kind == "O" and all(type(v) in (int, float) and v in (-1, 1) for v in array):
        return "for classes -1 and 1, pass [label == 1 for label in labels]"
    return None


def ids_instead(value: object) -> str | None:
    """The hint for an id that is a float; None for any other id."""
    if not isinstance(value, float | np.floating):
        return None
    return (
        "pass integers: missing values turn a column of integers into floats, so drop those rows "
        'and use astype("int64")'
    )


def times_instead(value: object) -> str | None:
    """The hint for a key that is a time; None for any other."""
    if not isinstance(value, datetime | np.datetime64):
        return None
    return 'pass days, as dates or with astype("datetime64[D]"), or count by time with Windows'


def sizes_instead(ids: object, n: int) -> str | None:
    """The hint for ids that are rather the sizes of groups of n rows; None for all others."""
    if not isinstance(ids, np.ndarray) or ids.dtype != np.int64 or not len(ids) or ids.min() < 0:
        return None
    if exact_total(ids) != n:
        return None
    return (
        "these sum to the number of rows: for sizes of groups, use RankingMetrics with "
        "group_sizes=, or pass the id of its group for each row, numpy.repeat(ids, sizes)"
    )


def refuse_rounded(values: NDArray[np.generic], name: str) -> None:
    """Refuse integers that are not exact in float64, where two of them may be equal."""
    integers: NDArray[Any] = values
    if integers.dtype.kind == "O":
        bad = np.flatnonzero([_is_rounded(value) for value in integers])
    else:
        signed = integers.dtype.kind == "i"
        size = np.where(integers < 0, -integers, integers) if signed else integers
        bits = size.astype(np.uint64)
        lowest = bits & (~bits + np.uint64(1))
        bad = np.flatnonzero((bits >> _EXACT_BITS) >= np.maximum(lowest, np.uint64(1)))
    if not len(bad):
        return
    hint = "pass smaller integers, such as ranks or differences, or round them first with "
    hint += "astype(numpy.float64)"
    expected = "integers that float64 holds exactly, such as all up to 2**53"
    raise bad_rows(integers, bad, name, expected, hint)


def _is_rounded(value: object) -> bool:
    if isinstance(value, np.timedelta64) or not isinstance(value, int | np.integer):
        return False
    number = int(value)
    return abs(number) < 1 << 1023 and int(float(number)) != number


def are_milliseconds(first: int, last: int) -> bool:
    """Whether no time of this range is one of 1995 to 2052 in another unit."""
    return last < _FIRST_S or (first >= _AFTER_S and last < _FIRST_S * 10**6)


def refuse_other_units(times_ms: NDArray[np.int64], name: str) -> None:
    """Refuse Unix times in seconds, microseconds or nanoseconds where milliseconds are wanted."""
    if not len(times_ms):
        return
    if are_milliseconds(times_ms.item(times_ms.argmin()), times_ms.item(times_ms.argmax())):
        return
    for factor, unit in _FACTORS:
        bad = np.flatnonzero((times_ms >= _FIRST_S * factor) & (times_ms < _AFTER_S * factor))
        if len(bad):
            first = int(times_ms[bad[0]])
            fix = f"{name} * 1000" if factor == 1 else f"{name} // {factor // 1000}"
            hint = f"pass {fix}; if your times count from another start, add that start"
            got = f"{first}, a time in {unit} between 1995 and 2052"
            raise bad_rows(times_ms, bad, name, "Unix times in milliseconds", hint, got)


def refuse_milliseconds(times_s: NDArray[np.floating], name: str) -> None:
    """Refuse Unix times in milliseconds where seconds are wanted."""
    bad = np.flatnonzero((times_s >= FIRST_MS) & (times_s < _AFTER_S * 1000.0))
    if len(bad):
        first = shown(times_s[bad[0]])
        got = f"{first}, a time in milliseconds between 1995 and 2052"
        raise bad_rows(times_s, bad, name, "times in seconds", f"pass {name} / 1000", got)


# -- calls of `update` ---------------------------------------------------------------------------
def require_both(arguments: Mapping[str, object], pair: tuple[str, str], where: str) -> None:
    """Refuse one of two optional arguments without the other."""
    names = [name for name in pair if arguments[name] is not None]
    if len(names) == 1:
        raise InputError(
            expected=f"both {pair[0]} and {pair[1]}, or neither",
            got=f"only {names[0]}",
            where=where,
            hint="pass the other one too, or leave both out",
        )


def wrong_call(
    name: str,
    arguments: Mapping[str, object],
    optional: Sequence[str],
    unknown: Mapping[str, object],
    surplus_values: Sequence[object] = (),
) -> ArgumentError:
    """The error for a call with unknown arguments, with too many by position, or without required
    ones, which are `MISSING`.

    name: of the metric. arguments: those that it requires. optional: the names of its optional
    arguments. surplus_values: those by position that are too many.
    """
    values = [
        v for v in (*arguments.values(), *unknown.values(), *surplus_values) if v is not MISSING
    ]
    if unknown:
        expected = ", ".join([*arguments, *optional])
        got = " and ".join(islice(unknown, _NAMED))
        # Names that are not meant are those of a table.
        hint = argument_hint(unknown, [*arguments, *optional], "")
    else:
        expected = ", ".join([*arguments, *optional] if surplus_values else arguments)
        absent = [argument for argument, value in arguments.items() if value is MISSING]
        got = "no " + " and no ".join(absent)
        hint = ""
        if surplus_values:
            got = f"{len(surplus_values)} more by position"
            hint = f"pass {', '.join(f'{keyword}=' for keyword in absent or optional)} by name"
    if not hint or any(map(table_instead, values)):
        columns = ", ".join(f'{argument}="..."' for argument in arguments)
        hint = f"for a table, name its columns: update_from(table, {columns})"
    where = f"{name}.update"
    return ArgumentError(expected=f"the arguments {expected}", got=got, where=where, hint=hint)


def explained(function: F) -> F:
    """The method or function, whose TypeError for wrong arguments says how to pass them."""
    takes = signature(function)
    is_method = next(iter(takes.parameters)) == "self"

    @wraps(function)
    def call(*values: object, **keywords: object) -> object:
        try:
            return function(*values, **keywords)
        except TypeError:
            try:
                takes.bind(*values, **keywords)
            except TypeError:
                owner = f"{type(values[0]).__name__}." if is_method and values else ""
                where, arguments = (
                    f"{owner}{function.__name__}",
                    values[1:] if is_method else values,
                )
                raise _other_arguments(takes, where, arguments, keywords) from None
            raise

    return cast("F", call)


def _other_arguments(
    method: Signature, where: str, values: Sequence[object], keywords: Mapping[str, object]
) -> ArgumentError:
    """The error for a call that does not fit the signature."""
    takes = {name: p for name, p in method.parameters.items() if name != "self"}
    names = [name for name, p in takes.items() if p.kind != p.VAR_KEYWORD]
    by_position = [n for n in names if takes[n].kind != Parameter.KEYWORD_ONLY]
    given_names = {*by_position[: len(values)], *keywords}
    absent = [
        name for name in names if name not in given_names and takes[name].default is Parameter.empty
    ]
    other_names = [name for name in keywords if name not in names]
    meant_names = [name for name in other_names if meant(name, absent or names)]
    wrong = meant_names if len(names) < len(takes) else other_names
    if (surplus := len(values) - len(by_position)) > 0:
        wrong = [*wrong, f"{surplus} more by position"]
    got = [" and ".join(wrong[:_NAMED])] if wrong else []
    got += [f"no {' and no '.join(absent)}"] if absent else []
    hint = argument_hint(meant_names, absent or names, "") if meant_names else ""
    if not hint and len(takes) == len(method.parameters):  # of a function
        hint = f"help({where}) has the arguments"
    elif not hint and not any(map(table_instead, values)) and len(values) > 1:
        hint = "pass each column by its name, as in labels=..."
    texts = [*names, *(f"**{name}" for name in takes if name not in names)]
    return ArgumentError(
        expected=f"the arguments {', '.join(texts)}",
        got=" but ".join(got) or "one of them twice",
        where=where,
        hint=hint or FOR_A_TABLE,
    )


class NoItems:
    """A metric, or a result that is no mapping: `x["auc"]` says where the value is.

    The error is a TypeError, as Python's own would be.
    """

    __slots__ = ()
    if not TYPE_CHECKING:  # type checkers say it themselves
        __iter__ = None

        def __getitem__(self, key: object) -> Never:
            names = [name for name in dir(self) if not name.startswith("_")]
            hint = "ask the result: compute()" if "compute" in names else "to_dict() has its values"
            if (name := str(key)) in names:
                hint = f"write .{name}"
            elif close := nearest(name, names, ""):
                hint = close if "compute" not in names else hint
            raise ArgumentError(
                expected="an attribute" if "compute" not in names else "a result",
                got=f"[{shown(key)}]",
                where=type(self).__name__,
                hint=hint,
            )


# -- operands of `merge` --------------------------------------------------------------------------
def operands(states: object) -> Iterable[object]:
    """The states in an iterable; any other value, also a text or mapping, as the only operand."""
    texts = (str, bytes, bytearray, memoryview, Mapping)
    return states if isinstance(states, Iterable) and not isinstance(states, texts) else (states,)


def loaded_instead(other: object) -> str:
    """The hint for an operand that is not a state."""
    if isinstance(other, (bytes, bytearray, memoryview, str, PathLike)):
        return "load it first with streammetrics.load(...)"
    if isinstance(other, Mapping):
        return "pass its values()"
    if hasattr(other, "merge"):
        return "merge each metric with its own kind; a Panel counts several metrics together"
    if hasattr(other, "update"):
        return "this metric depends on the order of its rows, so no merge is defined"
    return "pass metrics that have counted, not their results"
