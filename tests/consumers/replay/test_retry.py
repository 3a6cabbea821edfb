"""Refused events that are good by now are counted: each once, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.events import messages
from streammetrics_consumers.ledger import quarantine as in_ledger
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import NotOpen
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.commit import Commit, Counters, QuarantineRow
from streammetrics_consumers.model.generation import Requested
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.replay.retry import Page, retry

from tests.consumers.folded import counted
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Log, MemorySource
from tests.consumers.replay.verified_run import verified
from tests.consumers.small_config import EVENT, METRICS, config, event
from tests.consumers.stores import stored

WITH_C = EVENT.replace('["a", "b"]', '["a", "b", "c"]')
WHERE = 'where = { user = "present" }'
HOURS = [f"2024-01-01T{hour:02d}:00:00Z" for hour in range(6)]


def events(*, third: str = "c") -> list[bytes | None]:
    """Events of two variants and a third one, some broken for good."""
    values: list[bytes | None] = []
    for i, hour in enumerate(HOURS):
        values += [event(hour, "a", i % 2), event(hour, third, 1, 0.75), b"{", event(hour, "b")]
    return values


def store_of(settings: Config, run: Run) -> Config:
    return replace(settings, store=run.config.store)


def tried(
    settings: Config, run: Run, *, logs: dict[object, Log] | None = None, page: int = 500
) -> list[Page]:
    def opener(config: Config, options: Options) -> MemorySource:
        return MemorySource(logs or run.logs)  # type: ignore[arg-type]

    with closing(Ledger.open(run.config.store.url)) as ledger:
        return list(retry(settings, ledger, now_ms=lambda: 7, opener=opener, page=page))


def retries(ledger: Ledger) -> Sequence[Any]:
    """The rows of all retries."""
    return ledger.store.read(lambda connection: connection.execute(select(schema.retry)).all())


def states(run: Run) -> object:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return counted(ledger).states


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    (tmp_path / "one").mkdir()
    memory_run = Run(tmp_path / "one", {ONE: Log(events()), TWO: Log(events()[:7])})
    memory_run()
    yield memory_run


@pytest.mark.usefixtures("each_store")
def test_after_a_retry_the_states_are_those_of_a_run_that_never_refused(
    run: Run, tmp_path: Path
) -> None:
    pages = tried(config(event=WITH_C), run, page=3)
    assert sum(len(page.counted) for page in pages) == 8
    assert {still.reason for page in pages for still in page.still} == {"not_json"}
    (tmp_path / "two").mkdir()
    reference = Run(tmp_path / "two", run.logs, event=WITH_C)
    reference()
    assert states(run) == states(reference)
    snapshot, as_read = run.snapshot(), reference.snapshot()
    assert snapshot.counters == as_read.counters
    assert [head.greatest_event_ms for head in snapshot.heads] == [
        head.greatest_event_ms for head in as_read.heads
    ]
    numbers = {page.retry for page in pages if page.retry is not None}
    with closing(Ledger.open(run.config.store.url)) as ledger:
        entries = ledger.quarantine(is_done=True)
        assert {entry.retry for entry in entries} == numbers
        assert {entry.reason for entry in entries} == {"unknown_variant"}
        assert {entry.reason for entry in ledger.quarantine()} == {"not_json"}
        recorded = retries(ledger)
    assert {record.id for record in recorded} == numbers
    for row in recorded:
        assert row.created_ms == 7
        assert json.loads(row.note)["reading"]["event"]["variants"] == ["a", "b", "c"]
    assert not any(page.counted for page in tried(config(event=WITH_C), run))
    assert states(run) == states(reference)


def test_of_two_retries_at_once_one_counts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write = in_ledger.write_retry
    raced: list[bool] = []

    def late(*arguments: object, **keywords: object) -> int:
        if not raced:
            raced.append(True)
            tried(config(event=WITH_C), run)  # another process, between our read and our write
        return write(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr("streammetrics_consumers.replay.retry.write_retry", late)
    pages = tried(config(event=WITH_C), run)
    assert [len(page.counted) for page in pages] == [0]
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert len({entry.retry for entry in ledger.quarantine(is_done=True)}) == 1


def test_a_generation_that_starts_during_a_retry_ends_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Ledger.quarantine

    def late(ledger: Ledger, **keywords: Any) -> Sequence[QuarantineRow]:
        entries = read(ledger, **keywords)
        settings = run.config
        ledger.begin(settings.fingerprints(), settings.descriptions, new_generation=True)
        return entries

    monkeypatch.setattr(Ledger, "quarantine", late)
    with pytest.raises(SettingsChanged, match="generation 1 is closed"):
        tried(config(event=WITH_C), run)


def test_an_entry_that_is_not_open_any_more_undoes_all_of_its_retry(run: Run) -> None:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        generation, entries = ledger.generation(), ledger.quarantine()
        [head, _] = ledger.heads(generation)
        head_entries = [entry for entry in entries if entry.head == head.id]
        delta = Commit(head, 0, 1, None, Counters())

        def write(rows: Sequence[QuarantineRow], note: str) -> None:
            batches = [in_ledger.RetriedEntries(rows, delta)]
            in_ledger.write_retry(ledger.store, generation, batches, created_ms=1, note=note)

        write(head_entries[:1], "first")
        with pytest.raises(NotOpen):
            write(head_entries, "second")
        assert len(ledger.quarantine(is_done=True)) == 1


def cut(size: int) -> bytes:
    return event(HOURS[0], "c", user="u" * size)


def test_a_payload_that_was_cut_is_read_from_the_log_and_stays_open_without_its_record(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, {ONE: Log([event(), cut(9000)]), TWO: Log([b"["])})
    run()
    for log, now, message in (
        (ONE, Log([event()], beginning=5), "no longer in the log"),
        (ONE, Log([event(), cut(9001)]), "size and hash"),
        (replace(ONE, topic_id="another"), run.logs[ONE], "events/0: "),
    ):
        [page] = tried(config(event=WITH_C), run, logs={log: now, TWO: run.logs[TWO]})
        assert not page.counted
        assert [message in still.detail for still in page.still] == [True, False]
    [page] = tried(config(event=WITH_C), run)
    assert [entry.offset for entry in page.counted] == [1]


def test_what_a_condition_leaves_out_now_stays_open(tmp_path: Path) -> None:
    run = Run(
        tmp_path, {ONE: Log([event(variant="c"), cut(9000)])}, event=f"{EVENT}{WHERE}"
    )  # of which the second is read from the log
    run()
    moved = WITH_C.replace('user = "user"', 'user = "who.id"')
    [page] = tried(config(event=f"{moved}{WHERE}"), run)
    assert [(refusal.entry.offset, refusal.reason) for refusal in page.still] == [
        (0, "skipped"),
        (1, "skipped"),
    ]
    assert not page.counted


def test_a_limit_that_was_raised_and_a_path_that_was_corrected_let_events_in(
    tmp_path: Path,
) -> None:
    small = 'kind = "file"\npath = "events.jsonl"\nmax_event_bytes = 120'
    narrow = EVENT.replace('score = "score"', 'score = "p"')
    long = event(user="u" * 5000).replace(b'"score"', b'"p"')
    run = Run(tmp_path, {ONE: Log([event().replace(b'"score"', b'"p"'), long])}, source=small)
    run()
    [page] = tried(config(event=narrow), run)
    assert [entry.offset for entry in page.counted] == [0, 1]
    assert run.snapshot().counters.quarantined == 0


def test_an_event_below_the_floor_counts_in_the_totals_alone(tmp_path: Path) -> None:
    values = [event(HOURS[0], "c"), event("2024-01-09T00:00:00Z")]
    run = Run(tmp_path, {ONE: Log(list(values))})
    run()
    [page] = tried(config(event=WITH_C), run)
    assert len(page.counted) == 1
    assert run.snapshot().counters.expired == 1
    starts = {size.pane.start_ms for size in run.snapshot().panes}
    assert min(start for start in starts if start is not None) > 1_704_500_000_000


def test_a_metric_that_was_added_later_does_not_count_earlier_events(tmp_path: Path) -> None:
    values: Sequence[bytes | None] = [event(), event(variant="c")]
    run = Run(tmp_path, {ONE: Log(list(values))}, metrics='ctr = { type = "Ratio" }')
    run()
    run(config=store_of(config(), run))
    run.logs[ONE].append(event(variant="c"))
    run(config=store_of(config(), run))
    [page] = tried(config(event=WITH_C), run)
    assert len(page.counted) == 2
    with closing(Ledger.open(run.config.store.url)) as ledger:
        contents = stored(ledger)
    metrics = {metric.name: metric for metric in contents.seen.generation.metrics}
    assert metrics["auc"].start_offsets
    assert any(row.start_offset == 1 for row, _ in contents.rows)
    total = contents.sums(lambda row: row.pane[:3])["auc", 0, None]
    assert total.state((0,)).compute().rows == 1  # type: ignore[attr-defined]


def test_a_metric_that_was_dropped_meanwhile_states_what_it_missed(
    run: Run, tmp_path: Path
) -> None:
    alone, _ = METRICS.splitlines()
    fewer = store_of(config(event=WITH_C, metrics=alone), run)
    whole = store_of(config(event=WITH_C), run)
    drop, resume = Requested(drop=("ctr",)), Requested(resume=("ctr",))
    run(replace(UNTIL_END, requested=drop), config=fewer)
    tried(fewer, run)
    run(replace(UNTIL_END, requested=resume), config=whole)
    events_of = "refused events at offsets 1 to {} of {} that retries counted meanwhile"
    texts = [f"6 {events_of.format(21, ONE)}", f"2 {events_of.format(5, TWO)}"]
    run.logs[ONE].append(event(variant="c"))
    another_order = config(event=WITH_C.replace('["a", "b", "c"]', '["c", "b", "a"]'))
    run(UNTIL_END, config=store_of(another_order, run))  # the description changes and keeps it
    with closing(Ledger.open(run.config.store.url)) as ledger:
        (note,) = read_results(ledger, Query("total")).notes
    assert note == (
        f"Metric ctr was dropped and later resumed: it did not count {', '.join(texts)}."
    )
    findings = verified(run, tmp_path, whole)
    assert findings.is_good
    assert [*findings.notes] == [
        f"metric ctr: was dropped and resumed, and lacks {text}" for text in texts
    ]


def test_a_config_whose_states_are_others_is_refused(run: Run) -> None:
    for parts, message in (
        ({"metrics": 'auc = { type = "HistogramAUC" }'}, "metric ctr: not in the config"),
        ({"slices": "by = [[]]"}, "its groupings differ"),
        ({"windows": "size_s = 60"}, "windows was"),
        (
            {"metrics": f'{METRICS}\nnew = {{ type = "Ratio" }}'},
            "metric new: ",
        ),
        ({"metrics": METRICS.replace("HistogramAUC", "Ratio")}, "metric auc: type was"),
        ({"event": f'{EVENT}weight = "w"'}, "metric auc: its inputs differ"),
        ({"event": EVENT.replace('"b"', '"c"')}, "metric auc: variant was"),
    ):
        with pytest.raises(SettingsChanged, match=message):
            tried(config(**parts), run)


def test_a_commit_whose_answer_was_lost_counts_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Store.write

    def lost(store: Store, work: Callable[[Connection, bool], int]) -> int:
        write(store, work)  # it got through, and nobody heard of it
        return write(store, lambda connection, _: work(connection, True))

    with monkeypatch.context() as patched:
        patched.setattr(Store, "write", lost)
        [page] = tried(config(event=WITH_C), run)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert [row.id for row in retries(ledger)] == [page.retry]
        assert len(ledger.quarantine(is_done=True)) == 8


def test_events_that_were_ahead_of_their_records_are_counted_as_such_no_longer(
    tmp_path: Path,
) -> None:
    at_ms = 1_704_067_200_000
    times = [at_ms, at_ms - 200_000, 0]
    run = Run(tmp_path, {ONE: Log([event(HOURS[0])] * 3, timestamps_ms=times)})
    run()
    assert run.snapshot().counters == Counters(3, future=2, quarantined=2)
    settings = replace(run.config, windows=replace(run.config.windows, max_ahead_s=1000))
    (page,) = tried(settings, run)
    assert (len(page.counted), len(page.still)) == (1, 1)
    assert run.snapshot().counters == Counters(3, future=1, quarantined=1)


MESSAGES = (
    'kind = "kafka"\nbootstrap_servers = "nowhere:1"\ntopic = "events"\ngroup = "g"\n'
    'format = "ndjson"'
)
HEADER = EVENT.replace('score = "score"', 'score = "header.score"')


@pytest.mark.parametrize("size", [1, 5000])  # kept whole, or cut
@pytest.mark.parametrize("narrow", [HEADER, EVENT], ids=["a header", "a limit"])
def test_a_message_that_was_refused_whole_is_counted_whole_or_not_at_all(
    tmp_path: Path, size: int, narrow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [event(HOURS[0]), event(HOURS[1], "b", 0, user="u" * size), event(HOURS[2])]
    good, bad = b"\n".join(lines), b"\n".join([*lines, event(label=7)])
    (tmp_path / "one").mkdir()
    run = Run(tmp_path / "one", {ONE: Log([good, bad, good])}, source=MESSAGES, event=narrow)
    with monkeypatch.context() as patched:
        if narrow is EVENT:
            patched.setattr(messages, "MAX_EVENTS", 2)
        run()
    assert run.snapshot().counters == Counters(3, quarantined=3)
    [page] = tried(config(source=MESSAGES), run)
    assert [(entry.offset, entry.index) for entry in page.counted] == [(0, 0), (2, 0)]
    assert [(refusal.entry.offset, refusal.reason) for refusal in page.still] == [(1, "metric")]
    (tmp_path / "two").mkdir()
    reference = Run(tmp_path / "two", {ONE: Log([good, good])}, source=MESSAGES)
    reference()
    assert states(run) == states(reference)
    findings = verified(run, tmp_path)  # which reads them as they were counted, or as they are now
    assert (findings.rows, findings.entries) == (3, 3)
    texts = [difference.partition(" (")[0] for difference in findings.differences]
    assert texts == (
        [] if narrow is HEADER else ["events/0 offset 1: in quarantine as too_many_events"]
    )


def test_a_message_that_was_refused_whole_is_verified_among_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = b"\n".join(event(hour) for hour in HOURS[:3])
    run = Run(tmp_path, {ONE: Log([event(), many, event(HOURS[1])])}, source=MESSAGES)
    with monkeypatch.context() as patched:
        patched.setattr(messages, "MAX_EVENTS", 2)
        run()
    assert run.snapshot().counters == Counters(3, quarantined=1)
    [page] = tried(config(source=MESSAGES), run)
    assert [entry.offset for entry in page.counted] == [1]
    findings = verified(run, tmp_path)
    assert (findings.differences, findings.notes, findings.rows, findings.entries) == ([], [], 3, 1)
