"""Workers × partitions × PostgreSQL: the CPU of the workers and of one store, an event.

One, two and four workers count a topic of 4 and of 16 partitions, in a real Kafka broker, into one
PostgreSQL store: five metrics by all rows and by variant, two of them over users. The log comes at
a steady rate, as JSON, one event a message, and is committed every second. Workers start
on an empty topic and divide its partitions; what they take while nothing comes is measured first,
then what they and the server take from the first event until the last is committed. At the end each
state of the store must equal the fold of the log, byte for byte, whatever the number of workers.

All times are CPU: wall time says nothing where the workers, the server, the broker and the writer
of the log share a few cores. `python -m benchmarks.bench_workers [--quick]`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.ledger import Ledger

from benchmarks.answer import Answer, answer, markdown, run_question
from benchmarks.bench_company import ROOT, TICK_S, cpu_s, stores
from benchmarks.company_log import Plan, Pool, events, fold, records_and_states, write_pool
from benchmarks.company_worker import Tally
from benchmarks.harness import processor
from tests import kafka_broker, postgres_server

EVENTS: Final = 200_000
RATE: Final = 16_000  # events a second
IDLE_S: Final = 4.0
LIMIT_S: Final = 120.0
WORKERS: Final = (1, 2, 4)
PARTITIONS: Final = (4, 16)

CONFIG: Final = """\
[source]
kind = "kafka"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "{topic}"
library = "confluent-kafka"
[event]
time = "ts"
time_unit = "ms"
variant = "variant"
variants = ["control", "treatment"]
user = "user"
label = "click"
score = "s0"
[windows]
size_s = 3600
[slices]
by = [[], ["variant"]]
[store]
url = "{url}"
commit_interval_s = 1
[metrics]
area = {{ type = "HistogramAUC" }}
area_of_users = {{ type = "GroupedAUC" }}
calibration = {{ type = "Calibration" }}
rate = {{ type = "Ratio" }}
rate_of_users = {{ type = "Ratio", cluster = "groups" }}
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run. Seconds are of CPU; parts_s: of the workers by `PARTS`; idle_s: of all
    workers, in a second without events; log_s: of wall time, from the first event until the last
    was committed; nbytes: of the states that all commits wrote."""

    workers: int
    partitions: int
    events: int
    commits: int
    nbytes: int
    workers_s: float
    parts_s: Mapping[str, float]
    database_s: float
    idle_s: float
    log_s: float
    states: int

    @property
    def name(self) -> str:
        """Workers × partitions."""
        return f"{self.workers} × {self.partitions}"

    def cells(self) -> list[str]:
        """The cells of the line of the table of costs."""
        return [
            self.name,
            f"{self.workers_s / self.events * 1e6:.1f}",
            f"{self.database_s / self.events * 1e6:.2f}",
            f"{self.database_s / (self.workers_s + self.database_s) * 100:.1f}",
            f"{self.database_s / self.commits * 1e3:.1f}",
            f"{self.commits:,}",
            f"{self.nbytes / 1e6:.2f}",
            f"{self.events:,}",
        ]

    def cells_of_parts(self) -> list[str]:
        """The cells of the line of the table of the parts of the workers."""
        rest_s = self.workers_s - sum(self.parts_s.values())
        parts = [f"{s / self.events * 1e6:.1f}" for s in (*self.parts_s.values(), rest_s)]
        return [self.name, *parts, f"{self.idle_s * 1e3:.0f}", f"{self.log_s:.1f}"]


# Parts of a worker by the stages of its main thread.
PARTS: Final[Mapping[str, Sequence[str]]] = {
    "polls": ("source",),
    "decoding": ("decode",),
    "metrics": ("metrics",),
    "commits": ("states", "transaction", "compaction"),
}
HEAD: Final = (
    *("workers × partitions", "workers, µs an event", "PostgreSQL, µs an event"),
    *("its share, %", "PostgreSQL, ms a commit", "commits", "MB written", "events counted"),
)
HEAD_OF_PARTS: Final = (
    *("workers, µs an event", *PARTS, "the rest"),
    *("idle, ms a second", "seconds of the log"),
)


@dataclass(frozen=True)
class Bench:
    """The log and the servers of a bench. databases: the processes of PostgreSQL."""

    folder: Path
    pool: Pool
    bootstrap: str
    new_store: Callable[[], str]
    databases: Sequence[int]

    def cost(self, workers: int, partitions: int) -> Cost:
        """The cost of one run, after its store was compared with the fold of the log."""
        topic, store = kafka_broker.create_topic(self.bootstrap, partitions), self.new_store()
        path = self.folder / f"{topic}.toml"
        text = CONFIG.format(bootstrap=self.bootstrap, topic=topic, url=store)
        path.write_text(text, encoding="utf-8")
        plan = Plan(str(path), str(self.folder / "pool"), "json", RATE, 0.0, kafka=True)
        plan.write(path.with_suffix(".json"))
        with running(self.folder, topic, workers) as processes:
            self._wait(topic, processes, lambda: self._divided(topic, workers, partitions))
            pids = [process.pid for process in processes]
            waiting_s, waiting_since_s = cpu_s(*pids), time.monotonic()
            time.sleep(IDLE_S)
            before_s, databases_s, before = cpu_s(*pids), cpu_s(*self.databases), self._sums(topic)
            idle_s = (before_s - waiting_s) / (time.monotonic() - waiting_since_s)
            began_s = time.monotonic()
            self._write(topic, partitions)
            self._wait(topic, processes, lambda: self._sums(topic)["events"] >= self.pool.size)
            workers_s = cpu_s(*pids) - before_s
            database_s = cpu_s(*self.databases) - databases_s
            log_s, sums = time.monotonic() - began_s, self._sums(topic)
        parts_s = {
            part: sum(sums[stage] - before[stage] for stage in stages)
            for part, stages in PARTS.items()
        }
        return Cost(
            workers, partitions, int(sums["events"]), int(sums["commits"]), int(sums["bytes"]),
            workers_s, parts_s, database_s, idle_s, log_s, self._equal_states(path, store),
        )  # fmt: skip

    def _divided(self, topic: str, workers: int, partitions: int) -> bool:
        """Whether each worker has as many partitions as the others."""
        shares = kafka_broker.shares(self.bootstrap, topic)
        return shares == [partitions // workers] * workers

    def _write(self, topic: str, partitions: int) -> None:
        """Write the log to the broker at its rate, an event after the other to each partition."""
        written, began_s = 0, time.monotonic()
        while written < self.pool.size:
            time.sleep(TICK_S)
            due = min(int((time.monotonic() - began_s) * RATE), self.pool.size)
            values = enumerate(self.pool.records(written, due), written)
            records = [kafka_broker.Record(value, i % partitions) for i, value in values]
            kafka_broker.produce(self.bootstrap, topic, records)
            written = due

    def _sums(self, topic: str) -> Counter[str]:
        """The sums of the tallies of all workers."""
        sums = Counter[str]()
        for path in self.folder.glob(f"{topic}-*.tally"):
            sums.update(Tally.read(path))
        return sums

    def _wait(
        self,
        topic: str,
        processes: Sequence[subprocess.Popen[bytes]],
        condition: Callable[[], bool],
    ) -> None:
        limit_s = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > limit_s or any(
                process.poll() is not None for process in processes
            ):
                log = (self.folder / f"{topic}.log").read_text(errors="replace")[-4000:]
                raise SystemExit(f"the workers ended or did not finish in {LIMIT_S:g} s:\n{log}")
            time.sleep(TICK_S)

    def _equal_states(self, config: Path, store: str) -> int:
        """The number of states of a store; they must be those of the fold of the log."""
        with closing(Ledger.open(store)) as ledger:
            records, states = records_and_states(ledger)
        expected = fold(load_config(config), self.pool, self.pool.size)
        if records != self.pool.size or states != expected:
            wrong = sorted(k for k in states | expected if states.get(k) != expected.get(k))
            raise SystemExit(
                f"the store has {records:,} of {self.pool.size:,} events; not the bytes of the "
                f"fold: {', '.join(f'{name}, grouping {grouping}' for name, grouping in wrong)}"
            )
        return len(states)


@contextmanager
def running(folder: Path, topic: str, workers: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Workers of a plan, until the block ends; each has a tally."""
    processes = []
    try:
        with (folder / f"{topic}.log").open("ab") as log:
            for number in range(workers):
                command = [sys.executable, "-m", "benchmarks.company_worker"]
                command += [str(folder / f"{topic}.json"), str(folder / f"{topic}-{number}.tally")]
                processes.append(subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log))
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(LIMIT_S)


def costs(table: pa.Table, runs: Sequence[tuple[int, int]]) -> Iterator[Cost]:
    """The cost of each run of workers and partitions over one log."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workers-")))
        new_store, databases = stack.enter_context(stores("postgres", folder))
        if not databases or "STREAMMETRICS_POSTGRES" in os.environ:
            raise postgres_server.Unavailable(
                "the CPU time of a server that runs already; unset STREAMMETRICS_POSTGRES"
            )
        bootstrap = stack.enter_context(kafka_broker.running_broker())
        write_pool(folder / "pool", table, "json")
        bench = Bench(folder, Pool(folder / "pool"), bootstrap, new_store, databases)
        for workers, partitions in runs:
            yield bench.cost(workers, partitions)


def ask(quick: bool) -> Answer:
    n = 20_000 if quick else EVENTS
    table = events(n, 1, 1_000)
    title = f"Workers and partitions on one PostgreSQL store, {n:,} events, {RATE:,} a second"
    columns = [table[name].to_numpy() for name in ("click", "s0")]
    report = answer("workers", title, rows=n, arrays=columns, unit="event")
    runs = [(workers, partitions) for partitions in PARTITIONS for workers in WORKERS]
    load = os.getloadavg()[0]
    try:
        spent = list(costs(table, runs[:2] if quick else runs))
    except (kafka_broker.Unavailable, postgres_server.Unavailable) as why:
        report.add(str(why))
        return report
    report.points = [{"series": cost.name, **asdict(cost)} for cost in spent]
    report.notes += notes(spent, {"before": load, "after": os.getloadavg()[0]})
    return report


def notes(spent: Sequence[Cost], load: Mapping[str, float]) -> list[str]:
    """The table, and the machine on which it was measured."""
    return [
        markdown([HEAD, *(cost.cells() for cost in spent)]),
        markdown([HEAD_OF_PARTS, *(cost.cells_of_parts() for cost in spent)]),
        "All is CPU time but the seconds of the log, from the first event until the last was "
        "committed. The system counts CPU in steps of 10 ms a process. MB are those of the states "
        f"that commits wrote. After each run all {spent[0].states} states of the store were the "
        "bytes of the fold of its log, so all stores are equal. Processor: "
        f"{processor()}, {os.cpu_count()} cores, which the broker, the writer of the log and other "
        f"programs share; load average {load['before']:.1f} before and {load['after']:.1f} after.",
    ]


if __name__ == "__main__":
    run_question(ask)
