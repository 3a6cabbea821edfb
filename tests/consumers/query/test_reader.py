"""A fresh read: the rows of every state, read together or one range of keys at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView
from streammetrics_consumers.model.generation import Pane
from streammetrics_consumers.query import reader
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.query import Query, QueryError, Span, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json

from streammetrics import Ratio
from tests.consumers.stores import (
    event,
    make_store,
    write_config,
    write_events,
)
from tests.consumers.views_once import views_computed_once

HOUR = 3_600_000
SLIDING = "slide_s = 1200"


def read(store: Path, query: Query) -> ResultsAnswer:
    """The answer to a query."""
    with closing(Ledger.open(str(store))) as ledger:
        return read_results(ledger, query)


def clicks(times: list[int], labels: list[int]) -> str:
    """The digest of the click rate of these events."""
    ratio = Ratio()
    if times:
        ratio.update(labels)
    return ratio.digest()


def test_rows_without_digests_are_the_same_else(tmp_path: Path) -> None:
    """Of all windows, of the keys past `max_keys` and of drifts."""
    store = grown(tmp_path, 10)
    with closing(Ledger.open(str(store))) as ledger:
        whole = read_results(ledger, parse_query("all", "variant,phase"))
        bare = read_results(ledger, parse_query("all", "variant,phase"), digests=False)
    assert any("(other)" in str(row.slice) for row in whole.rows)
    assert all(row.digest for row in whole.rows)
    assert not any(row.digest for row in bare.rows if row.metric not in ("before", "first"))
    assert repr(replace(bare, rows=())) == repr(replace(whole, rows=()))
    rows = (
        [dataclasses.replace(row, digest="") for row in answer.rows] for answer in (whole, bare)
    )
    assert len({*map(repr, rows)}) == 1


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


def test_an_alarm_of_a_metric_is_a_note_of_each_slice_and_those_left_out_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [event(i % 50, "ab"[i % 2], 1, 0.5) | {"treated": i % 10 == 1} for i in range(2000)]
    uplift = 'type = "Uplift"\ntreated_share = "1/5"\ninputs = { treated = "treated" }\n'
    store = make_store(
        tmp_path, events, rest=f"\n[metrics.targeting]\n{uplift}[metrics.other]\n{uplift}"
    )
    notes = read(store, parse_query("total", "variant", metric="targeting")).notes
    alarm = "alarm: the treated are 0 of the rows, not the declared 0.2"
    assert notes == (f"targeting, variant a: {alarm}",)
    monkeypatch.setattr("streammetrics_consumers.query.results.MAX_ALARMS", 1)
    total_notes = read(store, parse_query("total", "variant")).notes
    assert total_notes == (f"other, variant a: {alarm}", "1 more alarm of metrics")


def test_the_first_alarms_are_those_of_the_first_slices_also_if_keys_are_read_in_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [event(i % 50, f"v{i % 8}", 1, 0.5) | {"treated": False} for i in range(8000)]
    uplift = 'type = "Uplift"\ntreated_share = "1/5"\ninputs = { treated = "treated" }\n'
    store = make_store(tmp_path, events, variants="", rest=f"\n[metrics.targeting]\n{uplift}")
    query = parse_query("total", "variant", metric="targeting")
    whole = read(store, query).notes
    assert [note[:21] for note in whole[:-1]] == [f"targeting, variant v{i}" for i in range(5)]
    monkeypatch.setattr(reader, "RANGE_BYTES", 200)
    assert read(store, query).notes == whole


def test_doubts_about_a_headline_are_notes_of_each_slice_after_the_alarms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [{"p": 0.5, "q": (0.5, 0.25)[i % 2]} for i in range(400)]
    events = [
        event(i % 50, "ab"[i % 2], i // 2 % 2, 0.5) | fields for i, fields in enumerate(chosen)
    ]
    inputs = '{ logged = "p", target = "q", rewards = "label" }'
    policy = f'\n[metrics.policy]\ntype = "OffPolicy"\ninputs = {inputs}\n'
    store = make_store(tmp_path, events, rest=policy)
    far = "over 3 standard errors of independent rows from 1"
    doubt = f"doubts about ips: the mean weight is {{}}, {far}"
    notes = read(store, parse_query("total", "variant", metric="policy")).notes
    assert notes == (f"policy, variant b: {doubt.format(0.5)}",)  # the weights of a are 1
    start = "from 1970-01-01T00:00:00Z"
    notes = read(store, parse_query("all", "variant", metric="policy")).notes
    assert notes == tuple(
        f"policy, variant b{suffix}: {doubt.format(0.5)}" for suffix in ("", f", {start}")
    )
    monkeypatch.setattr("streammetrics_consumers.query.results.MAX_ALARMS", 1)
    total_notes = read(store, parse_query("total")).notes
    assert total_notes == (f"policy: {doubt.format(0.75)}", "2 more reasons to doubt metrics")


def test_windows_below_the_retention_floor_are_not_shown_and_totals_are(tmp_path: Path) -> None:
    events = [event(0, "a", 1, 0.5), event(60, "a", 1, 0.5), event(600, "a", 0, 0.5)]
    store = make_store(tmp_path, events, windows="retention_s = 7200")
    rows = read(store, Query("all", frozenset(), (), "ctr")).rows
    assert {row.window.start_ms for row in rows} == {None, 10 * HOUR}
    assert {row.counts["rows"] for row in rows if row.window.start_ms is None} == {3}
    with pytest.raises(QueryError, match="a START of 1970-01-01T08:00:00Z or later"):
        read(store, Query(Span(0, HOUR)))


def test_only_the_panes_of_the_answer_are_read(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Collection[Pane]] = []
    real = StoreView.delta_metadata

    def noted(now: StoreView, panes: Collection[Pane]) -> list[DeltaMetadata]:
        reads.append(panes)
        return real(now, panes)

    monkeypatch.setattr(StoreView, "delta_metadata", noted)
    read(store, parse_query("latest", "variant", metric="ctr"))
    assert reads == [[("ctr", 1, HOUR, 2 * HOUR)]]


MANY = [
    event(i % 150, "ab"[i % 2], i % 3 == 0, i % 10 / 10, f"phase {i * 7 % 40}") for i in range(200)
]
QUERIES = (
    parse_query("all"),
    parse_query("total", "variant,phase"),
    parse_query("latest", metric="ctr"),
    parse_query("all", "variant,phase", ["variant=a"]),
    parse_query("all", metric="before"),
)
DRIFTS = """
[drift.before]
metric = "auc"
[drift.first]
metric = "auc"
reference = "1970-01-01T00:00:00Z/1970-01-01T01:00:00Z"
"""


def grown(folder: Path, max_keys: int) -> Path:
    """A store of some commits, with rows of several sizes of key ranges."""
    path = write_config(
        folder,
        windows="slide_s = 1200",
        slices=f"max_keys = {max_keys}",
        variants="",
        rest=DRIFTS,
    )
    for end in (60, 80, 120):
        write_events(folder, MANY[:end])
        assert main(["run", str(path), "--until-end", "--no-serve"]) == 0
        if end == 80:
            with closing(Ledger.open(str(folder / "store.db"))) as ledger:
                list(Compactor(ledger.store, above=1, row_bytes=1500).steps())
    return folder / "store.db"


@pytest.mark.parametrize("max_keys", [30, 1])
def test_ranges_of_keys_give_the_bytes_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_keys: int
) -> None:
    reports: list[tuple[int, int]] = []
    opened = Ledger.open(str(grown(tmp_path, max_keys)))
    with closing(opened) as ledger, views_computed_once():
        for query in QUERIES:
            texts = []
            for size, limit in ((reader.RANGE_BYTES, 0), (2000, 0), (2000, reader.HELD_BYTES)):
                with monkeypatch.context() as patch:
                    patch.setattr(reader, "RANGE_BYTES", size)
                    patch.setattr(reader, "HELD_BYTES", limit)
                    reports.clear()
                    texts.append(
                        to_json(read_results(ledger, query, lambda *one: reports.append(one)))
                    )
                progress, totals = zip(*reports, strict=True)
                assert (
                    progress[0] == 0
                    and list(progress) == sorted(progress)
                    and progress[-1] < totals[-1]
                )
                assert len(set(totals)) == 1
            assert texts[1:] == texts[:1] * 2
    monkeypatch.setattr(reader, "RANGE_BYTES", 10)
    monkeypatch.setattr(reader, "MAX_RANGE_BYTES", 10)
    with pytest.raises(QueryError, match="ask for fewer windows with --window"):
        read(tmp_path / "store.db", Query())
