"""HistogramAUC.update by size of batch, and what reading its state costs.

Batches are cut beforehand; each repeat starts from an empty state and ends with `compute`, so
that rows which wait for each other are counted too. `python -m benchmarks.bench_histogram_auc`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Timing, measure, read_limit, sort_limit, table
from benchmarks.workloads import click_scores, labels, uniform_scores
from streammetrics import HistogramAUC

ROWS = 2_000_000
Floats = NDArray[np.floating]
Batches = list[tuple[NDArray[np.uint8], Floats]]


def batches(truth: NDArray[np.uint8], scores: Floats, size: int) -> Batches:
    """The rows, cut."""
    starts = range(0, len(truth), size)
    return [(truth[i : i + size], scores[i : i + size]) for i in starts]


def feed(metric: HistogramAUC, work: Batches) -> HistogramAUC:
    """A state of the same settings after all batches."""
    state = metric.empty()
    for truth, scores in work:
        state.update(truth, scores)
    state.compute()
    return state


def timing(name: str, metric: HistogramAUC, scores: Floats, size: int) -> Timing:
    work = batches(labels(len(scores)), scores, size)
    return measure(name, len(scores), lambda: feed(metric, work))


def main() -> None:
    truth, clicks = labels(ROWS), click_scores(ROWS)
    default = HistogramAUC()
    sizes = (1_000_000, 10_000, 1_000, 100)
    timings = [timing(f"clicks, batches of {n:,}", default, clicks, n) for n in sizes]
    wide = clicks.astype(np.float64)
    timings += [
        timing("uniform, batches of 10,000", default, uniform_scores(ROWS), 10_000),
        timing("float64, batches of 10,000", default, wide, 10_000),
        timing("real, batches of 10,000", HistogramAUC(range="real"), clicks, 10_000),
        timing("equal, batches of 10,000", HistogramAUC(grid="equal"), clicks, 10_000),
    ]
    read = read_limit(ROWS, [truth, clicks])
    print(table("HistogramAUC.update", timings, read, sort_limit(ROWS)))

    full = feed(default, batches(truth, uniform_scores(ROWS), ROWS))
    data = full.to_bytes()
    total = default.empty()
    states = [
        measure("from_bytes and merge", 1, lambda: total.merge(HistogramAUC.from_bytes(data))),
        measure("to_bytes", 1, full.to_bytes),
        measure("compute", 1, full.compute),
    ]
    print(f"\nstates of {full.buckets} buckets, {len(data):,} bytes")
    print("\n".join(f"{t.name:<46}{t.median / 1000:>9.1f} µs" for t in states))


if __name__ == "__main__":
    main()
