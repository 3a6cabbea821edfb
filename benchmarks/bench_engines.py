"""partial and merge_all without an engine: one plain process and two, over Arrow files.

5 million rows in 20 files, 200,000 users spread over all of them, histogram AUC and GAUC by
variant. CPU time of all processes, and wall time. Each way must give the digest of a plain update.
`python -m benchmarks.bench_engines [ROWS]`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import versions
from benchmarks.workloads import click_scores, generator, labels, users
from streammetrics import DictionaryColumn, GroupedAUC, HistogramAUC, Panel, PerKey, load
from streammetrics.engines import Sealing, Task, merge_all, partial, seal

ROWS: Final = 5_000_000
SHARDS: Final = 20
BUCKETS: Final = 8
SPEC: Final = Panel({"auc": HistogramAUC(), "gauc": GroupedAUC()})
COLUMNS: Final = {"labels": "label", "scores": "score", "groups": "user"}
SEALING: Final = Sealing("user", BUCKETS, "mod", "bench")
States: TypeAlias = list[tuple[str, bytes]]
TaskOf: TypeAlias = "Callable[[Sequence[str], int], tuple[States, float]]"
Run: TypeAlias = "Callable[[], tuple[list[States], float]]"


class Cost(NamedTuple):
    """CPU and wall seconds, and bytes of the merged states."""

    name: str
    cpu: float
    wall: float
    nbytes: int


def write_shards(folder: Path, rows: int) -> list[str]:
    """Write the rows to files, each user's spread over all; `bucket` is the bucket of the user."""
    ids = users(rows, rows // 25)
    columns = {
        "variant": pa.array(np.array(["a", "b"])[generator(9).integers(0, 2, rows)]),
        "label": pa.array(labels(rows)),
        "score": pa.array(click_scores(rows)),
        "user": pa.array(ids),
        "bucket": pa.array((ids % BUCKETS).astype(np.int32)),
    }
    table = pa.table(columns)
    paths = []
    for i in range(SHARDS):
        start, end = i * rows // SHARDS, (i + 1) * rows // SHARDS
        paths.append(str(folder / f"{i}.arrow"))
        with pa.OSFile(paths[-1], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.slice(start, end - start), max_chunksize=1 << 16)
    return paths


def batches(paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All batches of these files."""
    for path in paths:
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)


def plain(paths: Sequence[str]) -> States:
    """One process without an engine: `update` of a PerKey."""
    state = PerKey(SPEC)
    for batch in batches(paths):
        variant = batch["variant"].dictionary_encode()
        codes = variant.indices.to_numpy().astype(np.intp)
        state.update(
            DictionaryColumn(codes, tuple(variant.dictionary.to_pylist())),
            labels=batch["label"].to_numpy(),
            scores=batch["score"].to_numpy(),
            groups=batch["user"].to_numpy(),
        )
    return [(name, state.state(name).to_file_bytes()) for name in ("a", "b")]


def open_task(paths: Sequence[str], number: int) -> tuple[States, float]:
    """A task that emits open states of its files, and its CPU seconds."""
    started = time.process_time()
    partials = partial(
        batches(paths), SPEC, ["variant"], columns=COLUMNS, counted=Task("job", number)
    )
    states = [(row["variant"], row["state"]) for batch in partials for row in batch.to_pylist()]
    return states, time.process_time() - started


def sealed_task(paths: Sequence[str], bucket: int) -> tuple[States, float]:
    """A task that reads all files, keeps the users of its bucket, and seals them."""
    started = time.process_time()
    bucket_rows = (b.filter(pc.equal(b["bucket"], bucket)) for b in batches(paths))
    partials = partial(
        bucket_rows,
        SPEC,
        ["variant"],
        columns=COLUMNS,
        bucket=bucket,
        counted=Task("job", bucket),
        sealing=SEALING,
    )
    states = [(row["variant"], row["state"]) for batch in partials for row in batch.to_pylist()]
    return states, time.process_time() - started


def cost(name: str, run: Run) -> tuple[Cost, dict[str, str]]:
    """The cost of the tasks and of the merge of their states, and the digest of each group."""
    began, started = time.perf_counter(), time.process_time()
    tasks, cpu_elsewhere = run()
    states = [pair for task in tasks for pair in task]
    digests = {
        group: load(merge_all(data for name, data in states if name == group)).digest()
        for group in ("a", "b")
    }
    cpu = time.process_time() - started + cpu_elsewhere
    nbytes = sum(len(data) for _, data in states)
    return Cost(name, cpu, time.perf_counter() - began, nbytes), digests


def main() -> None:
    """Print the table."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
    ):
        paths = write_shards(Path(folder), rows)
        list(pool.map(open_task, [paths[:1]] * 2, range(2)))  # imports

        def tasks(task: TaskOf, n: int, files: Callable[[int], Sequence[str]]) -> Run:
            def run() -> tuple[list[States], float]:
                results = list(pool.map(task, map(files, range(n)), range(n)))
                return [states for states, _ in results], sum(cpu for _, cpu in results)

            return run

        runs = [
            cost("one process, update", lambda: ([plain(paths)], 0.0)),
            cost("one process, partial", lambda: ([open_task(paths, 0)[0]], 0.0)),
            cost("two processes, open states", tasks(open_task, 2, lambda i: paths[i::2])),
            cost(
                "two processes, 20 tasks, open states",
                tasks(open_task, SHARDS, lambda i: paths[i : i + 1]),
            ),
        ]
        of_buckets = tasks(sealed_task, BUCKETS, lambda _: paths)
        sealed = cost(f"two processes, {BUCKETS} sealed buckets", of_buckets)
        assert len({tuple(sorted(digests.items())) for _, digests in runs}) == 1
        whole = Sealing("user", 1, "", "bench")
        for group, data in plain(paths):
            assert seal(load(data), whole).digest() == sealed[1][group]
    print(f"{rows} rows in {SHARDS} files, histogram AUC and GAUC by variant; the same digests")
    print(versions())
    print(f"\n{'':<40}{'CPU ns a row':>14}{'wall ns a row':>15}{'states, MB':>12}")
    for one_run, _ in [*runs, sealed]:
        cpu, wall = (1e9 * seconds / rows for seconds in (one_run.cpu, one_run.wall))
        print(f"{one_run.name:<40}{cpu:>14.0f}{wall:>15.0f}{one_run.nbytes / 1e6:>12.2f}")


if __name__ == "__main__":
    main()
