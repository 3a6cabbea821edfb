"""Drift of two states: how often chance is called drift, and how often an interval holds."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.draws import PHI
from benchmarks.coverage.table import Row, Table
from streammetrics import Quantiles, UserGroups, drift

LOOKS: Final = 20
EACH: Final = 10  # rows of a user, on average
OWN: Final = 0.5  # the standard deviation of a row around its user's mean
NAN: Final = math.nan


def of_rows(rows: int, rng: np.random.Generator) -> list[float]:
    """Independent rows of one distribution, that arrive between looks."""
    states, certain = (Quantiles(resolution=4), Quantiles(resolution=4)), False
    for _ in range(LOOKS):
        for state in states:
            state.update(rng.standard_normal(rows // LOOKS))
        result = drift(*states)
        certain = certain or result.certain()
    return [float(result.psi_pvalue < 0.05), NAN, NAN, float(certain)]


def of_users(users: int, shift: float, rng: np.random.Generator) -> list[float]:
    """Rows of users who have a mean of their own, other users on each side."""
    states = []
    for side in (0, 1):
        who = rng.integers(0, users, EACH * users)
        means = rng.standard_normal(users) + side * shift
        state: UserGroups = UserGroups(Quantiles(resolution=4))
        state.update(who + side * users, values=means[who] + OWN * rng.standard_normal(len(who)))
        states.append(state)
    result = drift(*states)
    plain = drift(*(state.metric_state() for state in states))
    true = 2 * PHI(shift / 2 / math.hypot(1, OWN)) - 1
    p = [float(outcome.psi_pvalue < 0.05) for outcome in (plain, result)]
    return [*p, float(true in result.interval("ks")), NAN]


DRIFTS: Final = Table(
    "drifts",
    "two states",
    ("p < .05, as independent rows", "p < .05, over users", "interval holds KS",
     "certain at any of 20 looks"),
    (
        Row("no drift, 200 independent rows each", partial(of_rows, 200), 1000, 20),
        Row("no drift, 5,000 independent rows each", partial(of_rows, 5_000), 1000, 20),
        Row("no drift, 200 users each", partial(of_users, 200, 0.0), 500, 30),
        Row("no drift, 1,000 users each", partial(of_users, 1_000, 0.0), 500, 30),
        Row("drift by half a deviation, 200 users each", partial(of_users, 200, 0.5), 500, 30),
        Row("drift by half a deviation, 1,000 users each", partial(of_users, 1_000, 0.5), 500, 30),
    ),
)  # fmt: skip
