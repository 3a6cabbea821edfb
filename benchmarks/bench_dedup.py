"""Seen ids: their cost per event, in memory, and when a partition is assigned.

`python -m benchmarks.bench_dedup [IDS]`. Batches of 5,000, as from a poll; one event in twenty
repeats one of the last 100,000; a commit into SQLite every 100,000 events. Then a join of two
topics over logs in memory, with equal and with different keys.

On one core of a loaded machine: 2.0 million lookups a second among 1.9 million ids, 1.75 million
with commits, 16 bytes an id in memory and 8 in the store, loaded in 0.15 s; joins 0.45 million
events a second either way.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from zlib import crc32

import numpy as np
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.seen_ids import SeenIds
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import read_seen
from streammetrics_consumers.model.commit import Commit, Counters
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.service import begin
from streammetrics_consumers.process.stop import Stop

from benchmarks.harness import versions
from streammetrics import hash_ids
from tests.consumers.memory_source import Log, MemorySource

DAY_MS = 86_400_000
BATCH, COMMIT = 5_000, 100_000
LOG = Partition("bench", "events", "id", 0)
JOIN = """\
[source]
kind = "kafka"
bootstrap_servers = "none:1"
topic = ["views", "clicks"]
group = "g"
[event]
time = "ts"
time_unit = "ms"
score = "score"
[metrics]
auc = {{ type = "HistogramAUC" }}
[store]
url = "{url}"
[join]
id = "id"
impression = {{ topic = "views" }}
label_window_s = 1800
[join.outcomes]
click = {{ topic = "clicks" }}
"""


def stream(n: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], list[slice]]:
    """Hashes of ids, and the batches."""
    random = np.random.default_rng(3)
    numbers = np.arange(n)
    repeats = random.random(n) < 0.05
    numbers[repeats] = np.maximum(numbers[repeats] - random.integers(1, 100_000, repeats.sum()), 0)
    hashes = np.asarray(hash_ids(list(map(str, numbers.tolist())))).view(np.uint64)
    return hashes, [slice(start, min(start + BATCH, n)) for start in range(0, n, BATCH)]


def seen_ids(n: int, url: str) -> None:
    """Look up and store the ids of a day's events, and print the costs."""
    hashes, batches = stream(n)
    times = np.arange(n) * DAY_MS // n
    with closing(Ledger.open(url, create=True)) as ledger:
        generation = ledger.begin({}, {}).generation
        head = ledger.resolve(generation, LOG, 0)
        id_set, repeats, looked_s, stored_s = SeenIds(DAY_MS, DAY_MS // 24), 0, 0.0, 0.0
        for batch in batches:
            began_s = time.process_time()
            repeats += int(id_set.repeats(hashes[batch], times[batch]).sum())
            looked_s += time.process_time() - began_s
            if batch.stop % COMMIT == 0 or batch.stop == n:
                began_s = time.process_time()
                pending_ids = id_set.take()
                end = Commit(head, head.next_offset, batch.stop, 0, Counters(), seen=pending_ids)
                head = ledger.commit(generation, end)
                id_set.committed(pending_ids)
                stored_s += time.process_time() - began_s
        began_s = time.process_time()
        rows = read_seen(ledger.store, head)
        loaded = SeenIds(DAY_MS, DAY_MS // 24, rows)
        load_s = time.process_time() - began_s
    print(f"ids {len(id_set):,}, repeats {repeats:,}")
    print(f"lookups {n / looked_s:,.0f} events/s; with commits {n / (looked_s + stored_s):,.0f}")
    print(f"memory {loaded.nbytes / len(loaded):.1f} bytes an id")
    print(f"store {sum(len(ids) for _, ids in rows) / len(loaded):.1f} bytes in {len(rows)} rows")
    print(f"loaded in {load_s:.3f} s")


def joined(n: int, folder: Path, *, alike: bool) -> None:
    """Join impressions of one topic and clicks of another, two partitions each, by one worker."""
    name = "alike" if alike else "differently"
    path = folder / f"{name}.toml"
    path.write_text(JOIN.format(url=folder / f"{name}.db"), encoding="utf-8")
    config: Config = load_config(path)
    values: dict[Partition, list[bytes | None]] = {
        Partition("bench", topic, topic, number): [] for topic in ("views", "clicks")
        for number in range(2)
    }  # fmt: skip
    for i in range(n):
        id_, at_ms = f"request {i}", 10**12 + i * 10_800_000 // n
        view = {"id": id_, "ts": at_ms, "score": i % 97 / 97}
        number = crc32(id_.encode()) % 2
        values[Partition("bench", "views", "views", number)].append(json.dumps(view).encode())
        if i % 10 == 0:
            number = number if alike else crc32(f"other {id_}".encode()) % 2
            click = {"id": id_, "ts": at_ms + i % 1800 * 1000}
            values[Partition("bench", "clicks", "clicks", number)].append(
                json.dumps(click).encode()
            )
    for log, events in values.items():
        events.sort(key=lambda value: json.loads(value or b"")["ts"])
        values[log] = events
    source = MemorySource({log: Log(entries) for log, entries in values.items()}, limit=BATCH)
    with closing(Ledger.open(config.store.url, create=True)) as ledger:
        generation = begin(ledger, config).generation
        options = Options(until_end=True, close=True)
        worker = Worker(config, ledger, generation, source, options, stop=Stop(),
                        monotonic=time.monotonic)  # fmt: skip
        worker.prepare()
        began_s = time.process_time()
        for _ in worker.run():
            pass
        took_s = time.process_time() - began_s
        closed = ledger.snapshot().counters.closed
    size = os.path.getsize(config.store.url)
    print(f"keyed {name}: {n * 1.1 / took_s:,.0f} events/s whole, {closed:,} closed, "
          f"store of {size / 1e6:.1f} MB")  # fmt: skip


def main() -> None:
    """Print the figures."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    print(versions())
    with tempfile.TemporaryDirectory() as folder:
        seen_ids(n, str(Path(folder) / "seen.db"))
        for alike in (True, False):
            joined(n // 10, Path(folder), alike=alike)


if __name__ == "__main__":
    main()
