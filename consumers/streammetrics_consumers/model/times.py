"""ISO 8601 texts to milliseconds, a column at a time.

The format is that of RFC 3339: `2019-11-24T00:01:03.979311Z`, with a fraction of 1 to 9 digits or
none, and a zone, which is `Z`, `+09:00` or `+0900`. A time without a zone is refused, since it
would mean another instant on another machine. Digits beyond the millisecond are cut off (rounded
toward the past). A leap second is refused: Unix time cannot represent it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

DAY_MS: Final = 86_400_000

LEAST_MS: Final = -62_135_596_800_000  # 0001-01-01T00:00:00Z
GREATEST_MS: Final = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z

# 1995-05-09 to 2052-05-22 in seconds. In milliseconds these are days of January 1970.
FIRST_S: Final = 800_000_000
AFTER_S: Final = 2_600_000_000

_BODY: Final = 19  # YYYY-MM-DDTHH:MM:SS
_SHORTEST: Final = _BODY + 1
_LONGEST: Final = _BODY + 10 + 6
# The bounds of each character; what they still allow beyond a time is checked after.
_LEAST: Final = np.frombuffer(b"0000-00-00 00:00:00.000000000", np.uint8)[:, None]
_MOST: Final = np.frombuffer(b"9999-19-39t29:59:59.999999999", np.uint8)[:, None]
# The digits of a time of day down to the millisecond, each with its factor over the one before.
_CLOCK: Final = (
    *((11, 1), (12, 10), (14, 6), (15, 10), (17, 6), (18, 10)),
    *((20, 10), (21, 10), (22, 10)),
)


def iso_to_ms(texts: list[str]) -> tuple[Ints, Flags]:
    """Milliseconds since the epoch [n], and whether each text is valid [n]; an invalid one gives 0.

    >>> ms, good = iso_to_ms(["1970-01-01T00:00:01.5Z", "1970-01-01T01:00:00+01:00", "today"])
    >>> ms.tolist(), good.tolist()
    ([1500, 0, 0], [True, True, False])
    """
    from streammetrics_consumers.model.chunk import end_to_end  # commands that read need no chunk

    data, offsets = end_to_end(texts)
    sizes = np.diff(offsets)
    if len(texts) and sizes.min() == sizes.max():
        ms, good = _sized_times(data.reshape(len(texts), -1))
    else:
        ms, good = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
        for size in np.flatnonzero(np.bincount(sizes[sizes <= _LONGEST])).tolist():
            alike = np.flatnonzero(sizes == size)
            rows = sliding_window_view(data, size)[offsets[alike]]
            ms[alike], good[alike] = _sized_times(rows)
    ms[~good] = 0
    return ms, good


def _sized_times(chars: Bytes) -> tuple[Ints, Flags]:
    """chars: [n, length], texts of equal size -> milliseconds [n], good [n]."""
    length = chars.shape[1]
    ms = np.zeros(len(chars), np.int64)
    good = np.zeros(len(chars), np.bool_)
    if not _SHORTEST <= length <= _LONGEST:
        return ms, good
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
            texts = chars[rows]
            ms[rows], good[rows] = _body(texts[:, :-size])
            if size > 1:
                shift, is_zone = _zone(texts[:, -size:])
                ms[rows] -= shift
                good[rows] &= is_zone
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
    # Unsigned differences wrap, so a character below its least one is far above.
    good = (columns - _LEAST[:length] <= (_MOST - _LEAST)[:length]).all(axis=0)
    good &= (columns[11] < ord("2")) | (columns[12] <= ord("3"))
    between = columns[10]
    good &= (between == ord("T")) | (between == ord("t")) | (between == ord(" "))
    digits = columns - np.uint8(ord("0"))
    of_day = np.zeros(n, np.int32)
    for place, factor in _CLOCK:
        of_day *= factor
        if place < length:
            of_day += digits[place]
    days, is_date = _dates(digits[:10])
    return days * 86_400_000 + of_day, good & is_date


def _dates(digits: Bytes) -> tuple[Ints, Flags]:
    """digits: [10, n], of YYYY-MM-DD -> days since the epoch [n], good [n].

    Events are nearly in time order, so each run of equal dates is parsed once."""
    changes = np.flatnonzero((digits[:, 1:] != digits[:, :-1]).any(axis=0)) + 1
    heads = np.concatenate([np.zeros(1, np.intp), changes])
    d = digits[:, heads].astype(np.int64)
    year = d[0] * 1000 + d[1] * 100 + d[2] * 10 + d[3]
    month, day = d[5] * 10 + d[6], d[8] * 10 + d[9]
    months = (year - 1970) * 12 + month - 1  # since 1970, in the Gregorian calendar
    first, after = np.stack([months, months + 1]).view("M8[M]").astype("M8[D]").view(np.int64)
    days = first + day - 1
    good = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (days < after)
    sizes = np.diff(heads, append=digits.shape[1])
    return np.repeat(days, sizes), np.repeat(good, sizes)
