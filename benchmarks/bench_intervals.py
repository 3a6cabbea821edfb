"""The cost of reading an interval, which depends on the number of rows for an exact area alone.

`python -m benchmarks.bench_intervals`. The target is 15 ms for an area of 16,384 buckets. That of
an exact area is twice the update and the area together, and 2 MB beyond the state: the last lines
have the multiple and the megabytes. `--rows 100_000_000` measures these of so many rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import measure, peak_of, versions
from streammetrics import Accumulator, BinaryConfusion, ExactAUC, HistogramAUC, UserGroups

ROWS = 2_000_000
BATCH = 1 << 20
USERS = 100_000
METRICS: Mapping[str, Accumulator] = {
    "area of 16,384 buckets": HistogramAUC(grid="equal", resolution=14),
    "area by default buckets": HistogramAUC(),
    "area, exact": ExactAUC(score_type="float32"),
    "accuracy": BinaryConfusion(),
    "area, in groups of users": UserGroups(HistogramAUC()),
}


def columns() -> dict[str, NDArray[np.generic]]:
    """Mostly distinct scores of two overlapping classes, with users."""
    random = np.random.default_rng(1)
    labels = random.random(ROWS) < 0.1
    scores = np.clip(random.normal(np.where(labels, 0.6, 0.4), 0.15), 0, 1).astype(np.float32)
    return {"labels": labels, "scores": scores, "groups": random.integers(0, USERS, ROWS)}


def main() -> None:
    """Print a line for each metric."""
    print(versions())
    inputs = columns()
    for name, empty in METRICS.items():
        state = empty.copy()
        arguments = inputs.keys() - (set() if isinstance(state, UserGroups) else {"groups"})
        state.update(**{column: inputs[column] for column in sorted(arguments)})
        timing = measure(name, 1, state.confidence_interval)
        print(f"{name:26} {timing.median / 1e6:9.2f} ms ({timing.least / 1e6:.2f} to "
              f"{timing.greatest / 1e6:.2f})")  # fmt: skip


def exact(rows: int) -> None:
    """Print what the interval of an exact area takes, as a multiple of its update and area."""
    random = np.random.default_rng(1)
    for kind in (np.float32, np.float64):
        state, spent = ExactAUC(), 0
        for start in range(0, rows, BATCH):
            labels = random.random(min(BATCH, rows - start)) < 0.1
            scores = random.normal(labels, 1.0).astype(kind)
            started = time.process_time_ns()
            state.update(labels, scores)
            spent += time.process_time_ns() - started
        started = time.process_time_ns()
        result = state.compute()
        assert result.auc > 0.5
        spent += time.process_time_ns() - started
        started = time.process_time_ns()
        assert result.interval("auc").defined
        taken = time.process_time_ns() - started
        peak = peak_of(partial(state.compute().interval, "auc"))
        print(
            f"exact area, {kind.__name__}, {rows:,} rows: interval {taken / rows:.1f} ns a row, "
            f"{taken / spent:.2f} × update and area; {peak / 1e6:.2f} MB"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_intervals")
    parser.add_argument("--rows", type=int, help="only an exact area, of so many rows")
    asked = parser.parse_args()
    if asked.rows is None:
        main()
    exact(asked.rows or ROWS)
