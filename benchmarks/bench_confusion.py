"""Confusion counts of two classes and of a hundred, compared with peers.

Each repeat starts from an empty state and takes all batches, which are cut beforehand.
`python -m benchmarks.bench_confusion`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.answer import Answer, Found, answer, run_question
from benchmarks.area_peers import missing
from benchmarks.harness import Timing, measure
from benchmarks.torch_child import ABSENT, PYTHON, Task, timed_answers
from benchmarks.workloads import classes, cut, uniform_scores
from streammetrics import Accumulator, BinaryConfusion, MulticlassConfusion

MANY = 100
SIZES = (1_000_000, 10_000, 1_000, 100)
SLOW = 10_000  # rows for the peer that takes one row at a time


def timing(
    name: str, empty: Accumulator, size: int, *columns: np.ndarray, task: str = ""
) -> Timing:
    """The time of one kind of rows in batches of one size."""
    work = cut(size, *columns)

    def feed() -> None:
        state = empty.empty()
        for batch in work:
            state.update(*batch)
        state.copy()  # flushes the pending rows

    full = f"{name}, batches of {size:,}"
    return measure(full, len(columns[0]), feed, task=task, peak=True)


def ask(quick: bool) -> Answer:
    rows = 1_000_000 if quick else 10_000_000
    truth, guess = classes(rows, 2)
    scores = (guess + uniform_scores(rows)) / np.float32(2)  # the guess is score >= 0.5
    report = answer(
        "confusion",
        "BinaryConfusion and MulticlassConfusion, update",
        rows=rows,
        arrays=[truth, scores],
    )
    columns = classes(rows, MANY)
    for size in SIZES:
        task = "2 classes" if size == SIZES[0] else ""
        report.add(timing("2 classes", BinaryConfusion(0.5), size, truth, scores, task=task))
    wide = scores.astype(np.float64)
    report.add(timing("2 classes, float64", BinaryConfusion(0.5), 10_000, truth, wide))
    for size in SIZES:
        task = f"{MANY} classes" if size == SIZES[0] else ""
        empty = MulticlassConfusion(MANY)
        report.add(timing(f"{MANY} classes", empty, size, *columns, task=task))
    long = [column.astype(np.int64) for column in columns]
    report.add(timing(f"{MANY} classes, int64", MulticlassConfusion(MANY), SIZES[0], *long))
    report.add(*peers(rows))
    return report


def peers(rows: int) -> Iterator[Found]:
    """Peers with all rows at once, except river, which takes them one by one."""
    jobs: dict[str, tuple[str, int, Callable[[np.ndarray, np.ndarray, int], Callable[[], Any]]]] = {
        "scikit-learn": ("sklearn", rows, _scikit_learn),
        "polars": ("polars", rows, _polars),
        "river": ("river", SLOW, _river),
    }
    for count in (2, MANY):
        for name, (module, n, make_job) in jobs.items():
            if why := missing(module):
                yield why
                continue
            truth, guess = classes(n, count)
            job = make_job(truth, guess, count)
            _agree(name, job(), n, count)
            line = f"{name}, {count} classes, {n:,} rows"
            yield measure(line, n, job, task=f"{count} classes", peer=name)
    if not PYTHON.is_file():
        yield ABSENT
    tasks = [
        Task(
            "confusion",
            {"tool": tool, "rows": rows, "batch": rows, "classes": count, "checked": checked},
            f"{tool}, {count} classes, {rows:,} rows" + ("" if checked else ", unchecked"),
            f"{count} classes",
            tool,
        )
        for count in (2, MANY)
        for tool, checked in (("torchmetrics", True), ("torchmetrics", False), ("torcheval", True))
    ]
    for task, peer_matrix, time in timed_answers(tasks):
        _agree(task.name, peer_matrix, rows, task.arguments["classes"])
        yield time


def _agree(name: str, peer_matrix: Any, rows: int, count: int) -> None:
    """Stop unless these are our counts."""
    metric = MulticlassConfusion(count)
    metric.update(*classes(rows, count))
    assert np.array_equal(metric.compute().matrix, peer_matrix), name


def _scikit_learn(truth: np.ndarray, guess: np.ndarray, count: int) -> Callable[[], Any]:
    from sklearn.metrics import confusion_matrix

    return lambda: confusion_matrix(truth, guess, labels=np.arange(count))


def _polars(truth: np.ndarray, guess: np.ndarray, count: int) -> Callable[[], Any]:
    import polars as pl

    frame = pl.DataFrame({"truth": truth, "guess": guess}).lazy()
    query = frame.group_by("truth", "guess").len()

    def job() -> Any:
        cells = query.collect()
        table = np.zeros((count, count), np.int64)
        table[cells["truth"].to_numpy(), cells["guess"].to_numpy()] = cells["len"].to_numpy()
        return table

    return job


def _river(truth: np.ndarray, guess: np.ndarray, count: int) -> Callable[[], Any]:
    from river.metrics import ConfusionMatrix

    pairs = list(zip(truth.tolist(), guess.tolist(), strict=True))

    def job() -> Any:
        metric = ConfusionMatrix(classes=set(range(count)))
        for label, prediction in pairs:
            metric.update(label, prediction)
        table = np.zeros((count, count), np.int64)
        for i, row in metric.data.items():
            for j, cell in row.items():
                table[i, j] = cell
        return table

    return job


if __name__ == "__main__":
    run_question(ask)
