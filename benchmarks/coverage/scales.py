"""Scores on every scale: areas over users, of one arm and of two."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import NormalDist
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.draws import PHI, Users, active, squashed
from benchmarks.coverage.one_look import contains
from benchmarks.coverage.table import Row, Table
from streammetrics import ExactAUC, UserGroups
from streammetrics.experiments import compare

Scale: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
SPREAD: Final = 1.0  # of a user's own part of the score, as large as that of a row
AREA: Final = 0.75
SHIFT: Final = math.sqrt(2 * (1 + SPREAD * SPREAD)) * NormalDist().inv_cdf(AREA)

SCALES: Final[dict[str, Scale]] = {
    "percent": lambda z: 100 * squashed(z),
    "Elo, 1500 + 30 z": lambda z: 1500 + 30 * z,
    "as BM25, 8 exp(z / 2)": lambda z: 8 * np.exp(z / 2),
    "cosines": lambda z: np.tanh(z / 4),
    "from .9 to .93": lambda z: 0.9 + 0.03 * squashed(z),
    "grades, heavy ties": np.round,
    "outliers, z to the 41st": lambda z: z**41,
}


def tied_area() -> float:
    """The area of the scores rounded to integers, of which equal ones count 1/2."""
    size = math.sqrt(1 + SPREAD * SPREAD)

    def share(grade: int, mean: float) -> float:
        return PHI((grade + 0.5 - mean) / size) - PHI((grade - 0.5 - mean) / size)

    return sum(
        share(grade, SHIFT) * (PHI((grade - 0.5) / size) + share(grade, 0.0) / 2)
        for grade in range(-12, 16)
    )


def scored_users(rng: np.random.Generator, who: Users, scale: Scale, first: int) -> UserGroups:
    """The area of these rows in groups of users, a fifth of them positive."""
    labels = (rng.random(who.n) < 0.2).astype(np.int64)
    shifts = (SPREAD * rng.standard_normal(who.users))[who.rows]
    state = UserGroups(ExactAUC())
    scores = scale(rng.standard_normal(who.n) + shifts + SHIFT * labels)
    state.update(who.rows + first, labels=labels, scores=scores)
    return state


def on_a_scale(users: int, scale: Scale, truth: float, rng: np.random.Generator) -> list[float]:
    """Whether the intervals of rows and of users of one arm hold the truth, and whether the
    comparison with an equal arm rejects."""
    arms = [scored_users(rng, active(rng, users), scale, first) for first in (0, users)]
    rows = arms[0].confidence_interval(cluster="none")
    return [
        contains(rows, truth),
        contains(arms[0].confidence_interval(), truth),
        float(compare(*arms).pvalue <= 0.05),
    ]


USERS: Final = (300, 60)

SCALES_OF_SCORES: Final = Table(
    "scales",
    "area of scores over users",
    ("rows as independent", "UserGroups", "A/A tests of compare rejected"),
    tuple(
        Row(
            f"{name}; {users} users",
            partial(on_a_scale, users, scale, tied_area() if "ties" in name else AREA),
            200,
            22,
        )
        for users in USERS
        for name, scale in SCALES.items()
    ),
)
