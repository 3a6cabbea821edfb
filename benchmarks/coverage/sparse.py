"""Looks at means of mostly zeros, and at other metrics that depend on few rows.

For speed all looks at an arm are computed at once, from cumulative sums; a test compares them with
an experiment on states of the same rows. A look whose effect is less than 3 standard errors cannot
be an alarm (the sequence's multiplier is at least 3), so the sequence is not evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.amounts import (
    AMOUNTS,
    Amounts,
    average_precisions,
    reciprocal_ranks,
)
from benchmarks.coverage.streams import LOOKS, logarithmic
from benchmarks.coverage.table import Row, Table
from streammetrics.experiments import ConfidenceSequence, Evidence, Horizon
from streammetrics.kernels.inference.pooled_variance import (
    EXPECTED,
    SKEWNESS,
    difference_variance,
    expected_counts,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N: Final = 100_000  # units of an arm at the end, if the arms were equal
K: Final = 64  # groups of users
ALPHA: Final = 0.05
NEAR: Final = 3.0  # standard errors; a look with a smaller effect is no alarm
SHARES: Final = (0.02, 0.05, 0.5)


@dataclass(frozen=True, slots=True)
class Looks:
    """One arm at each look, all of [looks]: the estimate, its variance with its degrees of freedom,
    rows, and the number that the gate asks for. cells: whether that is the smallest cell of a
    confusion matrix, else it is a skewness number. groups: of users with rows. decided: the rows
    that decide the view, if not all do."""

    value: Floats
    variance: Floats
    df: Floats
    rows: Ints
    number: Floats
    cells: bool = False
    groups: Floats | None = None
    decided: Floats | None = None

    def ready(self, other_arm: Looks) -> NDArray[np.bool_]:
        """Whether this arm has enough rows, given the other arm's; [looks]."""
        mask: NDArray[np.bool_]
        if self.cells:
            rows = self.rows.astype(np.float64), other_arm.rows.astype(np.float64)
            mask = expected_counts((self.number, other_arm.number), rows)[0] >= EXPECTED
            return mask
        mask = ~(self.variance > 0) | (self.number >= SKEWNESS)
        return mask & self.rows_alone()

    def rows_alone(self) -> NDArray[np.bool_]:
        """Whether there are a hundred rows and sixteen groups of users; [looks]."""
        mask: NDArray[np.bool_] = self.rows >= 100
        return mask if self.groups is None else mask & (self.groups >= 16)


def together(a: Looks, b: Looks) -> Floats:
    """The variance of the difference of both arms together; [looks]."""
    masses = [(a.rows.astype(np.float64), b.rows.astype(np.float64))]
    if a.decided is not None and b.decided is not None:
        masses.append((a.decided, b.decided))
    return difference_variance(a.variance, b.variance, masses)


Arms = Callable[[np.random.Generator, Ints], Looks]


def grown(
    rng: np.random.Generator, new: Ints, buyers: float, amounts: Amounts
) -> tuple[Ints, Ints, Floats]:
    """The number of new buyers at each look [looks]; the look and the amount of each buyer."""
    count = rng.binomial(new, buyers)
    looks = np.repeat(np.arange(len(new)), count)
    return count, looks, amounts.draw(rng, int(count.sum()))


def of_users(rng: np.random.Generator, new: Ints, buyers: float, amounts: Amounts) -> Looks:
    """Users with one row each, in groups: UserGroups(Ratio())."""
    count, looks, spent = grown(rng, new, buyers, amounts)
    cells = looks * K + rng.integers(0, K, len(looks))
    size = len(new) * K
    y = np.bincount(cells, spent, minlength=size).reshape(-1, K).cumsum(axis=0)
    n = rng.multinomial(new - count, np.full(K, 1 / K))
    n = (n + np.bincount(cells, minlength=size).reshape(-1, K)).cumsum(axis=0)
    return of_groups(y, n)


def of_groups(y: Floats, n: Ints) -> Looks:
    """Means Σy / Σn with jackknife variances, from the sums of groups at each look [looks, K]."""
    with np.errstate(all="ignore"):
        all_y, all_n = y.sum(axis=1, keepdims=True), n.sum(axis=1, keepdims=True)
        left = np.where(n > 0, (all_y - y) / (all_n - n), np.nan)
        groups = (n > 0).sum(axis=1)
        apart = left - np.nansum(left, axis=1, keepdims=True) / groups[:, None]
        squares = np.nansum(apart * apart, axis=1)
        number = squares**3 / np.nansum(apart**3, axis=1) ** 2
        variance = (groups - 1) / groups * squares
        value = (all_y / all_n)[:, 0]
    df = np.array(groups - 1, np.float64)
    return Looks(value, variance, df, all_n[:, 0], number, groups=df + 1)


def of_lists(rng: np.random.Generator, new: Ints, buyers: float, amounts: Amounts) -> Looks:
    """Independent lists, most with the value 0: RankingMetrics."""
    _, looks, values = grown(rng, new, buyers, amounts)
    first = np.bincount(looks, values, minlength=len(new)).cumsum()
    squares = np.bincount(looks, values * values, minlength=len(new)).cumsum()
    return of_values(first, squares, new.cumsum())


def of_values(first: Floats, squares: Floats, n: Ints) -> Looks:
    """Means of n values in [0, 1] at each look, from the sums of values and squares; [looks]. The
    number is the bound of the skewness number, of the values and of 1 - value."""
    with np.errstate(all="ignore"):
        value, variance = first / n, (squares - first * first / n) / (n - 1) / n
        bound = first * first / squares
        mirror_bound = (n - first) ** 2 / (n - 2 * first + squares)
    return Looks(value, variance, np.full(len(n), np.inf), n, np.minimum(bound, mirror_bound))


def of_rates(view: str, shares: tuple[float, ...], rng: np.random.Generator, new: Ints) -> Looks:
    """F1 or Matthews' coefficient of rows; shares: of true and false positives, and of false and
    true negatives."""
    return of_cells(view, rng.multinomial(new, shares).cumsum(axis=0))


def of_cells(view: str, cells: Ints) -> Looks:
    """The same from cells [looks, 4]; by the delta method."""
    tp, fp, fn, tn = cells.T.astype(np.float64)
    with np.errstate(all="ignore"):
        if view == "f1":
            below = 2 * tp + fp + fn
            value = 2 * tp / below
            psi = [2 * (1 - value) / below, -value / below, -value / below, 0 * tp]
            least = np.minimum(tp, fp + fn)
        else:
            r, s, c, d = tp + fn, fp + tn, tp + fp, fn + tn
            root = np.sqrt(r * s * c * d)
            value = (tp * tn - fp * fn) / root
            psi = [
                tn / root - value * (1 / r + 1 / c) / 2,
                -fn / root - value * (1 / s + 1 / c) / 2,
                -fp / root - value * (1 / r + 1 / d) / 2,
                tp / root - value * (1 / s + 1 / d) / 2,
            ]
            least = cells.min(axis=1).astype(np.float64)
        squares = [
            n * derivative * derivative for n, derivative in zip((tp, fp, fn, tn), psi, strict=True)
        ]
    variance, rows = np.sum(squares, axis=0), cells.sum(axis=1)
    decided = tp + fp + fn if view == "f1" else None
    df = np.full(len(tp), np.inf)
    return Looks(value, variance, df, rows, least, cells=True, decided=decided)


class Alarms:
    """Whether the sequence shows a difference at a look with this variance; each is evaluated
    once."""

    def __init__(
        self, control: Looks, treatment: Looks, variance: Floats, v_opt: float | None
    ) -> None:
        self.arms, self.variance = (control, treatment), variance
        self.sequence = ConfidenceSequence(alpha=ALPHA, v_opt=v_opt)
        self.known: dict[int, bool] = {}

    def ever(self, mask: NDArray[np.bool_]) -> bool:
        """Whether there is an alarm at any look of the mask; [looks]."""
        a, b = self.arms
        with np.errstate(all="ignore"):
            far = np.abs(b.value - a.value) > NEAR * np.sqrt(self.variance)
        return any(self.alarm(i) for i in np.flatnonzero(mask & far & (self.variance > 0)).tolist())

    def alarm(self, i: int) -> bool:
        """Whether there is an alarm at this look."""
        if i not in self.known:
            a, b = self.arms
            look = Evidence(
                effect_size=float(b.value[i] - a.value[i]),
                std_error=math.sqrt(self.variance[i]),
                df=welch_df(a, b, i),
                least_count=int(min(a.rows[i], b.rows[i])),
            )
            self.known[i] = self.sequence.at(look).p_value <= ALPHA
        return self.known[i]


def welch_df(a: Looks, b: Looks, i: int = 0) -> float:
    """The degrees of freedom of the difference of two arms at a look."""
    whole = a.variance[i] + b.variance[i]
    below = sum((arm.variance[i] / whole) ** 2 / arm.df[i] for arm in (a, b))
    return float(1 / below) if below else math.inf


def watched(
    arms: Arms,
    planned: float,
    share: float,
    rng: np.random.Generator,
    n: int = N,
    looks: int = LOOKS,
) -> list[float]:
    """An A/A test: whether it ever alarmed after a hundred rows if each arm has its own variance,
    and with that of both together; with the gates as well, at ten looks and at all looks; whether
    it is judged at the end. planned: the variance of a unit."""
    new = 2 * logarithmic(n, looks)
    treated = rng.binomial(new, share)
    control, treatment = (arms(rng, units) for units in (new - treated, treated))
    v_opt = Horizon(units=2.0 * n, variance=planned, treatment_share=share).v_opt
    with np.errstate(all="ignore"):
        of_both = Alarms(control, treatment, together(control, treatment), v_opt)
        arm_alarms = Alarms(control, treatment, control.variance + treatment.variance, v_opt)
        rows = control.rows_alone() & treatment.rows_alone()
        ready = control.ready(treatment) & treatment.ready(control)
    varied = (control.variance > 0) & (treatment.variance > 0)
    tenth = np.arange(1, looks + 1) % (looks // 10) == 0
    before = float(arm_alarms.ever(rows & varied))
    masks = rows, ready & tenth, ready
    return [before, *(float(of_both.ever(mask)) for mask in masks), float(ready[-1])]


def users_watched(
    buyers: float, amounts: Amounts, share: float, rng: np.random.Generator
) -> list[float]:
    """`watched` for the revenue of users with one row each."""
    arms = partial(of_users, buyers=buyers, amounts=amounts)
    return watched(arms, spending(buyers, amounts), share, rng)


def lists_watched(
    users: bool, values: Amounts, share: float, rng: np.random.Generator
) -> list[float]:
    """`watched` for a mean over lists, of which 1 % have a hit."""
    arms = partial(of_users if users else of_lists, buyers=0.01, amounts=values)
    return watched(arms, spending(0.01, values), share, rng)


def rates_watched(view: str, share: float, rng: np.random.Generator) -> list[float]:
    """`watched` for a view of a confusion matrix with few true positives."""
    many = of_cells(view, (np.array([RARE]) * 1e7).round().astype(np.int64))
    return watched(partial(of_rates, view, RARE), float(many.variance[0]) * 1e7, share, rng)


COLUMNS: Final = (
    "each arm by itself, 200 looks",
    "both arms together, no gate, 200 looks",
    "with the gate, 10 looks",
    "with the gate, 200 looks",
    "judged at the end",
)


def spending(buyers: float, amounts: Amounts) -> float:
    """The variance of the amount that one unit spends."""
    return buyers * amounts.square - (buyers * amounts.mean) ** 2


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


ZEROS: Final = Table(
    "zeros",
    "amounts; buyers; share of the treatment",
    COLUMNS,
    tuple(
        Row(
            f"{name}; {_percent(buyers)}; {_percent(share)}",
            partial(users_watched, buyers, amounts, share),
            300,
            5.5,
        )
        for name, amounts in AMOUNTS.items()
        for buyers in (0.01, 0.05)
        for share in SHARES
    ),
)

LISTS: Final = {
    "MRR": reciprocal_ranks(),
    "AP": average_precisions(),
}
# True and false positives, false and true negatives: 10 % positives, of which 3 % are found.
RARE: Final = (0.003, 0.003, 0.097, 0.897)

SPARSE: Final = Table(
    "sparse",
    "metric; share of the treatment",
    COLUMNS,
    (
        *(
            Row(
                f"{name}, a hit in 1 % of the lists{', UserGroups' * users}; {_percent(share)}",
                partial(lists_watched, users, values, share),
                300,
                5.5,
            )
            for name, values in LISTS.items()
            for users in (False, True)
            for share in SHARES
        ),
        *(
            Row(
                f"{name}, recall 3 %; {_percent(share)}",
                partial(rates_watched, view, share),
                300,
                5.5,
            )
            for name, view in (("F1", "f1"), ("Matthews", "mcc"))
            for share in SHARES
        ),
    ),
)
