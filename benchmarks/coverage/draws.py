"""Draws of users and rows with a known truth, and the metrics that count them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from streammetrics import NDCG, HistogramAUC, RankingMetrics, Ratio, UserGroups

Activity = Literal["geometric", "lognormal", "pareto"]
LENGTH: Final = 5  # items of a list, of which one is relevant
GAINS: Final = 1 / np.log2(np.arange(2, LENGTH + 2))
PHI: Final = NormalDist().cdf


def add_rows(state: Ratio, successes: int, n: int) -> None:
    """Add n rows of 0 and 1, of which `successes` are 1."""
    rows = np.zeros(n, np.int8)
    rows[:successes] = 1
    state.update(rows)


@dataclass(frozen=True, slots=True)
class Users:
    """Rows of users. rows: [n] the user of each row; users: the number of users."""

    users: int
    rows: NDArray[np.int64]

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.rows)


def active(rng: np.random.Generator, users: int, activity: Activity = "geometric") -> Users:
    """Users with about 10 rows each (pareto: 3), at least one; a few have many."""
    match activity:
        case "geometric":
            rows = rng.geometric(0.1, users)
        case "lognormal":
            rows = np.ceil(rng.lognormal(1, 1.5, users)).astype(np.int64)
        case "pareto":
            rows = np.ceil(rng.pareto(1.5, users)).astype(np.int64)
    return Users(users, np.repeat(np.arange(users), rows))


def clicks(
    rng: np.random.Generator, who: Users, rate: float = 0.1, *, alike: bool = False
) -> NDArray[np.int64]:
    """[n] of 0 and 1: each user has their own rate, Beta(1, 1 / rate - 1), whose mean is `rate`.

    alike: all have the same rate.
    """
    rates = np.full(who.users, rate) if alike else rng.beta(1, 1 / rate - 1, who.users)
    drawn: NDArray[np.int64] = (rng.random(who.n) < rates[who.rows]).astype(np.int64)
    return drawn


def grouped_clicks(who: Users, clicked: NDArray[np.int64], first: int = 0) -> UserGroups:
    """The click rate of these rows in groups of users; users are numbered from `first`."""
    state = UserGroups(Ratio())
    state.update(who.rows + first, numerators=clicked)
    return state


def scored(
    rng: np.random.Generator,
    n: int,
    area: float,
    prevalence: float,
    addends: NDArray[np.float64] | float = 0.0,
    spread: float = 0.0,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and scores of two normal classes with this area under the ROC curve.

    addends: [n] the addend of each row's user to the score, with standard deviation `spread`.
    """
    labels = (rng.random(n) < prevalence).astype(np.int64)
    shift = math.sqrt(2 * (1 + spread * spread)) * NormalDist().inv_cdf(area)
    return labels, squashed(rng.standard_normal(n) + addends + shift * labels)


def squashed(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers mapped to probabilities, in the same order."""
    probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-x))
    return probabilities


def grouped_area(
    rng: np.random.Generator, who: Users, area: float, spread: float, first: int = 0
) -> UserGroups:
    """The area of these rows in groups of users; the scores of one user are correlated."""
    shifts = (spread * rng.standard_normal(who.users))[who.rows]
    labels, scores = scored(rng, who.n, area, 0.2, shifts, spread)
    state = UserGroups(HistogramAUC())
    state.update(who.rows + first, labels=labels, scores=scores)
    return state


def grouped_lists(rng: np.random.Generator, who: Users, first: int = 0) -> UserGroups:
    """NDCG@5 of one list per row: the relevant item is first with the probability of its user's
    quality, uniform in [0, 1], else at a uniform lower rank."""
    best = rng.random(who.n) < rng.random(who.users)[who.rows]
    ranks = np.where(best, 0, rng.integers(1, LENGTH, who.n))
    relevant = (ranks[:, None] == np.arange(LENGTH)).astype(np.int64)
    scores = np.broadcast_to(np.arange(LENGTH, 0.0, -1.0), relevant.shape)
    state = UserGroups(RankingMetrics([NDCG @ LENGTH]))
    state.update(who.rows + first, labels=relevant, scores=scores)
    return state


MEAN_NDCG: Final = 0.5 + 0.5 * float(GAINS[1:].mean())
