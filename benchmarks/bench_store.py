"""The bytes that a day of commits adds to a store, and their CPU time: many slices, many areas.

1,000 slices and 15 `HistogramAUC` of a score each, 100,000 events a second of one log, in Arrow
batches, all in one window. A commit has the events of its interval. Scores are like click
probabilities (`workloads.click_scores`), another column for each metric; slices are equally
frequent, which is the worst case.

States are the bytes of all rows of a commit as they are in memory; stored are those in the table
`delta`. A day is before compaction; plain is a day of states that are not packed or shared. The
least is the entropy of the states of a day, by `least_bytes`: no encoding without loss takes fewer
bytes. CPU time is that of one core: packing the states, and the transaction. It is split into a
part for each commit and a part for each event.

`python -m benchmarks.bench_store [--store postgresql://...]`.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.replay.verify import verify
from streammetrics_consumers.simulate.output import write
from streammetrics_consumers.simulate.stream import Simulation

from benchmarks import bench_consumer
from benchmarks.answer import Answer, answer, figures
from benchmarks.bench_commits import delta_of
from benchmarks.harness import REPEATS, timing, versions
from benchmarks.workloads import click_scores, generator
from streammetrics import HistogramAUC

SLICES, METRICS = 1000, 15
EVENTS_A_SECOND = 100_000
MESSAGE = 20_000  # events
ROUNDS = 2
VERIFIED = 200_000  # events of a file that is counted and verified
SAMPLE, SEED = 4_000_000, 9  # rows of one metric, for `least_bytes`
DAY_S = 86_400
# Seconds between two commits, and the resolution of the grids.
CASES = ((5, 8), (10, 8), (20, 8), (5, 7), (10, 7), (20, 7))
COUNTING = f"counting a file of {VERIFIED:,} events of one log"
FEW = (0.05, 8)  # to fit the part of a commit that does not depend on its events

CONFIG = """\
[source]
kind = "kafka"
bootstrap_servers = "localhost:9092"
topic = "events"
group = "bench"
format = "arrow"
[event]
time = "ts"
time_unit = "ms"
label = "label"
score = "s0"
[windows]
size_s = 3600
[slices]
by = [[], ["item"]]
[store]
url = "store.db"
[metrics]
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """One commit: its events, the bytes of its states, those stored, and its CPU time."""

    events: int
    states: int
    stored: int
    states_s: float
    transaction_s: float


def loaded(folder: Path, resolution: int, url: str | None = None) -> Config:
    """The config, with a store in this folder or at a URL."""
    metrics = "\n".join(
        f'm{i} = {{ type = "HistogramAUC", resolution = {resolution}, '
        f'inputs = {{ scores = "s{i}" }} }}'
        for i in range(METRICS)
    )
    path = folder / "store.toml"
    path.write_text(CONFIG + metrics, encoding="utf-8")
    return load_config(path, {} if url is None else {"store.url": url})


def scores(n: int, seed: int, metric: int) -> NDArray[np.float32]:
    """The scores of a metric."""
    return click_scores(n, 100 * seed + metric)


def labels(first_scores: NDArray[np.float32], seed: int) -> NDArray[np.uint8]:
    """The labels of events, by the scores of their first metric."""
    return (generator(100 * seed + 50).random(len(first_scores)) < first_scores * 6).astype(
        np.uint8
    )


def least_bytes(n: int, resolution: int) -> float:
    """The entropy of the states of a commit of `n` events, in bytes, without keys and settings.

    Slices and scores are independent, so the count of a cell of a slice is a Poisson variable whose
    mean is n / SLICES times the share of all rows in that cell: with mean m, its entropy in nats is
    m (1 - log m) + exp(-m) * the sum of m^k log(k!) / k! over k. The shares of a sample, instead of
    the true ones, make the sum smaller by a few thousandths.
    """
    total, truth = 0.0, labels(scores(SAMPLE, SEED, 0), SEED)
    for metric, times in ((0, 1), (1, METRICS - 1)):  # labels depend on the first scores alone
        sample = HistogramAUC(resolution=resolution)
        sample.update(truth, scores(SAMPLE, SEED, metric))
        counts = np.ravel(sample.compute().counts)
        means = counts[counts > 0] * (n / SLICES / SAMPLE)
        k = np.arange(int(means.max() + 12 * means.max() ** 0.5) + 20)
        log_factorials = np.cumsum(np.log(np.maximum(k, 1)))
        logs = np.log(means)[:, None] * k - log_factorials - means[:, None]
        entropies = means * (1 - np.log(means)) + np.exp(logs) @ log_factorials
        total += times * SLICES * float(entropies.sum()) / math.log(2) / 8
    return total


def messages(n: int, seed: int) -> list[bytes | None]:
    """Events as Arrow streams of `MESSAGE` rows."""
    columns = {f"s{i}": scores(n, seed, i) for i in range(METRICS)}
    names = pa.array([f"item-{i}" for i in range(SLICES)])
    items = generator(100 * seed + 51).integers(0, SLICES, n, np.int32)
    table = pa.table(
        {
            "ts": np.full(n, 1_704_067_200_000),
            "item": pa.DictionaryArray.from_arrays(items, names).cast(pa.string()),
            "label": labels(columns["s0"], seed),
            **columns,
        }
    )
    payloads: list[bytes | None] = []
    for offset in range(0, n, MESSAGE):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(offset, MESSAGE))
        payloads.append(sink.getvalue().to_pybytes())
    return payloads


def costs(config: Config, n: int) -> Iterator[Cost]:
    """The costs of some commits of `n` events."""
    with closing(Ledger.open(config.store.url, create=True)) as ledger:
        generation = service.begin(ledger, config, new_generation=True).generation
        head = ledger.resolve(generation, Partition("bench", "events", "id", 0), 0)
        for seed in range(ROUNDS):
            delta = delta_of(config, head, messages(n, seed))
            started = time.process_time()
            commit = commit_of(head, delta)
            middle = time.process_time()
            head = ledger.commit(generation, commit)
            end = time.process_time()
            states = sum(len(shard.state) for shard in commit.shards)
            yield Cost(n, states, stored(ledger, head), middle - started, end - middle)


def stored(ledger: Ledger, head: Head) -> int:
    """The bytes of states in the rows of the last commit."""
    rows = f"FROM delta WHERE head = {head.id} AND end_offset = {head.next_offset}"
    query = f"SELECT SUM(LENGTH(state)) {rows}"
    return int(ledger.store.read(lambda c: c.exec_driver_sql(query).scalar_one()))


def fitted(few: Cost, many: Cost) -> tuple[float, float]:
    """Nanoseconds of a commit without its events, and for each event."""
    less, many_ns = (1e9 * (cost.states_s + cost.transaction_s) for cost in (few, many))
    event_ns = (many_ns - less) / (many.events - few.events)
    return less - event_ns * few.events, event_ns


def best_of(every_s: float, resolution: int, url: str | None) -> Cost:
    """The commit of least time among some of this interval."""
    with tempfile.TemporaryDirectory() as directory:
        config = loaded(Path(directory), resolution, url)
        candidates = list(costs(config, int(every_s * EVENTS_A_SECOND)))
    return min(candidates, key=lambda cost: cost.states_s + cost.transaction_s)


def verify_costs() -> tuple[list[float], list[float]]:
    """The CPU nanoseconds of counting a file into a store and of verifying it, in turns; of 1,000
    events. The metrics and the stream are those of `bench_consumer`."""
    counting, verifying = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        stream, file = Simulation(VERIFIED, 1), str(folder / "events.jsonl")
        write(stream, file, None, lambda _: None, time.monotonic)
        path = folder / "verify.toml"
        path.write_text(bench_consumer.CONFIG, encoding="utf-8")
        for turn in range(REPEATS + 1):
            config = load_config(path, {"store.url": str(folder / f"{turn}.db")})
            started = time.process_time_ns()
            service.run(config, bench_consumer.OPTIONS, stop=Stop())
            counted = time.process_time_ns()
            with (
                closing(Ledger.open(config.store.url)) as ledger,
                closing(Ledger.open(str(folder / f"{turn}.scratch"), create=True)) as scratch,
            ):
                findings = verify(config, ledger, scratch, monotonic=time.monotonic)
            verifying.append((time.process_time_ns() - counted) * 1e3 / VERIFIED)
            counting.append((counted - started) * 1e3 / VERIFIED)
            assert findings.is_good and findings.rows == VERIFIED, findings
    return counting[1:], verifying[1:]


def ask(quick: bool, url: str | None = None) -> Answer:
    rows = 1_000_000
    report = answer(
        "store",
        f"Commits of {SLICES:,} slices and {METRICS} areas, {EVENTS_A_SECOND:,} events a second",
        rows=rows,
        arrays=[click_scores(rows, i) for i in range(METRICS)],
        unit="1,000 events",
        rows_per_unit=1_000,
    )
    best = {}
    for every_s, resolution in CASES[:1] if quick else CASES:
        line = f"every {every_s:g} s, resolution {resolution}"
        best[every_s, resolution] = cost = best_of(every_s, resolution, url)
        day = DAY_S / every_s / 1e9
        spent = 1e9 * (cost.states_s + cost.transaction_s)
        report.add(timing(line, [1e3 * spent / cost.events]))
        least = least_bytes(cost.events, resolution)
        report.points.append(
            {"series": line, "MB of states": cost.states / 1e6, "MB stored": cost.stored / 1e6,
             "GB a day": cost.stored * day, "GB a day, plain": cost.states * day,
             "GB a day, least": least * day, "stored over least": cost.stored / least}
        )  # fmt: skip
    run, event_ns = fitted(best_of(*FEW, url), best[CASES[0]])
    report.add(timing("a commit without its events", [run]),
              timing("its events, 1,000 of them", [1e3 * event_ns]))  # fmt: skip
    counting, verifying = verify_costs()
    report.add(timing(COUNTING, counting), timing("verify of that file", verifying))
    report.notes += [
        figures("a commit", report.points),
        "A day is before compaction; plain is one of states that are not packed or shared. No "
        "encoding without loss takes less than the least, the entropy of the states. The last two "
        "lines split the first into what a commit costs without events and what they add, by a "
        f"commit of {FEW[0] * EVENTS_A_SECOND:,.0f}. `verify` reads a log again and compares all "
        "states with the store.",
    ]
    return report


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_store", allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="commits of 5 s alone")
    parser.add_argument("--store", help="the URL of an empty database instead of SQLite")
    options = parser.parse_args()
    print(versions() + "\n\n" + ask(options.quick, options.store).text())


if __name__ == "__main__":
    main()
