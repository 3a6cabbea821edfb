"""The words that a reader may ask with."""

from __future__ import annotations

import pytest

from consumers.results.query import Query, QueryError, Span, iso_utc, parse_query, parse_time

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
        ("yesterday", "expected total, all, latest, or START/END in ISO UTC, came 'yesterday'"),
        ("1970-01-02/1970-01-02", "expected a START before its END"),
        ("1970-01-02/", "expected a time in ISO UTC, such as 2019-11-24T00:00:00Z, came ''"),
        ("1970-02-30/1970-03-01", "came '1970-02-30'"),
        ("1970-01-02T00:00:00+02:00/1970-01-03", "came '1970-01-02T00:00:00+02:00'"),
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
    with pytest.raises(QueryError, match="--where: expected NAME=VALUE, came '=bts'"):
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
