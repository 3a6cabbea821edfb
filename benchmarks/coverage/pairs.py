"""Two models on the same rows: their paired difference, and as if they were two arms."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.draws import PHI, active, squashed
from benchmarks.coverage.one_look import CHANCES
from benchmarks.coverage.table import Row, Table
from streammetrics import (
    Accumulator,
    Calibration,
    ExactAUC,
    ExactQuantiles,
    GroupedAUC,
    HistogramAUC,
    Paired,
    RankingMetrics,
    Ratio,
    UserGroups,
    compare,
)

SHIFTS: Final = (1.0, 0.8)  # of the positives of both models, in standard deviations of the noise
SHARED: Final = 0.8  # the correlation of the noise of both models
LENGTH: Final = 10  # items of a list
MOVED: Final = 0.2  # the difference of a quantile
OWN_PART: Final = 0.3  # of the variance of a difference that is the user's own
GUESSES: Final = np.array([0.03, 0.07, 0.14, 0.22])  # for CHANCES

Floats = NDArray[np.float64]


def coverage_figures(paired: Paired, truth: float) -> list[float]:
    """Whether the interval of two arms and that of Paired hold the true difference, and how many
    times as wide that of two arms is."""
    result = paired.compute()
    interval, half = result.interval(), 1.96 * math.hypot(*(result.interval(m).se for m in "ab"))
    return [
        float(abs(interval.estimate - truth) <= half),
        float(truth in interval),
        2 * half / interval.width,
    ]


def scored(
    rng: np.random.Generator, labels: NDArray[np.int64], addends: Floats | float
) -> list[Floats]:
    """The scores of both models [n]; addends: what the user of a row adds to its noise."""
    noise = rng.standard_normal(len(labels)) * math.sqrt(SHARED)
    return [
        squashed(
            addends
            + noise
            + math.sqrt(1 - SHARED) * rng.standard_normal(len(labels))
            + shift * labels
        )
        for shift in SHIFTS
    ]


def areas(metric: Accumulator, n: int, rng: np.random.Generator) -> list[float]:
    """Two areas of n independent rows, a fifth of them positive."""
    labels = (rng.random(n) < 0.2).astype(np.int64)
    a, b = scored(rng, labels, 0.0)
    paired = Paired(metric)
    paired.update(labels=labels, scores_a=a, scores_b=b)
    return coverage_figures(paired, PHI(SHIFTS[0] / math.sqrt(2)) - PHI(SHIFTS[1] / math.sqrt(2)))


def areas_of_users(users: int, rng: np.random.Generator) -> list[float]:
    """Two areas of rows that share what their users add."""
    who = active(rng, users)
    labels = (rng.random(who.n) < 0.2).astype(np.int64)
    a, b = scored(rng, labels, rng.standard_normal(who.users)[who.rows])
    paired = Paired(UserGroups(HistogramAUC()))
    paired.update(labels=labels, scores_a=a, scores_b=b, groups=who.rows)
    return coverage_figures(paired, PHI(SHIFTS[0] / 2) - PHI(SHIFTS[1] / 2))


def areas_within_users(users: int, rng: np.random.Generator) -> list[float]:
    """Two GAUCs, where a user's addend does not matter."""
    who = active(rng, users)
    labels = (rng.random(who.n) < 0.3).astype(np.int64)
    a, b = scored(rng, labels, rng.standard_normal(who.users)[who.rows])
    paired = Paired(GroupedAUC())
    paired.update(labels=labels, scores_a=a, scores_b=b, groups=who.rows)
    return coverage_figures(paired, PHI(SHIFTS[0] / math.sqrt(2)) - PHI(SHIFTS[1] / math.sqrt(2)))


def losses(n: int, rng: np.random.Generator) -> list[float]:
    """Two log losses: of the true chances, and of chances that are somewhat wrong."""
    chances, wrong = CHANCES, GUESSES
    indices = rng.integers(0, len(chances), n)
    labels = (rng.random(n) < chances[indices]).astype(np.int64)
    paired = Paired(Calibration())
    paired.update(labels=labels, scores_a=chances[indices], scores_b=wrong[indices])
    of_label = chances * np.log(wrong / chances) + (1 - chances) * np.log1p(-wrong)
    return coverage_figures(paired, float((of_label - (1 - chances) * np.log1p(-chances)).mean()))


def lists(n: int, rng: np.random.Generator) -> list[float]:
    """Two means of reciprocal ranks that are equal: the noise of both models is alike."""
    relevant = (np.arange(LENGTH) == 0).astype(np.int64)
    labels = np.broadcast_to(relevant, (n, LENGTH))
    noise = rng.standard_normal((n, LENGTH))
    a, b = (0.8 * labels + noise + 0.5 * rng.standard_normal((n, LENGTH)) for _ in SHIFTS)
    paired = Paired(RankingMetrics(["MRR"]))
    paired.update(labels=labels, scores_a=a, scores_b=b)
    return coverage_figures(paired, 0.0)


def quantiles(view: str, users: int, rng: np.random.Generator) -> list[float]:
    """A quantile of the values of users with six rows each, which the second model moves by 0.2:
    their states of UserGroups as two arms, and compared with paired=True."""
    who = np.repeat(np.arange(users), 6)
    common = rng.standard_normal(users)[who] + 0.5 * rng.standard_normal(len(who))
    states = UserGroups(ExactQuantiles()), UserGroups(ExactQuantiles())
    for moved, state in zip((0.0, MOVED), states, strict=True):
        state.update(who, values=common + moved + 0.5 * rng.standard_normal(len(who)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that of two arms with the same users
        apart, together = (compare(*states, view=view, paired=flag) for flag in (False, True))
    ends = [
        (result.effect_size_ci_lower, result.effect_size_ci_upper) for result in (apart, together)
    ]
    hits = [float(lower <= MOVED <= upper) for lower, upper in ends]
    widths = [upper - lower for lower, upper in ends]
    return [*hits, widths[0] / widths[1] if widths[1] < math.inf else math.nan]


PAIRS: Final = Table(
    "pairs",
    "two models on the same rows",
    ("as two arms", "paired", "times as wide"),
    (
        Row("AUC, 200 rows", partial(areas, ExactAUC(), 200), 200, 3),
        Row("AUC, 5,000 rows", partial(areas, HistogramAUC(), 5000), 200, 6),
        Row("AUC, 300 users with ten rows each", partial(areas_of_users, 300), 200, 20),
        Row("GAUC, 300 users with ten rows each", partial(areas_within_users, 300), 200, 5),
        Row("log loss, 500 rows", partial(losses, 500), 200, 4),
        Row("MRR, 100 lists", partial(lists, 100), 200, 4),
        Row("median, 300 users with six rows each", partial(quantiles, "median", 300), 500, 105),
        Row("p = 0.9, 300 users with six rows each", partial(quantiles, "p90", 300), 500, 105),
    ),
)


def heavy_users(users: int, exponent: float, rng: np.random.Generator) -> list[float]:
    """Two equal models, whose difference has a part that is each user's own; a user's number of
    rows falls with their rank by Zipf's law, 10 on average. Whether p is at most .05, and whether
    it is by Student's t of groups - 1; the effective number of groups."""
    by_rank = 1 / np.arange(1, users + 1) ** exponent
    rows = np.maximum(np.round(by_rank / by_rank.sum() * 10 * users), 1).astype(np.int64)
    who = np.repeat(rng.permutation(10 * users)[:users], rows)
    user_part = np.repeat(rng.standard_normal(users), rows) * math.sqrt(OWN_PART)
    noise = math.sqrt(1 - OWN_PART) * rng.standard_normal(len(who))
    paired = Paired(UserGroups(Ratio()))
    paired.update(groups=who, numerators_a=user_part + noise, numerators_b=np.zeros(len(who)))
    result = paired.compute()
    error, used = result.error_of(), sum(n > 0 for n in result.value_a.weights)
    far = abs(float(result.difference)) / math.sqrt(error.variance)
    return [float(far >= student(used - 1)), float(result.pvalue <= 0.05), error.df + 1]


def student(df: float) -> float:
    """The t that |t| exceeds in .05, by the expansion of Abramowitz and Stegun 26.7.5, which is off
    by less than .001 from 8 degrees of freedom on."""
    z = 1.959963984540054
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / df**power for power, term in enumerate(terms, 1))


PAIRED_USERS: Final = Table(
    "paired-users",
    "two equal models; users",
    ("p ≤ .05 by groups - 1", "p ≤ .05", "effective number of groups"),
    (
        Row("20 with equal rows", partial(heavy_users, 20, 0.0), 1000, 6),
        Row("60 with equal rows", partial(heavy_users, 60, 0.0), 1000, 6),
        Row("20, Zipf", partial(heavy_users, 20, 1.0), 1000, 6),
        Row("60, Zipf", partial(heavy_users, 60, 1.0), 1000, 6),
        Row("300, Zipf", partial(heavy_users, 300, 1.0), 1000, 6),
        Row("100, Zipf with exponent 1.2", partial(heavy_users, 100, 1.2), 1000, 6),
        Row("1,000, Zipf with exponent 1.2", partial(heavy_users, 1000, 1.2), 1000, 7),
    ),
)
