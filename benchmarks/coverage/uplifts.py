"""Uplift of a randomised treatment: how often the intervals hold the truth, over users or alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.one_look import contains
from benchmarks.coverage.table import Row, Table
from streammetrics import ExactUplift, UserGroups
from streammetrics.experiments import compare

LEVELS: Final = 10  # different scores, so most rows are tied and part 1 of 10 has one of them
SCORES: Final = 2.0 ** (np.arange(LEVELS) / 4)  # of different buckets of the coarse form, too
AREAS: Final = ("qini", "qini_radcliffe_relative", "gain_relative")
TOP: Final = "uplift_in_part(1)"
MANY: Final = 10**9


class Trial(NamedTuple):
    """Users with this many rows each on average, of whom a share is treated. The chance of success
    grows with the score around `base`, and by `effect` if treated, which grows by `slope`."""

    users: int
    each: int
    share: float
    base: float
    effect: float
    slope: float

    @property
    def chances(self) -> NDArray[np.float64]:
        """Of the control and of the treated, by score: [2, LEVELS]."""
        rank = (np.arange(LEVELS) + 0.5) / LEVELS
        control = self.base * (0.5 + rank)
        return np.array([control, control + self.effect + self.slope * (rank - 0.5)])

    @property
    def truth(self) -> dict[str, float]:
        """The views of so many rows that the count of each kind is the expected one."""
        hits = np.array([[1 - self.share], [self.share]]) * self.chances
        fails = np.array([[1 - self.share], [self.share]]) - hits
        counts = np.rint(MANY * np.stack([fails, hits], axis=1)).astype(np.int64)
        treated, labels, level = np.indices(counts.shape).reshape(3, -1)
        state = ExactUplift()
        state.update(labels, SCORES[level], treated, weights=counts.ravel())
        result = state.compute()
        return {**{view: float(getattr(result, view)) for view in (*AREAS, "ate")},
                TOP: result.uplift_in_part(1)}  # fmt: skip

    def state(self, rng: np.random.Generator) -> UserGroups:
        """The rows of users, who are treated or not and each have a rate of their own."""
        several = self.each > 1
        size = rng.geometric(1 / self.each, self.users) if several else 1
        who = np.repeat(np.arange(self.users), size)
        treated = (rng.random(self.users) < self.share)[who]
        level = rng.integers(0, LEVELS, len(who))
        chance = self.chances[treated.astype(np.intp), level]
        if several:
            chance = np.minimum(1, chance * rng.gamma(2, 0.5, self.users)[who])
        state = UserGroups(ExactUplift())
        labels = rng.random(len(who)) < chance
        state.update(
            who + int(rng.integers(1 << 40)), labels=labels, scores=SCORES[level], treated=treated
        )
        return state


def looked_at(trial: Trial, rng: np.random.Generator) -> list[float]:
    """Whether the intervals of areas, of the effect and of the top part hold; nan if there is none;
    whether the areas have no interval."""
    state, true = trial.state(rng), trial.truth
    users, row_interval = state.compute(), state.metric_state().confidence_interval(view="ate")
    intervals = [users.interval(view) for view in AREAS]
    areas = [
        contains(interval, true[view]) if interval.defined else math.nan
        for view, interval in zip(AREAS, intervals, strict=True)
    ]
    return [
        *areas,
        float(not intervals[0].defined),
        contains(row_interval, true["ate"]),
        *effect_and_top(state, true),
        difference(trial, state, rng),
    ]


def effect_and_top(state: UserGroups, true: Mapping[str, float]) -> list[float]:
    """Whether the intervals of the effect and of the top part hold, by both methods for the part;
    nan if there is none."""
    users = state.compute()
    top, symmetric = users.interval(TOP), users.interval(TOP, method="jackknife")
    return [
        contains(users.interval("ate"), true["ate"]),
        contains(top, true[TOP]) if top.defined else math.nan,
        contains(symmetric, true[TOP]) if symmetric.defined else math.nan,
    ]


def difference(trial: Trial, state: UserGroups, rng: np.random.Generator) -> float:
    """Whether the interval of the difference of two such trials' Qini coefficients holds 0."""
    comparison = compare(trial.state(rng), state, view="qini")
    ends = comparison.effect_size_ci_lower, comparison.effect_size_ci_upper
    return float(ends[0] <= 0 <= ends[1]) if math.isfinite(ends[1]) else math.nan


TRIALS: Final[tuple[tuple[str, Trial], ...]] = (
    ("no effect, 2,000 users", Trial(2_000, 1, 0.5, 0.3, 0.0, 0.0)),
    ("effect grows with the score, 5,000 users", Trial(5_000, 1, 0.5, 0.3, 0.05, 0.2)),
    ("the same, 200 users", Trial(200, 1, 0.5, 0.3, 0.05, 0.2)),
    ("the same, 60 users", Trial(60, 1, 0.5, 0.3, 0.05, 0.2)),
    ("1,000 users with 5 rows each", Trial(1_000, 5, 0.5, 0.1, 0.02, 0.1)),
    ("5 % treated, 2,000 users", Trial(2_000, 1, 0.05, 0.1, 0.02, 0.1)),
    ("5 % treated, 20,000 users", Trial(20_000, 1, 0.05, 0.1, 0.02, 0.1)),
    ("0.5 % respond, 20,000 users", Trial(20_000, 1, 0.5, 0.005, 0.002, 0.008)),
    ("5 % treated, 0.5 % respond, 20,000 users", Trial(20_000, 1, 0.05, 0.005, 0.002, 0.008)),
    ("5 % treated, 0.5 % respond, 100,000 users", Trial(100_000, 1, 0.05, 0.005, 0.002, 0.008)),
)

UPLIFTS: Final = Table(
    "uplift",
    "a randomised treatment",
    (
        "Qini",
        "Radcliffe's, relative",
        "AUUC, relative",
        "areas without an interval",
        "ATE, independent rows",
        "ATE, over users",
        "top tenth",
        "top tenth, estimate -/+ t times its error",
        "difference of two Qini",
    ),
    tuple(Row(name, partial(looked_at, trial), 300, 260) for name, trial in TRIALS),
)
