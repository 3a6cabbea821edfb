"""One look: coverage of the 95 % interval, for one metric and for two arms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

import numpy as np

from benchmarks.coverage.draws import (
    PHI,
    active,
    add_rows,
    clicks,
    grouped_clicks,
    scored,
    squashed,
)
from benchmarks.coverage.table import Row, Table
from streammetrics import (
    BinaryConfusion,
    Calibration,
    GroupedAUC,
    HistogramAUC,
    MulticlassConfusion,
    Ratio,
)
from streammetrics.experiments import Comparison, Covariate, compare

SIZES: Final = (1_000, 10_000, 100_000)
Reading = Callable[[np.random.Generator, int], float]


class Ends(Protocol):
    """An interval."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...


def contains(interval: Ends, truth: float) -> float:
    """1 if the interval holds the truth, else 0."""
    return float(interval.lower <= truth <= interval.upper)


def by_size(once: Reading, rng: np.random.Generator) -> list[float]:
    """One replicate for each size."""
    return [once(rng, n) for n in SIZES]


def rate(p: float, rng: np.random.Generator, n: int) -> float:
    """A share of rows."""
    state = Ratio()
    add_rows(state, rng.binomial(n, p), n)
    return contains(state.confidence_interval(), p)


def rates_of_classes(view: str, truth: float, rng: np.random.Generator, n: int) -> float:
    """F of a rare class: 0.4 % true positives, 0.2 % false ones, 0.3 % missed."""
    shares = (0.004, 0.002, 0.003, 0.991)  # of (label, prediction) 11, 01, 10, 00
    cells = np.repeat(np.array([3, 1, 2, 0]), rng.multinomial(n, shares))
    state = BinaryConfusion()
    state.update(cells >> 1, cells & 1)
    return contains(state.confidence_interval(view=view), truth)


def f_truth(beta: float) -> float:
    """The true F of `rates_of_classes`."""
    b2 = beta * beta
    return (1 + b2) * 4 / ((1 + b2) * 4 + b2 * 3 + 2)


MATRIX: Final = np.array([[50, 5, 5], [10, 30, 10], [5, 5, 20]]) / 140


def macro_f1(rng: np.random.Generator, n: int) -> float:
    """The macro F1 of three classes."""
    cells = np.repeat(np.arange(9), rng.multinomial(n, MATRIX.ravel()))
    state = MulticlassConfusion(3)
    state.update(cells // 3, cells % 3)
    scores = 2 * MATRIX.diagonal() / (MATRIX.sum(0) + MATRIX.sum(1))
    return contains(state.confidence_interval(view="macro_f1"), float(scores.mean()))


def area(truth: float, prevalence: float, rng: np.random.Generator, n: int) -> float:
    """The area under the ROC curve."""
    state = HistogramAUC()
    state.update(*scored(rng, n, truth, prevalence))
    return contains(state.confidence_interval(), truth)


def user_areas(rng: np.random.Generator, n: int) -> float:
    """GAUC of users with about 20 rows each, each with their own area."""
    who = np.repeat(np.arange(n // 20), rng.geometric(0.05, n // 20))
    labels = (rng.random(len(who)) < 0.3).astype(np.int64)
    effects = (1 + rng.standard_normal(n // 20))[who]
    state = GroupedAUC()
    state.update(labels, squashed(rng.standard_normal(len(who)) + effects * labels), groups=who)
    return contains(state.confidence_interval(view="gauc"), PHI(1 / math.sqrt(3)))


CHANCES: Final = np.array([0.02, 0.05, 0.1, 0.3])


def log_loss(rng: np.random.Generator, n: int) -> float:
    """The mean log loss of calibrated predictions."""
    scores = rng.choice(CHANCES, n)
    state = Calibration()
    state.update((rng.random(n) < scores).astype(np.int64), scores)
    losses = -CHANCES * np.log(CHANCES) - (1 - CHANCES) * np.log1p(-CHANCES)
    return contains(state.confidence_interval(view="log_loss"), float(losses.mean()))


def pair(rng: np.random.Generator, p: float, q: float, a: int, b: int) -> Comparison:
    """The comparison of two rates, of a and of b units."""
    control, treatment = Ratio(), Ratio()
    add_rows(control, rng.binomial(a, p), a)
    add_rows(treatment, rng.binomial(b, q), b)
    return compare(control, treatment)


def rates(p: float, q: float, a: int, b: int, rng: np.random.Generator) -> list[float]:
    """Whether the intervals hold difference and lift, whether p <= 0.05, and the standard error."""
    result = pair(rng, p, q, a, b)
    difference = result.effect_size_ci_lower <= q - p <= result.effect_size_ci_upper
    relative = result.rel_effect_size_ci_lower <= q / p - 1 <= result.rel_effect_size_ci_upper
    return [
        float(difference),
        float(relative),
        float(result.pvalue <= 0.05),
        100 * result.std_error,
    ]


def cuped(rng: np.random.Generator) -> list[float]:
    """Clicks of users, with their clicks of the week before as covariate; no effect."""
    arms = []
    for first in (0, 1000):
        who = active(rng, 1000)
        user_rates = rng.beta(1, 9, who.users)[who.rows]
        now, before = ((rng.random(who.n) < user_rates).astype(np.int64) for _ in range(2))
        arms.append((grouped_clicks(who, now, first), grouped_clicks(who, before, first)))
    (a, x), (b, y) = arms
    result = compare(a, b, covariate=Covariate(control=x, treatment=y))
    held_it = result.effect_size_ci_lower <= 0 <= result.effect_size_ci_upper
    return [float(held_it), math.nan, float(result.pvalue <= 0.05), 100 * result.std_error]


def alike(rng: np.random.Generator) -> list[float]:
    """Clicks of users with their own rates; no effect."""
    arms = []
    for first in (0, 1000):
        who = active(rng, 1000)
        arms.append(grouped_clicks(who, clicks(rng, who), first))
    result = compare(*arms)
    lift = result.rel_effect_size_ci_lower <= 0 <= result.rel_effect_size_ci_upper
    held_it = result.effect_size_ci_lower <= 0 <= result.effect_size_ci_upper
    return [float(held_it), float(lift), float(result.pvalue <= 0.05), 100 * result.std_error]


def _row(name: str, once: Reading, replicates: int = 1000, ms: float = 1.0) -> Row:
    return Row(name, partial(by_size, once), replicates, ms)


ONE_LOOK: Final = Table(
    "one-look",
    "metric, of independent rows",
    ("1,000 rows", "10,000", "100,000"),
    (
        _row("a rate of 30 %, Wilson", partial(rate, 0.3), 5000, 0.4),
        _row("a rate of 5 %, Wilson", partial(rate, 0.05), 5000, 0.4),
        _row("a rate of 0.1 %, Wilson", partial(rate, 0.001), 5000, 0.4),
        _row("F1, a class of 0.7 %", partial(rates_of_classes, "f1", f_truth(1)), 2000, 1.5),
        _row("F2, the same", partial(rates_of_classes, "f_beta(2)", f_truth(2)), 2000, 1.5),
        _row("macro F1, three classes", macro_f1, 2000, 2),
        _row("AUC of 0.75, 20 % positives", partial(area, 0.75, 0.2), 2000, 5.2),
        _row("AUC of 0.95, 2 % positives", partial(area, 0.95, 0.02), 2000, 5.2),
        _row("GAUC, of 50, 500 and 5,000 users", user_areas, 1000, 13),
        _row("log loss", log_loss, 1000, 16),
    ),
)

TWO_ARMS: Final = Table(
    "two-arms",
    "control and treatment, units of each",
    (
        "interval of the difference",
        "interval of the lift",
        "p ≤ 0.05",
        "standard error, per cent",
    ),
    (
        Row("5 % and 5 %, 1,000", partial(rates, 0.05, 0.05, 1000, 1000), 5000, 0.35),
        Row("5 % and 5 %, 100,000", partial(rates, 0.05, 0.05, 100_000, 100_000), 5000, 0.35),
        Row("5 % and 6 %, 10,000", partial(rates, 0.05, 0.06, 10_000, 10_000), 5000, 0.35),
        Row("1 % and 1 %, 9,000 and 1,000", partial(rates, 0.01, 0.01, 9000, 1000), 5000, 0.35),
        Row("0.1 % and 0.1 %, 10,000", partial(rates, 0.001, 0.001, 10_000, 10_000), 5000, 0.35),
        Row("10 % and 10 %, 1,000 users with 10 rows each", alike, 1000, 12),
        Row("the same, less what they did before (CUPED)", cuped, 1000, 24),
    ),
)
