"""Values that only a few of many units have: amounts of buyers, and values of lists with a hit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, slots=True)
class Amounts:
    """The amounts that buyers spend: draws, and the first two moments."""

    draw: Draw
    mean: float
    square: float


def lognormal(sigma: float) -> Amounts:
    """Log-normal amounts; sigma: the standard deviation of the logarithm."""
    mean, square = math.exp(sigma * sigma / 2), math.exp(2 * sigma * sigma)
    return Amounts(lambda rng, n: rng.lognormal(0.0, sigma, n), mean, square)


def pareto(a: float) -> Amounts:
    """Pareto amounts from 1, with tail x^-a; an infinite variance is planned as 10 mean²."""
    mean = a / (a - 1)
    square = a / (a - 2) if a > 2 else 11 * mean * mean
    return Amounts(lambda rng, n: rng.pareto(a, n) + 1.0, mean, square)


def reciprocal_ranks() -> Amounts:
    """1 / rank of a hit at a uniform rank among ten."""
    ranks = np.arange(1.0, 11.0)
    mean, square = float((1 / ranks).mean()), float((1 / ranks**2).mean())
    return Amounts(lambda rng, n: 1.0 / rng.integers(1, 11, n), mean, square)


def average_precisions() -> Amounts:
    """Average precision of three relevant items at uniform ranks among ten."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        ranks = np.sort(rng.random((n, 10)).argsort(axis=1)[:, :3], axis=1) + 1.0
        precisions: Floats = (np.arange(1.0, 4.0) / ranks).mean(axis=1)
        return precisions

    values = draw(np.random.default_rng(1), 100_000)
    return Amounts(draw, float(values.mean()), float((values * values).mean()))


AMOUNTS: Final = {
    "equal": Amounts(lambda _, n: np.ones(n), 1.0, 1.0),
    "lognormal, σ 1": lognormal(1.0),
    "lognormal, σ 1.5": lognormal(1.5),
    "lognormal, σ 2": lognormal(2.0),
    "Pareto, a 2.5": pareto(2.5),
    "Pareto, a 1.5": pareto(1.5),
}
