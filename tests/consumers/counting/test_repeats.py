"""Events that come twice are counted once: [dedup], against the rule in plain words, one after the
other, over all that came; in a worker; and in the ledger."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streammetrics_consumers.counting.commits import CommitLimits
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.seen_ids import MAX_ROWS, SeenIds
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import read_seen
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.replay.verify import Wanted

from tests.consumers.folded import KNOWN_BROKEN, records
from tests.consumers.joined_stream import EVENT as SPLIT_EVENT
from tests.consumers.joined_stream import JOIN, click, shown
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run, assigned
from tests.consumers.memory_source import Assign, Deliver, Log, Lose, MemorySource
from tests.consumers.replay.verified_run import CHUNKS, tried, verified
from tests.consumers.small_config import EVENT, config, event

RETENTION, PANE = 100, 10


Event = tuple[int, int]  # id, time


def plain(events: Sequence[Event], retention: int = RETENTION, pane: int = PANE) -> list[bool]:
    """The rule: a repeat is what comes while the first of its id is remembered."""
    starts: dict[int, int] = {}
    clock = None
    repeats = []
    for id_, time in events:
        start = time // pane * pane
        floor = (start if clock is None else clock) - retention - pane
        repeats.append(starts.get(id_, floor) > floor)
        if not repeats[-1]:
            starts[id_] = start
        clock = start if clock is None else max(clock, start)
    return repeats


def repeat_flags(seen_ids: SeenIds, events: Sequence[Event]) -> list[bool]:
    ids = np.array([id_ for id_, _ in events], np.uint64)
    flags = seen_ids.repeats(ids, np.array([time for _, time in events], np.int64))
    return [bool(flag) for flag in flags]


class Store:
    """Rows by pane, as a ledger keeps them."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, bytes]] = []

    def commit(self, seen_ids: SeenIds) -> None:
        changes = seen_ids.take()
        self.rows = [
            row
            for row in self.rows
            if row[0] >= changes.since_ms and row[0] not in changes.replaced
        ]
        self.rows += changes.rows
        seen_ids.committed(changes)

    def digests(self) -> dict[int, str]:
        """The hash of the sorted ids of each pane that has some, and of the newest one."""
        panes: dict[int, list[int]] = {start_ms: [] for start_ms, _ in self.rows}
        for start_ms, ids in self.rows:
            panes[start_ms] += np.frombuffer(ids, "<u8").tolist()
        return {
            start_ms: sha256(np.array(sorted(ids), "<u8").tobytes()).hexdigest()
            for start_ms, ids in panes.items()
            if ids or start_ms == max(panes)
        }

    def load(self) -> SeenIds:
        return SeenIds(RETENTION, PANE, self.rows)


events_of = st.lists(st.tuples(st.integers(0, 8), st.integers(-300, 300)), max_size=40)


@given(events_of, st.lists(st.integers(0, 40)), st.lists(st.integers(0, 40)))
def test_repeats_are_those_of_the_rule_however_events_are_cut_into_chunks_and_commits(
    events: list[Event], cuts: list[int], crashes: list[int]
) -> None:
    store, repeats = Store(), list[bool]()
    seen_ids = store.load()
    edges = sorted({0, len(events), *(cut for cut in (*cuts, *crashes) if cut < len(events))})
    for start, end in pairwise(edges):
        repeats += repeat_flags(seen_ids, events[start:end])
        if end in cuts:
            store.commit(seen_ids)
        if end in crashes:
            store.commit(seen_ids)
            assert seen_ids.digests() == store.digests()
            seen_ids = store.load()  # another worker goes on
    assert repeats == plain(events)


def test_what_was_not_committed_is_not_remembered_after_a_crash() -> None:
    store = Store()
    seen_ids = store.load()
    assert repeat_flags(seen_ids, []) == []
    repeat_flags(seen_ids, [(1, 0)])
    store.commit(seen_ids)
    assert repeat_flags(seen_ids, [(2, 5), (1, 5)]) == [False, True]
    assert repeat_flags(store.load(), [(2, 5), (1, 5)]) == [False, True]


def test_ids_are_remembered_for_the_retention_and_forgotten_two_panes_later() -> None:
    for later in range(140):
        seen_ids = SeenIds(RETENTION, PANE)
        repeats = repeat_flags(seen_ids, [(1, 0), (2, later), (1, later)])
        if later <= RETENTION:
            assert repeats == [False, False, True]
        if later >= RETENTION + 2 * PANE:
            assert repeats == [False, False, False]
        assert len(seen_ids) == 2


def test_the_clock_is_found_again_where_the_newest_pane_has_no_id_of_its_own() -> None:
    for events, expected in (
        (
            [(1, 0), (2, 60), (1, 110), (3, 0), (2, 175), (3, 0)],
            [False, False, True, False, True, False],
        ),
        # What is older than the retention is not remembered, and what comes again is no repeat.
        ([(1, 0), (1, 95), (2, -30), (2, -30)], [False, True, False, False]),
    ):
        store, repeats = Store(), list[bool]()
        for single_event in events:
            seen_ids = store.load()
            repeats += repeat_flags(seen_ids, [single_event])
            store.commit(seen_ids)
        assert repeats == plain(events) == expected


def test_rows_are_merged_once_there_are_many_and_cost_eight_bytes_an_id() -> None:
    store, n = Store(), MAX_ROWS + 5
    seen_ids = store.load()
    for id_ in range(n):
        repeat_flags(seen_ids, [(id_, 0)])
        store.commit(seen_ids)
    assert len(store.rows) == 5
    assert sum(len(ids) for _, ids in store.rows) == 8 * n
    assert seen_ids.nbytes == 16 * n
    assert repeat_flags(store.load(), [(id_, 1) for id_ in range(n)]) == [True] * n
    repeat_flags(seen_ids, [(n, 10 * RETENTION)])  # and all that is older is forgotten
    store.commit(seen_ids)
    assert (len(seen_ids), len(store.rows)) == (1, 1)


EACH = "[store]\ncommit_interval_s = 0.01\n"


DEDUP = '[dedup]\nevent_id = "id"\nretention_s = 86400\nkeyed = true'


Values = list[bytes | None]


def twice(seed: int, n: int) -> tuple[Values, Values]:
    """Records that have ids, with repeats among them, and the same without."""
    rng = random.Random(seed)
    once: Values = []
    for i, value in enumerate(records(seed, n)):
        if value is None or value in KNOWN_BROKEN:
            once.append(value)
            continue
        once.append(json.dumps({**json.loads(value), "id": f"{seed} {i}"}).encode())
    stream: Values = []
    for value in once:
        stream.append(value)
        if rng.random() < 0.3:
            earlier = stream[-1 - rng.randrange(min(len(stream), 50))]
            if earlier is not None and earlier not in KNOWN_BROKEN:
                stream.append(earlier)
    return stream, once


def run_of(folder: Path, rest: str = DEDUP) -> Run:
    logs = {ONE: Log(twice(1, 300)[0]), TWO: Log(twice(2, 150)[0])}
    run = Run(folder, logs, rest=EACH + rest)
    run.clock.tick_s = 0.02
    return run


def test_a_repeat_in_another_run_is_known_and_an_event_without_an_id_is_refused(
    tmp_path: Path,
) -> None:
    first, second = event(phase="one")[:-1] + b', "id": "x"}', event()[:-1] + b', "id": "y"}'
    run = Run(tmp_path, {ONE: Log([event()])}, rest=DEDUP)
    run()
    run.logs[ONE].append(first, second)
    run()
    run.logs[ONE].append(first, second, first)
    run()
    (head,) = run.snapshot().heads
    assert (head.counters.rows, head.counters.repeated) == (6, 3)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        (entry,) = ledger.quarantine()
    assert (entry.offset, entry.reason, entry.field) == (0, "missing_field", "id")


def with_id(name: str) -> bytes:
    return event()[:-1] + f', "id": "{name}"}}'.encode()


def test_what_was_dropped_uncommitted_is_no_repeat_when_it_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = iter((True,))
    monkeypatch.setattr(CommitLimits, "is_too_large", lambda *_: next(dropped, False))
    run = Run(tmp_path, {ONE: Log([with_id("x"), with_id("y"), with_id("x")])}, rest=DEDUP)
    run()
    (head,) = run.snapshot().heads
    assert (head.counters.rows, head.counters.repeated) == (3, 1)


def test_a_partition_that_comes_back_brings_its_ids_with_it(tmp_path: Path) -> None:
    """They are in the store once each, although this worker had read some that another counted."""
    settings = config(rest=DEDUP)
    values = [with_id(name) for name in ("x", "y", "z", "x")]
    with closing(Ledger.open(str(tmp_path / "back.db"), create=True)) as ledger:
        first_worker, second_worker = (
            assigned(settings, ledger, MemorySource({ONE: Log([*values])}, script), monotonic=float)
            for script in ([Deliver(2), Lose((ONE,)), Assign((ONE,))], [Deliver(2)])
        )
        for worker in (first_worker, first_worker, second_worker):
            worker.step()
        second_worker.commit()
        for _ in range(2):
            first_worker.step()
        first_worker.commit()
        (head,) = ledger.heads(first_worker.generation)
        assert (head.counters.rows, head.counters.repeated) == (4, 1)
        assert sum(len(ids) for _, ids in read_seen(ledger.store, head)) == 8 * 3


def test_a_pane_of_repeats_alone_is_no_difference_to_the_log(tmp_path: Path) -> None:
    """A commit that has nothing but a repeat in the newest pane writes that pane without ids."""
    times = [f"2024-01-01T{hour:02}:00:00Z" for hour in (0, 9, 18)]
    values = [event(ts)[:-1] + b', "id": "%d"}' % (n == 2) for n, ts in enumerate(times)]
    run = run_of(tmp_path)
    run.logs = {ONE: Log([])}
    for value, repeated in zip(values, (0, 1, 1), strict=True):
        run.logs[ONE].append(value)
        run()
        (head,) = run.snapshot().heads
        assert head.counters.repeated == repeated
        assert verified(run, tmp_path).differences == []


def test_the_log_read_again_says_the_same_and_a_part_of_it_is_not_verified(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run(UNTIL_END, CHUNKS)
    findings = verified(run, tmp_path)
    assert findings.is_good, findings.differences
    assert findings.logs == 2
    findings = verified(run, tmp_path, selection=Wanted(offsets={0: (200, None)}))
    assert findings.logs == 0
    assert any("determine which later ones are repeats" in note for note in findings.notes)
    shorter_run = run_of(tmp_path, rest=DEDUP.replace("86400", "3600"))
    with pytest.raises(SettingsChanged, match="dedup"):
        shorter_run()


def test_the_repeat_of_a_refused_event_is_a_repeat_and_a_retry_counts_the_event_once(
    tmp_path: Path,
) -> None:
    bad = event(variant="c")[:-1] + b', "id": "x"}'
    run = Run(tmp_path, {ONE: Log([bad, bad, event()[:-1] + b', "id": "y"}'])}, rest=DEDUP)
    run()
    (head,) = run.snapshot().heads
    assert (head.counters.quarantined, head.counters.repeated) == (1, 1)
    event_roles = EVENT.replace('["a", "b"]', '["a", "b", "c"]')
    rerun = Run(tmp_path, run.logs, event=event_roles, rest=DEDUP)
    rerun()
    assert tried(rerun, rerun.config) == 1
    assert verified(rerun, tmp_path).is_good


def test_outcomes_of_one_moment_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    """The same click in two partitions is one, and two clicks at once are two."""
    clicks = [{**click("i", 5), "event": name} for name in ("a", "b")]
    impression = {**shown("i", 0), "event": "c"}
    values = [json.dumps(row).encode() for row in (impression, *clicks, clicks[0])]
    logs = {ONE: Log(list(values)), TWO: Log(list(values[1:3]))}
    counts = JOIN.replace('equals = "click"', 'equals = "click", counts = "count"')
    rest = counts + DEDUP.replace('"id"', '"event"')
    ctr = 'ctr = { type = "Ratio" }'
    run = Run(tmp_path, logs, event=SPLIT_EVENT, slices="by = [[]]", metrics=ctr, rest=rest)
    run(Options(until_end=True, close=True))
    with closing(Ledger.open(run.config.store.url)) as ledger:
        (clicks_counted,) = (
            row.value
            for row in read_results(ledger, parse_query("total")).rows
            if row.view == "numerator"
        )
    assert clicks_counted == 2
    (first_head,) = (head for head in run.snapshot().heads if head.partition == ONE)
    assert first_head.counters.repeated == 1
