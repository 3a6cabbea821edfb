"""UserGroups: the extra cost per row compared with the metric alone, and the cost of reading.

`python -m benchmarks.bench_user_groups`. The target is at most 15 ns a row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Timing, measure, versions
from benchmarks.workloads import labels, unit_floats
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

ROWS = 1_000_000
METRICS = (HistogramAUC(), BinaryConfusion(), Ratio(), Calibration(), ExactAUC())


def columns(metric: Accumulator) -> Mapping[str, NDArray[np.generic]]:
    """The rows of one metric."""
    truth = labels(ROWS, 0.1)
    if isinstance(metric, Ratio):
        return {"numerators": truth}
    return {"labels": truth, "scores": unit_floats(ROWS)}


def timings(metric: Accumulator, users: NDArray[np.int64]) -> tuple[Timing, Timing, Timing]:
    """The times of the metric alone, of the metric in groups, and of reading the variance."""
    name, given = type(metric).__name__, columns(metric)
    plain, grouped = metric.empty(), UserGroups(metric)

    def alone() -> None:
        plain.__dict__.update(metric.empty().__dict__)
        plain.update(**given)

    def in_groups() -> None:
        grouped.__dict__.update(UserGroups(metric).__dict__)
        grouped.update(users, **given)

    of_metric, of_groups = measure(name, ROWS, alone), measure("in groups", ROWS, in_groups)
    return of_metric, of_groups, measure("read", 1, lambda: grouped.compute().variance)


def main() -> None:
    print("UserGroups, ns a row of", f"{ROWS:,}", versions(), "", sep="\n")
    users = np.random.default_rng(1).integers(0, ROWS // 10, ROWS)
    print(f"{'metric':<20}{'alone':>8}{'in groups':>11}{'groups':>8}{'variance, ms':>14}")
    for metric in METRICS:
        a, b, read = timings(metric, users)
        more = f"{b.median - a.median:>8.1f}{read.median / 1e6:>14.1f}"
        print(f"{a.name:<20}{a.median:>8.1f}{b.median:>11.1f}{more}")
    found = measure("Units", ROWS, lambda: Units().update(users))
    print(f"{found.name:<20}{found.median:>8.1f}")


if __name__ == "__main__":
    main()
