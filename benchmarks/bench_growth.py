"""Growth of cost: a row, a compute, a merge, bytes and memory, by the number of rows in a state.

Batches of 10,000 rows, from a thousand to a hundred million rows in all; sizes above a million run
once. Making the rows is not timed. The time of the updates ends with a copy of the state, which
flushes pending rows; compute, reading from bytes, computes after 10,000 new rows each, and merge
are timed after it. `python -m benchmarks.bench_growth`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

import numpy as np

from benchmarks.answer import Answer, answer, digits, markdown, run_question
from benchmarks.area_peers import missing, peer_jobs
from benchmarks.harness import REPEATS, measure
from benchmarks.torch_child import ABSENT, PYTHON, Task, timed_answers
from benchmarks.workloads import generator, labels_of, uniform_scores
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
)

BATCH = 10_000
BLOCK = 1_000_000  # rows made at once
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
METRICS: Mapping[str, Accumulator] = {
    "BinaryConfusion": BinaryConfusion(),
    "HistogramAUC": HistogramAUC(),
    "ExactAUC": ExactAUC(score_type="float32"),
    "Calibration": Calibration(),
    "GroupedAUC": GroupedAUC(),
}
ROWS_A_USER = 20


def blocks(rows: int) -> Iterator[dict[str, np.ndarray]]:
    """All rows, made a block at a time; the rows per user do not depend on the total."""
    for i, start in enumerate(range(0, rows, BLOCK)):
        n = min(BLOCK, rows - start)
        scores = uniform_scores(n, 10_000 + i)
        users = generator(20_000 + i).integers(0, max(rows // ROWS_A_USER, 1), n)
        yield {"labels": labels_of(scores, 0.05, 30_000 + i), "scores": scores, "groups": users}


def grown(empty: Accumulator, rows: int) -> dict[str, float]:
    """The cost of one state, in nanoseconds and bytes."""
    state, spent = empty.empty(), 0
    for block in blocks(rows):
        if not isinstance(empty, GroupedAUC):
            del block["groups"]
        n = len(block["labels"])
        batches = [
            {name: column[i : i + BATCH] for name, column in block.items()}
            for i in range(0, n, BATCH)
        ]
        started = time.process_time_ns()
        for batch in batches:
            state.update(**batch)
        spent += time.process_time_ns() - started
    started = time.process_time_ns()
    duplicate = state.copy()
    spent += time.process_time_ns() - started
    reads = [_timed(lambda: state.copy().compute()), _timed(lambda: state.compute())]
    data = state.to_bytes()
    read = _timed(lambda: type(state).from_bytes(data))
    rereads = [_read_again(state, batch) for batch in batches[:5]]
    merge = _timed(lambda: state.merge(duplicate))
    row_bytes = duplicate.nbytes / rows
    return {
        "ns": spent / rows,
        "compute": max(reads),
        "read": median(rereads),
        "bytes in": read,
        "merge": merge,
        "bytes": row_bytes,
    }


def _read_again(state: Accumulator, batch: Mapping[str, np.ndarray]) -> float:
    """The cost of a compute after a batch of new rows."""
    state.update(**batch)
    return _timed(state.compute)


def _timed(job: Callable[[], object]) -> float:
    started = time.process_time_ns()
    job()
    return float(time.process_time_ns() - started)


def ask(quick: bool) -> Answer:
    sizes = SIZES[:4] if quick else SIZES
    few = uniform_scores(BLOCK)
    report = answer(
        "growth",
        f"Cost against size, batches of {BATCH:,}",
        rows=BLOCK,
        arrays=[labels_of(few), few],
    )
    for name, empty in METRICS.items():
        for rows in sizes:
            grown(empty, min(rows, BATCH))  # warm
            runs = [grown(empty, rows) for _ in range(REPEATS if rows <= BLOCK else 1)]
            costs = {key: median(run[key] for run in runs) for key in runs[0]}
            report.points.append({"series": name, "rows": rows, "peer": False, **costs})
    report.points += peers(sizes, report)
    report.notes += tables(report.points, sizes)
    return report


def tables(points: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[str]:
    """Markdown tables: update of a row, compute, merge and memory."""
    shown = (
        ("ns", "update, ns a row", 1.0),
        ("compute", "compute, ms", 1e6),
        ("read", f"compute after {BATCH:,} new rows, ms", 1e6),
        ("bytes in", "`from_bytes`, ms", 1e6),
        ("merge", "merge of two such states, ms", 1e6),
        ("bytes", "`nbytes`, bytes a row", 1.0),
    )
    texts = []
    for key, title, unit in shown:
        lines = []
        for name in dict.fromkeys(p["series"] for p in points if key in p):
            cells = {p["rows"]: digits(p[key] / unit) for p in points if p["series"] == name}
            lines.append([name, *(cells.get(rows, "") for rows in sizes)])
        texts.append(markdown([[title, *(f"{rows:,}" for rows in sizes)], *lines]))
    return texts


def peers(sizes: tuple[int, ...], report: Answer) -> list[dict[str, Any]]:
    """Peers on all rows at once, and torchmetrics in batches; sizes as their speed allows."""
    points = []
    for name, module, largest, make_job in peer_jobs():
        if why := missing(module):
            report.add(why)
            continue
        for rows in sizes:
            if rows <= largest:
                scores = uniform_scores(rows)
                job = make_job(labels_of(scores), scores)
                timing = measure(name, rows, job, peer=name)
                series = f"{name}, exact AUC"
                points.append({"series": series, "rows": rows, "peer": True, "ns": timing.median})
    if not PYTHON.is_file():
        report.add(ABSENT)
    name = "torchmetrics, 200 thresholds"
    arguments = [
        {"tool": "torchmetrics", "rows": n, "batch": BATCH, "bins": 200}
        for n in sizes
        if n <= BLOCK
    ]
    for task, _, timing in timed_answers(Task("area", a, name, "", name) for a in arguments):
        rows = task.arguments["rows"]
        points.append({"series": name, "rows": rows, "peer": True, "ns": timing.median})
    return points


if __name__ == "__main__":
    run_question(ask)
