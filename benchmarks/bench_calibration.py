"""Calibration, Regression and OffPolicy: an update and its logarithm, compared with scikit-learn.

scikit-learn's functions take all rows at once and keep no state; each computes one of our figures.
`python -m benchmarks.bench_calibration`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.answer import Answer, answer, run_question
from benchmarks.area_peers import missing
from benchmarks.harness import Timing, measure
from benchmarks.workloads import click_scores, cut, generator, labels_of, unit_floats
from streammetrics import (
    Accumulator,
    Calibration,
    Interleaving,
    Moments,
    OffPolicy,
    PerKey,
    Regression,
)

KEYS = 1_000


def timing(
    name: str, empty: Accumulator, size: int, *columns: np.ndarray, task: str = ""
) -> Timing:
    """The time of all rows in batches of one size."""
    work = cut(size, *columns)

    def job() -> None:
        state = empty.empty()
        for batch in work:
            state.update(*batch)
        state.compute()

    return measure(name, len(columns[0]), job, task=task, peak=True)


def ask(quick: bool) -> Answer:
    rows = 200_000 if quick else 1_000_000
    clicks, unit = click_scores(rows), unit_floats(rows)
    truth, numbers = labels_of(unit, 0.3), generator(31).standard_normal(rows)
    predicted = numbers + generator(32).standard_normal(rows) / 4
    weights = generator(33).integers(1, 10, rows)
    keys = generator(34).integers(0, KEYS, rows)
    rewards = labels_of(unit, 0.01)
    logged = 0.02 + 0.98 * generator(35).random(rows)
    report = answer(
        "calibration",
        "Calibration and Regression, update and compute",
        rows=rows,
        arrays=[truth, unit],
    )
    report.add(
        timing("Calibration, float64", Calibration(), rows, truth, unit, task="log loss"),
        timing("Calibration, clicks in float32", Calibration(), rows, truth, clicks),
        *(
            timing(f"the same, batches of {n:,}", Calibration(), n, truth, clicks)
            for n in (10_000, 1_000, 100)
        ),
        measure(
            "Calibration, with weights",
            rows,
            lambda: Calibration().update(truth, unit, weights=weights),
        ),
        measure(
            f"Calibration, by {KEYS:,} keys",
            rows,
            lambda: PerKey(Calibration(), max_keys=KEYS).update(keys, labels=truth, scores=unit),
        ),
        timing("Regression, float64", Regression(), rows, numbers, predicted, task="R²"),
        timing("OffPolicy, clicks", OffPolicy(), rows, logged, unit, rewards),
        timing("OffPolicy, amounts", OffPolicy(), rows, logged, unit, predicted),
        timing("Interleaving, float64", Interleaving(), rows, truth.astype(float), clicks),
        timing("Moments, float64", Moments(), rows, numbers, task="variance"),
        measure(
            "np.var",
            rows,
            lambda: np.var(numbers, ddof=1),
            task="variance",
            peer="numpy",
            peak=True,
        ),
        measure("np.log, whose last bits differ", rows, lambda: np.log(unit), peer="np.log"),
    )
    if why := missing("sklearn"):
        report.add(why)
        return report
    from sklearn.metrics import brier_score_loss, log_loss, r2_score

    calibrated, regressed = Calibration(), Regression()
    calibrated.update(truth, unit)
    regressed.update(numbers, predicted)
    result = calibrated.compute()
    jobs: dict[str, tuple[str, float, Callable[[], float]]] = {
        "log_loss": ("log loss", float(result.log_loss), lambda: log_loss(truth, unit)),
        "brier_score_loss": (
            "Brier", float(result.brier), lambda: brier_score_loss(truth, unit)
        ),
        "r2_score": ("R²", float(regressed.compute().r2), lambda: r2_score(numbers, predicted)),
    }  # fmt: skip
    for name, (task, value, job) in jobs.items():
        peer_value = float(job())
        assert math.isclose(peer_value, value, rel_tol=1e-9), (name, peer_value, value)
        report.add(measure(f"scikit-learn, {name}", rows, job, task=task, peer="scikit-learn"))
    return report


if __name__ == "__main__":
    run_question(ask)
