"""The parameters of a query, and the windows of a store: whole ones only, from the floor on."""

from __future__ import annotations

from typing import Any

import pytest
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.query.query import (
    Query,
    QueryError,
    Span,
    WindowGrid,
    parse_query,
    parse_time,
    store_name,
)

DAY_MS = 86_400_000
HOUR = 3_600_000


def test_words_are_the_parameters_of_a_query() -> None:
    assert parse_query() == Query("total", None, (), None)
    for word in ("total", "all", "latest"):
        assert parse_query(word).window == word
    for text in (
        "1970-01-02/1970-01-03",
        "1970-01-02T00:00/1970-01-03T00:00:00.000Z",
        "1970-01-02T00:00:00+00:00/1970-01-03",
    ):
        assert parse_query(text).window == Span(DAY_MS, 2 * DAY_MS)
    assert parse_query(by="phase, variant").by == frozenset({"variant", "phase"})
    assert parse_query(by="").by == frozenset()
    assert parse_query(where=["a=b=c", "d="]).where == (("a", "b=c"), ("d", ""))


def test_others_are_refused_with_what_to_write() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"window": "yesterday"},
            "--window: expected total, all, latest, or START/END in ISO UTC, got 'yesterday'",
        ),
        ({"window": "1970-01-02/1970-01-02"}, "--window: expected a START before its END"),
        (
            {"window": "1970-01-02/"},
            "--window: expected a time in ISO UTC, such as 2019-11-24T00:00:00Z, got ''",
        ),
        ({"window": "1970-02-30/1970-03-01"}, "got '1970-02-30'"),
        ({"window": "1970-01-02T00:00:00+02:00/1970-01-03"}, "got '1970-01-02T00:00:00+02:00'"),
        ({"window": "1970-01-02T00:00:00.0001Z/1970-01-03"}, "whole milliseconds"),
        ({"where": ["=bts"]}, "--where: expected NAME=VALUE, got '=bts'"),
        ({"generation": "0"}, "expected the number of a generation, at least 1, got '0'"),
    ]
    for words, message in cases:
        with pytest.raises(QueryError) as refused:
            parse_query(**words)
        assert message in str(refused.value)


def test_all_conditions_must_hold_and_null_is_written_as_json_has_it() -> None:
    query = parse_query(where=["variant=bts", "phase=null"])
    assert query.takes({"variant": "bts", "phase": None})
    assert not query.takes({"variant": "bts", "phase": "eval"})
    assert not query.takes({"variant": "bts"})
    assert parse_query(where=["n=7"]).takes({"n": 7})


def test_a_pane_lies_in_every_window_that_covers_it_and_starts_above_the_floor() -> None:
    spans = WindowGrid(3 * HOUR, HOUR).windows_over([3 * HOUR], None)
    assert [span.start_ms // HOUR for span in spans] == [1, 2, 3]
    assert all(span.holds(3 * HOUR) for span in spans)
    uneven = WindowGrid(3 * HOUR, 2 * HOUR)
    assert uneven.pane_ms == HOUR
    assert uneven.windows_over([2 * HOUR], None) == (Span(0, 3 * HOUR), Span(2 * HOUR, 5 * HOUR))
    assert WindowGrid(2 * HOUR, HOUR).windows_over([HOUR], HOUR) == (Span(HOUR, 3 * HOUR),)


def test_whole_windows_that_are_kept_may_be_asked_for() -> None:
    for span in (Span(0, 2 * HOUR), Span(HOUR, 4 * HOUR), Span(-HOUR, HOUR)):
        WindowGrid(2 * HOUR, HOUR).require(span, None)
    for span, nearest in (
        (Span(0, HOUR), "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"),
        (Span(1, 2 * HOUR), "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"),
        (Span(0, 3 * HOUR + 1), "1970-01-01T00:00:00Z/1970-01-01T03:00:00Z"),
    ):
        with pytest.raises(QueryError) as refused:
            WindowGrid(2 * HOUR, HOUR).require(span, None)
        assert "expected whole windows (7200 s long, one every 3600 s)" in str(refused.value)
        assert f"ask for {nearest}, for example" in str(refused.value)
    with pytest.raises(QueryError, match="a START of 1970-01-01T01:00:00Z or later"):
        WindowGrid(HOUR, HOUR).require(Span(0, HOUR), HOUR)


def test_a_time_is_printed_as_short_as_it_can_be_and_reads_back() -> None:
    assert iso_utc(0) == "1970-01-01T00:00:00Z"
    assert parse_time(iso_utc(1_574_553_663_979)) == 1_574_553_663_979
    assert iso_utc(-59_000_000_000_000) == "0100-05-13T15:06:40Z"
    assert iso_utc(10**18) == "1000000000000000000 ms"


def test_a_store_is_named_by_its_file_or_its_host_and_never_with_a_password() -> None:
    for url, name in (
        ("folder/store.db", "store.db"),
        ("postgresql://me:secret@db.example:5432/metrics?sslmode=require", "db.example/metrics"),
        ("postgresql:///metrics", "metrics"),
        ("postgresql://me:secret@db.example", "db.example/postgresql"),
    ):
        assert store_name(url) == name
