"""`streammetrics eval` of a parquet file, beside polars and DuckDB, each in a process of its own.

The CPU time of the whole process, imports and all threads included, over the rows of the file, and
the most memory that it held at once. The processes take turns; the values of all must be the same.
`python -m benchmarks.bench_eval`.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.answer import Answer, answer, run_question
from benchmarks.area_peers import missing
from benchmarks.bench_results import MAIN, Spent, spent_by
from benchmarks.eval_peers import PROGRAMS
from benchmarks.harness import Timing
from benchmarks.workloads import click_scores, labels_of, users

ROWS: Final = 10_000_000
MANY: Final = 100_000_000
ROUNDS: Final = 3
COLUMNS: Final = ("--labels", "label", "--scores", "score")
METRICS: Final = {
    "AUC": ("--metrics", "auc"),
    "log loss and click rate": ("--metrics", "log_loss,ctr"),
    "GAUC": ("--metrics", "gauc", "--lists", "user"),
}
LARGE: Final = f"AUC, {MANY:,} rows"


class Line(NamedTuple):
    """One process, by what it computes of which file."""

    name: str
    words: Sequence[str]
    task: str
    peer: str = ""


def write_rows(path: Path, parts: int, rows: int, kind: type[np.floating]) -> None:
    """A file of clicks, in row groups of so many rows, made one by one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for part in range(parts):
        scores = click_scores(rows, stream=3 + 100 * part).astype(kind)
        if kind is np.float64:  # so that float32 does not represent them
            scores *= 0.9
        table = pa.table(
            {
                "note": pa.array(np.arange(rows)),  # which none of them reads
                "label": labels_of(scores, stream=7 + 100 * part).astype(np.int8),
                "score": scores,
                "user": users(rows, rows // 20, stream=6 + 100 * part),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=rows)
    if writer is not None:
        writer.close()


def eval_line(path: Path, task: str, work: str) -> Line:
    """A process of `eval`. work: of METRICS."""
    words = ["eval", str(path), *COLUMNS, *METRICS[work], "--json"]
    return Line(task, [sys.executable, "-c", MAIN, *words], task)


def peers(path: Path, task: str, work: str) -> list[Line]:
    """The peers that are installed, at the same task."""
    return [
        Line(f"{peer}, {task}", [sys.executable, "-c", code[work], str(path)], task, peer)
        for peer, code in PROGRAMS.items()
        if missing(peer) is None
    ]


def values(printed: str) -> list[float]:
    """What a process printed: the JSON of `eval`, or numbers in the last line, after progress."""
    if printed.startswith("["):
        return [line["value"] for line in json.loads(printed)]
    return [float(word) for word in printed.splitlines()[-1].split()]


def measured(lines: Sequence[Line], rows: int, rounds: int) -> tuple[list[Timing], list[float]]:
    """The CPU time of each line, a row, and the most MB that it held; they take turns."""
    spent: dict[str, list[Spent]] = {line.name: [] for line in lines}
    expected: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(rounds):
            for line in lines:
                spent[line.name].append(spent_by([*line.words], folder))
                result = values((folder / "out").read_text(encoding="utf-8"))
                for reference, value in zip(
                    expected.setdefault(line.task, result), result, strict=True
                ):
                    assert math.isclose(reference, value, rel_tol=1e-9), (
                        line.name,
                        reference,
                        value,
                    )
    timings, peaks = [], []
    for line in lines:
        ns = sorted(1e9 * run.cpu_s / rows for run in spent[line.name])
        peaks.append(max(run.peak_mb for run in spent[line.name]))
        middle = ns[len(ns) // 2]
        peak = int(1e6 * peaks[-1])
        timings.append(
            Timing(line.name, middle, ns[0], ns[-1], len(ns), line.task, line.peer, peak)
        )
    return timings, peaks


def ask(quick: bool) -> Answer:
    rows = 1_000_000 if quick else ROWS
    scores = click_scores(rows)
    report = answer(
        "eval", f"`streammetrics eval` of a parquet file of {rows:,} rows, a whole process",
        rows=rows, arrays=[labels_of(scores), scores],
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        narrow, wide = Path(name) / "rows.parquet", Path(name) / "float64.parquet"
        write_rows(narrow, 1, rows, np.float32)
        write_rows(wide, 1, rows, np.float64)
        tasks = [(narrow, work, work) for work in METRICS]
        tasks.append((wide, "AUC, float64", "AUC"))
        lines = [line for task in tasks for line in (eval_line(*task), *peers(*task))]
        timings, peaks = measured(lines, rows, 1 if quick else ROUNDS)
        wide.unlink()
        if not quick:
            narrow.unlink()
            write_rows(narrow, MANY // ROWS, ROWS, np.float32)
            many, of_many = measured([eval_line(narrow, LARGE, "AUC")], MANY, 1)
            timings, peaks = [*timings, *many], [*peaks, *of_many]
    report.add(*timings, *(why for peer in PROGRAMS if (why := missing(peer))))
    report.points += [
        {"series": timing.name, "peak MB": peak}
        for timing, peak in zip(timings, peaks, strict=True)
        if not timing.peer
    ]
    report.notes.append(
        "CPU time with the imports, over the rows; the peak is what the system counted for the "
        "process. Ours includes an interval of each value, the peers give values alone. All have "
        "one thread. The rows are in one row group, those of 100,000,000 rows in ten; one column "
        "is not read."
    )
    return report


if __name__ == "__main__":
    run_question(ask)
