"""Exact, order-free sums of float64, as Ratio keeps them, beside sums that round.

`np.sum` depends on the order of the rows; `math.fsum` does not, but has no state to merge. One
update of Ratio also counts its rows. `python -m benchmarks.bench_exact_sum`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Timing, measure, read_limit, sort_limit, table
from benchmarks.workloads import generator, labels, unit_floats, wild_floats
from streammetrics import PerKey, Ratio

ROWS = 2_000_000
KEYS = 1_000


def timing(name: str, values: NDArray[np.float64]) -> Timing:
    """One update of an empty state."""
    return measure(name, len(values), lambda: Ratio().update(values))


def main() -> None:
    unit, wild = unit_floats(ROWS), wild_floats(ROWS)
    clicks = labels(ROWS).astype(np.float64)
    keys = generator().integers(0, KEYS, ROWS)
    timings = [
        timing("0 and 1", clicks),
        timing("in [0, 1]", unit),
        timing("normal", generator(9).standard_normal(ROWS)),
        timing("any size, 1e-150 to 1e150", wild),
        measure(
            f"0 and 1, by {KEYS:,} keys",
            ROWS,
            lambda: PerKey(Ratio(), max_keys=KEYS).update(keys, numerators=clicks),
        ),
        measure(
            f"in [0, 1], by {KEYS:,} keys",
            ROWS,
            lambda: PerKey(Ratio(), max_keys=KEYS).update(keys, numerators=unit),
        ),
        measure("np.sum, which rounds", ROWS, lambda: np.sum(unit)),
        measure("math.fsum, in [0, 1]", ROWS // 10, lambda: math.fsum(unit[: ROWS // 10])),
    ]
    print(table("Exact sums", timings, read_limit(ROWS, [unit]), sort_limit(ROWS)))


if __name__ == "__main__":
    main()
