"""Exact, order-independent sums of float64 in Ratio, compared with rounding sums.

`np.sum` depends on the order of the rows; `math.fsum` does not, but has no state to merge. An
update of Ratio also counts its rows. `python -m benchmarks.bench_exact_sum`.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import Timing, measure
from benchmarks.workloads import cut, generator, labels, unit_floats, wild_floats
from streammetrics import PerKey, Ratio

KEYS = 1_000


def timing(name: str, values: NDArray[np.float64], task: str = "") -> Timing:
    """The time of one update of an empty state."""
    return measure(name, len(values), lambda: Ratio().update(values), task=task, peak=True)


def batched(values: NDArray[np.float64], size: int) -> Timing:
    """The time of all rows in batches."""
    work = cut(size, values)

    def job() -> None:
        state = Ratio()
        for (batch,) in work:
            state.update(batch)
        state.compute()

    return measure(f"in [0, 1], batches of {size:,}", len(values), job, peak=True)


def ask(quick: bool) -> Answer:
    rows = 1_000_000 if quick else 10_000_000
    unit, wild = unit_floats(rows), wild_floats(rows)
    clicks = labels(rows).astype(np.float64)
    keys = generator().integers(0, KEYS, rows)
    report = answer("exact-sum", "Ratio, update with values of float64", rows=rows, arrays=[unit])
    report.add(
        timing("0 and 1", clicks),
        timing("in [0, 1]", unit, "in [0, 1]"),
        timing("normal", generator(9).standard_normal(rows)),
        timing("any size, 1e-150 to 1e150", wild, "any size"),
        timing("all the same", np.full(rows, 0.1)),
        *(batched(unit, size) for size in (10_000, 1_000, 100)),
    )
    for name, values in (("0 and 1", clicks), ("in [0, 1]", unit)):
        job = lambda values=values: PerKey(Ratio(), max_keys=KEYS).update(  # noqa: E731
            keys, numerators=values
        )
        report.add(measure(f"{name}, by {KEYS:,} keys", rows, job))
    count = rows // 10
    for task, values in (("in [0, 1]", unit[:count]), ("any size", wild[:count])):
        state = Ratio()
        state.update(values)
        assert state.compute().numerator == math.fsum(values), task
        peer_job = partial(math.fsum, values)
        name = f"math.fsum, {task}, {count:,} rows"
        report.add(measure(name, count, peer_job, task=task, peer="math.fsum"))
    report.add(measure("np.sum, which rounds", rows, lambda: np.sum(unit), peer="np.sum"))
    return report


if __name__ == "__main__":
    run_question(ask)
