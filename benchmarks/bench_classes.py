"""Metrics of many classes and labels by size of batch. `python -m benchmarks.bench_classes`."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Timing, measure, read_limit, sort_limit, table
from benchmarks.workloads import generator
from streammetrics import Accumulator, MulticlassAUC, MulticlassConfusion, MultilabelConfusion

ROWS = 2_000_000
SCORED = 200_000
CLASSES = 10


def fed(name: str, empty: Accumulator, size: int, *columns: np.ndarray) -> Timing:
    """The time of `update` with these columns, cut into batches."""
    rows = len(columns[0])
    work = [[column[i : i + size] for column in columns] for i in range(0, rows, size)]

    def feed() -> None:
        state = empty.empty()
        for batch in work:
            state.update(*batch)
        state.copy()  # nothing waits any more

    return measure(f"{name}, batches of {size:,}", rows, feed)


def main() -> None:
    truth = generator(50).integers(0, 100, ROWS, np.int64)
    guess = generator(51).integers(0, 100, ROWS, np.int64)
    timings = [
        fed("100 classes, int64", MulticlassConfusion(100), size, truth, guess)
        for size in (1_000_000, 10_000, 100)
    ]
    narrow = truth.astype(np.uint8), guess.astype(np.uint8)
    timings.append(fed("100 classes, uint8", MulticlassConfusion(100), 1_000_000, *narrow))
    read, sort = read_limit(ROWS, [truth, guess]), sort_limit(ROWS)
    print(table("MulticlassConfusion.update", timings, read, sort))

    scores = generator(52).random((SCORED, CLASSES), np.float32)
    classes = truth[:SCORED] % CLASSES
    labels = (generator(53).random((SCORED, CLASSES), np.float32) < 0.2).astype(np.uint8)
    timings = [
        fed("MulticlassConfusion", MulticlassConfusion(CLASSES), SCORED, classes, scores),
        fed("the same with top_k", MulticlassConfusion(CLASSES, (1, 3)), SCORED, classes, scores),
        fed("MultilabelConfusion", MultilabelConfusion(CLASSES), SCORED, labels, scores),
        fed("MulticlassAUC", MulticlassAUC(CLASSES), SCORED, classes, scores),
        fed("the same, batches", MulticlassAUC(CLASSES), 1_000, classes, scores),
        fed("the same, exact", MulticlassAUC(CLASSES, exact=True), SCORED, classes, scores),
    ]
    read, sort = read_limit(SCORED, [scores.reshape(-1)]), sort_limit(SCORED)
    print(table(f"rows with scores of {CLASSES} classes", timings, read, sort))


if __name__ == "__main__":
    main()
