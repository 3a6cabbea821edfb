"""Times of events as milliseconds since 1970."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.checks import integers
from streammetrics.core.conversion import vector
from streammetrics.core.errors import InputError, bad_rows, shown
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.slips import refuse_other_units

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_EXPECTED: Final = "milliseconds since the epoch, or times with a zone"
_PARSE: Final = 'parse them first, for example with numpy.array(times, "datetime64[ms]")'
_MOST_MS_OF: Final = {"Y": 366 * 86_400_000, "M": 31 * 86_400_000}  # of units that differ
_MS_OF: Final = {
    **_MOST_MS_OF,
    "W": 604_800_000,
    "D": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
}
_PER_MS: Final = {"us": 10**3, "ns": 10**6, "ps": 10**9, "fs": 10**12, "as": 10**15}
_INT64: Final = np.iinfo(np.int64)


def milliseconds(times: ArrayLike | Sequence[datetime], name: str) -> NDArray[np.int64]:
    """Times [n] as int64 milliseconds since 1970, rounded down.

    times: integers, which are milliseconds; `datetime64`, in UTC; or datetimes with a zone.
    InputError for other values, and for integers that are a time of 1995 to 2052 in seconds, micro-
    or nanoseconds.

    >>> milliseconds(np.array(["2025-01-01T00:00:01.5"], "M8[us]"), "times_ms").tolist()
    [1735689601500]
    """
    if type(times) is np.ndarray and times.dtype.kind in "iu":
        times_ms = integers(times, name)
    elif isinstance(times, DictionaryColumn):
        raise InputError(expected=_EXPECTED, got="texts", where=name, hint=_PARSE)
    else:
        array: NDArray[Any] = vector(times, name)
        if array.dtype.kind == "i":
            times_ms = integers(array, name)
        elif array.dtype.kind == "M":
            _refuse_missing(np.isnat(array), name)
            native = array.astype(array.dtype.newbyteorder("="), copy=False)
            times_ms = _datetime64_times(native, name)
        elif array.dtype.kind == "O" and any(isinstance(time, datetime) for time in array):
            times_ms = _datetime_times(array, name)
        else:
            times_ms = _number_times(times, array, name)
    refuse_other_units(times_ms, name)
    return times_ms


def _number_times(times: Any, array: NDArray[Any], name: str) -> NDArray[np.int64]:
    try:
        return integers(times, name)
    except InputError as error:
        if not error.expected.startswith("integers"):
            raise
        if array.dtype.kind in "UT" or isinstance(next(iter(array), None), str):
            hint = _PARSE
        elif array.dtype.kind == "O" and any(isinstance(time, date) for time in array):
            hint = 'pass numpy.array(times, "datetime64[ms]"): a date is its midnight in UTC'
        else:
            hint = 'convert them to whole milliseconds; for seconds, (times * 1000).astype("int64")'
        raise error.but(expected=_EXPECTED, hint=hint) from None


def _datetime64_times(array: NDArray[Any], name: str) -> NDArray[np.int64]:
    unit, step = np.datetime_data(array.dtype)
    ticks: NDArray[Any] = array.view(np.int64)
    ratio = Fraction(step * _MS_OF.get(unit, 1), _PER_MS.get(unit, 1))
    ms, per_ms = ratio.as_integer_ratio()
    if ms == 1:
        return ticks // per_ms
    whole = ticks if per_ms == 1 else ticks // per_ms
    bad = np.flatnonzero(np.abs(whole) > _INT64.max // ms - (per_ms > 1))
    if len(bad):
        hint = f"drop or fix the {len(bad)} row(s)"
        raise bad_rows(array, bad, name, "times whose milliseconds are an int64", hint)
    if unit in _MOST_MS_OF:
        return array.astype("M8[ms]").view(np.int64)
    if per_ms == 1:
        return ticks * ms
    if ms * per_ms > _INT64.max:
        ticks = ticks.astype(object)
    return whole * ms + (ticks % per_ms * ms // per_ms).astype(np.int64)


def _datetime_times(array: NDArray[Any], name: str) -> NDArray[np.int64]:
    # NaT of pandas is a datetime that equals nothing.
    missing = [isinstance(time, datetime) and time != time for time in array]
    _refuse_missing(np.array(missing, np.bool_), name)
    bad = np.flatnonzero([not _has_zone(time) for time in array])
    if len(bad):
        first = array[bad[0]]
        hint = "give each a zone, for example with replace(tzinfo=datetime.UTC)"
        got = f"{shown(first)} ({type(first).__name__})"
        raise bad_rows(array, bad, name, "datetimes with a zone", hint, got)
    return np.array([(time - _EPOCH) // _MS for time in array], np.int64)


def _has_zone(time: object) -> bool:
    return isinstance(time, datetime) and time.utcoffset() is not None


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        hint = f"drop or fill the {len(rows)} row(s) without a time"
        raise bad_rows(missing, rows, name, "a time in each row", hint, "NaT")
