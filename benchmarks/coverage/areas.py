"""How often a verdict on areas over users is wrong, by what an area is taken to rest on.

Scores have few levels, so that the area without each group of users follows, at every look at once,
from counts by group and level. The treatment's effect is added to its area.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.sparse import K
from benchmarks.coverage.table import Row, Table
from benchmarks.coverage.verdicts import (
    ALPHA,
    ERRORS,
    GROUPS,
    USERS,
    new_units,
)
from streammetrics.experiments import ConfidenceSequence, Evidence
from streammetrics.kernels.inference.pooled_variance import (
    CLASS_ROWS,
    RowsAndUsers,
    difference_variance,
    effective_number,
    harmonic_number,
)
from streammetrics.kernels.inference.t_interval import welch_df

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS: Final = 24  # of the scores
MOST_ROWS: Final = 2000  # of a user
PILOT: Final = 40_000  # users, who show the variance that is planned for
# Those below a level, and half of those at it.
_BELOW: Final = np.triu(np.ones((LEVELS, LEVELS))) - np.eye(LEVELS) / 2


@dataclass(frozen=True, slots=True)
class Crowd:
    """The users of an arm. rate: of positive rows. rows: of each user, equally many, or in a few
    users very many. scores: the quality that differs between users: "own", a level of their own,
    and "far" ones; "sharp", how well scores order their rows; "alike", nothing, nor do their rates.
    classes: rows of both in each user, or of one only."""

    rate: float
    rows: int | Literal["Zipf"] = 10
    scores: Literal["own", "far", "sharp", "alike"] = "own"
    classes: Literal["both", "one"] = "both"

    def draw(self, rng: np.random.Generator, users: int) -> tuple[Ints, NDArray[np.bool_], Ints]:
        """Of each row the user, whether it is positive, and the level of its score; [n]."""
        if self.rows == "Zipf":
            row_counts = np.minimum(np.ceil(2 * rng.pareto(1.5, users)), MOST_ROWS).astype(np.int64)
        else:
            row_counts = np.full(users, self.rows)
        who = np.repeat(np.arange(users), row_counts)
        rates = np.full(users, self.rate)
        if self.classes == "one":
            rates = (rng.random(users) < self.rate).astype(np.float64)
        elif self.scores != "alike":
            rates = rng.beta(2 * self.rate, 2 * (1 - self.rate), users)
        level = {"own": 1.0, "far": 1.5, "sharp": 0.3, "alike": 0.0}[
            self.scores
        ] * rng.standard_normal(users)
        apart = 1.0 + (1.5 * rng.standard_normal(users) if self.scores == "sharp" else 0.0)
        positive = rng.random(len(who)) < rates[who]
        apart = np.broadcast_to(apart, users)
        x = rng.standard_normal(len(who)) + level[who] + np.where(positive, apart[who], 0.0)
        spread = {"own": 1.4, "far": 1.8, "sharp": 1.8, "alike": 1.0}[self.scores]
        levels = ((x - 0.5) / spread * LEVELS / 4 + LEVELS / 2).astype(np.int64)
        return who, positive, levels.clip(0, LEVELS - 1)


@dataclass(frozen=True, slots=True)
class Area:
    """An area over users at each look, its variance with its degrees of freedom, the variance of
    independent rows, and the users; all [looks]. positive, negative: the rows of each group,
    [looks, K]."""

    value: Floats
    variance: Floats
    alone: Floats
    df: Floats
    users: Floats
    positive: Ints
    negative: Ints

    @property
    def pairs(self) -> Floats:
        """PN / (P + N) of the rows."""
        p, n = self.positive.sum(axis=1), self.negative.sum(axis=1)
        pair_counts: Floats = p * n / (p + n)
        return pair_counts

    @property
    def basis(self) -> RowsAndUsers[Floats]:
        """What the area rests on, as the product has it."""
        sides = zip(self.positive.tolist(), self.negative.tolist(), strict=True)
        users = [harmonic_number([tuple(map(effective_number, pair))]) for pair in sides]
        return RowsAndUsers(self.pairs, np.array(users), np.minimum(1, self.alone / self.variance))

    def enough(self) -> NDArray[np.bool_]:
        """Whether there are ten rows of each class, and sixteen groups."""
        classes = np.minimum(self.positive.sum(axis=1), self.negative.sum(axis=1))
        groups = (self.positive + self.negative > 0).sum(axis=1)
        mask: NDArray[np.bool_] = (classes >= CLASS_ROWS) & (groups >= GROUPS)
        return mask


def area_of(crowd: Crowd, rng: np.random.Generator, new: Ints) -> Area:
    """The area of these users; new: users at each look."""
    looks, users = len(new), int(new.sum())
    who, positive, levels = crowd.draw(rng, users)
    look, group = np.repeat(np.arange(looks), new)[who], rng.integers(0, K, users)[who]
    cells = (look * K + group) * LEVELS + levels
    counts = []
    for side in (positive, ~positive):
        table = np.bincount(cells[side], minlength=looks * K * LEVELS).astype(np.float64)
        table = table.reshape(looks, K, LEVELS)
        for i in range(1, looks):
            table[i] += table[i - 1]
        counts.append(table)
    p, n = counts
    all_p, all_n, below = p.sum(axis=1), n.sum(axis=1), n @ _BELOW
    all_below = below.sum(axis=1)
    row_variance = _variance_of_rows(all_p, all_n)
    wins = (all_p * all_below).sum(axis=1)
    less = (p * all_below[:, None]).sum(axis=2) + (all_p[:, None] * below).sum(axis=2)
    less -= (p * below).sum(axis=2)
    p, n = p.sum(axis=2), n.sum(axis=2)
    rows = p + n
    with np.errstate(all="ignore"):
        left = (wins[:, None] - less) / (
            (p.sum(axis=1, keepdims=True) - p) * (n.sum(axis=1, keepdims=True) - n)
        )
        left = np.where(rows > 0, left, np.nan)
        k = (rows > 0).sum(axis=1)
        apart = left - np.nansum(left, axis=1, keepdims=True) / k[:, None]
        variance = (k - 1) / k * np.nansum(apart * apart, axis=1)
        value = wins / p.sum(axis=1) / n.sum(axis=1)
        df = rows.sum(axis=1) ** 2 / (rows * rows).sum(axis=1) - 1
    whole = p.astype(np.int64), n.astype(np.int64)
    return Area(value, variance, row_variance, df, new.cumsum().astype(np.float64), *whole)


def _variance_of_rows(positive: Floats, negative: Floats) -> Floats:
    """DeLong's, from the rows of both classes at each level; [looks, LEVELS]."""
    with np.errstate(all="ignore"):
        p, n = positive.sum(axis=1), negative.sum(axis=1)
        wins = negative @ _BELOW / n[:, None]
        losses = 1.0 - positive @ _BELOW / p[:, None]
        area = (positive * wins).sum(axis=1) / p
        of_positives = (positive * (wins - area[:, None]) ** 2).sum(axis=1) / (p - 1) / p
        variance: Floats = of_positives
        variance = variance + (negative * (losses - area[:, None]) ** 2).sum(axis=1) / (n - 1) / n
    return variance


@cache
def planned_variance(crowd: Crowd) -> float:
    """That of the area of one user, from many."""
    many = area_of(crowd, np.random.default_rng(5), np.array([PILOT]))
    return float(many.variance[0]) * PILOT


def watched(
    crowds: tuple[Crowd, Crowd], share: float, users: int, rng: np.random.Generator
) -> list[float]:
    """Whether any look shows a difference where there is none, by its own variance of each arm, and
    by three masses; and by these masses, where there is one."""
    arms = [
        area_of(crowd, rng, new)
        for crowd, new in zip(crowds, new_units(rng, users, share), strict=True)
    ]
    a, b = arms
    variances = [planned_variance(crowd) for crowd in crowds]
    error = math.sqrt(variances[0] / (users * (1 - share)) + variances[1] / (users * share))
    sequence = ConfidenceSequence(alpha=ALPHA, v_opt=0.5 / error**2)
    ready = a.enough() & b.enough()
    with np.errstate(all="ignore"):
        pairs, counted = (a.pairs, b.pairs), (a.users, b.users)
        c, t = a.basis.factors(b.basis)
        masses: list[list[tuple[Floats, Floats]]] = [[], [pairs], [pairs, counted]]
        arm_variance, *pooled = (
            difference_variance(a.variance, b.variance, mass) for mass in masses
        )
        pooled.append(np.fmax(arm_variance, a.variance * c + b.variance * t))
    tests = [
        (arm_variance, 0.0),
        *((v, 0.0) for v in pooled),
        *((v, ERRORS * error) for v in pooled),
    ]
    return [float(_rejected(sequence, arms, v, effect, ready)) for v, effect in tests]


def _rejected(
    sequence: ConfidenceSequence,
    arms: list[Area],
    variance: Floats,
    effect: float,
    ready: NDArray[np.bool_],
) -> bool:
    a, b = arms
    with np.errstate(all="ignore"):
        differences = b.value - a.value + effect
        far = ready & (np.abs(differences) > 3.0 * np.sqrt(variance)) & (variance > 0)
    for i in np.flatnonzero(far)[::-1].tolist():
        moments = float(a.variance[i]), float(a.df[i]), float(b.variance[i]), float(b.df[i])
        look = Evidence(
            effect_size=float(differences[i]),
            std_error=math.sqrt(variance[i]),
            df=welch_df(*moments),
            least_count=int(CLASS_ROWS),
        )
        if sequence.at(look).p_value <= ALPHA:
            return True
    return False


def _rows() -> list[Row]:
    kinds: dict[str, tuple[Crowd, Crowd]] = {}
    for rates in ((0.1, 0.1), (0.1, 0.01), (0.01, 0.1)):
        says = " and ".join(f"{100 * rate:g} %" for rate in rates)
        of_arms = "10 % positives" if rates[0] == rates[1] else f"{says} positives"
        for name, kind in (
            ("10 rows", partial(Crowd)),
            ("Zipf rows", partial(Crowd, rows="Zipf")),
            ("40 rows of one class", partial(Crowd, rows=40, classes="one")),
            ("10 rows, some well ordered", partial(Crowd, scores="sharp")),
            ("10 rows, all alike", partial(Crowd, scores="alike")),
        ):
            kinds[f"{of_arms}, {name}"] = kind(rates[0]), kind(rates[1])
    rows = [
        Row(f"{name}; {100 * share:g} %", partial(watched, crowds, share, USERS), 400, 8)
        for name, crowds in kinds.items()
        for share in (0.05, 0.5, 0.95)
    ]
    for first, second in ((10, 40), (40, 10)):
        crowds = Crowd(0.1, rows=first), Crowd(0.1, rows=second)
        name = f"10 % positives, {first} and {second} rows; 5 %"
        rows.append(Row(name, partial(watched, crowds, 0.05, USERS), 400, 9))
    for rate in (0.3, 0.03):
        crowds = Crowd(0.3, rows=4, scores="far"), Crowd(rate, rows=60, scores="far")
        name = f"30 % and {100 * rate:g} % positives, 4 and 60 rows, far apart; 5 %"
        rows.append(Row(name, partial(watched, crowds, 0.05, USERS // 2), 400, 9))
    for rates in ((0.3, 0.3), (0.3, 0.05)):
        says = "30 %" if rates[0] == rates[1] else "30 % and 5 %"
        few = Crowd(rates[0]), Crowd(rates[1])
        name = f"300 users, {says} positives, 10 rows; 50 %"
        rows.append(Row(name, partial(watched, few, 0.5, 300), 400, 6))
    return rows


AREAS: Final = Table(
    "areas",
    "users of control and treatment; share of the treatment",
    (
        "each arm by its own variance",
        "pairs of rows",
        "pairs of rows, or all users",
        "rows and effective users (used)",
        "an effect found, by pairs of rows",
        "by pairs of rows, or all users",
        "by rows and effective users (used)",
    ),
    tuple(_rows()),
)
