"""Metrics on scores of many classes and labels. `python -m benchmarks.bench_classes`."""

from __future__ import annotations

import numpy as np

from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import Timing, measure
from benchmarks.workloads import cut, generator
from streammetrics import Accumulator, MulticlassAUC, MulticlassConfusion, MultilabelConfusion

CLASSES = 10


def fed(name: str, empty: Accumulator, size: int, *columns: np.ndarray) -> Timing:
    """The time of `update` with these columns, cut into batches."""
    rows, work = len(columns[0]), cut(size, *columns)

    def feed() -> None:
        state = empty.empty()
        for batch in work:
            state.update(*batch)
        state.copy()  # flushes the pending rows

    return measure(f"{name}, batches of {size:,}", rows, feed, peak=True)


def ask(quick: bool) -> Answer:
    rows = 50_000 if quick else 200_000
    scores = generator(52).random((rows, CLASSES), np.float32)
    truth = generator(50).integers(0, CLASSES, rows, np.int64)
    labels = (generator(53).random((rows, CLASSES), np.float32) < 0.2).astype(np.uint8)
    report = answer(
        "classes",
        f"Rows with scores of {CLASSES} classes",
        rows=rows,
        arrays=[scores.reshape(-1), truth],
    )
    few = 1_000
    cells = (4 * np.arange(CLASSES) + 2 * labels + (scores >= 0.5)).reshape(-1)
    report.add(
        measure("np.bincount of the cells of labels", rows, lambda: np.bincount(cells)),
        fed("MulticlassConfusion", MulticlassConfusion(CLASSES), rows, truth, scores),
        fed("MulticlassConfusion", MulticlassConfusion(CLASSES), few, truth, scores),
        fed("with top_k", MulticlassConfusion(CLASSES, (1, 3)), rows, truth, scores),
        fed("MultilabelConfusion", MultilabelConfusion(CLASSES), rows, labels, scores),
        fed("MultilabelConfusion", MultilabelConfusion(CLASSES), few, labels, scores),
        fed("MulticlassAUC", MulticlassAUC(CLASSES), rows, truth, scores),
        fed("MulticlassAUC", MulticlassAUC(CLASSES), few, truth, scores),
        fed("MulticlassAUC, exact", MulticlassAUC(CLASSES, exact=True), rows, truth, scores),
    )
    return report


if __name__ == "__main__":
    run_question(ask)
