"""What a worker takes, and when workers of a group have reached the end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.sources.memory_source import Again, Deliver, Log, MemorySource

from tests.consumers.folded import counted, fold, records
from tests.consumers.small_config import config

pytestmark = pytest.mark.usefixtures("each_store")

LOGS = {Partition("test", "events", "id", n): records(n, 120) for n in range(3)}
CONFIG = config()


class Duo:
    """Two workers of one group, each with a partition of its own, on one clock."""

    def __init__(self, folder: Path) -> None:
        self.now_s = 0.0
        self.ledger = Ledger.open(str(folder / "duo.db"), create=True)
        generation = self.ledger.begin(CONFIG.fingerprints(), CONFIG.descriptions).generation
        logs = {partition: Log(list(values)) for partition, values in list(LOGS.items())[:2]}
        self.workers = [self.born(generation, logs, partition) for partition in logs]

    def born(
        self, generation: Generation, logs: Mapping[Partition, Log], partition: Partition
    ) -> Worker:
        worker = Worker(
            CONFIG,
            self.ledger,
            generation,
            MemorySource(logs, assigned=[partition]),
            Options(until_end=True),
            stop=Stop(),
            monotonic=lambda: self.now_s,
        )
        worker.prepare()
        worker.source.assign(worker)
        return worker


def test_a_worker_at_its_end_waits_for_the_partitions_of_the_others(tmp_path: Path) -> None:
    duo = Duo(tmp_path)
    first, second = duo.workers
    with closing(duo.ledger):
        for _ in range(5):
            duo.now_s += 1.0
            assert not first.step()
        for _ in range(5):
            duo.now_s += 1.0
            done = second.step()
        assert done
        duo.now_s += 1.0
        assert first.step()


def test_a_worker_at_its_end_commits_so_that_the_others_need_not_wait(tmp_path: Path) -> None:
    duo = Duo(tmp_path)
    with closing(duo.ledger):
        assert CONFIG.store.commit_interval_s == 5
        for _ in range(5):
            done = []
            duo.now_s += 0.6
            for worker in duo.workers:
                done.append(worker.step())
            if all(done):
                return
    raise AssertionError("they wait for the interval")


def test_records_that_come_twice_change_nothing_and_are_counted_as_such(tmp_path: Path) -> None:
    (first, values), *_ = LOGS.items()
    logs = {first: Log(list(values))}
    script = [Deliver(50), Again(), Deliver(50), Again(), Again(), Deliver(50)]
    with closing(Ledger.open(str(tmp_path / "twice.db"), create=True)) as ledger:
        generation = ledger.begin(CONFIG.fingerprints(), CONFIG.descriptions).generation
        now_s = 0.0
        worker = Worker(
            CONFIG, ledger, generation, MemorySource(logs, script), Options(),
            stop=Stop(), monotonic=lambda: now_s,
        )  # fmt: skip
        worker.prepare()
        worker.source.assign(worker)
        for _ in script:
            now_s += 3.0  # some come again before their commit, some after it
            worker.step()
        worker.commit(last=True)
        assert counted(ledger) == fold(logs)
    assert worker.duplicates == 150


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
