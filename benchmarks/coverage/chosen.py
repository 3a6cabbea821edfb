"""The best F1 of the rows: how often its interval over users holds the best one of all rows."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.draws import squashed
from benchmarks.coverage.table import Row, Table
from streammetrics import HistogramAUC, UserGroups

OWN: Final = 1.0  # the deviation of what a user adds to all of their scores


def best_f1(share: float, shift: float, spread: float) -> float:
    """The best F1 among all rows, by sums over 100,000 scores.

    share: of positives, whose scores are higher by `shift`. spread: the deviation of scores.
    """
    scores = np.linspace(8 * spread + shift, -8 * spread, 100_001)
    sides = [np.exp(-(((scores - mean) / spread) ** 2) / 2) for mean in (shift, 0.0)]
    hits, misses = (side.cumsum() / side.sum() for side in sides)
    return float((2 * share * hits / (share * hits + (1 - share) * misses + share)).max())


def chosen(
    n: int, share: float, shift: float, users: int, deviation: float, rng: np.random.Generator
) -> list[float]:
    """Whether the interval of the best F1 holds that of all rows; whether it is below the interval
    and whether above; and how much too high the estimate is, in its errors.

    deviation: that of what each user adds to their scores, which are otherwise standard normal.
    """
    who = np.arange(n) if users == n else rng.integers(0, users, n)
    labels = rng.random(n) < share
    scores = rng.standard_normal(n) + shift * labels + deviation * rng.standard_normal(users)[who]
    state = UserGroups(HistogramAUC())
    state.update(who, labels=labels, scores=squashed(scores))
    value = best_f1(share, shift, float(np.hypot(1.0, deviation)))
    interval = state.compute().interval("best_f_beta(1)")
    below, above = value < interval.lower, value > interval.upper
    return [
        1.0 - below - above,
        float(below),
        float(above),
        (interval.estimate - value) / interval.se,
    ]


def row(
    name: str, n: int, share: float, shift: float, users: int, deviation: float, ms: float
) -> Row:
    """A row of the table."""
    return Row(name, partial(chosen, n, share, shift, users, deviation), 200, ms)


CHOSEN: Final = Table(
    "chosen",
    "rows; share of positives; their mean score, in deviations; users",
    ("holds the best F1", "it is lower", "it is higher", "estimate too high, in errors"),
    (
        row("1,000; 20 %; 1; each comes once", 1000, 0.2, 1.0, 1000, 0.0, 40),
        row("1,000; 5 %; 1; each comes once", 1000, 0.05, 1.0, 1000, 0.0, 40),
        row("1,000; 20 %; 2.5; each comes once", 1000, 0.2, 2.5, 1000, 0.0, 40),
        row("10,000; 20 %; 1; each comes once", 10_000, 0.2, 1.0, 10_000, 0.0, 60),
        row("10,000; 1 %; 1; each comes once", 10_000, 0.01, 1.0, 10_000, 0.0, 60),
        row("10,000; 20 %; 1; 1,000 users", 10_000, 0.2, 1.0, 1000, OWN, 60),
        row("10,000; 5 %; 1; 200 users", 10_000, 0.05, 1.0, 200, OWN, 60),
    ),
)
