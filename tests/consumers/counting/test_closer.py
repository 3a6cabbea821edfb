"""Closing label windows: how far, what is late then, what a clock that is fast may cost, and that
nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import ColumnElement, event, update
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.join import JoinConfig
from streammetrics_consumers.counting.closer import Closer, closable_ms
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.compact import Compacted, Compactor
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import LATE, LATE_OUTCOMES, Counters, Head
from streammetrics_consumers.model.generation import DELAYS, ROWS, Pane
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.service import begin
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.join_status import late_warning
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.replay.retry import retry
from streammetrics_consumers.replay.scratch import Findings
from streammetrics_consumers.replay.verify import verify

from streammetrics import LabelDelays, PerKey
from tests.consumers import joined_stream as joined
from tests.consumers.folded import counted
from tests.consumers.joined_stream import LOGS, SPLIT, START_MS, Event, click, shown
from tests.consumers.memory_run import worker_of
from tests.consumers.memory_source import Log, MemorySource
from tests.consumers.small_config import config
from tests.consumers.stores import stored

if TYPE_CHECKING:
    from tests.postgres_server import Postgres

assert SPLIT.join is not None


JOIN = SPLIT.join


PANE_MS = JOIN.pane_ms
AHEAD_MS = 50 * 60_000
EXPERIMENT = '[experiment]\ncontrol = "a"\ndecision = ["ctr"]\ncluster = "none"\n'
BY_DEFAULT = config(  # with the lateness and the tolerance of fast clocks that there are by default
    event=joined.EVENT,
    windows="size_s = 3600",
    slices=joined.SLICES,
    metrics=joined.METRICS,
    rest=joined.JOIN + EXPERIMENT,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "joined.db"), create=True)) as ledger:
        yield ledger


def count(
    ledger: Ledger, *parts: Sequence[Event], close: bool = True, run_config: Config = SPLIT
) -> None:
    """Count the events of some partitions, from where each of them stands."""
    logs = joined.logs_of(dict(zip(LOGS, parts, strict=False)))
    joined.run(run_config, ledger, logs, close=close)


def head(number: int, greatest_s: int | None) -> Head:
    newest = None if greatest_s is None else START_MS + greatest_s * 1000
    return Head(number, 1, LOGS[number], False, 0, 0, newest, Counters(), 0)


def closable(heads: Sequence[Head], **changes: int) -> int | None:
    """How far events of these logs can be closed, with these settings of the closing changed."""
    assert SPLIT.closing is not None
    return closable_ms(SPLIT.windows, replace(SPLIT.closing, **changes), heads)


def ctr(ledger: Ledger) -> tuple[float, int]:
    """The rate of clicks, and the impressions that were counted."""
    state = stored(ledger).sums(lambda row: row.pane)[Pane("ctr", 1, None, None)]
    (result,) = state.compute().values()  # type: ignore[union-attr]
    return result.ratio, result.rows


def verified(
    ledger: Ledger, logs: dict[Partition, Log], folder: Path, run_config: Config | None = None
) -> Findings:
    with closing(Ledger.open(str(folder / "scratch.db"), create=True)) as scratch:
        findings = verify(run_config or BY_DEFAULT, ledger, scratch, monotonic=lambda: 0.0,
                       opener=lambda config, options: MemorySource(logs))  # fmt: skip
    (folder / "scratch.db").unlink()
    return findings


def test_the_partition_that_is_furthest_behind_holds_windows_open() -> None:
    far, near = head(0, 900), head(1, 200)
    # 200 s, less 10 s that events may be late, less the label window of 40 s.
    assert closable([far, near]) == (START_MS + 150_000) // PANE_MS * PANE_MS
    assert closable([far, near, head(2, None)]) is None
    assert closable([]) is None
    assert closable([far, near], reopen_s=100) == (START_MS + 50_000) // PANE_MS * PANE_MS


def test_a_partition_that_is_idle_by_declaration_does_not() -> None:
    heads = [head(0, 900), head(1, 200), head(2, None)]
    assert closable(heads, idle_s=300) == (START_MS + 850_000) // PANE_MS * PANE_MS
    assert closable(heads[1:], idle_s=300) == (START_MS + 150_000) // PANE_MS * PANE_MS


def test_a_commit_says_how_far_label_windows_may_and_must_be_closed_for_its_events() -> None:
    """A commit whose windows another process has closed meanwhile must not be written."""
    closed_ms = START_MS + 20_000
    for closed, events, most, least in (
        (None, [shown("x", 50_000), click("x", 45_000)], START_MS + 5_000, None),
        (closed_ms, [click("x", 59_999), shown("y", 60_000)], closed_ms, closed_ms),
        (closed_ms, [shown("y", 60_001)], closed_ms + 1, None),
        (closed_ms, [click("x", 59_999)], None, closed_ms),
    ):
        delta = Delta(SPLIT, LOGS[0], 0, closed_ms=closed)
        values = [json.dumps(event).encode() for event in events]
        chunk = Chunk(LOGS[0], 0, len(values), range(len(values)), values)
        delta.add(Decoder(SPLIT).decode(chunk))
        commit = commit_of(head(0, None), delta)
        assert (commit.closed_at_most, commit.closed_at_least) == (most, least), events


def test_late_events_are_counted_and_not_joined(ledger: Ledger) -> None:
    events = [shown("x", 0), shown("y", 60_000), click("x", 30_000), shown("z", 20_000)]
    count(ledger, events)
    counters = ledger.snapshot().counters
    assert (counters.late, counters.late_outcomes, counters.closed) == (2, 1, 2)
    assert ctr(ledger) == (0.0, 2)


def test_later_than_the_lateness_may_still_be_joined_with_reopen_s(ledger: Ledger) -> None:
    events = [shown("x", 0), shown("y", 60_000), click("x", 30_000)]
    count(ledger, events, run_config=replace(SPLIT, join=replace(JOIN, reopen_s=20)))
    assert ctr(ledger) == (0.5, 2)


def test_an_outcome_without_an_impression_is_counted_with_its_delay(ledger: Ledger) -> None:
    count(ledger, [shown("x", 0), click("x", 5_000), click("x", 41_000), click("nobody", 42_000)])
    delays = stored(ledger).sums(lambda row: row.pane)[Pane(DELAYS, 0, None, None)]
    assert isinstance(delays, LabelDelays)
    click_delays = delays.compute()["click"]
    assert (click_delays.attributed, click_delays.unattributed, click_delays.unknown) == (1, 2, 1)


def test_values_whose_sum_might_not_be_finite_are_refused(ledger: Ledger) -> None:
    paid = 'paid = { field = "kind", equals = "click", counts = "sum", value = "price" }'
    run_config = config(
        event=joined.EVENT,
        windows=joined.WINDOWS,
        metrics='paid = { type = "Ratio" }',
        rest=joined.JOIN + paid.replace("click", "pay"),
    )
    prices = [1e150, -1e150, 2e150, -1.7e308, 1.5]
    paying = [
        {**click("x", 1_000 + i), "kind": "pay", "price": price} for i, price in enumerate(prices)
    ]
    count(ledger, [shown("x", 0), *paying], run_config=run_config)
    refused = ledger.quarantine()
    assert [(entry.offset, entry.reason, entry.field) for entry in refused] == [
        (3, "metric", "price"),
        (4, "metric", "price"),
    ]
    assert "at most 1e+150 may be added up, got 2e+150" in refused[0].detail


def test_an_impression_that_a_metric_would_refuse_is_refused_at_once(ledger: Ledger) -> None:
    count(ledger, [shown("x", 0, 1.5), shown("y", 0, 0.5), click("x", 5)])
    (entry,) = ledger.quarantine()
    assert (entry.offset, entry.reason) == (0, "metric")
    assert ledger.snapshot().counters.closed == 1


def test_two_impressions_of_one_id_are_a_conflict_and_counted_once(ledger: Ledger) -> None:
    count(ledger, [shown("x", 0, 0.25), shown("x", 1_000, 0.5), shown("x", 0, 0.25)])
    counters = ledger.snapshot().counters
    assert (counters.rows, counters.closed, counters.conflicts) == (3, 1, 1)


def test_what_comes_to_a_silent_partition_after_windows_were_closed_is_refused(
    ledger: Ledger,
) -> None:
    run_config = replace(SPLIT, join=replace(JOIN, idle_s=100))
    far = [shown("x", 0), shown("y", 300_000)]
    count(ledger, far, [], close=False, run_config=run_config)
    assert ledger.snapshot().counters.closed == 1
    count(ledger, far, [click("x", 5_000), shown("z", 290_000)], close=False, run_config=run_config)
    (entry,) = ledger.quarantine()
    assert (entry.reason, entry.partition, entry.offset) == ("closed", LOGS[1], 0)
    joined.run(run_config, ledger, joined.logs_of({LOGS[0]: far, LOGS[1]: [click("x", 5_000)] * 2}))
    assert ctr(ledger) == (0.0, 3)


def test_a_retry_counts_an_event_whose_windows_are_open_and_no_other(
    ledger: Ledger, tmp_path: Path
) -> None:
    odd = {**click("y", 301_000), "kind": "tap"}
    gone = {**click("x", 1_000), "kind": "tap"}
    events = [shown("x", 0), gone, shown("y", 300_000), odd, shown("z", 302_000)]
    logs = joined.logs_of({LOGS[0]: events})
    joined.run(SPLIT, ledger, logs, close=False)
    assert [entry.offset for entry in ledger.quarantine()] == [1, 3]
    (mark,) = JOIN.outcomes
    tapped = replace(mark, mark=replace(mark.mark, equals="tap"))
    now = replace(SPLIT, join=replace(JOIN, outcomes=(tapped,)))
    pages = list(
        retry(now, ledger, now_ms=lambda: 0, opener=lambda config, options: MemorySource(logs))
    )
    assert [(refusal.entry.offset, refusal.reason) for page in pages for refusal in page.still] == [
        (1, "closed")
    ]
    assert [entry.offset for page in pages for entry in page.counted] == [3]
    joined.run(SPLIT, ledger, logs)
    assert ctr(ledger) == (1 / 3, 3)
    findings = verified(ledger, logs, tmp_path, SPLIT)
    assert findings.is_good, (findings.differences, findings.notes)


def test_pending_events_are_read_in_parts_and_the_result_is_the_same(tmp_path: Path) -> None:
    events = joined.stream(seed=5)
    run_config = replace(SPLIT, store=replace(SPLIT.store, commit_interval_s=3600))
    outcomes = []
    for max_bytes in (200, 5_000, 1 << 26):
        url = str(tmp_path / f"{max_bytes}.db")
        with closing(Ledger.open(url, create=True)) as ledger:
            joined.run(run_config, ledger, joined.logs_of(events.parts), close=False)
            generation = begin(ledger, SPLIT).generation
            Closer(SPLIT, ledger, generation, max_bytes=max_bytes).close(everything=True)
            outcomes.append((joined.digests(ledger), ledger.snapshot().counters))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_windows_are_not_dropped_before_their_rows_are_counted(ledger: Ledger) -> None:
    run_config = replace(SPLIT, windows=replace(SPLIT.windows, retention_s=120))
    count(
        ledger,
        [shown("x", 0), *(shown(f"y{i}", 60_000 * i) for i in range(1, 9))],
        run_config=run_config,
    )
    snapshot = ledger.snapshot()
    floor_ms, closed_ms = snapshot.generation.floor_ms, snapshot.closed_ms
    assert floor_ms is not None and closed_ms is not None
    assert START_MS < floor_ms <= closed_ms
    assert (snapshot.counters.closed, snapshot.counters.expired) == (9, 0)


def test_a_worker_that_stops_before_the_first_closing_drops_no_window(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = MemorySource(joined.logs_of({LOGS[0]: [shown("x", 0), shown("y", 60_000)]}))
    worker, stop = worker_of(SPLIT, ledger, source, monotonic=lambda: 0.0), Stop()
    monkeypatch.setattr(worker, "_stop", stop)
    for _ in worker.run():
        stop.request()
    snapshot = ledger.snapshot()
    assert (snapshot.counters.rows, snapshot.closed_ms) == (2, None)
    assert snapshot.generation.floor_ms is None


def test_a_closed_impression_is_remembered_also_below_the_retention_floor(ledger: Ledger) -> None:
    run_config = replace(SPLIT, windows=replace(SPLIT.windows, retention_s=60))
    events = [shown("x", 0), *(shown(f"i{n}", 5_000 * n) for n in range(1, 40))]
    events.insert(16, shown("x", 79_500, 0.25))
    count(ledger, events[:26], close=False, run_config=run_config)
    floor_ms, closed_ms = ledger.snapshot().generation.floor_ms, ledger.snapshot().closed_ms
    assert floor_ms is not None and closed_ms is not None
    assert floor_ms >= START_MS + PANE_MS and closed_ms < START_MS + 79_500
    count(ledger, events, run_config=run_config)
    snapshot = ledger.snapshot()
    assert (snapshot.counters.closed, snapshot.counters.conflicts) == (40, 1)
    ends = [size.pane.end_ms or 0 for size in snapshot.panes if size.pane.metric == ROWS]
    remembered_ms = (snapshot.closed_ms or 0) - 2 * joined.WINDOW_MS
    assert min(ends) > remembered_ms, "a closing drops the others"


def test_rows_that_are_merged_while_a_closing_commits_are_closed_once(postgres: Postgres) -> None:
    """PostgreSQL shows a closing what others commit between two of its statements."""
    by_event = replace(SPLIT.store, commit_events=1)
    run_config = replace(SPLIT, store=by_event, join=replace(JOIN, attribution="every"))
    events = [*(shown(f"i{n}", 100 * n) for n in range(5)), shown("last", PANE_MS)]
    url, merges = postgres.new_store(), list[Compacted]()
    with closing(Ledger.open(url, create=True)) as ledger, closing(Ledger.open(url)) as other:

        def merge(*call: object) -> None:
            if str(call[2]).startswith("DELETE"):
                merges.extend(Compactor(other.store, above=1).steps())

        source = MemorySource(joined.logs_of({LOGS[0]: events}), limit=1)
        list(worker_of(run_config, ledger, source, monotonic=lambda: 0.0).run())
        event.listen(ledger.store.engine, "before_cursor_execute", merge)
        closer = Closer(run_config, ledger, begin(ledger, run_config).generation)
        assert closer.close_to(START_MS + PANE_MS)
        assert [(step.rows_before, step.rows_after) for step in merges] == [(5, 1)]
        assert closer.close(everything=True)
        assert ledger.snapshot().counters.closed == len(events)
    postgres.drop(url)


def test_an_experiment_counts_impressions_by_epoch_once_their_windows_are_closed(
    tmp_path: Path,
) -> None:
    events = joined.stream(seed=6, impressions=30)
    plan = """[experiment]
control = "a"
decision = ["ctr"]
cluster = "none"
unit = "id"
epochs = ["2023-11-14T22:13:50Z"]
"""
    parts = {"windows": joined.WINDOWS, "slices": joined.SLICES, "metrics": joined.METRICS}
    split = config(event=joined.EVENT, rest=joined.JOIN + plan, **parts)
    whole = config(event=f'{joined.EVENT}\nlabel = "label"', rest=plan, **parts)
    in_order = sorted(events.whole, key=lambda event: event["ts"])
    state_maps = []
    for number, (run_config, logs) in enumerate(
        ((split, events.parts), (whole, {LOGS[0]: in_order}))
    ):
        with closing(Ledger.open(str(tmp_path / f"{number}.db"), create=True)) as ledger:
            joined.run(run_config, ledger, joined.logs_of(logs))
            states = counted(ledger).states
        state_maps.append(
            {key: state for key, state in states.items() if key[0].startswith("experiment/")}
        )
    assert state_maps[0] == state_maps[1]
    keys = PerKey.from_bytes(state_maps[0]["experiment/ctr", 0, None]).keys()
    assert {key[1] for key in keys} == {"start", "2023-11-14T22:13:50Z"}  # type: ignore[index]


def impressions(n: int, fast: int | None) -> list[Event]:
    """One each five seconds, of which one says that it is 50 minutes later."""
    return [
        shown(f"i{i}", 5_000 * i + (AHEAD_MS if i == fast else 0), variant="ab"[i % 2])
        for i in range(n)
    ]


def log_of(events: Sequence[Event], *, timed: bool) -> Log:
    times = [START_MS + 5_000 * i for i in range(len(events))] if timed else None
    return Log([json.dumps(event).encode() for event in events], timestamps_ms=times)  # type: ignore[arg-type]


def results(ledger: Ledger) -> ResultsAnswer:
    return read_results(ledger, Query())


def test_an_event_50_minutes_ahead_of_its_record_drops_no_other_one(ledger: Ledger) -> None:
    logs = {LOGS[0]: log_of(impressions(101, fast=50), timed=True)}
    joined.run(BY_DEFAULT, ledger, logs)
    counters = ledger.snapshot().counters
    assert (counters.late, counters.future, counters.quarantined) == (0, 1, 1)
    assert counters.closed == 100
    assert not any("too late" in note for note in results(ledger).notes)


def test_where_records_have_no_times_what_it_drops_is_in_quarantine_and_warned_of(
    ledger: Ledger, tmp_path: Path
) -> None:
    logs = {LOGS[0]: log_of(impressions(201, fast=50), timed=False)}
    joined.run(BY_DEFAULT, ledger, logs)
    answer = results(ledger)
    assert answer.join is not None
    assert (answer.join.late_impressions, answer.join.closed) == (150, 51)
    assert answer.join.repeated == 0
    assert (answer.quarantined, answer.late) == (150, 150)
    (warning,) = answer.join.warnings
    assert warning.startswith("150 of 201 events (74.6 %) were too late to be joined. ")
    assert f"{warning}." in answer.notes
    assert {entry.reason for entry in ledger.quarantine(limit=5_000)} == {"late_impression"}
    assert verified(ledger, logs, tmp_path).is_good


def few(n: int) -> list[Event]:
    """Impressions, each with a click, after one that is 50 minutes ahead."""
    events = [shown("fast", AHEAD_MS)]
    for i in range(n):
        events += [shown(f"i{i}", 9_000 * i), click(f"i{i}", 9_000 * i + 5)]
    return events


def tried(ledger: Ledger, logs: dict[Partition, Log]) -> tuple[int, set[str]]:
    pages = list(
        retry(BY_DEFAULT, ledger, now_ms=lambda: 7, opener=lambda *_: MemorySource(logs), page=7)
    )
    still = {refusal.reason for page in pages for refusal in page.still}
    return sum(len(page.counted) for page in pages), still


def test_a_retry_counts_what_was_too_late_as_long_as_its_label_windows_are_open(
    ledger: Ledger, tmp_path: Path
) -> None:
    logs = {LOGS[0]: log_of(few(6), timed=False), LOGS[1]: log_of([shown("slow", 0)], timed=False)}
    joined.run(BY_DEFAULT, ledger, logs, close=False)  # which the other log holds open
    before = ledger.snapshot().counters
    assert (before.late, before.late_outcomes, before.quarantined) == (12, 6, 12)
    assert tried(ledger, logs) == (12, set())
    after = ledger.snapshot().counters
    assert (after.late, after.late_outcomes, after.quarantined) == (0, 0, 0)
    assert verified(ledger, logs, tmp_path).is_good
    joined.run(BY_DEFAULT, ledger, logs)
    answer = results(ledger)
    assert answer.join is not None and answer.join.closed == 8
    assert answer.join.outcomes["click"].attributed == 6
    assert (answer.join.warnings, answer.join.repeated) == ((), 0)
    findings = verified(ledger, logs, tmp_path)
    assert findings.is_good, (findings.differences, findings.notes)


def test_what_is_closed_stays_in_quarantine_and_verify_finds_what_is_wrong_with_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    logs = {LOGS[0]: log_of(few(3), timed=False)}
    joined.run(BY_DEFAULT, ledger, logs, close=False)
    assert tried(ledger, logs) == (0, {"closed"})
    assert ledger.snapshot().counters.late == 6

    def offset_clause(offset: int) -> ColumnElement[bool]:
        return schema.quarantine.c.offset == offset

    for statement in (
        update(schema.quarantine).where(offset_clause(1)).values(reason="late_outcome"),
        update(schema.quarantine).where(offset_clause(3)).values(field="x"),
        schema.quarantine.delete().where(offset_clause(5)),
    ):
        ledger.store.write(lambda connection, _, query=statement: connection.execute(query))  # type: ignore[misc]
    differences = "\n".join(verified(ledger, logs, tmp_path).differences)
    assert "in quarantine as late_outcome" in differences
    assert "in quarantine as late_impression (" in differences
    assert "refused (late_impression), but not in quarantine" in differences


def test_verify_finds_an_event_that_is_said_to_be_late_and_is_not(
    ledger: Ledger, tmp_path: Path
) -> None:
    logs = {LOGS[0]: log_of([shown("x", 0), {**click("x", 1), "kind": "tap"}], timed=False)}
    joined.run(BY_DEFAULT, ledger, logs, close=False)
    statement = update(schema.quarantine).values(reason="late_outcome")
    ledger.store.write(lambda connection, _: connection.execute(statement))
    logs[LOGS[0]] = log_of([shown("x", 0), click("x", 1)], timed=False)
    differences = "\n".join(verified(ledger, logs, tmp_path).differences)
    assert "in quarantine as late_outcome, but not late in its log" in differences


def test_a_store_of_a_version_that_kept_nothing_of_the_late_is_refused_with_what_can_be_done(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be put back there: no config of this version has such a plan."""
    logs = {LOGS[0]: log_of(few(3), timed=False)}
    plan = JoinConfig.plan
    with monkeypatch.context() as older:
        older.setattr(
            JoinConfig, "plan", lambda *a: {k: v for k, v in plan(*a).items() if k != "late"}
        )
        joined.run(replace(BY_DEFAULT), ledger, logs, close=False)
        before = results(ledger)
    with pytest.raises(SettingsChanged) as refused:
        joined.run(BY_DEFAULT, ledger, logs, close=False)
    assert refused.value.differences == (
        "[join]: an older version counted this store. It discarded events that were too late to "
        "be joined. This version puts them into quarantine, and no setting changes that",
    )
    assert str(refused.value).endswith(
        "Start over with --new-generation, or continue with the version that counted the "
        "store; `results --generation 1` still shows its results."
    )
    ledger.begin(BY_DEFAULT.fingerprints(), BY_DEFAULT.descriptions, new_generation=True)
    assert read_results(ledger, Query(generation=1)).offsets == before.offsets


def test_a_hundredth_of_the_events_may_be_too_late_without_a_word() -> None:
    assert late_warning(10, 1000) is None
    assert late_warning(0, 0) is None
    assert late_warning(11, 1000) is not None
    assert set(LATE_OUTCOMES) < set(LATE)
