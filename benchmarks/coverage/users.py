"""Users with many rows each: rows assumed independent, compared with UserGroups."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.draws import (
    MEAN_NDCG,
    PHI,
    Activity,
    active,
    clicks,
    grouped_area,
    grouped_clicks,
    grouped_lists,
    squashed,
)
from benchmarks.coverage.one_look import contains
from benchmarks.coverage.table import Row, Table
from streammetrics import HistogramAUC, Ratio, UserGroups
from streammetrics.experiments import ConfidenceSequence, compare

PEEKS: Final = 20
PEEKED_USERS: Final = 1000


def coverage_figures(state: UserGroups, truth: float) -> list[float]:
    """Whether the interval of rows and that of users hold the truth; the design effect, and the
    ratio of their widths."""
    rows, users = state.confidence_interval(cluster="none"), state.confidence_interval()
    wider = (users.upper - users.lower) / (rows.upper - rows.lower)
    return [contains(rows, truth), contains(users, truth), users.deff, wider]


def clicking(users: int, activity: Activity, alike: bool, rng: np.random.Generator) -> list[float]:
    """A rate of 10 %."""
    who = active(rng, users, activity)
    return coverage_figures(grouped_clicks(who, clicks(rng, who, alike=alike)), 0.1)


def ranked(users: int, spread: float, rng: np.random.Generator) -> list[float]:
    """An area of 0.75."""
    return coverage_figures(grouped_area(rng, active(rng, users), 0.75, spread), 0.75)


def listed(users: int, rng: np.random.Generator) -> list[float]:
    """A mean of NDCG@5."""
    return coverage_figures(grouped_lists(rng, active(rng, users)), MEAN_NDCG)


def chosen(view: str, truth: float, rng: np.random.Generator) -> list[float]:
    """A rate at a threshold that the rows choose; it has no interval of independent rows."""
    who = active(rng, 1500)
    shifts, scores = rng.standard_normal(1500)[who.rows], rng.standard_normal(who.n)
    labels = rng.standard_normal(who.n) + shifts + scores > 1
    state = UserGroups(HistogramAUC())
    state.update(who.rows, labels=labels, scores=squashed(scores))
    users = state.confidence_interval(view=view)
    return [math.nan, contains(users, truth), math.nan, math.nan]


def chosen_truths() -> dict[str, float]:
    """The values of these views among all rows, by sums over 100,000 scores."""
    scores = np.linspace(8, -8, 100_001)
    rows = np.exp(-scores * scores / 2)
    hits = rows * np.array([PHI((x - 1) / math.sqrt(2)) for x in scores.tolist()])
    rows, hits = rows.cumsum() / rows.sum(), hits.cumsum() / rows.sum()
    precision, recall = hits / rows, hits / hits[-1]
    at_recall, at_budget = np.searchsorted(recall, 0.8), np.searchsorted(rows, 0.05)
    return {
        "precision_at_recall(0.8)": float(precision[at_recall]),
        "recall_at_budget(0.05)": float(recall[at_budget]),
        "best_f_beta(1)": float((2 * hits / (rows + hits[-1])).max()),
    }


def peeked(returning: bool, looks: int, rng: np.random.Generator) -> list[float]:
    """Looks at an A/A test of users with ten rows each: tests of rows and of users, and sequences.

    returning: each user's rows are spread over the looks; else all are at one look.
    """
    sizes = np.full(PEEKED_USERS, 10)
    arms, rates, arm_looks = [], [], []
    for first in (0, PEEKED_USERS):
        arms.append(np.repeat(np.arange(first, first + PEEKED_USERS), sizes))
        rates.append(np.repeat(rng.beta(1, 9, PEEKED_USERS), sizes))
        look_of = rng.integers(0, looks, len(rates[-1]) if returning else PEEKED_USERS)
        arm_looks.append(look_of if returning else np.repeat(look_of, sizes))
    states = [UserGroups(Ratio()) for _ in arms]
    v_opt = 0.5 * PEEKED_USERS * 10 / (2 * 0.1 * 0.9)
    of_rows, of_users = ConfidenceSequence(v_opt=v_opt), ConfidenceSequence(v_opt=v_opt / 2)
    crossed = [False] * 4
    for look in range(looks):
        for state, who, rate, look_of in zip(states, arms, rates, arm_looks, strict=True):
            now = look_of == look
            state.update(who[now], numerators=(rng.random(now.sum()) < rate[now]).astype(int))
        rows, users = compare(*(groups.metric_state() for groups in states)), compare(*states)
        p_values = (
            rows.pvalue,
            users.pvalue,
            of_rows.at(rows).p_value,
            of_users.at(users).p_value,
        )
        crossed = [flag or p <= 0.05 for flag, p in zip(crossed, p_values, strict=True)]
    return list(map(float, crossed))


RATES: Final[tuple[tuple[str, int, Activity, bool, float], ...]] = (
    ("rate, 10,000 users who are all alike", 10_000, "geometric", True, 9),
    ("rate, 200 users, each with a rate of their own", 200, "geometric", False, 5.5),
    ("rate, 1,000 such users", 1000, "geometric", False, 5.5),
    ("rate, 10,000 such users", 10_000, "geometric", False, 9),
    ("rate, 1,000 users, some with hundreds of rows", 1000, "lognormal", False, 7),
    ("rate, 1,000 users, a few with thousands", 1000, "pareto", False, 5.5),
    ("rate, 10,000 users, a few with thousands", 10_000, "pareto", False, 7),
)

USERS: Final = Table(
    "users",
    "users, with about 10 rows each",
    ("rows as independent", "UserGroups", "deff", "times as wide"),
    (
        *(
            Row(name, partial(clicking, users, activity, same), 2000, ms)
            for name, users, activity, same, ms in RATES
        ),
        Row("AUC, 500 users", partial(ranked, 500, 1.0), 1000, 13),
        Row("AUC, 2,000 users", partial(ranked, 2000, 1.0), 1000, 13),
        *(
            Row(f"{view}, 1,500 users", partial(chosen, view, truth), 500, 55)
            for view, truth in chosen_truths().items()
        ),
        Row("NDCG@5, 100 users", partial(listed, 100), 1000, 8),
        Row("NDCG@5, 1,000 users", partial(listed, 1000), 1000, 11),
    ),
)

USERS_PEEKED: Final = Table(
    "users-peeked",
    "1,000 users of each arm, 20 looks",
    (
        "z-test of rows",
        "t-test of UserGroups",
        "sequence of rows",
        "sequence of UserGroups",
    ),
    (
        Row("who come once", partial(peeked, False, PEEKS), 300, 240),
        Row("who come back", partial(peeked, True, PEEKS), 300, 240),
    ),
)
