"""The parameters of a query, and the windows of a store: whole ones only, from the floor on."""

from __future__ import annotations

import pytest
from streammetrics_consumers.query.query import (
    Query,
    QueryError,
    Span,
    Spans,
    iso_utc,
    parse_query,
    parse_time,
    state_of,
)

DAY_MS = 86_400_000


def test_without_words_a_query_asks_for_the_total_of_every_grouping() -> None:
    assert parse_query() == Query("total", None, (), None)


@pytest.mark.parametrize("word", ["total", "all", "latest"])
def test_a_window_may_be_a_word(word: str) -> None:
    assert parse_query(word).window == word


@pytest.mark.parametrize(
    "text",
    [
        "1970-01-02/1970-01-03",
        "1970-01-02T00:00:00Z/1970-01-03T00:00:00Z",
        "1970-01-02T00:00/1970-01-03T00:00:00.000Z",
        "1970-01-02T00:00:00+00:00/1970-01-03",
    ],
)
def test_a_window_may_be_a_span_in_iso_utc(text: str) -> None:
    assert parse_query(text).window == Span(DAY_MS, 2 * DAY_MS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", "expected total, all, latest, or START/END in ISO UTC, got 'yesterday'"),
        ("1970-01-02/1970-01-02", "expected a START before its END"),
        ("1970-01-02/", "expected a time in ISO UTC, such as 2019-11-24T00:00:00Z, got ''"),
        ("1970-02-30/1970-03-01", "got '1970-02-30'"),
        ("1970-01-02T00:00:00+02:00/1970-01-03", "got '1970-01-02T00:00:00+02:00'"),
        ("1970-01-02T00:00:00.0001Z/1970-01-03", "whole milliseconds"),
    ],
)
def test_another_window_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_query(text)
    assert str(refused.value).startswith("--window: ")
    assert said in str(refused.value)


def test_a_grouping_is_a_set_of_names_and_empty_is_all_rows() -> None:
    assert parse_query(by="phase, variant").by == frozenset({"variant", "phase"})
    assert parse_query(by="").by == frozenset()


def test_a_condition_may_hold_any_value() -> None:
    assert parse_query(where=["a=b=c", "d="]).where == (("a", "b=c"), ("d", ""))


def test_a_condition_without_a_name_is_refused() -> None:
    with pytest.raises(QueryError, match="--where: expected NAME=VALUE, got '=bts'"):
        parse_query(where=["=bts"])


def test_all_conditions_must_hold_and_null_is_written_as_json_has_it() -> None:
    query = parse_query(where=["variant=bts", "phase=null"])
    assert query.takes({"variant": "bts", "phase": None})
    assert not query.takes({"variant": "bts", "phase": "eval"})
    assert not query.takes({"variant": "bts"})
    assert parse_query(where=["n=7"]).takes({"n": 7})


def test_a_time_is_printed_as_short_as_it_can_be_and_reads_back() -> None:
    assert iso_utc(0) == "1970-01-01T00:00:00Z"
    assert parse_time(iso_utc(1_574_553_663_979)) == 1_574_553_663_979


def test_a_time_outside_of_the_calendar_is_printed_in_milliseconds() -> None:
    assert iso_utc(10**18) == "1000000000000000000 ms"


HOUR = 3_600_000


def test_a_pane_of_tumbling_windows_is_one_window() -> None:
    assert Spans(HOUR, HOUR).over([HOUR], None) == (Span(HOUR, 2 * HOUR),)


def test_a_pane_lies_in_every_sliding_window_that_covers_it() -> None:
    spans = Spans(3 * HOUR, HOUR).over([3 * HOUR], None)
    assert [span.start_ms // HOUR for span in spans] == [1, 2, 3]
    assert all(span.holds(3 * HOUR) for span in spans)


def test_panes_of_uneven_slides_lie_in_the_windows_that_hold_them_whole() -> None:
    spans = Spans(3 * HOUR, 2 * HOUR)
    assert spans.pane_ms == HOUR
    assert spans.over([2 * HOUR], None) == (Span(0, 3 * HOUR), Span(2 * HOUR, 5 * HOUR))


def test_windows_that_start_below_the_floor_are_gone() -> None:
    assert Spans(2 * HOUR, HOUR).over([HOUR], HOUR) == (Span(HOUR, 3 * HOUR),)


@pytest.mark.parametrize("span", [Span(0, 2 * HOUR), Span(HOUR, 4 * HOUR), Span(-HOUR, HOUR)])
def test_whole_windows_may_be_asked_for(span: Span) -> None:
    Spans(2 * HOUR, HOUR).require(span, None)


@pytest.mark.parametrize(
    ("span", "nearest"),
    [
        (Span(0, HOUR), "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"),
        (Span(1, 2 * HOUR), "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"),
        (Span(0, 3 * HOUR + 1), "1970-01-01T00:00:00Z/1970-01-01T03:00:00Z"),
    ],
)
def test_a_part_of_a_window_is_refused_with_whole_ones_nearby(span: Span, nearest: str) -> None:
    with pytest.raises(QueryError) as refused:
        Spans(2 * HOUR, HOUR).require(span, None)
    assert "expected whole windows (7200 s long, one every 3600 s)" in str(refused.value)
    assert f"ask for {nearest}, for example" in str(refused.value)


def test_windows_that_retention_has_dropped_are_refused() -> None:
    with pytest.raises(QueryError, match="a START from 1970-01-01T01:00:00Z on"):
        Spans(HOUR, HOUR).require(Span(0, HOUR), HOUR)


@pytest.mark.parametrize(
    ("least_ms", "state"),
    [(None, "open"), (99, "open"), (100, "closing"), (109, "closing"), (110, "closed")],
)
def test_a_window_closes_when_its_lateness_has_passed(least_ms: int | None, state: str) -> None:
    assert state_of(100, least_ms, 10) == state
