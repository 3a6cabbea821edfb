"""Reading many keys: the cost of each key's result, and of its headline, by metric.

A key has 200 rows. The last line reads 24 windows x 1,000 keys x a panel of ten metrics.
`python -m benchmarks.bench_compute_by_key`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from benchmarks.answer import markdown
from benchmarks.harness import versions
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    GroupedAUC,
    HistogramAUC,
    Panel,
    PerKey,
    Ratio,
    Regression,
    Windows,
)

KEYS: Final = 1_000
ROWS: Final = 200 * KEYS
WINDOWS: Final = 24
Columns = Mapping[str, np.ndarray]

# Each metric with the columns of its `update`, its headline, and its target in µs a key.
METRICS: Final[Mapping[str, tuple[Accumulator, Mapping[str, str], str, float | None]]] = {
    "Ratio": (Ratio(), {"numerators": "labels"}, "ratio", 1),
    "BinaryConfusion": (BinaryConfusion(0.1), {}, "f1", 2),
    "HistogramAUC": (HistogramAUC(), {}, "auc", 10),
    "Calibration": (Calibration(), {}, "log_loss", 20),
    "Regression": (Regression(), {}, "mae", None),
    "GroupedAUC": (GroupedAUC(), {"groups": "users"}, "gauc", None),
}
BOTH: Final = {"labels": "labels", "scores": "scores"}


def least(job: Callable[[], object], rounds: int = 5) -> float:
    """The least CPU time of several rounds, in seconds."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        job()
        found.append(time.process_time() - start)
    return min(found)


def rows_of(n: int) -> Columns:
    """Rows of clicks: labels, scores and users, and keys."""
    random = np.random.default_rng(1)
    return {
        "labels": (random.random(n) < 0.1).astype(np.uint8),
        "scores": random.beta(1, 9, n).astype(np.float32),
        "users": random.integers(0, n // 10, n),
        "keys": random.integers(0, KEYS, n),
        "times": random.integers(0, WINDOWS * 3_600_000, n),
    }


def lines() -> list[list[str]]:
    """A row for each metric: µs a key of the result, of the headline after it, and the target."""
    columns, found = rows_of(ROWS), []
    for name, (metric, more, headline, target) in METRICS.items():
        takes = more if "numerators" in more else {**BOTH, **more}
        state = PerKey(metric)
        state.update(columns["keys"], **{a: columns[c] for a, c in takes.items()})
        whole = least(state.compute)
        results = [*state.compute().values()]
        start = time.process_time()
        for one in results:
            getattr(one, headline)
        read = time.process_time() - start
        each = [f"{1e6 * seconds / KEYS:.1f}" for seconds in (whole, read)]
        found.append([name, *each, "" if target is None else f"{target:g}"])
    return found


def windows_of_panels() -> float:
    """Seconds to read 24 windows of 1,000 keys of a panel of ten."""
    metrics: dict[str, Accumulator] = {"calibration": Calibration()}
    for i in range(3):
        metrics |= {f"ratio {i}": Ratio(), f"confusion {i}": BinaryConfusion(0.1 * (i + 1))}
        metrics |= {f"auc {i}": HistogramAUC(resolution=8 - i)}
    inputs = {f"ratio {i}": {"numerators": "labels"} for i in range(3)}
    state = Windows(PerKey(Panel(metrics, inputs=inputs)), size_s=3_600)
    columns = rows_of(60 * KEYS * WINDOWS)
    state.update(
        columns["times"],
        keys=columns["keys"],
        labels=columns["labels"],
        scores=columns["scores"],
    )
    return least(state.compute, 3)


def main() -> None:
    """Print the tables."""
    print(versions())
    print(markdown([["µs a key", "compute", "headline", "target"], *lines()]))
    name = f"{WINDOWS} windows x {KEYS:,} keys x 10 metrics"
    print(f"{name}: {windows_of_panels():.2f} s of CPU (target 1.5)")


if __name__ == "__main__":
    main()
