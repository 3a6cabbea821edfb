"""Twenty experiments over a topic are twenty single runs, to the byte: four workers of a real
group count them, and are killed while one is added, one is ended and one is archived."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.partition import Partition

from tests.consumers import killed_worker
from tests.consumers.brokers.kafka_fold import SOURCE
from tests.consumers.forked import forked
from tests.consumers.many_experiments import EVENTS, KEYS, entries, events
from tests.consumers.memory_source import Log
from tests.consumers.simulation.alone import looks_at, require_as_alone
from tests.consumers.simulation.experiments import Course, Edge, Phase
from tests.consumers.small_config import METRICS, toml
from tests.kafka_broker import Record, create_topic, produce, unique_topic
from tests.patience import LIMIT_S, until

pytestmark = pytest.mark.faults
PARTITIONS, BATCH, BATCHES = 3, 20, 3
ADDED, ENDED, ARCHIVED = "three", "merged", "plain"
EARLY = (ENDED, ARCHIVED, "bounded")  # have a look before the second batch
WATCHED = (ADDED, *EARLY)  # the others have at most one look before the end
BEFORE = tuple(name for name in KEYS if name != ADDED)
AFTER = tuple(name for name in KEYS if name != ENDED)


class Stream:
    """A topic, workers that count it, and the store that they share."""

    def __init__(self, folder: Path, bootstrap: str, url: str) -> None:
        self.folder, self.bootstrap, self.url = folder, bootstrap, url
        self.topic, self.group = create_topic(bootstrap, PARTITIONS), unique_topic("group")
        whole = {number: events(number, BATCH * BATCHES) for number in range(PARTITIONS)}
        self.left, self.values = whole, {number: list[bytes | None]() for number in whole}
        self.workers: list[ForkServerProcess] = []

    def config(self, name: str, *names: str) -> Path:
        """The config that counts these experiments."""
        source = SOURCE.format(
            bootstrap=self.bootstrap,
            topic=self.topic,
            group=self.group,
            library="confluent-kafka",
            records=10,
            session_ms=1000,
            more="",
        )
        often = "look_every_s = 1.0\n"
        sections = "\n".join(
            entries([experiment]) + often * (experiment in WATCHED) for experiment in names
        )
        store = f'[store]\nurl = "{self.url}"\ncommit_interval_s = 0.3\n'
        path = self.folder / f"{name}.toml"
        parts = {"event": EVENTS, "metrics": METRICS, "slices": "by = [[]]"}
        text = toml(source=source, rest=sections + store, **parts)
        path.write_text(text, encoding="utf-8")
        return path

    def write(self) -> None:
        """The next events of each partition."""
        records = []
        for number, values in self.left.items():
            batch, self.left[number] = values[:BATCH], values[BATCH:]
            self.values[number] += batch
            records += [Record(value, number) for value in batch]
        produce(self.bootstrap, self.topic, records)

    def worker(
        self, config: Path, *flags: str, dies_at: str = "-", times: int = 0
    ) -> ForkServerProcess:
        """Start one, which may kill itself at a point."""
        command = ("run", str(config), "--no-serve", *flags)
        log = self.folder / f"worker{len(self.workers)}.log"
        process = forked(log, killed_worker.run, dies_at, times, "-", *command)
        self.workers.append(process)
        return process

    def until(self, reached: Callable[[], bool]) -> None:
        """Wait for something that workers bring about."""

        def logs() -> str:
            return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

        until(reached, logs)

    def snapshot(self) -> Snapshot | None:
        """What is counted; None before there is a store."""
        with suppress(LedgerError):
            ledger = Ledger.open(self.url)
            try:
                return ledger.snapshot()
            finally:
                ledger.close()
        return None

    def is_counted(self) -> bool:
        """Whether every event that was written is counted."""
        snapshot = self.snapshot()
        heads = (
            {} if snapshot is None else {h.partition.number: h.next_offset for h in snapshot.heads}
        )
        return heads == {number: len(values) for number, values in self.values.items()}

    def is_looked_at(self) -> bool:
        """Whether each early experiment has a look."""
        ledger = Ledger.open(self.url)
        try:
            return all(looks_at(ledger, name) for name in EARLY)
        finally:
            ledger.close()

    def is_deployed(self) -> bool:
        """Whether a worker has begun with the config that adds and ends an experiment."""
        snapshot = self.snapshot()
        return snapshot is not None and snapshot.generation.revision > 1

    def logs(self) -> dict[Partition, Log]:
        """The records by partition, as the store names it."""
        snapshot = self.snapshot()
        assert snapshot is not None
        return {h.partition: Log(self.values[h.partition.number]) for h in snapshot.heads}


@contextmanager
def stream(folder: Path, bootstrap: str, url: str) -> Iterator[Stream]:
    """A stream; at the end of the block no worker is left."""
    kafka_stream = Stream(folder, bootstrap, url)
    try:
        yield kafka_stream
    finally:
        for worker in kafka_stream.workers:
            worker.kill()
            worker.join()


def ended(worker: ForkServerProcess) -> int | None:
    """Wait for the end of a worker; answers its exit code."""
    worker.join(LIMIT_S)
    return worker.exitcode


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_twenty_experiments_are_twenty_single_runs(
    kafka: str, store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"{tmp_path}/kafka.db"
    if store == "postgres":
        url = request.getfixturevalue("postgres").new_store()
    with stream(tmp_path, kafka, url) as kafka_stream:
        before, after = kafka_stream.config("before", *BEFORE), kafka_stream.config("after", *AFTER)
        archived = f"[experiments.{ARCHIVED}]\n"
        after.write_text(after.read_text().replace(archived, f"{archived}archived = true\n"))
        kafka_stream.write()
        # It is alone, so that others do not count all that it would die of.
        assert ended(kafka_stream.worker(before, dies_at="inside it", times=1)) == -signal.SIGKILL
        workers = [kafka_stream.worker(before) for _ in range(3)]
        kafka_stream.until(kafka_stream.is_counted)
        kafka_stream.until(kafka_stream.is_looked_at)
        kafka_stream.write()
        drop = f"--drop-metric=experiment/{ENDED}"
        second = kafka_stream.worker(after, drop, dies_at="before the transaction", times=1)
        kafka_stream.until(kafka_stream.is_deployed)
        for worker in workers:
            worker.kill()
        kafka_stream.write()
        assert ended(second) == -signal.SIGKILL
        workers = [kafka_stream.worker(after, drop) for _ in range(3)]
        kafka_stream.until(kafka_stream.is_counted)
        for worker in workers:
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGTERM)
        assert [ended(worker) for worker in workers] == [0, 0, 0]
        assert main(["run", str(after), "--no-serve", "--until-end"]) == 0
        require_single_runs(kafka_stream, load_config(before), load_config(after))


def require_single_runs(kafka_stream: Stream, before: Config, after: Config) -> None:
    """Each experiment is as if it were alone."""
    logs, looks = kafka_stream.logs(), 0
    ledger = Ledger.open(kafka_stream.url)
    try:
        snapshot = ledger.snapshot()
        numbers = {head.id: head.partition for head in snapshot.heads}
        starts = next(m.start_offsets for m in snapshot.generation.metrics
                      if m.metric_set == f"experiment/{ADDED}")  # fmt: skip
        edge = Edge({numbers[head]: offset for head, offset in starts.items()}, 0)
        assert all(BATCH <= edge.stand[log] < BATCH * BATCHES for log in logs)
        start = Edge({}, 0)
        phases = {ADDED: Phase(edge), ENDED: Phase(start, edge)}
        for name in KEYS:
            config = before if name == ENDED else after
            single_config = replace(config, experiments={name: config.experiments[name]})
            none = replace(config, experiments={})
            course = Course([phases.get(name, Phase(start))], name != ENDED, name == ARCHIVED)
            looks += require_as_alone(
                ledger, kafka_stream.folder / "alone.db", name, course, logs, (none, single_config)
            )
        assert looks >= len(EARLY) + len(AFTER)  # of the first batch, and at the end
    finally:
        ledger.close()
