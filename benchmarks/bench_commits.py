"""The cost of a commit: rows of the store, bytes and time, by the number of new events.

Eight partitions, AUC, click rate and grouped AUC, two groupings
(all rows, and a field of 1,000 values), and windows that slide by a third of their size, so that
an event lies in three of them. The events of a commit lie in three panes, and each partition has
had commits before. The cost must not depend on the size of the store: the last line of each table
repeats the first one after all commits in between.

Time is wall time of one commit: serialising the states, and the transaction.
`python -m benchmarks.bench_commits [--store postgresql://...]`.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service

PARTITIONS = 8
SLICES = 1000
PANES = 3  # of an hour each, over which the events of a commit are spread
SIZES = (1_000, 10_000, 100_000)
ROUNDS = {1_000: 3, 10_000: 2, 100_000: 1}  # commits of each partition
CHUNK = 8192

CONFIG = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
user = "user"
label = "label"
score = "score"
[windows]
size_s = 10800
slide_s = 3600
[slices]
by = [[], ["item"]]
[metrics]
auc = { type = "HistogramAUC" }
ctr = { type = "Ratio" }
gauc = { type = "GroupedAUC" }
[store]
url = "commits.db"
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """The data that one commit wrote, and its duration."""

    events: int
    rows: int
    nbytes: int
    largest: int
    states_s: float
    transaction_s: float


def loaded(folder: Path, url: str | None = None) -> Config:
    """The config, with a store in this folder or at a URL."""
    path = folder / "commits.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return load_config(path, {} if url is None else {"store.url": url})


def events(n: int, seed: int) -> list[bytes | None]:
    """Events spread over all slices, users and panes."""
    rng = np.random.default_rng(seed)
    seconds = rng.integers(0, 3600, n)
    hours = rng.integers(0, PANES, n)
    items, users = rng.integers(0, SLICES, n), rng.integers(0, 20_000, n)
    labels, scores = rng.integers(0, 2, n), rng.random(n)
    return [
        b'{"ts":"2024-01-01T%02d:%02d:%02dZ","item":"item-%d","user":"user-%d","label":%d,'
        b'"score":%.6f}'
        % (hours[i], *divmod(seconds[i], 60), items[i], users[i], labels[i], scores[i])
        for i in range(n)
    ]


def delta_of(config: Config, head: Head, values: list[bytes | None]) -> Delta:
    """The delta of these records after a head."""
    decoder, start = Decoder(config), head.next_offset
    delta = Delta(config, head.partition, start, head.greatest_event_ms)
    for offset in range(0, len(values), CHUNK):
        records = values[offset : offset + CHUNK]
        first, last = start + offset, start + offset + len(records)
        chunk = Chunk(head.partition, first, last, range(first, last), records)
        for decoded in decoder.pieces(chunk):
            delta.add(decoded)
    return delta


def cost_of(ledger: Ledger, generation: Generation, head: Head, delta: Delta) -> tuple[Cost, Head]:
    """Commit, and return its cost with the moved head."""
    started = time.perf_counter()
    commit: Commit = commit_of(head, delta)
    middle = time.perf_counter()
    moved = ledger.commit(generation, commit)
    end = time.perf_counter()
    sizes = [len(piece.state) for piece in commit.shards]
    return Cost(delta.end - delta.start, len(sizes), sum(sizes), max(sizes), middle - started,
                end - middle), moved  # fmt: skip


def costs(config: Config, sizes: tuple[int, ...] = (*SIZES, SIZES[0])) -> Iterator[list[Cost]]:
    """For each size, the commits of all partitions."""
    with closing(Ledger.open(config.store.url, create=True)) as ledger:
        generation = service.begin(ledger, config).generation
        heads = [
            ledger.resolve(generation, Partition("bench", "events", "id", number), 0)
            for number in range(PARTITIONS)
        ]
        for size in sizes:
            size_costs = []
            for seed in range(ROUNDS.get(size, 1)):
                for i, head in enumerate(heads):
                    delta = delta_of(config, head, events(size, seed * PARTITIONS + i))
                    cost, heads[i] = cost_of(ledger, generation, head, delta)
                    size_costs.append(cost)
            yield size_costs


def report(name: str, config: Config) -> None:
    """Print the table of one store."""
    print(f"\n{name}: a commit of one of {PARTITIONS} partitions, medians")
    print(f"{'new events':>12}{'rows':>8}{'bytes':>14}{'bytes an event':>16}{'largest row':>14}"
          f"{'states ms':>12}{'transaction ms':>16}{'us an event':>13}")  # fmt: skip
    for size_costs in costs(config):
        n = size_costs[0].events

        def median(field: str, sample: list[Cost] = size_costs) -> float:
            return float(statistics.median(getattr(cost, field) for cost in sample))

        spent = median("states_s") + median("transaction_s")
        print(f"{n:>12,}{median('rows'):>8.0f}{median('nbytes'):>14,.0f}"
              f"{median('nbytes') / n:>16.0f}{median('largest'):>14,.0f}"
              f"{median('states_s') * 1e3:>12.1f}{median('transaction_s') * 1e3:>16.1f}"
              f"{spent / n * 1e6:>13.1f}", flush=True)  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_commits", allow_abbrev=False)
    parser.add_argument("--store", help="the URL of an empty database, measured beside SQLite")
    url = parser.parse_args().store
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    with tempfile.TemporaryDirectory() as folder:
        report("SQLite", loaded(Path(folder)))
        if url:
            report("the store of --store", loaded(Path(folder), url))


if __name__ == "__main__":
    main()
