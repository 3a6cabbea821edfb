"""Times of every type are whole milliseconds since 1970, rounded down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

from streammetrics import InputError, Ratio, Windows
from streammetrics.core.event_times import milliseconds

HOUR = 3_600_000


def test_datetime64_of_every_unit_is_rounded_down() -> None:
    for unit, ticks, expected in (
        ("ns", [-1, 999_999, 1_000_000], [-1, 0, 1]),
        ("us", [-1, 999, 1_000], [-1, 0, 1]),
        ("25us", [-1, 39, 40], [-1, 0, 1]),
        ("100ns", [-1, 10_000, 104_137_056 * 10**9], [-1, 1, 10_413_705_600_000]),
        ("7us", [-1, 143, 2**62], [-1, 1, 7 * 2**62 // 1000]),
        ("2ns", [-1, 2**63 - 1], [-1, (2**64 - 2) // 10**6]),
        ("2500us", [-1, 1, 2**60], [-3, 2, 5 * 2**59]),
        ("ps", [-1, 10**9], [-1, 1]),
        ("9999999fs", [-1, 2**62], [-1, 9_999_999 * 2**62 // 10**12]),
        ("ms", [-1, 0, 1], [-1, 0, 1]),
        ("s", [-1, 1], [-1000, 1000]),
        ("m", [2], [120_000]),
        ("h", [-2], [-2 * HOUR]),
        ("D", [1], [24 * HOUR]),
        ("W", [1], [168 * HOUR]),
        ("M", [1], [31 * 24 * HOUR]),
        ("3M", [-1], [-92 * 24 * HOUR]),
        ("Y", [-1, 2], [-365 * 24 * HOUR, 730 * 24 * HOUR]),
    ):
        datetimes = np.array(ticks, np.int64).view(f"M8[{unit}]")
        swapped = datetimes.astype(datetimes.dtype.newbyteorder())
        for array in (datetimes, swapped):
            assert milliseconds(array, "t").tolist() == expected, array.dtype


def test_datetimes_with_zones_are_the_same_moments() -> None:
    moment = datetime(2025, 11, 13, 3, 30, 0, 1_999, timezone(timedelta(hours=5, minutes=30)))
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    times = milliseconds([moment, before], "t").tolist()
    assert times == [round(moment.timestamp()) * 1000 + 1, -1]
    hourly = Windows(Ratio(), 3600)
    hourly.update([moment, before], numerators=[1, 0])
    assert hourly.windows() == (
        (-HOUR, 0),
        (times[0] // HOUR * HOUR, times[0] // HOUR * HOUR + HOUR),
    )


@pytest.mark.parametrize(
    ("unit", "ticks"),
    [
        ("4ms", 2**62),
        ("2s", 2**53),
        ("2500us", 2**62),
        ("M", 10**15),
        ("5Y", 2**62),
        ("Y", -(2**62)),
    ],
)
def test_datetime64_beyond_the_milliseconds_of_64_bits_is_refused(unit: str, ticks: int) -> None:
    with pytest.raises(InputError, match=r"t\[1\]: expected times whose milliseconds are an int64"):
        milliseconds(np.array([0, ticks], np.int64).view(f"M8[{unit}]"), "t")


@pytest.mark.parametrize(
    ("times", "text"),
    [
        (
            np.array(["2025-01-01", "NaT"], "M8[s]"),
            "t[1]: expected a time in each row, got NaT; drop or fill the 1 row(s) without a time",
        ),
        (
            np.array([0, 2**60]).view("M8[s]"),
            "t[1]: expected times whose milliseconds are an int64, got 1152921504606846976; "
            "drop or fix the 1 row(s)",
        ),
        (
            [datetime(2025, 1, 1, tzinfo=UTC), pd.NaT],
            "t[1]: expected a time in each row, got NaT; drop or fill the 1 row(s) without a time",
        ),
        (
            [np.datetime64("2025-01-01"), np.timedelta64(1, "s")],
            "t[0]: expected milliseconds since the epoch, or times with a zone, got "
            "datetime.date(2025, 1, 1) of object; "
            'convert them to whole milliseconds; for seconds, (times * 1000).astype("int64")',
        ),
        (
            [datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 1)],  # noqa: DTZ001
            "t[1]: expected datetimes with a zone, got datetime.datetime(2025, 1, 1, 0, 0) "
            "(datetime); give each a zone, for example with replace(tzinfo=datetime.UTC)",
        ),
        (
            ["2025-01-01"],
            "t[0]: expected milliseconds since the epoch, or times with a zone, got '2025-01-01' "
            'of <U10; parse them first, for example with numpy.array(times, "datetime64[ms]")',
        ),
        (
            [0.5],
            "t[0]: expected milliseconds since the epoch, or times with a zone, got 0.5 of object; "
            'convert them to whole milliseconds; for seconds, (times * 1000).astype("int64")',
        ),
        (
            [1_763_000_000],
            "t[0]: expected Unix times in milliseconds, got 1763000000, a time in seconds between "
            "1995 and 2052; pass t * 1000; if your times count from another start, add that start",
        ),
    ],
)
def test_times_that_are_not_certain_are_refused(times: Any, text: str) -> None:
    with pytest.raises(InputError) as error:
        milliseconds(times, "t")
    assert str(error.value) == text
