"""Uplift and ExactUplift beside the areas that they share their state with, HistogramAUC and
ExactAUC: an update, and views of a state.

The rows are those of the areas with one more column. Times are of this process, the least of
several rounds, in which all jobs take turns. `python -m benchmarks.bench_uplift`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np

from benchmarks.harness import versions
from benchmarks.workloads import cut, generator, labels_of
from streammetrics import Accumulator, ExactAUC, ExactUplift, HistogramAUC, Uplift

ROWS: Final = 1_000_000
ROUNDS: Final = 5
VIEWS: Final = ("qini", "gain", "qini_radcliffe_relative", "uplift_by_part")


def fed(empty: Accumulator, size: int, *columns: np.ndarray) -> Callable[[], object]:
    """All rows in batches of one size, and the bytes, for which pending rows are sorted."""
    work = cut(size, *columns)

    def job() -> None:
        state = empty.empty()
        for batch in work:
            state.update(*batch)
        state.to_bytes()

    return job


def least(jobs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least time of each job, in milliseconds."""
    found = dict.fromkeys(jobs, np.inf)
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            found[name] = min(found[name], 1e3 * (time.process_time() - start))
    return found


def main() -> None:
    print(versions())
    effects = generator(41).standard_normal(ROWS) / 8
    labels = labels_of(np.abs(effects).clip(0, 1), 0.1).astype(np.uint8)
    treated = generator(42).integers(0, 2, ROWS).astype(np.uint8)
    for kind, size in ((np.float32, ROWS), (np.float64, ROWS), (np.float32, 1_000)):
        scores = effects.astype(kind)
        jobs = {
            "HistogramAUC": fed(HistogramAUC(range="real"), size, labels, scores),
            "Uplift": fed(Uplift(), size, labels, scores, treated),
            "ExactAUC": fed(ExactAUC(), size, labels, scores),
            "ExactUplift": fed(ExactUplift(), size, labels, scores, treated),
        }
        found = least(jobs)
        print(f"\n{ROWS:,} rows of {np.dtype(kind)}, batches of {size:,}: ms")
        for name, base in (("Uplift", "HistogramAUC"), ("ExactUplift", "ExactAUC")):
            ratio = found[name] / found[base]
            print(f"{name:<14}{found[name]:>8.1f}{base:>16}{found[base]:>8.1f}{ratio:>8.2f}")
    for metric in (Uplift(), ExactUplift()):
        metric.update(labels, effects, treated)
        print(f"\n{type(metric).__name__}, {ROWS:,} rows: ms")
        for name in VIEWS:
            [took] = least({name: lambda m=metric, n=name: _read(m, n)}).values()  # type: ignore[misc]
            print(f"{name:<26}{took:>8.1f}")


def _read(metric: Uplift | ExactUplift, name: str) -> object:
    view = getattr(metric.compute(), name)
    return view() if callable(view) else view


if __name__ == "__main__":
    main()
