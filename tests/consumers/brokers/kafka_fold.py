"""A topic of made-up records, workers that count it in processes of their own, and the fold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

from streammetrics_consumers.ledger.failures import NotAStore
from streammetrics_consumers.ledger.ledger import Ledger

from tests.consumers.folded import Counted, counted, fold, records
from tests.consumers.killed_worker import Tally
from tests.consumers.small_config import toml
from tests.kafka_broker import Record, create_topic, produce, unique_topic
from tests.patience import LIMIT_S, until
from tests.requirements import ROOT

SOURCE = """\
kind = "kafka"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "{group}"
library = "{library}"
[source.client]
session_timeout_ms = {session_ms}
heartbeat_interval_ms = 200
max_poll_records = {records}
{more}"""


class Worker:
    """One process; what it logs is in `log`."""

    def __init__(self, folder: Path, name: str, command: list[str]) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=ROOT, stdin=subprocess.DEVNULL, stderr=log
            )

    def says(self, text: str) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return text in self.log.read_text()

    def end(self) -> None:
        """Ask it to end, which it does in good order."""
        self.process.terminate()
        assert self.process.wait(LIMIT_S) == 0, self.log.read_text()


class KafkaLog:
    """A topic and its ledger. Every record that is written is of the fold, unless a test says."""

    def __init__(
        self, folder: Path, bootstrap: str, library: str, partitions: int, **settings: object
    ) -> None:
        self.folder, self.bootstrap = folder, bootstrap
        self.topic = create_topic(bootstrap, partitions)
        self.values: dict[int, list[bytes | None]] = {n: [] for n in range(partitions)}
        self.notes = folder / "commits"
        self.workers: list[Worker] = []
        polled = settings.pop("records", 100)
        session_ms = settings.pop("session_timeout_ms", 1000)
        source = SOURCE.format(
            bootstrap=bootstrap,
            topic=self.topic,
            group=unique_topic("group"),
            library=library,
            records=polled,
            session_ms=session_ms,
            more="".join(f"{key} = {value}\n" for key, value in settings.items()),
        )
        self.config = folder / "kafka.toml"
        self.store = str(folder / "kafka.db")
        rest = f'[store]\nurl = "{self.store}"\ncommit_interval_s = 0.05\n'
        self.config.write_text(toml(source=source, rest=rest), encoding="utf-8")

    def write(self, seed: int, n: int) -> None:
        """So many more records in each partition."""
        messages = []
        for number, values in self.values.items():
            new_values = records(seed + number, n)
            values += new_values
            messages += [
                Record(value, number, key=b"k") for value in new_values
            ]  # a tombstone needs one
        produce(self.bootstrap, self.topic, messages)

    def worker(self, point: str = "-", count: int = 0, go: str = "-") -> Worker:
        """Start one, which may pause: see `killed_worker`."""
        pause = [point, str(count), "pause", go, str(self.notes)]
        command = ["tests.consumers.killed_worker", *pause]
        name = f"worker{len(self.workers)}"
        self.workers.append(
            Worker(self.folder, name, [*command, "run", str(self.config), "--no-serve"])
        )
        return self.workers[-1]

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait."""

        def report() -> str:
            return "\n".join(
                [str(self.heads()), *(process.log.read_text() for process in self.workers)]
            )

        until(condition, report, pause_s=0.02)

    def heads(self) -> dict[int, int]:
        try:
            with closing(Ledger.open(self.store)) as ledger:
                return {h.partition.number: h.next_offset for h in ledger.snapshot().heads}
        except NotAStore:  # not yet
            return {}

    def is_counted(self) -> bool:
        """Whether every head has reached the end."""
        return self.heads() == {number: len(values) for number, values in self.values.items()}

    def require_fold(self) -> None:
        """The ledger equals a fold over the log, byte for byte, quarantine included."""
        assert self.counted() == self.folded()

    def counted(self) -> Counted:
        with closing(Ledger.open(self.store)) as ledger:
            return counted(ledger)

    def folded(self) -> Counted:
        with closing(Ledger.open(self.store)) as ledger:
            partitions = {h.partition.number: h.partition for h in ledger.snapshot().heads}
        return fold({partitions[number]: values for number, values in self.values.items()})

    def taken(self) -> int:
        """How many records all workers together took from the log."""
        return sum(Tally.read(path)[0] for path in self.folder.glob(f"{self.notes.name}.*"))

    def require_one_writer(self) -> None:
        """No record is in two commits that the ledger took. (A worker that is killed may die before
        it notes its last one; so there may be holes, and the fold says that nothing is lost.)"""
        taken: dict[int, list[tuple[int, int]]] = {}
        for line in self.notes.read_text().splitlines():
            number, start, end = map(int, line.split())
            taken.setdefault(number, []).append((start, end))
        for ranges in taken.values():
            ranges.sort()
            assert all(a[1] <= b[0] for a, b in pairwise(ranges)), ranges


@contextmanager
def kafka_log(
    folder: Path, bootstrap: str, library: str, partitions: int = 2, **settings: object
) -> Iterator[KafkaLog]:
    """A topic; at the end of the block no worker is left."""
    log = KafkaLog(folder, bootstrap, library, partitions, **settings)
    try:
        yield log
    finally:
        for worker in log.workers:
            worker.process.kill()
            worker.process.wait()
