"""Off-policy values: how often the interval of one look holds the value of the target policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.table import Row, Table
from streammetrics import OffPolicy

Floats = NDArray[np.float64]
Log = Callable[[np.random.Generator, int], tuple[dict[str, Floats], float]]

LOGGED: Final = np.array([0.6, 0.3, 0.1])  # of three actions, by the policy of the log
TARGET: Final = np.array([0.2, 0.3, 0.5])
RATES: Final = np.array([0.25, 0.3, 0.4])  # of rewards
RARE: Final = np.array([0.9, 0.099, 0.001]), np.array([0.5, 0.4, 0.1])


def actions(
    logged: Floats, target: Floats, rates: Floats, rng: np.random.Generator, n: int
) -> tuple[dict[str, Floats], float]:
    """Rows of a few actions, and the value of the target; predictions are 0.8 of the rates."""
    action = rng.choice(len(logged), n, p=logged)
    rewards = (rng.random(n) < rates[action]).astype(np.float64)
    rows = {"logged": logged[action], "target": target[action], "rewards": rewards}
    rows["predicted_logged"] = 0.8 * rates[action]
    rows["predicted_target"] = np.full(n, 0.8 * float(target @ rates))
    return rows, float(target @ rates)


def unlogged(
    missing: float, rate: float, rng: np.random.Generator, n: int
) -> tuple[dict[str, Floats], float]:
    """The same three actions; `missing` of what the target does is a fourth, not in the log."""
    rows, value = actions(LOGGED, TARGET * (1 - missing), RATES, rng, n)
    predicted = rows["predicted_target"] + missing * 0.8 * rate
    return {**rows, "predicted_target": predicted}, value + missing * rate


def rising(weights: Floats) -> Floats:
    """Rates that are near 1 where the target is far likelier than the log's policy."""
    return weights / (1 + weights)


def steep(weights: Floats) -> Floats:
    """Rates that are near 0 for all but large weights."""
    return np.minimum(weights / 20, 1.0)


def level(weights: Floats) -> Floats:
    """Rates that have nothing to do with weights."""
    return np.full_like(weights, 0.3)


def scarce(weights: Floats) -> Floats:
    """Rates of about 1 %, higher where weights are."""
    return 0.005 * np.minimum(weights, 20.0)


def lognormal(
    sigma: float, rates: Callable[[Floats], Floats], rng: np.random.Generator, n: int
) -> tuple[dict[str, Floats], float]:
    """Weights with a lognormal distribution of mean 1, and rewards of 0 and 1."""
    weights = np.exp(sigma * rng.standard_normal(n) - sigma * sigma / 2)
    rewards = (rng.random(n) < rates(weights)).astype(np.float64)
    return weighted(weights, rewards), value_of_lognormal(sigma, rates)


@cache
def value_of_lognormal(sigma: float, rates: Callable[[Floats], Floats]) -> float:
    """The mean reward under the target policy, where ln w is normal around sigma² / 2."""
    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-z * z / 2)
    return float(density @ rates(np.exp(sigma * z + sigma * sigma / 2)) / density.sum())


@cache
def value_of_pareto(a: float, rates: Callable[[Floats], Floats]) -> float:
    """The mean reward under the target policy, where the exponent of the weights is a - 1."""
    u = (np.arange(100_000) + 0.5) / 100_000
    return float(rates((a - 1) / a * u ** (-1 / (a - 1))).mean())


def amounts(sigma: float, rng: np.random.Generator, n: int) -> tuple[dict[str, Floats], float]:
    """The same weights, and amounts around ln(1 + w)."""
    weights = np.exp(sigma * rng.standard_normal(n) - sigma * sigma / 2)
    rewards = np.log1p(weights) + 0.5 * rng.standard_normal(n)
    return weighted(weights, rewards), value_of_lognormal(sigma, np.log1p)


def pareto(
    a: float, rates: Callable[[Floats], Floats], rng: np.random.Generator, n: int
) -> tuple[dict[str, Floats], float]:
    """Weights with a Pareto distribution of mean 1, and rewards of 0 and 1."""
    weights = (a - 1) / a * (rng.pareto(a, n) + 1)
    rewards = (rng.random(n) < rates(weights)).astype(np.float64)
    return weighted(weights, rewards), value_of_pareto(a, rates)


def weighted(weights: Floats, rewards: Floats) -> dict[str, Floats]:
    """Rows with these weights, up to a factor that makes probabilities of them."""
    logged = np.full(len(weights), 0.5 / weights.max())
    return {"logged": logged, "target": weights * logged, "rewards": rewards}


def coverage_figures(
    log: Log, n: int, limit: float | None, rng: np.random.Generator
) -> list[float]:
    """Whether there is an interval of SNIPS and whether it holds the value of the target, by
    Student's t alone and as it is; the same of IPS, and of SNDR as it is."""
    rows, value = log(rng, n)
    metric = OffPolicy(reward_limit=limit)
    metric.update(**rows)
    result = metric.compute()
    shown = result.interval("snips").defined
    figures = [float(shown)]
    for view in ("snips", "ips", "sndr"):
        interval, raw_interval = result.interval(view), result.raw.interval(view)
        has_value = not math.isnan(getattr(result, view))
        plain = float(raw_interval.lower <= value <= raw_interval.upper) if has_value else math.nan
        inside = float(interval.lower <= value <= interval.upper)
        figures += [plain] * (view != "sndr") + [inside if interval.defined else math.nan]
    return figures


def row(name: str, log: Log, n: int, replicates: int, ms: float, limit: float | None = None) -> Row:
    """A row of the table."""
    return Row(name, partial(coverage_figures, log, n, limit), replicates, ms)


OFF_POLICY: Final = Table(
    "off-policy",
    "logs",
    (
        "have an interval",
        "SNIPS, Student's t alone",
        "SNIPS",
        "IPS, Student's t alone",
        "IPS",
        "SNDR",
    ),
    (
        row("three actions, 1,000 rows", partial(actions, LOGGED, TARGET, RATES), 1000, 400, 4),
        row(
            "the same, rewards in 3 %, 10,000 rows",
            partial(actions, LOGGED, TARGET, RATES / 10),
            *(10_000, 400, 4),
        ),
        row("lognormal weights, σ 1, 2,000 rows", partial(lognormal, 1.0, rising), 2000, 400, 4),
        row(
            "σ 1.7, rewards in 30 % whatever the weight, 1,500 rows",
            partial(lognormal, 1.7, level),
            *(1500, 400, 4),
        ),
        row(
            "the same, whatever the weight, 20,000 rows",
            partial(lognormal, 1.7, level),
            *(20_000, 400, 4),
        ),
        row(
            "σ 1.7, rewards rise with the weight, 5,000 rows",
            partial(lognormal, 1.7, steep),
            *(5000, 400, 4),
        ),
        row(
            "the same, reward_limit = 1", partial(lognormal, 1.7, steep), 5000, 400, 4, limit=1.0
        ),
        row("σ 1.7, amounts rise with the weight, 1,500 rows", partial(amounts, 1.7), 1500, 400, 4),
        row("the same amounts, 5,000 rows", partial(amounts, 1.7), 5000, 400, 4),
        row(
            "Pareto weights, a 1.5, rewards rise with the weight, 20,000 rows",
            partial(pareto, 1.5, rising),
            *(20_000, 400, 4),
        ),
        row(
            "σ 1.7, rewards in about 1 %, 5,000 rows",
            partial(lognormal, 1.7, scarce),
            *(5000, 400, 4),
        ),
        row(
            "an action of weight 100 that the log took twice in 2,000 rows",
            partial(actions, *RARE, RATES),
            *(2000, 400, 4),
        ),
        row("the same action, 20,000 rows", partial(actions, *RARE, RATES), 20_000, 400, 4),
        row("2 % of the target missing, 1,000 rows", partial(unlogged, 0.02, 0.9), 1000, 400, 4),
        row("5 % missing, 1,000 rows", partial(unlogged, 0.05, 0.9), 1000, 400, 4),
        row("2 % missing, 10,000 rows", partial(unlogged, 0.02, 0.9), 10_000, 400, 4),
        row("10 % missing, 10,000 rows", partial(unlogged, 0.1, 0.9), 10_000, 400, 4),
        row("30 % missing, 10,000 rows", partial(unlogged, 0.3, 0.9), 10_000, 400, 4),
    ),
)  # fmt: skip
