"""A company on one machine: 50 metrics × 1,000 slices and a clustered experiment, from end to end.

A worker counts a log at a steady rate into a store, and is killed now and then. Meanwhile a page
by variant and a page of one metric by item are read from one server, and Prometheus scrapes another
every 15 s. The log is Arrow or JSON records that are there when their time has come, or Arrow in
Kafka, where this process writes them; none of that is counted. At the end the store must equal the
fold of the log, byte for byte.

First the worker reads a log without a pace: the rate that a core carries. It is then offered the
rate that was asked for, or 0.75 of that where this is less, since after a kill it must catch up.

What is measured at a lower rate is scaled by workers: N = 100,000 / (events a second that were
counted) workers like this one, each with partitions of its own, take N times its cores and write N
times its bytes; results are as old, and a worker has as much memory. A reader takes at most N times
as much, since it merges N times the commits and computes the same rows.

`python -m benchmarks.bench_company [--quick] [--source json] [--store postgres] ...`; `--config`
prints the config.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.ledger.ledger import Ledger

from benchmarks.company_log import (
    CONFIG,
    Plan,
    Pool,
    events,
    fold,
    records_and_states,
    tables_of,
    write_pool,
)
from benchmarks.company_worker import STAGES, Tally
from benchmarks.harness import versions
from tests import kafka_broker, postgres_server

ROOT: Final = Path(__file__).parent.parent
FULL: Final = 100_000  # events a second
HEADROOM: Final = 0.75
DAY_S: Final = 86_400
SCRAPE_S: Final = 15.0
TICK_S: Final = 0.1
TARGETS: Final = (
    "targets: metrics 1 core; all from Arrow 2 cores; results 10 s old; 1.5 GB a worker"
)
CLOCK_HZ: Final = os.sysconf("SC_CLK_TCK")


# -- processes ------------------------------------------------------------------------------------


def cpu_s(*roots: int) -> float:
    """CPU seconds of these processes, of all below them, and of those below that have ended."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    pids = set(roots)
    while children := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= children
    return sum(ticks.get(pid, 0) for pid in pids) / CLOCK_HZ


def memory_mb(pid: int) -> float:
    """The memory of a process that is not of a file, in MB."""
    with suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1000
    return 0.0


@dataclass
class Workers:
    """The one worker, started again after a kill, and what became of all of them."""

    folder: Path
    plan: Path
    tallies: list[Path] = field(default_factory=list)
    peak_mb: float = 0.0
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start one."""
        self.tallies.append(self.folder / f"{self.plan.stem}-{len(self.tallies)}.tally")
        command = [sys.executable, "-m", "benchmarks.company_worker", str(self.plan)]
        with (self.folder / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, str(self.tallies[-1])], cwd=ROOT, stdout=log, stderr=log
            )

    def look(self) -> None:
        """Note the memory; a worker must not end by itself."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise SystemExit(f"a worker ended:\n{(self.folder / 'worker.log').read_text()[-4000:]}")
        self.peak_mb = max(self.peak_mb, memory_mb(self.process.pid))

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, with a last commit or without."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(120)

    def sums(self) -> Counter[str]:
        """The sums of all tallies; of the longest commit the longest."""
        totals = Counter[str]()
        for path in self.tallies:
            tally = Tally.read(path)
            longest_s = max(totals["longest_s"], tally["longest_s"])
            totals.update(tally)
            totals["longest_s"] = longest_s  # type: ignore[assignment]
        return totals


class Reader:
    """A server of its own for the store, and a client of it in a thread."""

    def __init__(self, name: str, store: str, folder: Path) -> None:
        self.name, self.problems = name, list[str]()
        self.nbytes: dict[str, int] = {}
        self.ages_s: list[float] = []
        self.took_s: dict[str, list[float]] = {}
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            command = [sys.executable, "-m", "streammetrics_consumers.cli", "serve", store]
            self.process = subprocess.Popen([*command, "--port", "0"], stdout=log, stderr=log)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, paths: Sequence[str], every_s: float, plan: Plan) -> None:
        """Ask again and again, in a thread."""
        limit_s = time.monotonic() + 30
        while "serving http" not in (log := self._log.read_text()):
            if time.monotonic() > limit_s or self.process.poll() is not None:
                raise SystemExit(f"{self.name}: no server:\n{log[-2000:]}")
            time.sleep(0.05)
        url = log.split("serving ")[1].split()[0]

        def run() -> None:
            while not self._ended.wait(every_s):
                for path in paths:
                    self._ask(url, path, plan)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def _ask(self, url: str, path: str, plan: Plan) -> None:
        began_s = time.time()
        try:
            with urllib.request.urlopen(url + path, timeout=60) as answer:
                data = answer.read()
        except OSError as error:
            self.problems.append(f"{self.name}, {path}: {error}")
            return
        self.took_s.setdefault(path, []).append(time.time() - began_s)
        self.nbytes[path] = len(data)
        if path.startswith("api/results"):
            (offset,) = json.loads(data)["offsets"].values()
            self.ages_s.append(time.time() - plan.due_s(offset))

    def end(self) -> None:
        """End the client and the server."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(60)
        self.process.terminate()
        self.process.wait(30)


READERS: Final[dict[str, tuple[float, Sequence[str]]]] = {
    "page": (1.0, (
        "api/results?by=variant&views=headline&texts=tables",
        "api/results?by=item&metric=area_click_0&views=all&texts=tables&most=200",
        "api/experiment?texts=tables",
        "api/health",
    )),
    "Prometheus": (SCRAPE_S, ("metrics",)),
}  # fmt: skip


# -- a run ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """The files of a bench. form: of the records. broker: where they are written, if anywhere."""

    folder: Path
    pool: Path
    form: str
    metrics: int
    experiments: int
    broker: str | None

    def plan(self, store: str, rate: float, topic: str = "events") -> Plan:
        """A run from now on, into this store; without a pace if the rate is 0."""
        path = self.folder / f"{topic}-{rate:.0f}.toml"
        text = CONFIG.format(bootstrap=self.broker or "none:1", topic=topic, format=self.form,
                             url=store)  # fmt: skip
        path.write_text(text + tables_of(self.metrics, self.experiments), encoding="utf-8")
        kafka = self.broker is not None and rate > 0
        return Plan(str(path), str(self.pool), self.form, rate, time.time() + 2, kafka)

    def workers(self, plan: Plan) -> Workers:
        """The workers of a plan."""
        path = Path(plan.config).with_suffix(".json")
        plan.write(path)
        return Workers(self.folder, path)

    def carried(self, store: str, seconds: float) -> float:
        """Events that one worker counts and commits in a second of its own time, without a pace."""
        workers, history = self.workers(self.plan(store, 0)), list[Counter[str]]()
        workers.start()
        limit_s = time.monotonic() + 120 + seconds
        while len(history) < 3 or spent_s(history[-1]) - spent_s(history[0]) < seconds:
            time.sleep(TICK_S)
            workers.look()
            if time.monotonic() > limit_s:
                raise SystemExit("a worker commits too seldom; give it fewer metrics or more time")
            sums = workers.sums()
            if sums["commits"] > (history[-1]["commits"] if history else 0):
                history.append(sums)
        workers.end(signal.SIGKILL)
        first, last = history[0], history[-1]
        return (last["events"] - first["events"]) / (spent_s(last) - spent_s(first))

    def writing(self, plan: Plan, topic: str, ended: threading.Event) -> threading.Thread:
        """A thread that writes the records to the broker when their time has come."""
        pool, broker = Pool(self.pool), self.broker
        assert broker is not None

        def run() -> None:
            written = 0
            while not ended.wait(TICK_S):
                due = plan.due(time.time())
                records = [kafka_broker.Record(value) for value in pool.records(written, due)]
                kafka_broker.produce(broker, topic, records)
                written = due

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread


@dataclass(frozen=True)
class Spent:
    """One run: the events a second that were offered and counted, the seconds in which readers
    asked, what its workers add up to, the CPU seconds of the readers and of the database, and what
    was noticed."""

    rate: float
    counted: float
    seconds: float
    kills: int
    sums: Counter[str]
    peak_mb: float
    readers: dict[str, Reader]
    readers_s: dict[str, float]
    database_s: float
    backs_s: list[float]
    problems: list[str]


def play(
    bench: Bench, store: str, rate: float, seconds: float, kills: int, databases: Sequence[int]
) -> Spent:
    """Count the log at a rate while readers ask, kill the worker, and compare with the fold."""
    topic = kafka_broker.create_topic(bench.broker) if bench.broker else "events"
    plan = bench.plan(store, rate, topic)
    workers, ended, backs_s = bench.workers(plan), threading.Event(), list[float]()
    readers: dict[str, Reader] = {}
    writer = bench.writing(plan, topic, ended) if plan.kafka else None
    before_s = cpu_s(*databases)
    try:
        workers.start()
        while not workers.sums()["commits"]:
            workers.look()
            time.sleep(TICK_S)
        readers = {name: Reader(name, store, bench.folder) for name in READERS}
        for name, reader in readers.items():
            reader.follow(READERS[name][1], READERS[name][0], plan)
        began_s, killed_s, commits = time.time(), 0.0, 0.0
        reading_s = {name: cpu_s(client.process.pid) for name, client in readers.items()}
        for part in range(kills + 1):
            until_s = began_s + seconds * (part + 1) / (kills + 1)
            while time.time() < until_s:
                time.sleep(TICK_S)
                workers.look()
                if killed_s and workers.sums()["commits"] > commits:
                    backs_s.append(time.time() - killed_s)
                    killed_s = 0.0
            if part < kills:
                workers.end(signal.SIGKILL)
                killed_s, commits = time.time(), workers.sums()["commits"]
                workers.start()
        wall_s = time.time() - began_s
        offered_s = time.time() - plan.began_s
        readers_s = {n: cpu_s(client.process.pid) - reading_s[n] for n, client in readers.items()}
        ended.set()
        workers.end()
        if writer is not None:
            writer.join()
    finally:
        ended.set()
        for reader in readers.values():
            reader.end()
        workers.end(signal.SIGKILL)
    database_s = cpu_s(*databases) - before_s
    counted = workers.sums()["events"] / offered_s
    problems = list(differences(load_config(plan.config), Pool(bench.pool), store))
    return Spent(rate, counted, wall_s, kills, workers.sums(), workers.peak_mb, readers, readers_s,
                 database_s, backs_s, problems)  # fmt: skip


def differences(config: Config, pool: Pool, store: str) -> Iterator[str]:
    """The states of a store that are not those of the fold."""
    with closing(Ledger.open(store)) as ledger:
        records, states = records_and_states(ledger)
    expected = fold(config, pool, records)
    for key in sorted(states.keys() | expected.keys()):
        if states.get(key) != expected.get(key):
            yield f"{key[0]}, grouping {key[1]}: not the bytes of the fold of {records:,} records"
    same = sum(states.get(key) == expected[key] for key in expected)
    print(f"{same} of {len(expected)} states equal the fold of {records:,} records", flush=True)


def spent_s(sums: Counter[str]) -> float:
    """CPU seconds of the main thread without the start."""
    return sum(sums[name] for name in STAGES if name != "start")


def report(spent: Spent) -> None:
    """Print the figures of a run, and what they are at the full rate."""
    sums, scale = spent.sums, FULL / min(spent.rate, spent.counted)
    events, wall_s = sums["events"], spent.seconds
    cores = {name: sums[name] / events * FULL for name in STAGES if name != "start"}
    threads = sums["process_s"] - sum(sums[name] for name in STAGES)
    cores |= {
        "other threads": threads / events * FULL,
        "database": spent.database_s / events * FULL,
    }
    cores |= {f"{n}, at most": s / wall_s * scale for n, s in spent.readers_s.items()}
    print(f"{events:,.0f} events in {wall_s:.0f} s, offered {spent.rate:,.0f} a second; "
          f"at {FULL:,} a second, N = {scale:.2f} workers")  # fmt: skip
    print(f"{'cores':>24} {'here':>7} {'at full rate':>13}")
    for name, at_full in cores.items():
        print(f"{name:>24} {at_full / scale:7.3f} {at_full:13.3f}")
    total = sum(cores.values())
    print(f"{'all':>24} {total / scale:7.3f} {total:13.3f}")
    runs = spent.kills + 1
    print(f"a start: {sums['start'] / runs:.2f} s of CPU; from a kill to the next commit: "
          f"{', '.join(f'{s:.1f}' for s in spent.backs_s) or '-'} s")  # fmt: skip
    nbytes = sums["bytes"] / events * FULL * DAY_S / 1e9
    print(f"stored: {sums['bytes'] / sums['commits'] / 1e6:.2f} MB a commit, {nbytes:.1f} GB a day"
          f" at full rate, before compaction; {sums['commits']:.0f} commits, the longest "
          f"{sums['longest_s'] * 1e3:.0f} ms")  # fmt: skip
    if spent.counted < 0.9 * spent.rate:
        print(f"{spent.counted:,.0f} events a second were counted, too few: results aged")
    ages = sorted(age for client in spent.readers.values() for age in client.ages_s)
    if ages:
        high = ages[min(int(0.95 * len(ages)), len(ages) - 1)]
        print(f"age of results: median {statistics.median(ages):.1f} s, 95 % {high:.1f} s, most "
              f"{ages[-1]:.1f} s")  # fmt: skip
    print(f"{'answers':>7} {'kB':>8} {'median ms':>10} {'most ms':>8}")
    for reader in spent.readers.values():
        for path, took in reader.took_s.items():
            middle_ms, most_ms = statistics.median(took) * 1e3, max(took) * 1e3
            line = f"{len(took):7} {reader.nbytes[path] / 1e3:8,.0f} {middle_ms:10,.0f}"
            print(f"{line} {most_ms:8,.0f}  {path}")
    print(f"memory of the worker: at most {spent.peak_mb:,.0f} MB")
    for problem in [
        *spent.problems,
        *(p for client in spent.readers.values() for p in client.problems),
    ]:
        print(problem)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_company", allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=FULL, help="events a second, at most")
    parser.add_argument("--source", choices=("arrow", "json", "kafka"), default="arrow")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--metrics", type=int, default=50)
    parser.add_argument("--experiments", type=int, default=0, help="with names, instead of one")
    parser.add_argument("--slices", type=int, default=1000)
    parser.add_argument("--pool", type=int, default=500_000, help="events that the log repeats")
    parser.add_argument("--kills", type=int, help="by default one a minute")
    parser.add_argument("--quick", action="store_true", help="below a minute, with one kill")
    parser.add_argument("--config", action="store_true", help="print the config, and end")
    args = parser.parse_args(argv)
    if args.quick:
        args.seconds, args.pool, args.kills = 20.0, 100_000, 1
    if args.kills is None:
        args.kills = int(args.seconds / 60)
    return args


@contextmanager
def stores(kind: str, folder: Path) -> Iterator[tuple[Callable[[], str], Sequence[int]]]:
    """A way to make new stores, and the processes of their database."""
    if kind == "sqlite":
        numbers = iter(range(1 << 30))
        yield lambda: str(folder / f"company-{next(numbers)}.db"), ()
        return
    with postgres_server.running_postgres() as server:
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        yield server.new_store, [int(pid) for pid in children]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures of one run."""
    args = arguments(argv)
    if args.config:
        print(CONFIG + tables_of(args.metrics, args.experiments))
        return
    print(versions(), TARGETS, sep="\n", flush=True)
    form = "json" if args.source == "json" else "arrow"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="company-")))
        new_store, databases = stack.enter_context(stores(args.store, folder))
        broker = None
        if args.source == "kafka":
            broker = stack.enter_context(kafka_broker.running_broker())
        models = -(-args.metrics // 10)
        table = events(args.pool, models, args.slices, args.experiments)
        write_pool(folder / "pool", table, form)
        bench = Bench(folder, folder / "pool", form, args.metrics, args.experiments, broker)
        carried = bench.carried(new_store(), min(args.seconds / 4, 20))
        rate = min(args.rate, HEADROOM * carried)
        workload = f"{args.source} into {args.store}, {args.metrics} metrics, {args.slices:,} items"
        workload += f", {args.experiments} experiments" if args.experiments else ""
        print(f"{workload}; a core carries {carried:,.0f} events a second", flush=True)
        report(play(bench, new_store(), rate, args.seconds, args.kills, databases))


if __name__ == "__main__":
    main()
