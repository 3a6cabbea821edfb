"""What a worker says about itself: counts of what was committed, places, and times that tell a
loop that hangs and a log that is away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker_status import (
    ASK_S,
    RecordingLedger,
    StatusRecorder,
    decode,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.commit import Commit, Counters, Head
from streammetrics_consumers.model.generation import Pane, StateShard
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources import Disconnected

from tests.consumers.memory_run import ONE, TWO, Clock, Run, log
from tests.consumers.memory_source import Deliver, Fail, MemorySource
from tests.consumers.small_config import LOG, chunk, config, event


class Away(MemorySource):
    """A source at the other end of a network."""

    answers = True
    end = 50

    def offset_at(self, partition: Partition, time_ms: int) -> int:
        raise NotImplementedError

    def confirm(self) -> None:
        """It is the log."""

    def known_ends(self) -> Mapping[Partition, int]:
        return {LOG: self.end}

    def is_connected(self) -> bool:
        return self.answers


def test_what_was_committed_and_read_is_counted(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(7), TWO: log(3, b"not json")})
    run()
    reported = run.watch.snapshot()
    assert (reported.rows, reported.quarantined) == (10, {"not_json": 3})
    assert reported.read_bytes == 7 * len(event()) + 3 * len(b"not json")
    assert sum(reported.commits) == 2
    assert reported.commit_bytes > 0
    assert (reported.rebuilds, reported.rebalances, reported.joined) == (0, 1, True)
    assert [
        (partition_status.number, partition_status.position)
        for partition_status in reported.partitions
    ] == [(0, 7), (1, 3)]


def test_a_source_that_fails_is_counted_and_the_worker_has_no_partitions_then(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, {ONE: log(7)})
    run(Options(until_end=True), [Deliver(3), Fail(Disconnected("broker away"))])
    assert run.watch.snapshot().rebuilds == 1
    run.watch.failed()
    reported = run.watch.snapshot()
    assert (reported.rebuilds, reported.joined, reported.partitions) == (2, False, [])


def test_silence_of_a_log_is_told_from_a_log_that_is_away() -> None:
    clock = Clock()
    watch, source = StatusRecorder(clock.monotonic), Away({})
    watch.assigned({LOG: 40})
    clock.now_s = ASK_S
    watch.polled(source, [])
    assert watch.snapshot().fetched_s == ASK_S  # it answers, and has nothing for us
    source.answers = False
    clock.now_s = 4 * ASK_S
    watch.polled(source, [])
    reported = watch.snapshot()
    assert (reported.polled_s, reported.fetched_s) == (4 * ASK_S, ASK_S)
    watch.polled(source, [chunk([event()], start=40)])
    assert watch.snapshot().fetched_s == 4 * ASK_S


def test_a_place_knows_where_it_stands_and_where_its_log_ends() -> None:
    clock = Clock()
    watch = StatusRecorder(clock.monotonic)
    watch.assigned({LOG: 40})
    clock.now_s = 2.0
    watch.polled(Away({}), [chunk([event()] * 3, start=40, timestamps_ms=[5, 6, 7])])
    [partition_status] = watch.snapshot().partitions
    assert (partition_status.position, partition_status.end, partition_status.record_ms) == (
        43,
        50,
        7,
    )
    watch.released([LOG])
    assert watch.snapshot().partitions == []


def test_a_source_that_is_here_ends_where_it_has_no_more() -> None:
    watch, source = StatusRecorder(lambda: 0.0), MemorySource({LOG: log(7)})
    watch.assigned({LOG: 0})
    watch.polled(source, [chunk([event(), event()])])
    assert watch.snapshot().partitions[0].end is None
    watch.polled(source, [])
    partition_status = watch.snapshot().partitions[0]
    assert partition_status.end == partition_status.position == 2


def test_a_message_without_a_value_has_no_bytes() -> None:
    watch = StatusRecorder(lambda: 0.0)
    watch.polled(MemorySource({}), [chunk([b"four", None, b"", b"three"])])
    assert watch.snapshot().read_bytes == 9


def test_a_source_that_is_opened_after_one_of_another_kind_is_asked_what_it_is() -> None:
    clock = Clock()
    watch, local = StatusRecorder(clock.monotonic), MemorySource({LOG: log(7)})
    watch.polled(local, [])
    clock.now_s = 3.0
    watch.polled(Away({}), [])
    assert watch.snapshot().fetched_s < watch.snapshot().polled_s == 3.0
    watch.polled(local, [])
    assert watch.snapshot().fetched_s == 3.0


def test_what_the_ledger_refuses_is_counted_by_its_reason(tmp_path: Path) -> None:
    clock = Clock(tick_s=0.02)
    watch, settings = StatusRecorder(clock.monotonic), config()
    store, moved = Ledger.open(str(tmp_path / "a.db"), create=True).store, list[Head]()
    ledger = RecordingLedger(store, watch, clock.monotonic, moved.append)
    generation = ledger.begin(settings.fingerprints(), settings.descriptions).generation
    head = ledger.resolve(generation, LOG, 0)
    ledger.commit(generation, commit_of(head))
    with pytest.raises(Fenced):
        ledger.commit(generation, commit_of(head))
    assert tuple(moved) == ledger.heads(generation)
    reported = watch.snapshot()
    ledger.close()
    assert reported.refusals == {"fenced": 1, "locked": 0}
    assert (sum(reported.commits), reported.rows, reported.late) == (1, 5, 2)
    assert reported.commit_s == pytest.approx(0.02, rel=2**-50)
    assert reported.commit_bytes == 3


def commit_of(head: Head) -> Commit:
    shard = StateShard(Pane("ctr", 0, None, None), 0, 1, b"abc")
    return Commit(head, 0, 5, None, Counters(5, late=2), [shard])


def test_the_parent_is_told_about_every_second() -> None:
    clock = Clock()
    reports: list[bytes] = []
    watch = StatusRecorder(clock.monotonic, reports.append)
    for _ in range(40):
        clock.now_s += 0.25
        watch.polled(Away({}), [])
    assert len(reports) == 10
    assert decode(reports[-1]).polled_s == 10.0


def test_a_snapshot_is_of_its_moment() -> None:
    watch = StatusRecorder(Clock().monotonic)
    watch.assigned({LOG: 1})
    before = watch.snapshot()
    watch.assigned({replace(LOG, number=1): 2})
    assert (len(before.partitions), len(watch.snapshot().partitions)) == (1, 2)
