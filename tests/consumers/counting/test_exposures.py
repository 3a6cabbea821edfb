"""Events in the arms of their units' exposures: what a ledger holds is what a fold over the events
gives, however they are ordered, divided, repeated and closed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting import closer as closer_module
from streammetrics_consumers.counting.closer import Closer, closable_ms
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger.closing import closing_heads
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.generation import EXPOSED_ROWS, EXPOSED_UNITS, Pane, Requested
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.experiment_words import change_lines, first_lines
from streammetrics_consumers.process.service import begin
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.replay.retry import retry

from streammetrics import ExposedRows, PerKey
from tests.consumers import exposed_stream as exposed
from tests.consumers.exposed_stream import (
    DAY_MS,
    LATENESS_MS,
    LOGS,
    PRICE,
    RANKER,
    SPLIT,
    START_MS,
    Event,
    Stream,
    expected,
    exposed_config,
    exposure,
    order,
    results,
    run,
    stream,
    verified,
)
from tests.consumers.memory_run import Clock, worker_of
from tests.consumers.memory_source import MemorySource
from tests.consumers.stores import stored
from tests.depth import tries

RANKER_ALONE = exposed_config(rest=RANKER)
DEDUP = '[dedup]\nevent_id = "event_id"\nkeyed = true\n'


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "exposed.db"), create=True)) as ledger:
        yield ledger


def revenue(ledger: Ledger) -> dict[str | None, tuple[float, ...]]:
    """The revenue per unit and the units of each arm, since the start."""
    total = Pane("experiment/ranker/revenue", 0, None, None)
    sums = stored(ledger).sums(lambda row: row.pane)[total]
    assert isinstance(sums, PerKey)
    revenues: dict[str | None, tuple[float, ...]] = {}
    for key, result in sums.compute().items():
        assert isinstance(key, tuple)
        arm = None if key[2] is None else str(key[2])
        revenues[arm] = (result.mean, result.units)  # type: ignore[attr-defined]
    return revenues


def require_equal(ledger: Ledger, run_config: Config, events: Stream) -> None:
    ledger_results, fold_results = results(ledger), expected(run_config, events.parts)
    assert ledger_results.keys() == fold_results.keys()
    assert [where for where in fold_results if ledger_results[where] != fold_results[where]] == []


@pytest.mark.parametrize("window_s", [None, 3 * 86_400])
@pytest.mark.parametrize("seed", range(tries(2, 9)))
def test_a_ledger_holds_what_a_fold_over_all_events_gives(
    ledger: Ledger, seed: int, window_s: int | None, tmp_path: Path
) -> None:
    events, run_config = stream(seed, units=30), exposed_config(window_s=window_s)
    run(run_config, ledger, events.logs)
    require_equal(ledger, run_config, events)
    findings = verified(run_config, ledger, events.logs, tmp_path)
    assert findings.is_good and not findings.notes, (findings.differences, findings.notes)


def identified(events: Stream, rng: random.Random) -> Stream:
    """The events with ids; some have a twin, equal but for its id, or come in another log too."""
    numbers: dict[int, int] = {}
    parts: dict[Partition, list[Event]] = {}
    for log, source_events in events.parts.items():
        parts[log] = []
        for event in source_events:
            number = numbers.setdefault(id(event), len(numbers))
            parts[log].append({**event, "event_id": f"e{number}"})
            if rng.random() < 0.2:
                parts[log].append({**event, "event_id": f"twin-{number}"})
    for log, part in [(log, [*log_events]) for log, log_events in parts.items()]:
        for event in part:
            target = parts[rng.choice(LOGS)]
            if rng.random() < 0.2 and target is not parts[log]:
                place = next(
                    (i for i, e in enumerate(target) if e["ts"] > event["ts"]), len(target)
                )
                target.insert(place, event)
    return Stream(parts)


@pytest.mark.parametrize("seed", range(tries(2, 9)))
def test_an_event_counts_once_by_its_id_in_one_log_and_in_several(
    ledger: Ledger, seed: int, tmp_path: Path
) -> None:
    events = identified(stream(seed, units=30), random.Random(seed))
    run_config = exposed_config(rest=DEDUP + RANKER + PRICE)
    run(run_config, ledger, events.logs)
    require_equal(ledger, run_config, events)
    assert ledger.snapshot().counters.repeated > 0
    assert verified(run_config, ledger, events.logs, tmp_path).is_good


def test_the_arm_is_that_of_the_first_exposure_and_events_before_it_do_not_count(
    ledger: Ledger,
) -> None:
    events = [
        order("x", 0, 100),
        exposure("y", 1_000, "ranker", "v7"),
        exposure("x", 2_000, "ranker", "v7"),
        order("x", 2_000, 5),
        exposure("x", 3_000, "ranker", "control"),
        order("x", 4_000, 7),
        exposure("z", 5_000, "ranker", "v7"),
        exposure("z", 5_000, "ranker", "control"),
        order("z", 6_000, 1),
        order(None, 6_000, 50),
    ]
    run(RANKER_ALONE, ledger, exposed.logs_of({LOGS[0]: events}))
    assert revenue(ledger) == {
        "v7": (6.0, 2),
        "control": (1.0, 1),
    }
    counters = ledger.snapshot().counters
    assert (counters.closed, counters.conflicts, counters.quarantined) == (4, 2, 1)


def test_an_event_without_a_unit_is_counted_but_by_no_experiment(ledger: Ledger) -> None:
    run_config = exposed_config(
        rest=RANKER.replace('["revenue", "buyers", "errors"]', '["errors"]'),
        metrics='errors = { type = "Ratio", inputs = { numerators = "error" } }',
    )
    events = [exposure("x", 0, "ranker", "v7"), *(order(None, t, error=1) for t in range(1, 9))]
    run(run_config, ledger, exposed.logs_of({LOGS[0]: [*events, order("x", 9)]}))
    sums = stored(ledger).sums(lambda row: row.pane)
    plain, experiment_state = (
        sums[Pane(name, 0, None, None)] for name in ("errors", "experiment/ranker/errors")
    )
    assert [result.rows for result in plain.compute().values()] == [9]  # type: ignore[union-attr]
    assert [result.rows for result in experiment_state.compute().values()] == [1]  # type: ignore[union-attr]


def test_what_is_not_closed_is_pending_and_verified_all_the_same(
    ledger: Ledger, tmp_path: Path
) -> None:
    events = stream(seed=11, units=30)
    run(SPLIT, ledger, events.logs, close=False)
    closed_ms = ledger.snapshot().closed_ms
    assert closed_ms is not None
    assert results(ledger) == expected(SPLIT, events.parts, before_ms=closed_ms)
    assert verified(SPLIT, ledger, events.logs, tmp_path).is_good
    panes = {size.pane.start_ms for size in ledger.snapshot().panes
             if size.pane.metric == EXPOSED_ROWS}  # fmt: skip
    assert panes and all(start is not None and start >= closed_ms for start in panes)
    list(Compactor(ledger.store, above=1).steps())
    run(SPLIT, ledger, events.logs)
    require_equal(ledger, SPLIT, events)


@pytest.mark.parametrize("max_bytes", [100, 300])
def test_closing_by_ranges_of_units_and_few_panes_at_a_time_changes_nothing(
    ledger: Ledger, max_bytes: int, tmp_path: Path
) -> None:
    events = stream(seed=12, units=20)
    run(SPLIT, ledger, events.logs, close=False)
    closer = Closer(SPLIT, ledger, begin(ledger, SPLIT).generation, max_bytes=max_bytes)
    closer.close(everything=True)
    require_equal(ledger, SPLIT, events)
    ranges = {row.key_ranges for row, _ in stored(ledger).rows if row.pane.metric == EXPOSED_UNITS}
    assert max(ranges) > 1
    list(Compactor(ledger.store, above=1).steps())
    assert verified(SPLIT, ledger, events.logs, tmp_path).is_good


def test_known_exposures_that_are_merged_while_a_closing_reads_them_are_the_same(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = stream(seed=13, units=30)
    run(SPLIT, ledger, events.logs, close=False)
    generation = begin(ledger, SPLIT).generation
    original = closer_module.ExposureClosing._known

    def merging(self: closer_module.ExposureClosing, place: int, ranges: int) -> ExposedRows:
        list(Compactor(ledger.store, above=1).steps([closer.head.id]))
        return original(self, place, ranges)

    monkeypatch.setattr(closer_module.ExposureClosing, "_known", merging)
    closer = Closer(SPLIT, ledger, generation, max_bytes=2_000)
    closer.close(everything=True)
    require_equal(ledger, SPLIT, events)


def test_two_closers_at_once_count_nothing_twice(ledger: Ledger) -> None:
    events = stream(seed=14, units=20)
    run(SPLIT, ledger, events.logs, close=False)
    generation = begin(ledger, SPLIT).generation
    first, second = Closer(SPLIT, ledger, generation), Closer(SPLIT, ledger, generation)
    step = first._step(START_MS + 9 * DAY_MS)
    assert second.close(everything=True)
    with pytest.raises(Fenced, match="another process has closed these events"):
        list(first._close(step))
    require_equal(ledger, SPLIT, events)


def test_late_exposures_and_events_are_refused_and_a_retry_counts_those_that_are_not_closed(
    ledger: Ledger, tmp_path: Path
) -> None:
    late = 2 * LATENESS_MS
    events = [
        exposure("x", 0, "ranker", "v7"),
        order("x", 100_000, 1),
        exposure("y", 100_000 - late, "ranker", "control"),
        order("x", 100_000 - late, 2),
        order("y", 101_000, 4),
    ]
    logs = exposed.logs_of({LOGS[0]: events, LOGS[1]: [order("z", 0)]})
    run(RANKER_ALONE, ledger, logs, close=False)  # the other log holds all open
    reasons = [entry.reason for entry in ledger.quarantine()]
    counters = ledger.snapshot().counters
    assert reasons == ["late_exposure", "late_event"]
    assert (counters.late, counters.late_outcomes) == (2, 1)
    pages = list(
        retry(RANKER_ALONE, ledger, now_ms=lambda: 0, opener=lambda *_: MemorySource(logs))
    )
    assert [len(page.counted) for page in pages] == [2]
    assert verified(RANKER_ALONE, ledger, logs, tmp_path).is_good
    run(RANKER_ALONE, ledger, logs)
    assert revenue(ledger) == {
        "v7": (3.0, 1),
        "control": (4.0, 1),
    }
    findings = verified(RANKER_ALONE, ledger, logs, tmp_path)
    assert findings.is_good, (findings.differences, findings.notes)


def test_what_comes_to_a_silent_partition_after_it_was_left_out_is_refused(ledger: Ledger) -> None:
    exposures = RANKER_ALONE.exposures
    assert exposures is not None
    run_config = replace(RANKER_ALONE, exposures=replace(exposures, idle_s=100))
    far = [exposure("x", 0, "ranker", "v7"), order("x", 300_000, 3)]
    run(run_config, ledger, exposed.logs_of({LOGS[0]: far, LOGS[1]: []}), close=False)
    silent = [exposure("x", 1_000, "ranker", "control"), exposure("y", 299_000, "ranker", "v7")]
    run(run_config, ledger, exposed.logs_of({LOGS[0]: far, LOGS[1]: silent}))
    (entry,) = ledger.quarantine()
    assert (entry.reason, entry.partition) == ("closed", LOGS[1])
    assert "events before" in entry.detail
    assert revenue(ledger) == {"v7": (1.5, 2)}


def half(events: Stream, share: float) -> Stream:
    """The first events of each partition."""
    return Stream({log: part[: int(len(part) * share)] for log, part in events.parts.items()})


def begin_with(ledger: Ledger, run_config: Config, requested: Requested) -> None:
    ledger.begin(run_config.fingerprints(), run_config.descriptions, requested=requested)


@pytest.mark.parametrize("seed", [15, 16])
def test_an_experiment_that_is_added_counts_the_exposures_that_are_closed_from_then_on(
    ledger: Ledger, tmp_path: Path, seed: int
) -> None:
    rest = RANKER + PRICE.partition("start")[0]
    events, pair = stream(seed, units=40), exposed_config(rest=rest)
    run(RANKER_ALONE, ledger, half(events, 0.5).logs, close=False)
    added_ms = ledger.snapshot().closed_ms
    assert added_ms is not None
    run(pair, ledger, events.logs)
    spans = {"ranker": (0, None), "price": (added_ms, None)}
    assert results(ledger) == expected(pair, events.parts, entering=spans)
    findings = verified(pair, ledger, events.logs, tmp_path)
    assert findings.is_good and not findings.notes, (findings.differences, findings.notes)


def test_a_check_says_from_when_on_an_added_experiment_would_count_exposures(
    ledger: Ledger,
) -> None:
    pair = exposed_config(rest=RANKER + PRICE.partition("start")[0])
    events = [exposure("x", 0, "price", "low"), order("x", 60_000, 3)]
    run(RANKER_ALONE, ledger, exposed.logs_of({LOGS[0]: events}), close=False)
    begun = ledger.compare(pair.fingerprints(), pair.descriptions, Requested())
    assert begun is not None
    heads = closing_heads(ledger.store, begun.generation)
    assert change_lines(pair, begun.changes, heads) == [
        "experiment ranker: goes on unchanged",
        "experiment price: added; it would count exposures, and events after them, from "
        "2025-12-01T00:00:50Z on, since earlier ones are closed",
    ]
    assert first_lines(pair)[0] == (
        "experiment ranker: a run starts it, from the first exposure that it reads"
    )


def test_a_metric_of_units_cannot_be_added_to_an_experiment_that_runs(ledger: Ledger) -> None:
    short = exposed_config(rest=RANKER.replace('["revenue", "buyers", "errors"]', '["errors"]'))
    events = exposed.logs_of({LOGS[0]: [exposure("x", 0, "ranker", "v7"), order("x", 60_000)]})
    run(short, ledger, events, close=False)
    long_config = exposed_config(
        rest=RANKER.replace('["revenue", "buyers", "errors"]', '["errors"]\nmetrics = ["revenue"]')
    )
    with pytest.raises(SettingsChanged) as caught:
        run(long_config, ledger, events)
    assert caught.value.differences[0].startswith(
        "experiment ranker: revenue cannot be added while it runs, since a mean or a rate over its "
        "units counts each exposure"
    )
    assert not any(m.name.endswith("ranker/revenue") for m in ledger.snapshot().generation.metrics)


def test_an_experiment_that_ended_stays_readable_and_another_goes_on(
    ledger: Ledger, tmp_path: Path
) -> None:
    rest = RANKER + PRICE.partition("start")[0]
    events, pair = stream(seed=17, units=40), exposed_config(rest=rest)
    run(pair, ledger, half(events, 0.6).logs, close=False)
    before = {k: v for k, v in results(ledger).items() if k[0].startswith("experiment/price/")}
    with pytest.raises(SettingsChanged):
        begin_with(ledger, RANKER_ALONE, Requested())
    begin_with(ledger, RANKER_ALONE, Requested(drop=("experiment/price",)))
    run(RANKER_ALONE, ledger, events.logs)
    after = results(ledger)
    assert {k: v for k, v in after.items() if k[0].startswith("experiment/price/")} == before
    ranker_results = {k: v for k, v in after.items() if k not in before}
    assert ranker_results == expected(RANKER_ALONE, events.parts)
    findings = verified(RANKER_ALONE, ledger, events.logs, tmp_path)
    assert findings.is_good, (findings.differences, findings.notes)
    unit_state = stored(ledger).sums(lambda row: row.pane)[Pane(EXPOSED_UNITS, 0, None, None)]
    assert set(unit_state.compute().known) == {"ranker", "price"}  # type: ignore[union-attr]


def test_an_experiment_that_is_resumed_has_missed_the_exposures_in_between(
    ledger: Ledger, tmp_path: Path
) -> None:
    rest = RANKER + PRICE.partition("start")[0]
    events, pair = stream(seed=18, units=40), exposed_config(rest=rest)
    steps = ((pair, 0.3, Requested()), (RANKER_ALONE, 0.6, Requested(drop=("experiment/price",))),
             (pair, 1.0, Requested(resume=("experiment/price",))))  # fmt: skip
    for run_config, share, requested in steps:
        begin_with(ledger, run_config, requested)
        run(run_config, ledger, half(events, share).logs, close=False)
    findings = verified(pair, ledger, events.logs, tmp_path)
    assert findings.is_good, (findings.differences, findings.notes)


def test_reading_known_exposures_takes_at_most_a_tenth_of_the_time(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    events = [exposure("x", 0, "ranker", "v7"), *(order("x", 60_000 * i, 1) for i in range(1, 5))]
    logs = exposed.logs_of({LOGS[0]: events, LOGS[1]: []})  # one without an event holds all open
    run(RANKER_ALONE, ledger, logs, close=False)
    original = closer_module.ExposureClosing._known

    def slow(self: closer_module.ExposureClosing, place: int, ranges: int) -> ExposedRows:
        clock.now_s += 3
        return original(self, place, ranges)

    monkeypatch.setattr(closer_module.ExposureClosing, "_known", slow)
    generation = begin(ledger, RANKER_ALONE).generation
    closer = Closer(RANKER_ALONE, ledger, generation, monotonic=clock.monotonic)
    closed = [
        (closer.close_to(START_MS + to_s * 1_000, at_once=at_once), clock.now_s)
        for to_s, at_once in ((50, False), (100, False), (150, False), (300, True))
    ]
    # The first reads nothing, so that the second is due at once; a part of its time is for events.
    assert closed == [(True, 3), (True, 6), (False, 6), (True, 9)]
    assert 3 < closer._due_s - 6 < 30
    clock.now_s = closer._due_s
    assert closer.close_to(START_MS + 400_000, at_once=False)


def test_events_that_are_committed_between_the_ranges_of_a_closing_count_as_ever(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, ticks = stream(seed=21, units=20), itertools.count()
    with monkeypatch.context() as patch:  # workers that die before they could close
        patch.setattr(Worker, "_close", lambda self, *, to_end=False: None)
        run(SPLIT, ledger, half(events, 0.7).logs, close=False)
        closer = Closer(SPLIT, ledger, begin(ledger, SPLIT).generation, max_bytes=300,
                        monotonic=lambda: float(next(ticks)))  # fmt: skip
        assert not closer.close() and closer.is_closing
        run(SPLIT, ledger, events.logs, close=False)
    pauses = 0
    while closer.is_closing:
        pauses += not closer.close()
    assert pauses > 3
    assert closer.head.counters.closed > 0
    run(SPLIT, ledger, events.logs)
    require_equal(ledger, SPLIT, events)


def test_a_run_to_its_end_closes_all_that_can_be_closed_and_one_that_is_stopped_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_config, clock = RANKER_ALONE, Clock()
    original = closer_module.ExposureClosing._known

    def slow(self: closer_module.ExposureClosing, place: int, ranges: int) -> ExposedRows:
        clock.now_s += 10_000
        return original(self, place, ranges)

    def monotonic() -> float:
        clock.now_s += 1
        return clock.now_s

    monkeypatch.setattr(closer_module.ExposureClosing, "_known", slow)
    events = [exposure("x", 0, "ranker", "v7"), *(order("x", 60_000 * i, 1) for i in range(1, 9))]
    logs = exposed.logs_of({LOGS[0]: events})
    stopped, worker = (
        worker_of(run_config, ledger, MemorySource(logs, limit=1), monotonic=ticks)
        for ticks in (lambda: 0.0, monotonic)
    )
    stop = Stop()
    monkeypatch.setattr(stopped, "_stop", stop)
    for _ in stopped.run():
        stop.request()
    assert ledger.heads(stopped.generation)[0].next_offset == 1
    assert ledger.snapshot().closed_ms is None
    list(worker.run())
    heads = [head for head in closing_heads(ledger.store, worker.generation) if not head.is_join]
    assert run_config.closing is not None
    assert ledger.snapshot().closed_ms == closable_ms(run_config.windows, run_config.closing, heads)


def test_verify_finds_a_known_exposure_that_is_wrong(ledger: Ledger, tmp_path: Path) -> None:

    events = stream(seed=19, units=20)
    run(SPLIT, ledger, events.logs)
    rows = delete(delta).where(delta.c.metric == EXPOSED_UNITS)
    ledger.store.write(lambda connection, _: connection.execute(rows))
    differences = verified(SPLIT, ledger, events.logs, tmp_path).differences
    assert differences and all(
        f"metric {EXPOSED_UNITS}, grouping 0, total" in difference for difference in differences
    )


def test_the_order_of_events_within_their_lateness_and_their_partitions_change_nothing(
    tmp_path: Path,
) -> None:
    rng = random.Random(20)
    events = stream(seed=20, units=25, late_share=0)
    every = [event for part in events.parts.values() for event in part]
    outcomes = []
    for number in range(3):
        parts: dict[object, list[tuple[int, exposed.Event]]] = {log: [] for log in LOGS}
        for event in every:
            parts[rng.choice(LOGS)].append((event["ts"] + rng.randrange(LATENESS_MS), event))
        ordered = {log: [e for _, e in sorted(part, key=lambda p: p[0])]
                   for log, part in parts.items()}  # fmt: skip
        with closing(Ledger.open(str(tmp_path / f"{number}.db"), create=True)) as ledger:
            run(SPLIT, ledger, Stream(ordered).logs)  # type: ignore[arg-type]
            outcomes.append(results(ledger))
    assert outcomes[0] == outcomes[1] == outcomes[2]
