"""The cost of each engine for the same rows: the recipes of docs/engines.md, Beam and Spark.

    python -m benchmarks.engine_costs [--rows 2000000] [--only plain,beam]
    python -m benchmarks.engine_costs --memory

A route without its environment is left out, and its line shows how to make it. The CPU time is that
of all processes of a route: orphans are adopted, so that daemons are included.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streammetrics import Accumulator, GroupedAUC, HistogramAUC, Panel
from streammetrics.engines import Sealing, partial, seal

ROOT = Path(__file__).resolve().parents[1]
SPEC = Panel({"auc": HistogramAUC(), "gauc": GroupedAUC()}, inputs={"gauc": {"groups": "users"}})
COLUMNS = {"labels": "label", "scores": "score", "users": "user"}
VARIANTS = ("bts", "random")
FILES, ROWS_OF_A_USER = 20, 25
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
PATIENCE_S = 20  # for daemons to end after their route

ALONE = """
import pyarrow.dataset as ds
from counting import COLUMNS, SPEC, pairs, show, total
from streammetrics.engines import partial
rows = ds.dataset("day", format="parquet").to_batches(batch_size=65_536)
show(total(pairs(partial(rows, SPEC, ["variant"], columns=COLUMNS))))
"""
NOTHING = """
import pyarrow.dataset as ds
import counting
print(sum(batch.num_rows for batch in ds.dataset("day", format="parquet").to_batches()))
"""
SPARK = """
from pyspark.sql import SparkSession
from counting import COLUMNS, SPEC, show
from streammetrics.engines import merged
from streammetrics.engines.spark import merge, states
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", 65_536)
    .config("spark.ui.enabled", False)
    .config("spark.sql.shuffle.partitions", 8)
    .getOrCreate()
)
day = spark.read.parquet("day")
made = merge(states(day, SPEC, ["variant"], columns=COLUMNS, **GIVEN), ["variant"]).toArrow()
show({v: merged([s]) for v, s in zip(made["variant"].to_pylist(), made["state"].to_pylist())})
spark.stop()
"""
BUCKETS = 'dict(user="user", n_buckets=8, scope="day")'


@dataclass(frozen=True)
class Route:
    """A script, and the folder in .cache of its environment ("": the current one)."""

    name: str
    script: str
    environment: str = ""
    sealed: bool = False

    @property
    def python(self) -> Path:
        if not self.environment:
            return Path(sys.executable)
        return ROOT / ".cache" / self.environment / "bin" / "python"


def routes() -> Iterator[Route]:
    """All routes, with the scripts from the page that shows them."""
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"```python\n# ([a-z]+)(?:: [^\n]*)?\n(.*?)```", page, re.DOTALL))
    beam = shown["beam"]
    with_buckets = beam.replace("columns=COLUMNS", f"columns=COLUMNS, **{BUCKETS}")
    yield Route("rows read, nothing counted", NOTHING)
    yield Route("one process", ALONE)
    yield Route("two plain processes", shown["plain"])
    yield Route("two plain processes, 8 buckets", shown["sealed"], sealed=True)
    yield Route("DuckDB, 8 buckets", shown["duckdb"], "recipes", sealed=True)
    yield Route("Dask, two processes", shown["dask"], "recipes")
    yield Route("Ray, two processes", shown["ray"], "recipes")
    yield Route("Beam, FnApiRunner", beam, "beam")
    yield Route("Beam, FnApiRunner, 8 buckets", with_buckets, "beam", sealed=True)
    yield Route("Spark, local[2]", SPARK.replace("GIVEN", "{}"), "spark")
    yield Route("Spark, local[2], 8 buckets", SPARK.replace("GIVEN", BUCKETS), "spark", sealed=True)


def rows(n: int, seed: int) -> pa.Table:
    """Rows [n]; every file has the same users."""
    rng = np.random.default_rng(seed)
    score = rng.random(n, np.float32)
    return pa.table(
        {
            "variant": pa.array([VARIANTS[i] for i in rng.integers(0, 2, n)]),
            "user": rng.integers(0, max(1, FILES * n // ROWS_OF_A_USER), n),
            "score": score,
            "label": (rng.random(n) < score / 3).astype(np.int8),
        }
    )


def written(folder: Path, n: int) -> dict[bool, set[str]]:
    """Write the files; return the expected output of a route, with and without sealing."""
    (folder / "day").mkdir(parents=True)
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    counting = page.partition("```python\n# counting.py\n")[2].partition("```")[0]
    (folder / "counting.py").write_text(counting, encoding="utf-8")
    states: dict[str, Accumulator] = {name: SPEC.empty() for name in VARIANTS}
    for file in range(FILES):
        table = rows(n // FILES, file)
        pq.write_table(table, folder / "day" / f"{file:02}.parquet")
        variant = np.array(table["variant"].to_pylist())
        for name, state in states.items():
            mask = variant == name
            state.update(**{a: table[c].to_numpy()[mask] for a, c in COLUMNS.items()})
    whole = Sealing("user", 1, "anywhere", "day")
    return {
        False: {f"{name} {state.digest()}" for name, state in states.items()},
        True: {f"{name} {seal(state, whole).digest()}" for name, state in states.items()},
    }


def costs(n: int, only: Sequence[str]) -> None:
    """Run each route with a tenth of the rows and with all of them, and print a line for it."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    print("| route | same | CPU ns a row | CPU s to start | seconds |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folders = {size: Path(name) / str(size) for size in (n // 10, n)}
        expected = {size: written(folder, size) for size, folder in folders.items()}
        for route in routes():
            if only and not any(word in route.name.lower() for word in only):
                continue
            if not route.python.is_file():
                print(f"| {route.name} | | | | make .cache/{route.environment}/.made |")
                continue
            cpu, same, seconds = {}, "yes", 0.0
            for size, folder in folders.items():
                start, before = time.perf_counter(), cpu_s()
                printed = run(route, folder)
                seconds = time.perf_counter() - start
                wait_for_daemons()
                cpu[size] = cpu_s() - before
                if printed != expected[size][route.sealed]:
                    same = "**no**"
            a_row = (cpu[n] - cpu[n // 10]) / (n - n // 10)
            start_s = cpu[n] - n * max(0.0, a_row)
            # The start of a JVM varies by seconds, which hides the cost of a few rows.
            of_row = f"{a_row * 1e9:,.0f}" if n * a_row > start_s / 10 else "take more --rows"
            row = f"{of_row} | {max(0.0, start_s):.1f} | {seconds:.1f}"
            same = "" if route.script == NOTHING else same
            print(f"| {route.name} | {same} | {row} |", flush=True)


def run(route: Route, folder: Path) -> set[str]:
    """The output lines of a route."""
    (folder / "route.py").write_text(route.script, encoding="utf-8")
    process = subprocess.run(
        [route.python, "route.py"],
        cwd=folder,
        env={**os.environ, **environment(route)},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        print(process.stderr[-2000:], file=sys.stderr)
    return set(process.stdout.splitlines())


def environment(route: Route) -> dict[str, str]:
    """The environment variables that the engines need."""
    return {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": str(route.python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "RAY_AUTH_MODE": "disabled",
    }


def cpu_s() -> float:
    """CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wait_for_daemons() -> None:
    """Wait for up to PATIENCE_S seconds for the processes that the route left running."""
    until = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < until:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)
        except ChildProcessError:
            return


def memory() -> None:
    """Print bytes a row of one task, from the peak memory of two sizes; each in its own process."""
    print("| what a task counts | peak bytes a row | bytes a row of its open state | sealed |")
    print("|---|---|---|---|")
    for name in specs():
        sizes = (500_000, 2_000_000)
        outputs = [
            subprocess.run(
                [sys.executable, "-m", "benchmarks.engine_costs", "--peak", f"{name}:{n}"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            for n in sizes
        ]
        (small, *_), (large, state, sealed) = ([int(x) for x in words] for words in outputs)
        a_row = (large - small) / (sizes[1] - sizes[0])
        print(f"| {name} | {a_row:.0f} | {state / sizes[1]:.1f} | {sealed:,} bytes |", flush=True)


def specs() -> dict[str, tuple[Panel, dict[str, str]]]:
    """The measured metrics: with users and without."""
    panel = Panel({"auc": HistogramAUC()})
    return {
        "histogram AUC": (panel, {"labels": "label", "scores": "score"}),
        "histogram AUC and GAUC, 25 rows a user": (SPEC, COLUMNS),
    }


def peak(name: str, n: int) -> None:
    """Count n rows as a task does, and print peak memory and the size of the state."""
    spec, columns = specs()[name]
    step = 65_536
    users = n // ROWS_OF_A_USER

    def batches() -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng(1)
        for offset in range(0, n, step):
            size = min(step, n - offset)
            score = rng.random(size, np.float32)
            label = (rng.random(size) < score / 3).astype(np.int8)
            user = rng.integers(0, users, size)
            yield pa.record_batch({"user": user, "score": score, "label": label})

    (batch,) = partial(batches(), spec, columns=columns)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    data = batch["state"][0].as_py()
    whole = seal(spec.from_file_bytes(data), Sealing("user", 1, "anywhere", "day"))
    print(used, len(data), len(whole.to_file_bytes()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--only", default="", help="words in names of routes, with commas")
    parser.add_argument("--memory", action="store_true", help="measure a task's memory instead")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        name, _, n = options.peak.rpartition(":")
        peak(name, int(n))
    elif options.memory:
        memory()
    else:
        costs(options.rows, [word for word in options.only.lower().split(",") if word])


if __name__ == "__main__":
    main()
