"""Interleaving and off-policy values watched all the time: how often any look misses the truth."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.one_look import contains
from benchmarks.coverage.table import Row, Table
from streammetrics import GroupedInterleaving, Interleaving, OffPolicy, UserGroups
from streammetrics.experiments import ConfidenceSequence, Horizon

LISTS: Final = 2_000
LOOKS: Final = 20
USERS: Final = 200
ROUNDS: Final = 200
NAN: Final = math.nan
SEQUENCE: Final = ConfidenceSequence(horizon=Horizon(mde=0.05))
CONFIDENT: Final = 20  # the e-value that rejects at 5 %


def every_list(rng: np.random.Generator) -> list[float]:
    """Lists of users who click on either team alike, a look at each; a third has a tie."""
    state, alarm = Interleaving(), False
    for side in rng.integers(0, 3, LISTS).tolist():
        state.update([side != 1], [side != 0])
        alarm = alarm or state.compute().e_value >= CONFIDENT
    return [float(alarm), NAN, NAN]


def only_ties(rng: np.random.Generator) -> list[float]:
    """Lists without a winner."""
    state: UserGroups = UserGroups(Interleaving())
    for _ in range(LOOKS):
        clicks = rng.integers(0, 3, LISTS // LOOKS)
        state.update(rng.integers(0, USERS, len(clicks)), clicks_a=clicks, clicks_b=clicks)
    return [float(state.compute().e_value >= CONFIDENT), *missed(state, 0.0)]


def returning(prefer: float, drift: float, rng: np.random.Generator) -> list[float]:
    """Lists of users who come back. Each prefers a team by up to `prefer`, which changes its sign
    during the test if they drift; on average over users and time they prefer none."""
    state: UserGroups = UserGroups(Interleaving())
    preferences, misses = rng.uniform(-prefer, prefer, USERS), [0.0, 0.0, 0.0]
    for look in range(LOOKS):
        who = rng.integers(0, USERS, LISTS // LOOKS)
        now = preferences * (1 - 2 * drift * look / (LOOKS - 1))
        won = rng.random(len(who)) < 0.5 + now[who]
        state.update(who, clicks_a=~won, clicks_b=won)
        looked = [float(state.compute().e_value >= CONFIDENT), *missed(state, 0.0)]
        misses = list(map(max, misses, looked))
    return misses if not prefer else [NAN, *misses[1:]]


def missed(state: UserGroups, truth: float) -> list[float]:
    """Whether the interval of one look and that of all looks miss."""
    interval, always = state.compute().interval(), SEQUENCE.of(state)
    return [1 - contains(interval, truth), 1 - contains(always, truth)]


def sessions(count: int, rng: np.random.Generator) -> list[float]:
    """Sessions one after the other, credit by session, a look after each."""
    state, alarm = GroupedInterleaving(), False
    for session in range(count):
        teams = rng.integers(0, 2, int(rng.integers(1, 6)))
        state.update(np.ones(len(teams), int), teams, groups=np.full(len(teams), session))
        alarm = alarm or state.compute().e_value >= CONFIDENT
    return [float(alarm), NAN, NAN]


def open_groups(rng: np.random.Generator) -> list[float]:
    """Credit by user, of users who all come back in each round: the winner of a user may change."""
    state, alarm, always = GroupedInterleaving(), False, False
    who = np.arange(5 * USERS)
    for _ in range(ROUNDS):
        state.update(np.ones(len(who), int), rng.integers(0, 2, len(who)), groups=who)
        alarm = alarm or state.compute().e_value >= CONFIDENT
        always = always or not contains(SEQUENCE.of(state), 0.0)
    return [float(alarm), NAN, float(always)]


def off_policy(users: int, rng: np.random.Generator) -> list[float]:
    """Rewards of users who come back, who each have a rate of their own; three actions, of which
    the target takes the third, rare one in half of the rows."""
    state: UserGroups = UserGroups(OffPolicy())
    sequence = ConfidenceSequence(horizon=Horizon(mde=0.05))
    logged, target = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.3, 0.5])
    lift, rates, misses = np.array([-0.05, 0.0, 0.1]), rng.beta(6, 14, users), [0.0, 0.0]
    truth = 0.3 + float(target @ lift)
    for _ in range(LOOKS):
        who, action = rng.integers(0, users, 500), rng.choice(3, 500, p=logged)
        chance = np.clip(rates[who] + lift[action], 0, 1)
        rewards = (rng.random(500) < chance).astype(np.int64)
        state.update(who, logged=logged[action], target=target[action], rewards=rewards)
        interval, always = state.compute().interval(), sequence.of(state)
        misses = [
            max(misses[0], 1 - contains(interval, truth)),
            max(misses[1], 1 - contains(always, truth)),
        ]
    return [NAN, *misses]


POLICIES: Final = Table(
    "policies",
    "looks at one state",
    ("e ≥ 20", "interval of one look misses", "always-valid interval misses"),
    (
        Row("2,000 lists, a look at each", every_list, 400, 110),
        Row("2,000 lists of 200 users, 20 looks", partial(returning, 0.0, 0.0), 400, 35),
        Row("the same, each prefers a team", partial(returning, 0.4, 0.0), 400, 35),
        Row("the same, which changes with time", partial(returning, 0.4, 1.0), 400, 35),
        Row("lists with ties only, 20 looks", only_ties, 200, 3),
        Row(
            "credit by session, one after the other, a look at each",
            partial(sessions, LISTS // 2),
            200,
            400,
        ),
        Row("credit by user, 1,000 who all come back 200 times", open_groups, 200, 360),
        Row("off-policy value, 1,000 users, 20 looks", partial(off_policy, 1_000), 400, 260),
    ),
)
