"""Two workers that share logs with repeats: killed, fenced and told late, in an order that a seed
decides. What they count is what one worker counts of the logs without repeats."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting import worker
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.seen_ids import Repeats
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.service import begin
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.sources.memory_source import (
    Assign,
    Deliver,
    Log,
    Lose,
    MemorySource,
    Revoke,
    Step,
)

from tests.consumers.folded import Counted, counted, fold
from tests.consumers.small_config import config
from tests.consumers.worker.memory_run import ONE, TWO
from tests.consumers.worker.test_repeats import DEDUP, twice, without_repeats
from tests.depth import tries

LOGS = (ONE, TWO)
MADE = config(rest=f"[store]\ncommit_interval_s = 3\n{DEDUP}")
SEEDS = tries(12, 400)


class Simulation:
    """Workers, and which of them has each log; a worker that was not told has it too."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.of: Config = replace(MADE, store=replace(MADE.store, url=str(folder / "run.db")))
        self.pairs = {log: twice(2 * seed + log.number, 60) for log in LOGS}
        self.logs = {log: Log(again) for log, (again, _) in self.pairs.items()}
        self.now_s = 0.0
        self.ledger = Ledger.open(self.of.store.url, create=True)
        self.workers = [self.started() for _ in range(2)]
        self.owner: dict[Partition, int] = {}

    def started(self) -> tuple[Worker, MemorySource]:
        """A worker without a log."""
        source = MemorySource(self.logs, assigned=())
        generation = begin(self.ledger, self.of).generation
        one = Worker(self.of, self.ledger, generation, source, Options(), stop=Stop(),
                     monotonic=lambda: self.now_s)  # fmt: skip
        one.prepare()
        source.assign(one)
        return one, source

    def does(self, number: int, *steps: Step) -> None:
        """A worker takes these steps."""
        one, source = self.workers[number]
        for step in steps:
            source.script.append(step)
            self.now_s += 1
            one.step()

    def move(self, log: Partition, to: int) -> None:
        """A log changes hands: in good order, at once, or unknown to who had it."""
        had, told = self.owner.get(log), self.rng.choice((Revoke, Lose, None))
        if had == to:
            return
        if had is not None and told is not None:
            self.does(had, told((log,)))
        self.owner[log] = to
        self.does(to, Assign((log,)))

    def run(self) -> Counted:
        """Some steps, and then one worker reads all that is left."""
        for _ in range(40):
            number = self.rng.randrange(2)
            act = self.rng.random()
            if act < 0.1:
                self.workers[number] = self.started()  # killed, and started again
                self.owner = {log: one for log, one in self.owner.items() if one != number}
            elif act < 0.35:
                self.move(self.rng.choice(LOGS), number)
            elif act < 0.45:
                self.workers[number][0].commit()
            else:
                self.does(number, Deliver(self.rng.randrange(1, 9)))
        self.workers.append(self.started())
        self.does(2, Assign(LOGS), *[Deliver(50)] * 10)
        self.workers[2][0].commit()
        return counted(self.ledger)


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """Workers say that they are fenced."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def is_sound(folder: Path, seed: int) -> bool:
    """Whether what workers count is what there was without repeats."""
    simulation = Simulation(folder, seed)
    with closing(simulation.ledger):
        found = simulation.run()
    once = {log: values for log, (_, values) in simulation.pairs.items()}
    assert sum(counters.repeated for counters in found.counters.values()) > 0
    return without_repeats(found) == without_repeats(fold(once))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_order_of_events_loses_or_doubles_an_event(tmp_path: Path, seed: int) -> None:
    assert is_sound(tmp_path, seed)


class KeepsAll(Repeats):
    """Goes on with the ids of records that were not committed."""

    def begin(self, head: Head) -> None:
        known = self._logs.get(head.partition)
        if known is not None:
            known.at, known.head = head.next_offset, head.id
        super().begin(head)


class StoresNone(Repeats):
    """Leaves the ids out of its commits."""

    def with_ids(self, commit: Commit) -> Commit:
        return commit


class Passes(Repeats):
    """Stores the ids of one commit of each log alone."""

    def with_ids(self, commit: Commit) -> Commit:
        return super().with_ids(commit) if not commit.start else commit


@pytest.mark.slow
@pytest.mark.parametrize("broken", [KeepsAll, StoresNone, Passes])
def test_workers_that_are_broken_on_purpose_are_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: type[Repeats]
) -> None:
    monkeypatch.setattr(worker, "Repeats", broken)
    for seed in range(SEEDS):
        (tmp_path / f"{seed}").mkdir()
        if not is_sound(tmp_path / f"{seed}", seed):
            return
    pytest.fail("no seed has found it")
