"""Calibration and Regression: an update, and the logarithm behind it, beside scikit-learn.

scikit-learn's functions take all rows at once and keep nothing; each gives one of our figures.
`python -m benchmarks.bench_calibration`.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss, mean_squared_error, r2_score

from benchmarks.harness import beside, measure, read_limit, sort_limit, table
from benchmarks.workloads import click_scores, generator, labels, unit_floats
from streammetrics import Calibration, PerKey, Regression

ROWS = 1_000_000
KEYS = 1_000


def main() -> None:
    truth, clicks = labels(ROWS), click_scores(ROWS)
    unit = unit_floats(ROWS)
    numbers = generator(31).standard_normal(ROWS)
    predicted = numbers + generator(32).standard_normal(ROWS) / 4
    weights = generator(33).integers(1, 10, ROWS)
    keys = generator(34).integers(0, KEYS, ROWS)

    def in_batches() -> None:
        metric = Calibration()
        for i in range(0, ROWS, 1000):
            metric.update(truth[i : i + 1000], clicks[i : i + 1000])
        metric.compute()

    ours = measure("Calibration, float64", ROWS, lambda: Calibration().update(truth, unit))
    errors = measure("Regression, float64", ROWS, lambda: Regression().update(numbers, predicted))
    timings = [
        measure(
            "Calibration, clicks in float32", ROWS, lambda: Calibration().update(truth, clicks)
        ),
        measure("the same in batches of 1,000", ROWS, in_batches),
        ours,
        measure(
            "Calibration, with weights",
            ROWS,
            lambda: Calibration().update(truth, unit, weights=weights),
        ),
        measure(
            f"Calibration, by {KEYS:,} keys",
            ROWS,
            lambda: PerKey(Calibration(), max_keys=KEYS).update(keys, labels=truth, scores=unit),
        ),
        errors,
        measure("np.log, whose last bits differ", ROWS, lambda: np.log(unit)),
    ]
    read = read_limit(ROWS, [truth, unit])
    print(table("Calibration.update and Regression.update", timings, read, sort_limit(ROWS)))
    peers = [
        measure("log_loss", ROWS, lambda: log_loss(truth, unit)),
        measure("brier_score_loss", ROWS, lambda: brier_score_loss(truth, unit)),
    ]
    print("\n" + beside("scikit-learn beside Calibration, which gives nine figures", ours, peers))
    peers = [
        measure("mean_squared_error", ROWS, lambda: mean_squared_error(numbers, predicted)),
        measure("r2_score", ROWS, lambda: r2_score(numbers, predicted)),
    ]
    print("\n" + beside("scikit-learn beside Regression, which gives four", errors, peers))


if __name__ == "__main__":
    main()
