"""Values, bounds, intervals and effects as gauges: those of the results, escaped and bounded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from prometheus_client.parser import text_string_to_metric_families
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge
from streammetrics_consumers.query.follow import LatestResults, QueryCache
from streammetrics_consumers.query.query import OTHER, Query, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import Results
from streammetrics_consumers.render import prometheus as module
from streammetrics_consumers.render.prometheus import slice_labels
from streammetrics_consumers.server.exposition import exposition
from streammetrics_consumers.server.health import NOBODY

from tests.consumers.stores import HOSTILE, event, make_store

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(store: Path) -> Samples:
    """Every sample of a scrape; one that came twice is an error."""
    with closing(Ledger.open(str(store), pauses_s=())) as ledger:
        text = exposition(ledger, NOBODY).decode()
    samples = [
        ((one.name, frozenset((k, v) for k, v in one.labels.items() if v)), one.value)
        for metric_set in text_string_to_metric_families(text)
        for one in metric_set.samples
    ]
    assert len(dict(samples)) == len(samples)
    return dict(samples)


def read(store: Path, query: Query) -> Results:
    with closing(Ledger.open(str(store))) as ledger:
        return read_results(ledger, query)


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


@pytest.mark.parametrize("window", ["total", "latest"])
def test_every_row_that_a_table_shows_is_there_to_the_bit(store: Path, window: str) -> None:
    found = scraped(store)
    rows = [row for row in read(store, parse_query(window)).rows if row.headline]
    assert rows
    for row in rows:
        variant, rest = slice_labels(row.slice)
        labels = {"metric": row.metric, "view": row.view, "window": window}
        labels |= {k: v for k, v in (("variant", variant), ("slice", rest)) if v}
        bounds = [found.get(key(f"streammetrics_result{end}", **labels))
                  for end in ("", "_low", "_high")]  # fmt: skip
        assert bounds[0] == row.value or row.value != row.value
        assert bounds[1:] == [None if end != end else end for end in (row.low, row.high)]
        ends = [found.get(key(f"streammetrics_result_{end}", **labels))
                for end in ("lower", "upper")]  # fmt: skip
        known = row.interval is not None and row.interval.lower == row.interval.lower
        assert ends == ([row.interval.lower, row.interval.upper] if known and row.interval
                        else [None, None])  # fmt: skip
    shown = sum(k[0] == "streammetrics_result" and ("window", window) in k[1] for k in found)
    assert shown == len(rows)
    assert found[key("streammetrics_results_left_out")] == 0


def test_hostile_variants_are_labels_and_nothing_else(tmp_path: Path) -> None:
    names = [HOSTILE, 'a"} 1\nevil 1', "back\\slash", "", OTHER, "é" * 70]
    found = scraped(make_store(tmp_path, [event(0, n, 1, 0.5) for n in names], variants=""))
    mine = {dict(labels).get("variant", "") for name, labels in found
            if name == "streammetrics_result"}  # fmt: skip
    assert {HOSTILE, 'a"} 1\nevil 1', "back\\slash", OTHER, "é" * 70} <= mine
    assert not any(name == "evil" for name, _ in found)


@pytest.mark.slow
def test_the_number_of_rows_is_bounded_and_what_is_left_out_is_counted(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = sum(name == "streammetrics_result" for name, _ in scraped(store))
    monkeypatch.setattr(module, "ROWS", 3)
    found = scraped(store)
    shown = [dict(labels) for name, labels in found if name == "streammetrics_result"]
    assert len(shown) == 6  # of two windows
    assert not any("slice" in labels for labels in shown)  # groupings of few names go first
    assert found[key("streammetrics_results_left_out")] == everything - 6


def test_the_sum_of_the_other_keys_says_what_it_is_a_sum_of() -> None:
    assert slice_labels({OTHER: ("variant", "phase")}) == (OTHER, "(other)=variant phase")
    assert slice_labels({OTHER: ("phase",)}) == ("", "(other)=phase")


def test_names_of_a_slice_cannot_pretend_to_be_others() -> None:
    assert slice_labels({"a": "1,b=2"}) != slice_labels({"a": "1", "b": "2"})
    assert slice_labels({"a": None}) == ("", "a=null")


def test_a_lone_surrogate_does_not_end_the_scrape() -> None:
    assert slice_labels({"variant": "\ud800"}) == ("\\ud800", "")


def test_results_that_cannot_be_read_cost_nothing_else(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: object) -> Results:
        raise TooLarge("the states are too large")

    monkeypatch.setattr(QueryCache, "results", too_large)
    found = scraped(store)
    assert found[key("streammetrics_results_up")] == 0
    assert found[key("streammetrics_store_up")] == 1
    assert key("streammetrics_results_left_out") not in found


@pytest.mark.slow
def test_who_asks_does_not_wait_for_long_and_gets_what_was_read_before(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        answers = QueryCache(ledger)
        slow, go_on = Event(), Event()
        results, read = answers.results(Query()), 0

        def answer(_: Query) -> Results:
            nonlocal read
            read += 1
            if slow.is_set():
                assert go_on.wait(30)
            return replace(results, rows_read=read)

        answers.results = answer  # type: ignore[method-assign]
        latest = LatestResults(answers, wait_s=0.2)
        assert latest.by_window()["total"].rows_read == 1
        slow.set()
        assert latest.by_window()["total"].rows_read == 1  # of the last reading
        assert latest.by_window()["total"].rows_read == 1
        assert read == 3  # one reading at a time
        slow.clear()
        go_on.set()
        until = time.monotonic() + 30
        while latest.by_window()["total"].rows_read == 1 and time.monotonic() < until:
            pass
        assert latest.by_window()["total"].rows_read > 2
