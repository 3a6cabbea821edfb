"""The cost of reading an interval, which does not depend on the number of rows.

`python -m benchmarks.bench_intervals`. The target is 15 ms for an area of 16,384 buckets.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import measure, versions
from streammetrics import Accumulator, BinaryConfusion, ExactAUC, HistogramAUC, UserGroups

ROWS = 2_000_000
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
    given = columns()
    for name, empty in METRICS.items():
        state = empty.copy()
        taken = given.keys() - (set() if isinstance(state, UserGroups) else {"groups"})
        state.update(**{column: given[column] for column in sorted(taken)})
        found = measure(name, 1, state.confidence_interval)
        print(f"{name:26} {found.median / 1e6:9.2f} ms ({found.least / 1e6:.2f} to "
              f"{found.greatest / 1e6:.2f})")  # fmt: skip


if __name__ == "__main__":
    main()
