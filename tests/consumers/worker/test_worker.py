"""A worker counts each record once, wherever it is killed and whoever else reads the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, Connection

import consumers.ledger.ledger as ledger_module
import consumers.ledger.write as ledger_write
from consumers.ledger.ledger import Ledger, LedgerError
from consumers.ledger.rows import Commit, Generation, Head
from consumers.ledger.schema import head
from consumers.sources.memory_source import Log, MemorySource
from consumers.sources.source import Partition
from consumers.worker.run_options import Options
from consumers.worker.stop import Stop
from consumers.worker.worker import Worker
from tests.consumers.folded import fold, records
from tests.consumers.interleaved import POINTS, FusedLedger, interleave
from tests.consumers.small_config import config

LOGS = {Partition("test", "events", "id", n): records(n, 120) for n in range(3)}
EXPECTED = fold(LOGS)
CONFIG = config()


class Fused(FusedLedger):
    """Its writer may be killed between the head and the delta."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        def write_delta(connection: Connection, commit: Commit) -> None:
            self.at("inside it")
            ledger_write.write_delta(connection, commit)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger_module, "write_delta", write_delta)
            return super().commit(of, commit)


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 30), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_whatever_happens_to_workers_the_ledger_equals_a_fold_over_the_log(
    seeds: range, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        found = interleave(seed, tmp_path, CONFIG, LOGS, ledger_type=Fused, seen=seen)
        assert found == EXPECTED, f"seed {seed}"
    assert all(seen[what] for what in (*POINTS, "again", "revoked", "lost", "not told")), seen


class TwoSteps(FusedLedger):
    """The mutant that moves the head in a transaction of its own."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        self.at("before the transaction")
        moved = super().commit(of, replace(commit, pieces=(), refused=()))
        self.at("inside it")
        self._store.write(lambda connection, _: ledger_write.write_delta(connection, commit))
        return moved


class OneTooFew(FusedLedger):
    """The mutant that stores the last record's offset and not the one after it."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        return super().commit(of, replace(commit, end=max(commit.end - 1, commit.start)))


class Unfenced(FusedLedger):
    """The mutant that writes wherever the head stands."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        def anywhere(known: Head, offset: int) -> tuple[ColumnElement[bool], ...]:
            return (head.c.id == known.id,)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger_write, "stands_at", anywhere)
            return super().commit(of, commit)


@pytest.mark.parametrize("mutant", [TwoSteps, OneTooFew, Unfenced])
def test_a_broken_ledger_is_found_out(mutant: type[FusedLedger], tmp_path: Path) -> None:
    def holds(seed: int) -> bool:
        try:
            return interleave(seed, tmp_path, CONFIG, LOGS, ledger_type=mutant) == EXPECTED
        except (AssertionError, LedgerError):
            return False

    assert not all(map(holds, range(10)))


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
