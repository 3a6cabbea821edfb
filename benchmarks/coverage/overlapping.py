"""How often any of twenty experiments over the same users is wrong: all without an effect.

Each user is in every experiment, in an arm of each that has nothing to do with the others. Users
come, and come back, while somebody looks; all looks at an arm are computed at once, as in
`verdicts`. What an experiment says at a look is what it says alone: nothing is shared but users.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.amounts import lognormal
from benchmarks.coverage.sparse import K
from benchmarks.coverage.streams import logarithmic
from benchmarks.coverage.table import Row, Table
from benchmarks.coverage.verdicts import ALPHA, LOOKS, Pair, of_events, of_rows, of_users, planned
from streammetrics.experiments import ConfidenceSequence
from streammetrics.kernels.inference.dirichlet_multinomial import Successes, log_e_of_successes

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

EXPERIMENTS: Final = 20
USERS: Final = 4_000
NAIVE_Z: Final = 1.959964
MOST_ROWS: Final = 300  # of a user

Pairs = Callable[[np.random.Generator, Bools, float], Iterator[Pair]]


def least_p(pair: Pair) -> float:
    """The least always-valid p-value of all looks, by the rule of a verdict."""
    sequence = ConfidenceSequence(alpha=ALPHA, v_opt=pair.v_opt)
    a, b, variance = pair.control, pair.treatment, pair.variance()
    with np.errstate(all="ignore"):
        far = np.abs(b.value - a.value) > 3.0 * np.sqrt(variance)
    least = 1.0
    for i in np.flatnonzero(far & (variance > 0)).tolist():
        if pair.enough(i):
            least = min(least, sequence.at(pair.evidence(i, variance)).p_value)
        elif a.events is not None and b.events is not None and a.df is None:
            share = Fraction(str(pair.share))
            counts = Successes(int(a.events[i]), int(b.events[i]), share)
            least = min(least, math.exp(-log_e_of_successes([counts])))
    return least


def ever_significant(pair: Pair) -> bool:
    """Whether a z-test with the variance of each arm by itself is significant at any look."""
    a, b = pair.control, pair.treatment
    with np.errstate(all="ignore"):
        z = np.abs(b.value - a.value) / np.sqrt(pair.own_variance())
    return bool((z[np.isfinite(z)] > NAIVE_Z).any())


def first_looks(rng: np.random.Generator) -> Ints:
    """The look at which each user comes first, [USERS], ascending."""
    new = logarithmic(USERS, LOOKS)
    looks: Ints = np.repeat(np.arange(LOOKS), new)
    return rng.permutation(looks)


def users_with_an_event(rng: np.random.Generator, treated: Bools, share: float) -> Iterator[Pair]:
    """The share of users with an event, one of 20; each comes once."""
    look, event = first_looks(rng), rng.random(USERS) < 0.05
    v_opt = planned(USERS, 0.05 * 0.95, share)
    for treatment in treated:
        sides = []
        for arm in (~treatment, treatment):
            new = np.bincount(look[arm], minlength=LOOKS)
            sides.append(of_events(np.bincount(look[arm & event], minlength=LOOKS), new))
        yield Pair(sides[0], sides[1], v_opt, share)


def clicks_of_heavy_users(rng: np.random.Generator, treated: Bools, share: float) -> Iterator[Pair]:
    """Clicks per view over users who come back: views as Zipf has them, and a rate of each user's
    own."""
    first, views = first_looks(rng), np.minimum(rng.zipf(1.7, USERS), MOST_ROWS)
    user = np.repeat(np.arange(USERS), views)
    look = rng.integers(first[user], LOOKS)
    click = rng.random(len(user)) < rng.beta(0.5, 9.5, USERS)[user]
    cells = look * K + rng.integers(0, K, USERS)[user]
    arrival = np.full(USERS, LOOKS)
    np.minimum.at(arrival, user, look)
    n_all = np.bincount(cells, minlength=LOOKS * K).reshape(-1, K)
    y_all = np.bincount(cells[click], minlength=LOOKS * K).reshape(-1, K)
    v_opt = planned(USERS, 0.05 * 0.95 * (1 / 11 + 1 / 5), share)
    for treatment in treated:
        rows = treatment[user]
        n = np.bincount(cells[rows], minlength=LOOKS * K).reshape(-1, K)
        y = np.bincount(cells[rows & click], minlength=LOOKS * K).reshape(-1, K)
        users = [np.bincount(arrival[arm], minlength=LOOKS) for arm in (~treatment, treatment)]
        sides = of_users(y_all - y, n_all - n, users[0]), of_users(y, n, users[1])
        yield Pair(*sides, v_opt, share)


def amounts_of_users(rng: np.random.Generator, treated: Bools, share: float) -> Iterator[Pair]:
    """Mean amounts per user, lognormal with σ 1; each comes once."""
    look, amounts = np.sort(first_looks(rng)), lognormal(1.0)
    values = amounts.draw(rng, USERS)
    v_opt = planned(USERS, amounts.square - amounts.mean**2, share)
    for treatment in treated:
        sides = [
            of_rows(values[arm], np.bincount(look[arm], minlength=LOOKS))
            for arm in (~treatment, treatment)
        ]
        yield Pair(sides[0], sides[1], v_opt, share)


def twenty(pairs: Pairs, share: float, rng: np.random.Generator) -> list[float]:
    """The share of the experiments with a significant z-test at any look, and with a false verdict;
    whether any of them has one, and whether one has if their p-values are adjusted."""
    treated = rng.random((EXPERIMENTS, USERS)) < share
    naive, least = [], []
    for pair in pairs(rng, treated, share):
        naive.append(ever_significant(pair))
        least.append(least_p(pair))
    false = [p <= ALPHA for p in least]
    return [
        math.fsum(naive) / EXPERIMENTS,
        math.fsum(false) / EXPERIMENTS,
        float(any(false)),
        float(min(least) <= ALPHA / EXPERIMENTS),
    ]


OVERLAPPING: Final = Table(
    "overlapping",
    "what is compared; share of the treatment",
    (
        "z-test at any look, by experiment",
        "a false verdict, by experiment",
        "in any of the 20",
        "in any, adjusted over the 20",
    ),
    tuple(
        Row(f"{name}; {100 * share:g} %", partial(twenty, pairs, share), 200, ms)
        for name, pairs, ms in (
            ("users with an event, 5 %", users_with_an_event, 6.0),
            ("clicks per view, Zipf-like users", clicks_of_heavy_users, 24.0),
            ("amounts, lognormal, σ 1", amounts_of_users, 7.0),
        )
        for share in (0.05, 0.5)
    ),
)
