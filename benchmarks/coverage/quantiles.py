"""Quantiles watched at many looks: intervals of one look, those of all looks, and the band."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.table import Row, Table
from streammetrics import ConfidenceSequence, ExactQuantiles, Interval, Quantiles, UserGroups
from streammetrics.experiments import Anytime, Experiment, Horizon, Plan

LOOKS: Final = 20
ROWS: Final = 10_000  # of each arm at the end
USERS: Final = 2_000
SHARES: Final = ("0.5", "0.9", "0.99")
TRUE: Final = {"0.5": 0.0, "0.9": 1.2815515655446004, "0.99": 2.3263478740408408}
APART: Final = 0.5
PLAN: Final = Plan(
    control="a",
    variants=("a", "b"),
    decision=("x.quantile(0.9)",),
    horizon=Horizon(units=2 * ROWS, deff=2.0),
)
SEQUENCE: Final = ConfidenceSequence(horizon=Horizon(units=ROWS))

State = ExactQuantiles | UserGroups


def independent(rng: np.random.Generator) -> Iterator[tuple[State, State]]:
    """Two growing arms of normal rows, the second 0.5 higher."""
    arms = ExactQuantiles(), ExactQuantiles()
    for _ in range(LOOKS):
        for i, state in enumerate(arms):
            state.update(rng.normal(APART * i, 1, ROWS // LOOKS))
        yield arms


def returning(rng: np.random.Generator) -> Iterator[tuple[State, State]]:
    """The same of users who come back, and have half of the variance in common."""
    arms = UserGroups(Quantiles()), UserGroups(Quantiles())
    level = rng.normal(0, math.sqrt(0.5), (2, USERS))
    for _ in range(LOOKS):
        for i, state in enumerate(arms):
            who = rng.integers(0, USERS, ROWS // LOOKS)
            noise = rng.normal(0, math.sqrt(0.5), len(who))
            state.update(USERS * i + who, values=APART * i + level[i, who] + noise)
        yield arms


def watched(users: bool, rng: np.random.Generator) -> list[float]:
    """Whether any look misses: by quantile the interval of one look and the one of all looks, any
    quantile by the band, and the difference of the 0.9 quantiles."""
    misses = dict.fromkeys(SHARES, 0.0), dict.fromkeys(SHARES, 0.0)
    band, difference = math.nan if users else 0.0, 0.0
    for arms in returning(rng) if users else independent(rng):
        result = arms[0].compute()
        for p in SHARES:
            view, true = f"quantile({p})", TRUE[p]
            always = SEQUENCE.of(arms[0], view)
            misses[0][p] = max(misses[0][p], outside(result.interval(view), true))
            misses[1][p] = max(misses[1][p], outside(always, true))
            if not users:
                band = max(band, outside(result.interval(view, method="band"), true))
        states = {name: {"x": arm} for name, arm in zip("ab", arms, strict=True)}
        (contrast,) = Experiment(PLAN, states).contrasts()
        effect = contrast.anytime
        difference = max(difference, float(not effect.lower <= APART <= effect.upper))
    return [*misses[0].values(), *misses[1].values(), band, difference]


def outside(interval: Interval | Anytime, true: float) -> float:
    """Whether an interval misses the true value; one that is undefined misses none."""
    return float(interval.lower > true or interval.upper < true)


QUANTILES: Final = Table(
    "quantiles",
    f"{LOOKS} looks at {ROWS:,} rows",
    (
        *(f"one look, {p}" for p in SHARES),
        *(f"always valid, {p}" for p in SHARES),
        "band",
        "difference, 0.9",
    ),
    (
        Row("independent rows", partial(watched, False), 200, 380),
        Row(f"rows of {USERS:,} users who come back", partial(watched, True), 200, 640),
    ),
)
