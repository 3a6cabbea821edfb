"""Reading many keys: the cost of each key's result, of its headline and of its digest, by metric.

A key has 200 rows, and "one" is the result of a state that is read alone. The last line reads
24 windows x 1,000 keys x a panel of ten metrics. `python -m benchmarks.bench_compute_by_key`.
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
    MulticlassConfusion,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    Windows,
)

KEYS: Final = 1_000
ROWS: Final = 200 * KEYS
WINDOWS: Final = 24
Columns = Mapping[str, np.ndarray]

BOTH: Final = {"labels": "labels", "scores": "scores"}
LISTS: Final = {"labels": "list_labels", "scores": "list_scores"}

# Each metric with the columns of its `update`, its headline, and its target in µs a key.
METRICS: Final[Mapping[str, tuple[Accumulator, Mapping[str, str], str, float | None]]] = {
    "Ratio": (Ratio(), {"numerators": "labels"}, "ratio", 1),
    "BinaryConfusion": (BinaryConfusion(0.1), BOTH, "f1", 2),
    "HistogramAUC": (HistogramAUC(), BOTH, "auc", 10),
    "Calibration": (Calibration(), BOTH, "log_loss", 20),
    "Regression": (Regression(), BOTH, "mae", None),
    "GroupedAUC": (GroupedAUC(), {**BOTH, "groups": "users"}, "gauc", None),
    "MulticlassConfusion": (
        MulticlassConfusion(10),
        {"labels": "classes", "predictions": "predicted"},
        "accuracy",
        None,
    ),
    "RankingMetrics": (RankingMetrics(["NDCG@10", "MRR", "HR@5"]), LISTS, "NDCG@10", 10),
}


def least(job: Callable[[], object], rounds: int = 5) -> float:
    """The least CPU time of several rounds, in seconds."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        job()
        found.append(time.process_time() - start)
    return min(found)


def often(job: Callable[[], object]) -> Callable[[], object]:
    """The job, as many times as there are keys."""
    return lambda: [job() for _ in range(KEYS)]


def rows_of(n: int) -> Columns:
    """Rows of clicks: labels, scores and users, and keys."""
    random = np.random.default_rng(1)
    return {
        "labels": (random.random(n) < 0.1).astype(np.uint8),
        "scores": random.beta(1, 9, n).astype(np.float32),
        "users": random.integers(0, n // 10, n),
        "keys": random.integers(0, KEYS, n),
        "times": random.integers(0, WINDOWS * 3_600_000, n),
        "classes": random.integers(0, 10, n),
        "predicted": random.integers(0, 10, n),
    }


def with_lists(columns: Columns) -> Columns:
    """The same rows, each also with a list of ten items."""
    random = np.random.default_rng(2)
    size = len(columns["keys"]), 10
    labels = (random.random(size) < 0.2).astype(np.uint8)
    return {**columns, "list_labels": labels, "list_scores": random.random(size)}


def lines() -> list[list[str]]:
    """A row for each metric: µs a key of the result, of the headline and of the digest after it, µs
    of a result alone, and the target of the first."""
    columns, found = with_lists(rows_of(ROWS)), []
    for name, (metric, takes, headline, target) in METRICS.items():
        state = PerKey(metric)
        state.update(columns["keys"], **{a: columns[c] for a, c in takes.items()})
        whole, digests = least(state.compute), least(state.digests)
        results = [*state.compute().values()]
        start = time.process_time()
        for one in results:
            figure(one, headline)
        read = time.process_time() - start
        alone = state.state(state.keys()[0])
        single = least(often(alone.compute))
        each = [f"{1e6 * seconds / KEYS:.1f}" for seconds in (whole, read, digests, single)]
        found.append([name, *each, "" if target is None else f"{target:g}"])
    return found


def figure(result: object, name: str) -> object:
    """A figure of a result: an entry of a mapping, or an attribute."""
    return result[name] if isinstance(result, Mapping) else getattr(result, name)


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
    print(markdown([["µs a key", "compute", "headline", "digest", "one", "target"], *lines()]))
    name = f"{WINDOWS} windows x {KEYS:,} keys x 10 metrics"
    print(f"{name}: {windows_of_panels():.2f} s of CPU (target 1.5)")


if __name__ == "__main__":
    main()
