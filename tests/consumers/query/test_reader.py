"""A fresh read: the rows of every state, read together or one range of keys at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import reader
from streammetrics_consumers.query.query import Query, QueryError, Span, parse_query
from streammetrics_consumers.query.reader import read_results, select, streamed_results
from streammetrics_consumers.query.results import Results, to_json

from streammetrics import Ratio
from tests.consumers.stores import (
    EVENTS,
    event,
    make_store,
    over_stores,
    write_config,
    write_events,
)
from tests.consumers.views_once import views_computed_once

pytestmark = pytest.mark.usefixtures("each_store")

HOUR = 3_600_000
SLIDING = "slide_s = 1200"


@contextmanager
def reading(store: Path) -> Iterator[Ledger]:
    """The ledger of a store."""
    with closing(Ledger.open(str(store))) as ledger:
        yield ledger


def read(store: Path, query: Query) -> Results:
    """The answer to a query."""
    with reading(store) as ledger:
        return read_results(ledger, query)


def clicks(times: list[int], labels: list[int]) -> str:
    """The digest of the click rate of these events."""
    ratio = Ratio()
    if times:
        ratio.update(labels)
    return ratio.digest()


@pytest.mark.slow
def test_many_commits_give_the_bytes_of_one(tmp_path: Path, store: Path) -> None:
    write_config(tmp_path)
    for end in range(1, len(EVENTS) + 1):
        write_events(tmp_path, EVENTS[:end])
        code = main(["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve"])
        assert code == 0
    once, often = (read(s, Query("all")) for s in (store, tmp_path / "store.db"))
    assert to_json(often) == to_json(once)


def test_a_sliding_window_is_the_sum_of_its_panes(tmp_path: Path) -> None:
    events = [event(minute, "a", minute % 2, 0.5) for minute in range(0, 150, 7)]
    store = make_store(tmp_path, events, windows=SLIDING)
    rows = [
        row
        for row in read(store, parse_query("all", "", metric="ctr")).rows
        if row.view == "ratio" and row.window.start_ms is not None
    ]
    assert len(rows) == 10
    for row in rows:
        start, end = row.window.start_ms, row.window.end_ms
        assert start is not None and end is not None and end - start == HOUR
        inside = [m for m in range(0, 150, 7) if start <= m * 60_000 < end]
        assert row.digest == clicks(inside, [m % 2 for m in inside])


def test_merged_sliding_windows_count_each_event_once(tmp_path: Path) -> None:
    events = [event(minute, "a", minute % 2, 0.5) for minute in range(0, 150, 7)]
    store = make_store(tmp_path, events, windows=SLIDING)
    span = Span(1_200_000, 2 * HOUR)
    (row, *_) = read(store, Query(span, frozenset(), (), "ctr")).rows
    inside = [m for m in range(0, 150, 7) if span.holds(m * 60_000)]
    assert row.digest == clicks(inside, [m % 2 for m in inside])
    assert (row.window.start_ms, row.window.end_ms) == (span.start_ms, span.end_ms)


def test_the_latest_window_is_the_one_that_starts_last(tmp_path: Path) -> None:
    events = [event(0, "a", 1, 0.5), event(125, "a", 1, 0.5)]
    store = make_store(tmp_path, events, windows=SLIDING)
    (window,) = {row.window for row in read(store, Query("latest")).rows}
    assert window.start_ms == 2 * HOUR


@pytest.mark.parametrize(("minute", "state"), [(59, "open"), (60, "closing"), (61, "closed")])
def test_a_window_closes_once_the_lateness_has_passed_in_event_time(
    tmp_path: Path, minute: int, state: str
) -> None:
    store = make_store(tmp_path, [event(0, "a", 1, 0.5), event(minute, "a", 1, 0.5)])
    windows = {row.window for row in read(store, Query("all")).rows}
    assert [w.state for w in windows if w.start_ms == 0] == [state]


def test_a_store_without_windows_has_no_latest_one(tmp_path: Path) -> None:
    assert read(make_store(tmp_path, [b"x"]), Query("latest")).rows == ()


def test_keys_past_max_keys_are_summed_in_a_slice_of_their_own(tmp_path: Path) -> None:
    events = [event(0, "a", 1, 0.5, phase=f"phase {i}") for i in range(5)]
    store = make_store(tmp_path, events, slices="max_keys = 2")
    found = read(store, parse_query("total", "variant,phase", metric="ctr"))
    rows = {str(row.slice): row.counts["rows"] for row in found.rows if row.view == "ratio"}
    assert len(rows) == 3
    assert rows["{'(other)': ('variant', 'phase')}"] == 3
    (all_rows,) = {row.counts["rows"] for row in read(store, parse_query(by="")).rows}
    assert all_rows == 5


def test_a_missing_field_of_a_slice_is_a_slice_of_its_own(tmp_path: Path) -> None:
    store = make_store(tmp_path, [event(0, "a", 1, 0.5, phase=None)])
    found = read(store, parse_query(where=["phase=null"]))
    assert {row.slice["phase"] for row in found.rows} == {None}


def test_windows_below_the_retention_floor_are_not_shown_and_totals_are(tmp_path: Path) -> None:
    events = [event(0, "a", 1, 0.5), event(60, "a", 1, 0.5), event(600, "a", 0, 0.5)]
    store = make_store(tmp_path, events, windows="retention_s = 7200")
    found = read(store, Query("all", frozenset(), (), "ctr")).rows
    assert {row.window.start_ms for row in found} == {None, 10 * HOUR}
    assert {row.counts["rows"] for row in found if row.window.start_ms is None} == {3}
    with pytest.raises(QueryError, match="a START from 1970-01-01T08:00:00Z on"):
        read(store, Query(Span(0, HOUR)))


@pytest.mark.slow
def test_a_metric_that_the_config_has_no_more_is_shown_only_by_name(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    path = tmp_path / "clicks.toml"
    path.write_text(path.read_text().replace('auc = { type = "HistogramAUC" }\n', ""))
    run = ["run", str(path), "--until-end", "--no-serve", "--drop-metric", "auc"]
    assert main(run) == 0
    assert {row.metric for row in read(store, Query()).rows} == {"ctr"}
    assert {row.metric for row in read(store, Query(metric="auc")).rows} == {"auc"}


def test_only_the_panes_of_the_answer_are_read(store: Path) -> None:
    with reading(store) as ledger:
        found = select(ledger, parse_query("latest", "variant", metric="ctr")).snapshot
    assert {row.shard.pane for row in found.deltas} == {("ctr", 1, HOUR, 2 * HOUR)}
    assert len(found.panes) > len(found.deltas)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("databases", "limit"),
    over_stores(("MAX_DELTA_BYTES",), ("MAX_STATE_BYTES",), postgres=1),
    indirect=["databases"],
)
def test_an_answer_over_a_limit_comes_one_range_of_keys_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    store = make_store(tmp_path, EVENTS[:2])
    write_events(tmp_path, EVENTS)
    assert main(["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve"]) == 0
    whole = read(store, Query("all"))
    monkeypatch.setattr(f"streammetrics_consumers.query.reader.{limit}", 100)
    monkeypatch.setattr("streammetrics_consumers.query.reader.RANGE_BYTES", 100)
    assert to_json(read(store, Query("all"))) == to_json(whole)


def test_an_export_over_the_limit_is_refused_before_it_is_read(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.query.reader.MAX_DELTA_BYTES", 100)
    with reading(store) as ledger, pytest.raises(LedgerError, match="ask for one metric"):
        select(ledger, Query("all"))


MANY = [
    event(i % 150, "ab"[i % 2], i % 3 == 0, i % 10 / 10, f"phase {i * 7 % 40}") for i in range(200)
]
QUERIES = (
    parse_query("all"),
    parse_query("total", "variant,phase"),
    parse_query("latest", metric="ctr"),
    parse_query("all", "variant,phase", ["variant=a"]),
)


def grown(folder: Path, max_keys: int) -> Path:
    """A store of some commits, with rows of several sizes of key ranges."""
    path = write_config(
        folder, windows="slide_s = 1200", slices=f"max_keys = {max_keys}", variants=""
    )
    for end in (60, 80, 200):
        write_events(folder, MANY[:end])
        assert main(["run", str(path), "--until-end", "--no-serve"]) == 0
        if end == 80:
            with closing(Ledger.open(str(folder / "store.db"))) as ledger:
                list(Compactor(ledger.store, above=1, row_bytes=1500).steps())
    return folder / "store.db"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("databases", "max_keys"),
    over_stores((30,), (10_000,), (1,), postgres=1),
    indirect=["databases"],
)
def test_ranges_give_the_bytes_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_keys: int
) -> None:
    opened = Ledger.open(str(grown(tmp_path, max_keys)))
    with closing(opened) as ledger, views_computed_once():
        for query in QUERIES:
            whole = to_json(read_results(ledger, query))
            for size in (1 << 30, 2000):
                monkeypatch.setattr(reader, "RANGE_BYTES", size)
                assert to_json(streamed_results(ledger, query)) == whole


@pytest.mark.slow
def test_how_much_is_read_is_told_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    with closing(Ledger.open(str(make_store(tmp_path, MANY[:20])))) as ledger:
        read_results(ledger, Query(), lambda *one: told.append(one))
        whole = list(told)
        monkeypatch.setattr(reader, "RANGE_BYTES", 200)
        told.clear()
        streamed_results(ledger, Query(), lambda *one: told.append(one))
    for heard in (whole, told):
        done, totals = zip(*heard, strict=True)
        assert done[0] == 0 and list(done) == sorted(done) and done[-1] < totals[-1]
        assert len(set(totals)) == 1
    assert len(told) > len(whole)


def test_what_is_too_large_even_so_says_what_to_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_RANGE_BYTES", 10)
    store = make_store(tmp_path, MANY[:20])
    with (
        closing(Ledger.open(str(store))) as ledger,
        pytest.raises(QueryError, match="ask for fewer windows with --window"),
    ):
        streamed_results(ledger, Query())
