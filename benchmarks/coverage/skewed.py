"""One look at means of skewed values: coverage of an arm's interval, false alarms of two unequal
arms, and both with capped values."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Final

import numpy as np

from benchmarks.coverage.amounts import AMOUNTS, Amounts
from benchmarks.coverage.sparse import of_users, welch_df
from benchmarks.coverage.table import Row, Table

BUYERS: Final = 0.01
SMALL: Final = 10_000  # users of the small arm, of whom 100 buy; the other arm has 19 times as many
TAIL: Final = 0.05  # share of the amounts of an earlier period above the cap
NORMAL: Final = 1.959963984540054


def student(df: float) -> float:
    """The value that |t| exceeds with probability 5 %, to four digits from 30 degrees of freedom
    (Cornish and Fisher).

    >>> round(student(63), 4)
    1.9983
    """
    z = NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / df + second / df**2


def one_look(amounts: Amounts, rng: np.random.Generator) -> list[float]:
    """Whether the interval of the small arm holds the mean, and whether two arms without a
    difference are significant at p 0.05."""
    many, few = (of_users(rng, np.array([n]), BUYERS, amounts) for n in (19 * SMALL, SMALL))
    error = math.sqrt(few.variance[0])
    hit = abs(few.value[0] - BUYERS * amounts.mean) <= student(few.df[0]) * error
    apart = abs(few.value[0] - many.value[0])
    joint_error = math.sqrt(few.variance[0] + many.variance[0])
    return [float(hit), float(apart > student(welch_df(many, few)) * joint_error)]


@cache
def capped(name: str) -> Amounts:
    """The amounts, each limited to the cap."""
    amounts = AMOUNTS[name]
    past = amounts.draw(np.random.default_rng(2), 2_000_000)
    cap = float(np.quantile(past, 1 - TAIL))
    below = np.minimum(past, cap)
    mean, square = float(below.mean()), float((below * below).mean())
    return Amounts(lambda rng, n: np.minimum(amounts.draw(rng, n), cap), mean, square)


def as_they_are_and_capped(name: str, rng: np.random.Generator) -> list[float]:
    """`one_look` with the amounts as drawn and with capped ones, for different users."""
    return [*one_look(AMOUNTS[name], rng), *one_look(capped(name), rng)]


SKEWED: Final = Table(
    "skewed",
    "amounts of 1 % buyers",
    (
        "the interval of 10,000 users",
        "Welch's p ≤ 0.05 against 190,000",
        "the interval, amounts capped",
        "Welch's p, amounts capped",
    ),
    tuple(Row(name, partial(as_they_are_and_capped, name), 2000, 2) for name in AMOUNTS),
)
