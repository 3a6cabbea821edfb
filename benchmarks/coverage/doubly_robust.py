"""Self-normalised doubly robust values: how often their intervals hold the value of the target, and
how wide they are beside the greatest error that sums without products of terms allow."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.off_policy import (
    LOGGED,
    RARE,
    RATES,
    TARGET,
    Floats,
    Log,
    actions,
    level,
    lognormal,
    rising,
    steep,
)
from benchmarks.coverage.table import Row, Table
from streammetrics import OffPolicy

GRID: Final = (np.arange(100_000) + 0.5) / 100_000


def policies(x: Floats) -> tuple[Floats, Floats, Floats]:
    """Of three actions in a context from 0 to 1: the policy of the log, the target, and the rates
    of rewards, each [n, 3]."""
    logged = np.stack([0.6 - 0.4 * x, np.full_like(x, 0.3), 0.1 + 0.4 * x], 1)
    target = np.stack([0.2 + 0.1 * x, np.full_like(x, 0.3), 0.5 - 0.1 * x], 1)
    return logged, target, np.stack([0.1 + 0.2 * x, 0.3 + 0.3 * x, 0.6 * x], 1)


def contexts(quality: float, rng: np.random.Generator, n: int) -> tuple[dict[str, Floats], float]:
    """Rows of such contexts; predictions are 0.1, and of that `quality` farther to the rates."""
    logged, target, rates = policies(rng.random(n))
    action = (rng.random((n, 1)) > logged[:, :2].cumsum(1)).sum(1)
    rows = np.arange(n), action
    predicted = quality * rates + (1 - quality) * 0.1
    _, whole, true = policies(GRID)
    return {
        "logged": logged[rows],
        "target": target[rows],
        "rewards": (rng.random(n) < rates[rows]).astype(np.float64),
        "predicted_logged": predicted[rows],
        "predicted_target": (target * predicted).sum(1),
    }, float((whole * true).sum(1).mean())


def modelled(
    log: Log, share: float, rng: np.random.Generator, n: int
) -> tuple[dict[str, Floats], float]:
    """Rows of a log, whose model predicts this share of the value for every action."""
    rows, value = log(rng, n)
    q = np.full(n, share * value)
    return {**rows, "predicted_logged": q, "predicted_target": q}, value


def coverage_figures(log: Log, n: int, rng: np.random.Generator) -> list[float]:
    """Whether there is an interval; whether it holds the value of the target, by Student's t alone
    and as it is; whether that with the greatest error does; and the width of the first by that of
    the last."""
    rows, value = log(rng, n)
    metric = OffPolicy()
    metric.update(**rows)
    result = metric.compute()
    shown, raw_interval = result.interval("sndr"), result.raw.interval("sndr")
    if not shown.defined or math.isnan(result.sndr):
        return [0.0, math.nan, math.nan, math.nan, math.nan]
    w = rows["target"] / rows["logged"]
    slope = float(w @ (rows["rewards"] - rows["predicted_logged"]) / w.sum())
    greatest = result.interval("dr").se + abs(slope) * result.interval("mean_weight").se
    far = raw_interval.width / 2 * greatest / raw_interval.se
    return [
        1.0,
        float(raw_interval.lower <= value <= raw_interval.upper),
        float(shown.lower <= value <= shown.upper),
        float(abs(result.sndr - value) <= far),
        raw_interval.se / greatest,
    ]


def row(name: str, log: Log, n: int, ms: float = 4.0) -> Row:
    """A row of the table."""
    return Row(name, partial(coverage_figures, log, n), 1000, ms)


DOUBLY_ROBUST: Final = Table(
    "doubly-robust",
    "logs",
    (
        "have an interval",
        "SNDR, Student's t alone",
        "SNDR",
        "with the greatest error, Student's t alone",
        "width by that of the greatest",
    ),
    (
        row("three actions, predictions 0.8 of the rates, 1,000 rows",
            partial(actions, LOGGED, TARGET, RATES), 1000),
        row("the same predictions, rewards in 3 %, 10,000 rows",
            partial(actions, LOGGED, TARGET, RATES / 10), 10_000),
        row("contexts, a true model, 500 rows", partial(contexts, 1.0), 500),
        row("contexts, half a model, 500 rows", partial(contexts, 0.5), 500),
        row("contexts, no model, 500 rows", partial(contexts, 0.0), 500),
        row("contexts, predictions of the wrong sign, 500 rows", partial(contexts, -2.0), 500),
        row("contexts, a true model, 5,000 rows", partial(contexts, 1.0), 5000),
        row("lognormal weights, σ 1, rewards rise with the weight, 2,000 rows",
            partial(modelled, partial(lognormal, 1.0, rising), 0.8), 2000),
        row("σ 1, rewards in 30 % whatever the weight, no model, 2,000 rows",
            partial(modelled, partial(lognormal, 1.0, level), 0.0), 2000),
        row("σ 1.7, rewards in 30 % whatever the weight, 20,000 rows",
            partial(modelled, partial(lognormal, 1.7, level), 0.8), 20_000),
        row("σ 1.7, rewards rise with the weight, 0.8 of the value, 5,000 rows",
            partial(modelled, partial(lognormal, 1.7, steep), 0.8), 5000),
        row("an action of weight 100 that the log took twice, 2,000 rows",
            partial(actions, *RARE, RATES), 2000),
    ),
)  # fmt: skip
