from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st
from streammetrics_consumers.model.times import GREATEST_MS, LEAST_MS, iso_to_ms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda m: timezone(timedelta(minutes=m)))
TIMES = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=ZONES)  # noqa: DTZ001


def parsed_ms(text: str) -> int | None:
    ms, good = iso_to_ms([text])
    return int(ms[0]) if good[0] else None


@given(st.lists(TIMES))
def test_times_are_those_of_the_standard_library(times: list[datetime]) -> None:
    ms, good = iso_to_ms([time.isoformat() for time in times])
    assert good.all()
    assert ms.tolist() == [(time - EPOCH) // timedelta(milliseconds=1) for time in times]


def test_a_time_is_read_to_the_millisecond_toward_the_past() -> None:
    for text, ms in (
        ("2019-11-24T00:01:03.979311Z", 1_574_553_663_979),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01 00:00:00+00:00", 0),
        ("1970-01-01T09:30:00+0930", 0),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2000-02-29T00:00:00.5-01:00", 951_786_000_500),
        ("0001-01-01T00:00:00Z", LEAST_MS),
        ("9999-12-31T23:59:59.999Z", GREATEST_MS),
    ):
        assert parsed_ms(text) == ms, text


def test_what_is_no_time_with_a_zone_is_refused() -> None:
    for text in (
        "", "Z", "today", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01T00:00Z",
        "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
        "2024-00-01T00:00:00Z", "2024-01-00T00:00:00Z", "2024-04-31T00:00:00Z",
        "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z",
        "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00.1234567890Z",
        "2024-01-01T00:00:00.12a456Z", "2024/01/01T00:00:00Z", "2024-01-01_00:00:00Z",
        "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+00:60", "2024-01-01T00:00:00 00:00",
        "2024-01-01T00:00:00+0a:00", "٢024-01-01T00:00:00Z", "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2024-01-01T00:00:00Z ",
        "-024-01-01T00:00:00Z", "1704067200", "2024-W01-1T00:00:00Z",
    ):  # fmt: skip
        assert parsed_ms(text) is None, text


def test_a_bad_text_leaves_its_neighbours_alone() -> None:
    ms, good = iso_to_ms(["1970-01-01T00:00:01Z", "1970-01-01T00:00:0xZ", "1970-01-01T00:00:02Z"])
    assert ms.tolist() == [1000, 0, 2000]
    assert good.tolist() == [True, False, True]


def test_dates_that_follow_each_other_are_those_of_each_row() -> None:
    days = [1, 1, 2, 2, 1, 31, 32, 1, 1]
    ms, good = iso_to_ms([f"1970-01-{day:02}T00:00:00.{i:03}Z" for i, day in enumerate(days)])
    assert good.tolist() == [day < 32 for day in days]
    expected = [(day - 1) * 86_400_000 + i if day < 32 else 0 for i, day in enumerate(days)]
    assert ms.tolist() == expected
