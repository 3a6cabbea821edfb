"""What a worker takes, what it does beside counting, and when workers of a group have reached the
end."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.counting.housekeeping import SHARE, IdleCompactor
from streammetrics_consumers.counting.options import Options, require_no_loss
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.ledger.compact import ABOVE, LEAVE, Compactor
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Counters, Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.service import begin
from streammetrics_consumers.sources import GapError

from tests.consumers.folded import counted, fold, records
from tests.consumers.ledger.conftest import *  # noqa: F403 - the fixtures of a ledger
from tests.consumers.ledger.counted_log import PANES, begun, committed, require_true_rows
from tests.consumers.memory_run import ONE, UNTIL_END, Run, assigned, log, worker_of
from tests.consumers.memory_source import (
    Again,
    Assign,
    Deliver,
    Log,
    Lose,
    MemorySource,
    Revoke,
)
from tests.consumers.small_config import config
from tests.consumers.stores import stored

each_store = pytest.mark.usefixtures("each_store")


LOGS = {Partition("test", "events", "id", n): records(n, 120) for n in range(3)}


CONFIG = config()


class Duo:
    """Two workers of one group, each with a partition of its own, on one clock."""

    def __init__(self, folder: Path) -> None:
        self.now_s = 100.0
        self.ledger = Ledger.open(str(folder / "duo.db"), create=True)
        logs = {partition: Log(list(values)) for partition, values in list(LOGS.items())[:2]}
        self.workers = [
            assigned(
                CONFIG,
                self.ledger,
                MemorySource(logs, assigned=[partition]),
                monotonic=lambda: self.now_s,
            )
            for partition in logs
        ]


@each_store
def test_a_worker_at_its_end_waits_for_the_partitions_of_the_others(tmp_path: Path) -> None:
    duo = Duo(tmp_path)
    first, second = duo.workers
    with closing(duo.ledger):
        for _ in range(5):
            duo.now_s += 1.0
            assert not first.step()
        assert first.progress().seconds == 5.0
        for _ in range(5):
            duo.now_s += 1.0
            is_at_end = second.step()
        assert is_at_end
        duo.now_s += 1.0
        assert first.step()


@each_store
def test_a_worker_at_its_end_commits_so_that_the_others_need_not_wait(tmp_path: Path) -> None:
    duo = Duo(tmp_path)
    with closing(duo.ledger):
        assert CONFIG.store.commit_interval_s == 5
        for _ in range(5):
            ends = []
            duo.now_s += 0.6
            for worker in duo.workers:
                ends.append(worker.step())
            if all(ends):
                return
    raise AssertionError("they wait for the interval")


@each_store
def test_records_that_come_twice_change_nothing_and_are_counted_as_such(tmp_path: Path) -> None:
    (first, values), *_ = LOGS.items()
    logs = {first: Log(list(values))}
    script = [Deliver(50), Again(), Deliver(50), Again(), Again(), Deliver(50)]
    with closing(Ledger.open(str(tmp_path / "twice.db"), create=True)) as ledger:
        now_s = 0.0
        source = MemorySource(logs, script)
        worker = assigned(CONFIG, ledger, source, monotonic=lambda: now_s, options=Options())
        for _ in script:
            now_s += 3.0  # some come again before their commit, some after it
            worker.step()
        worker.commit(last=True)
        assert counted(ledger) == fold(logs)
    assert worker.duplicates == 150


@each_store
def test_records_behind_a_hole_are_sought_again_from_where_the_delta_ends(tmp_path: Path) -> None:
    duo = Duo(tmp_path)
    with closing(duo.ledger):
        first, _ = duo.workers
        assert isinstance(first.source, MemorySource)
        first.source.script.extend([Deliver(5)])
        first.source.poll(0.0)  # records of an earlier assignment, which nobody took
        first.source.script.extend([Deliver(5), Deliver(200)])
        first.step()
        assert first.rows == 0
        first.step()
        assert (first.progress().remaining, first.duplicates) == (0, 0)


def test_what_a_revoked_partition_had_is_committed_and_what_a_lost_one_had_is_read_again(
    tmp_path: Path,
) -> None:
    (first, values), (second, second_values), *_ = LOGS.items()
    partitions = first, second
    script = [
        Deliver(50),
        Revoke(partitions),
        Assign((first,)),
        Deliver(30),
        Lose(partitions),
        Assign(partitions),
    ]
    logs, watch = (
        {first: Log([*values]), second: Log([*second_values])},
        StatusRecorder(lambda: 0.0),
    )
    with closing(Ledger.open(str(tmp_path / "moved.db"), create=True)) as ledger:
        source = MemorySource(logs, script)
        worker = assigned(CONFIG, ledger, source, monotonic=lambda: 0.0, status=watch)
        progress = []
        for _ in script:
            worker.step()
            offsets = [head.next_offset for head in ledger.heads(worker.generation)]
            progress.append((worker.rows, offsets, len(watch.snapshot().partitions)))
        good = 100 - sum(value is None for value in (*values[:50], *second_values[:50]))
        third = 30 - sum(value is None for value in values[50:80])
        assert progress == [
            (good, [0, 0], 2),
            (good, [50, 50], 0),
            (good, [50, 50], 1),
            (good + third, [50, 50], 1),
            (good, [50, 50], 0),
            (good, [50, 50], 2),
        ]
        assert [worker.step() for _ in range(2)] == [True, True]
        worker.commit(last=True)
        assert counted(ledger) == fold(logs)


def test_a_partition_that_was_added_meanwhile_is_read_from_its_first_record(
    tmp_path: Path,
) -> None:
    (first, values), (second, second_values), (third, _) = LOGS.items()
    logs = {first: Log([*values])}
    with closing(Ledger.open(str(tmp_path / "added.db"), create=True)) as ledger:
        source = MemorySource(logs, [Assign((second, third))], limit=200)
        worker = assigned(CONFIG, ledger, source, monotonic=lambda: 0.0)
        source.logs |= {second: Log([*second_values]), third: Log([])}
        assert [worker.step() for _ in range(2)] == [False, True]
        worker.commit(last=True)
        assert counted(ledger) == fold(source.logs)


def test_a_log_is_read_from_where_the_options_say_unless_it_has_lost_its_end(
    tmp_path: Path,
) -> None:
    (first, values), *_ = LOGS.items()
    with closing(Ledger.open(str(tmp_path / "starts.db"), create=True)) as ledger:
        generation = begin(ledger, CONFIG).generation
        for numbers, options, starts in (
            ((0, 1), Options(), {0: 7, 1: 7}),
            ((2, 3), Options(start="latest"), {2: 127, 3: 127}),
            ((4, 5), Options(partitions=(5,)), {5: 7}),
        ):
            logs = {replace(first, number=n): Log([*values], beginning=7) for n in numbers}
            source = MemorySource(logs)
            worker_of(CONFIG, ledger, source, monotonic=lambda: 0.0, options=options)
            heads = {head.partition.number: head.start_offset for head in ledger.heads(generation)}
            assert {n: heads[n] for n in numbers if n in heads} == starts
        shorter = MemorySource({replace(first, number=2): Log([], next_offset=126)})
        with pytest.raises(GapError):
            worker_of(CONFIG, ledger, shorter, monotonic=lambda: 0.0)


def test_a_file_that_was_counted_and_has_no_record_any_more_is_a_gap() -> None:
    counted_file = Partition("host", "events.jsonl", "inode", 0)
    head = Head(1, 1, counted_file, False, 0, 7, None, Counters(), 0)
    heads = [
        replace(head, next_offset=0),
        replace(head, partition=replace(counted_file, topic="x")),
    ]
    require_no_loss(CONFIG, heads)
    with pytest.raises(GapError, match=r"events\.jsonl/0"):
        require_no_loss(CONFIG, [*heads, head])


class Unended(MemorySource):
    """A source like stdin: it knows no end before all was read."""

    def ends(self) -> dict[Partition, int]:
        ends = super().ends()
        return ends if ends == self._positions else {}


def test_a_source_whose_end_is_unknown_ends_once_it_has_told_it(tmp_path: Path) -> None:
    (first, values), *_ = LOGS.items()
    with closing(Ledger.open(str(tmp_path / "unended.db"), create=True)) as ledger:
        source = Unended({first: Log([*values])}, replayable=False)
        worker = assigned(CONFIG, ledger, source, monotonic=lambda: 0.0, options=Options())
        assert [worker.step() for _ in range(4)] == [False, False, False, True]


class Clock:
    """Each look takes as long as the test says."""

    def __init__(self) -> None:
        self.now_s = self.each_s = 0.0

    def __call__(self) -> float:
        self.now_s += self.each_s
        return self.now_s


@pytest.fixture
def begun_head(ledger: Ledger) -> tuple[Generation, Head]:
    generation, heads = begun(ledger)
    return generation, heads[0]


def rows(ledger: Ledger) -> int:
    return max(size.rows for size in ledger.snapshot().panes)


def test_it_merges_once_a_head_has_more_commits_than_rows_may_stand_also_of_an_earlier_worker(
    ledger: Ledger, begun_head: tuple[Generation, Head]
) -> None:
    generation, head = begun_head
    for _ in range(2 * ABOVE):
        head = committed(ledger, generation, head, 14, keys=5)
    upkeep = IdleCompactor(ledger.store, Clock())
    upkeep.step(idle=True)
    assert rows(ledger) == 2 * ABOVE, "nothing was committed yet"
    counts = []
    for _ in range(2 * ABOVE):
        head = committed(ledger, generation, head, 14, keys=5)
        upkeep.committed(head)
        upkeep.step(idle=True)
        counts.append(rows(ledger))
    assert counts[0] == LEAVE + 1
    assert max(counts) <= ABOVE + LEAVE + 1
    assert min(counts[1:]) == LEAVE + 1
    require_true_rows(stored(ledger), 5)


def test_while_records_come_it_takes_a_tenth_of_the_time(
    ledger: Ledger, begun_head: tuple[Generation, Head]
) -> None:
    generation, head = begun_head
    clock = Clock()
    upkeep = IdleCompactor(ledger.store, clock)
    for _ in range(2 * ABOVE):
        head = committed(ledger, generation, head, 14, keys=5)
        upkeep.committed(head)
    clock.each_s = 1.0  # so long does a look or a merge take
    steps = 0
    while rows(ledger) > LEAVE + 1:
        before = rows(ledger), clock.now_s
        upkeep.step(idle=False)
        clock.now_s += 1.0
        steps += 1
        assert steps < 1000, before
    assert clock.now_s >= 2 / SHARE, "it has waited its turn"


def test_a_store_that_is_away_costs_the_merge_alone(
    ledger: Ledger, begun_head: tuple[Generation, Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    generation, head = begun_head
    upkeep = IdleCompactor(ledger.store, Clock())
    for _ in range(2 * ABOVE):
        head = committed(ledger, generation, head, 14, keys=5)
        upkeep.committed(head)

    def away(*_: object) -> None:
        raise StoreUnavailable("store: away")

    with monkeypatch.context() as patch:
        patch.setattr(Compactor, "plan", away)
        upkeep.step(idle=True)
    assert rows(ledger) == 2 * ABOVE
    for _ in range(ABOVE + 1):
        head = committed(ledger, generation, head, 14, keys=5)
        upkeep.committed(head)
    upkeep.step(idle=True)
    assert rows(ledger) == LEAVE + 1


def test_a_run_keeps_the_rows_of_its_store_few(tmp_path: Path) -> None:
    values = records(3, 400)
    event_log = log(0)
    event_log.append(*values)
    run = Run(tmp_path, {ONE: event_log}, rest="[store]\ncommit_interval_s = 0.01")
    run.clock.tick_s = 0.02
    run(UNTIL_END, [Deliver(4)] * 100)
    panes = run.snapshot().panes
    assert len(panes) > len(PANES)
    assert max(size.rows for size in panes) <= 3 * ABOVE
