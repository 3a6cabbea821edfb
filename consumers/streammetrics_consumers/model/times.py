"""ISO 8601 texts to milliseconds, a column at a time.

The format is that of RFC 3339: `2019-11-24T00:01:03.979311Z`, with a fraction of 1 to 9 digits or
none, and a zone, which is `Z`, `+09:00` or `+0900`. A time without a zone is refused, since it
would mean another instant on another machine. Digits beyond the millisecond are cut off (rounded
toward the past). A leap second is refused: Unix time cannot represent it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.model.chunk import end_to_end

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

LEAST_MS: Final = -62_135_596_800_000  # 0001-01-01T00:00:00Z
GREATEST_MS: Final = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z

# 1995-05-09 to 2052-05-22 in seconds. In milliseconds these are days of January 1970.
FIRST_S: Final = 800_000_000
AFTER_S: Final = 2_600_000_000

_BODY: Final = 19  # YYYY-MM-DDTHH:MM:SS
_SHORTEST: Final = _BODY + 1
_LONGEST: Final = _BODY + 10 + 6
_MARKS: Final = ((4, b"-"), (7, b"-"), (13, b":"), (16, b":"))
_DIGITS: Final = (0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18)
_MONTH_DAYS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def iso_to_ms(texts: list[str]) -> tuple[Ints, Flags]:
    """Milliseconds since the epoch [n], and whether each text is valid [n]; an invalid one gives 0.

    >>> ms, good = iso_to_ms(["1970-01-01T00:00:01.5Z", "1970-01-01T01:00:00+01:00", "today"])
    >>> ms.tolist(), good.tolist()
    ([1500, 0, 0], [True, True, False])
    """
    data, offsets = end_to_end(texts)
    sizes = np.diff(offsets)
    if len(texts) and sizes.min() == sizes.max():
        ms, good = _of_size(data.reshape(len(texts), -1))
    else:
        ms, good = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
        for size in np.flatnonzero(np.bincount(sizes[sizes <= _LONGEST])).tolist():
            alike = np.flatnonzero(sizes == size)
            ms[alike], good[alike] = _of_size(data[offsets[alike, None] + np.arange(size)])
    ms[~good] = 0
    return ms, good


def _of_size(chars: Bytes) -> tuple[Ints, Flags]:
    """chars: [n, length], texts of equal size -> milliseconds [n], good [n]."""
    if not _SHORTEST <= chars.shape[1] <= _LONGEST:
        return np.zeros(len(chars), np.int64), np.zeros(len(chars), np.bool_)
    return _parse(chars)


def _parse(chars: Bytes) -> tuple[Ints, Flags]:
    """chars: [n, length] -> milliseconds [n], good [n]."""
    length = chars.shape[1]
    ms = np.zeros(len(chars), np.int64)
    good = np.zeros(len(chars), np.bool_)
    last = chars[:, -1]
    zulu = (last == ord("Z")) | (last == ord("z"))
    if zulu.all():
        return _body(chars[:, :-1])
    layouts = [(1, zulu)]
    if length >= _BODY + 6:
        layouts.append((6, ~zulu & (chars[:, -3] == ord(":"))))
    if length >= _BODY + 5:
        layouts.append((5, ~zulu & (chars[:, -3] != ord(":"))))
    for size, rows in layouts:
        if rows.any():
            some = chars[rows]
            ms[rows], good[rows] = _body(some[:, :-size])
            if size > 1:
                shift, known = _zone(some[:, -size:])
                ms[rows] -= shift
                good[rows] &= known
    return ms, good & (ms >= LEAST_MS) & (ms <= GREATEST_MS)


def _zone(chars: Bytes) -> tuple[Ints, Flags]:
    """chars: [n, 6] or [n, 5], such as +09:00 -> milliseconds ahead of UTC [n], good [n]."""
    digits = (chars[:, [1, 2, -2, -1]] - ord("0")).astype(np.int64)
    hours, minutes = digits[:, 0] * 10 + digits[:, 1], digits[:, 2] * 10 + digits[:, 3]
    minus = chars[:, 0] == ord("-")
    good = minus | (chars[:, 0] == ord("+"))
    good &= (digits <= 9).all(axis=1) & (hours < 24) & (minutes < 60)
    ahead = (hours * 60 + minutes) * 60_000
    return np.where(minus, -ahead, ahead), good


def _body(chars: Bytes) -> tuple[Ints, Flags]:
    """chars: [n, 19 or more], date and time without the zone -> milliseconds, good."""
    n, length = chars.shape
    if length != _BODY and not _BODY + 2 <= length <= _BODY + 10:
        return np.zeros(n, np.int64), np.zeros(n, np.bool_)
    columns = np.ascontiguousarray(chars.T)
    digits = columns - np.uint8(ord("0"))  # wraps: a non-digit becomes more than 9
    good = digits[list(_DIGITS)].max(axis=0) <= 9
    for place, mark in _MARKS:
        good &= columns[place] == ord(mark)
    between = columns[10]
    good &= (between == ord("T")) | (between == ord("t")) | (between == ord(" "))
    # Two digits fit into a byte; a non-digit may wrap, but its row is marked bad already.
    hour, minute, second = (digits[at] * 10 + digits[at + 1] for at in (11, 14, 17))
    good &= (hour < 24) & (minute < 60) & (second < 60)
    of_day = hour.astype(np.int32)
    for place, each in ((minute, 60), (second, 60)):
        of_day *= each
        of_day += place
    of_day *= 1000
    if length > _BODY:
        good &= (columns[_BODY] == ord(".")) & (digits[_BODY + 1 :].max(axis=0) <= 9)
        for at, worth in zip(range(_BODY + 1, length), (100, 10, 1), strict=False):
            of_day += digits[at].astype(np.int32) * worth
    days, known = _dates(digits[:10])
    return days * 86_400_000 + of_day, good & known


def _dates(digits: Bytes) -> tuple[Ints, Flags]:
    """digits: [10, n], of YYYY-MM-DD -> days since the epoch [n], good [n].

    Events are nearly in time order, so each run of equal dates is parsed once."""
    others = np.flatnonzero((digits[:, 1:] != digits[:, :-1]).any(axis=0)) + 1
    heads = np.concatenate([np.zeros(1, np.intp), others])
    d = digits[:, heads].astype(np.int64)
    year = d[0] * 1000 + d[1] * 100 + d[2] * 10 + d[3]
    month, day = d[5] * 10 + d[6], d[8] * 10 + d[9]
    good = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    good &= day <= _MONTH_DAYS[np.clip(month, 0, 12)] + (leap & (month == 2))
    sizes = np.diff(heads, append=digits.shape[1])
    return np.repeat(_days(year, month, day), sizes), np.repeat(good, sizes)


def _days(year: Ints, month: Ints, day: Ints) -> Ints:
    """Days since 1970-01-01 of dates of the proleptic Gregorian calendar.

    Years begin in March, so that the leap day is the last of its year and one linear formula gives
    the months. Source: Hinnant 2013, "chrono-Compatible Low-Level Date Algorithms",
    https://howardhinnant.github.io/date_algorithms.html#days_from_civil
    """
    year = year - (month <= 2)
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    days: Ints = era * 146_097 + day_of_era - 719_468
    return days
