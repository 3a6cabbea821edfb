"""UserGroups: the extra cost per row compared with the metric alone, and the cost of reading.

`python -m benchmarks.bench_user_groups`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import Timing, in_turns, measure, timing
from benchmarks.workloads import generator, labels, unit_floats
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    ExactAUC,
    HistogramAUC,
    Ratio,
    Units,
    UserGroups,
)

METRICS = (HistogramAUC(), BinaryConfusion(), Ratio(), Calibration(), ExactAUC())


def columns(metric: Accumulator, rows: int) -> Mapping[str, NDArray[np.generic]]:
    """The rows of one metric."""
    truth = labels(rows, 0.1)
    if isinstance(metric, Ratio):
        return {"numerators": truth}
    return {"labels": truth, "scores": unit_floats(rows)}


def timings(metric: Accumulator, rows: int, users: NDArray[np.int64]) -> list[Timing]:
    """The times of the metric alone, of the metric in groups, and of reading the variance."""
    name, inputs, grouped = type(metric).__name__, columns(metric, rows), UserGroups(metric)

    def plain_update() -> None:
        state = metric.empty()
        state.update(**inputs)
        state.copy()  # counts the pending rows

    def in_groups() -> None:
        nonlocal grouped
        grouped = UserGroups(metric)
        grouped.update(users, **inputs)
        grouped.copy()

    of_metric, of_groups = in_turns({name: plain_update, f"{name}, in groups": in_groups}, rows)
    difference = of_groups.median - of_metric.median
    read = measure(f"{name}, reading the variance, a state", 1, lambda: grouped.compute().variance)
    return [of_metric, of_groups, timing(f"{name}, what groups add", [difference]), read]


def ask(quick: bool) -> Answer:
    rows = 100_000 if quick else 1_000_000
    users = generator(1).integers(0, rows // 10, rows)
    report = answer("user-groups", "UserGroups, one batch", rows=rows, arrays=[users])
    for metric in METRICS:
        report.add(*timings(metric, rows, users))
    report.add(measure("Units", rows, lambda: Units().update(users)))
    report.notes.append("A user has ten rows on average.")
    return report


if __name__ == "__main__":
    run_question(ask)
