"""One look at the final means of exposed units, where 5 % are in the treatment: other intervals
than that of Welch, and where each fails.

A small arm without a heavy unit has a low mean and seems precise. What the other arm knows of the
variance is taken in two ways: `difference_variance` takes it as it is, as verdicts do, and `alike`
takes both arms as equally variable relative to their means, at each effect by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final

import numpy as np

from benchmarks.coverage.exposed import SCENES, Floats, Scene
from benchmarks.coverage.skewed import student
from benchmarks.coverage.sparse import K, Looks, of_groups, together, welch_df
from benchmarks.coverage.table import Row, Table

SHARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Change:
    """What a treatment does: its amounts and its outcomes times these, and the spread of amounts if
    it is another one."""

    amounts: float = 1.0
    outcomes: float = 1.0
    sigma: float | None = None


def values(scene: Scene, n: int, rng: np.random.Generator, times: float = 1.0) -> Floats:
    """What each of n units did in its window."""
    unit = np.repeat(np.arange(n), rng.poisson(scene.outcomes * scene.activity(rng, n)))
    amounts = rng.lognormal(-(scene.sigma**2) / 2, scene.sigma, len(unit))
    return times * np.bincount(unit, amounts, minlength=n).astype(np.float64)


@cache
def mean_activity(scene: Scene) -> float:
    """Of very many units."""
    return float(scene.activity(np.random.default_rng(1), 4_000_000).mean())


def arm(values: Floats, rng: np.random.Generator) -> Looks:
    """One look at an arm by 64 groups of its units."""
    groups = rng.integers(0, K, len(values))
    sums, units = np.bincount(groups, values, K), np.bincount(groups, minlength=K)
    return of_groups(sums[None].astype(np.float64), units[None].astype(np.int64))


def alike(a: Looks, b: Looks, q: float, weight: float) -> tuple[float, float]:
    """The effects d with (estimate - d)² ≤ q² V(d). V is a mixture of the arms' own variance and,
    with this weight, that of arms with one squared ratio r of variance to mean: r times the sum of
    m(d)² / n, where m(d) are the means of both arms that fit d best.
    """
    (mean_a, mean_b), (own_a, own_b), (n_a, n_b) = (
        [float(series[0]) for series in pair]
        for pair in ((a.value, b.value), (a.variance, b.variance), (a.rows, b.rows))
    )
    n = n_a + n_b
    ratio = (own_a * (n_a / mean_a) ** 2 + own_b * (n_b / mean_b) ** 2) / n
    center, effect, q2 = (n_a * mean_a + n_b * mean_b) / n, mean_b - mean_a, q * q
    # m(d) is center - d n_b / n in the control and center + d n_a / n in the treatment.
    part = q2 * weight * ratio
    square = 1 - part * ((n_b / n) ** 2 / n_a + (n_a / n) ** 2 / n_b)
    half = effect + part * center * (n_a / n / n_b - n_b / n / n_a)
    rest = effect**2 - q2 * (1 - weight) * (own_a + own_b) - part * center**2 * (1 / n_a + 1 / n_b)
    if square <= 0:
        return -math.inf, math.inf
    root = math.sqrt(max(half * half - square * rest, 0.0))
    return (half - root) / square, (half + root) / square


def intervals(a: Looks, b: Looks) -> Sequence[tuple[float, float]]:
    """That of Welch, that of the variance of verdicts, and those of arms that are alike."""
    q, effect = student(welch_df(a, b)), float(b.value[0] - a.value[0])
    errors = (a.variance + b.variance, together(a, b))
    plain = [(effect - q * math.sqrt(v[0]), effect + q * math.sqrt(v[0])) for v in errors]
    return [*plain, alike(a, b, q, 1.0), alike(a, b, q, 0.5)]


def looked(scene: Scene, change: Change, rng: np.random.Generator) -> list[float]:
    """Whether each interval holds the effect, and whether the first and the last exclude 0."""
    treated = int(rng.binomial(scene.units, SHARE))
    sigma = change.sigma or scene.sigma
    treatment_scene = replace(scene, outcomes=scene.outcomes * change.outcomes, sigma=sigma)
    control = arm(values(scene, scene.units - treated, rng), rng)
    treatment = arm(values(treatment_scene, treated, rng, change.amounts), rng)
    truth = (change.amounts * change.outcomes - 1) * scene.outcomes * mean_activity(scene)
    bounds = intervals(control, treatment)
    holds = [float(lower <= truth <= upper) for lower, upper in bounds]
    excludes = [float(not lower <= 0 <= upper) for lower, upper in (bounds[0], bounds[-1])]
    return [*holds, *(excludes if truth else [math.nan, math.nan])]


CHANGES: Final = {
    "nothing": Change(),
    "amounts + 30 %": Change(amounts=1.3),
    "amounts − 40 %": Change(amounts=0.6),
    "outcomes − 40 %": Change(outcomes=0.6),
    "amounts spread more": Change(sigma=1.6),
}
CHOSEN: Final = ("units are alike, 26 % act", "Zipf 3", "Zipf 2.5", "Zipf 2, active units first")

EXPOSED_ONCE: Final = Table(
    "exposed-once",
    "units, 5 % of 20,000 in the treatment; what it changes",
    (
        "Welch's (shown) holds the effect",
        "with the variance of verdicts",
        "with both arms alike",
        "half Welch's, half alike",
        "Welch's excludes 0",
        "half and half excludes 0",
    ),
    tuple(
        Row(f"{name.split(',')[0]}; {label}", partial(looked, SCENES[name], change), 500, 4)
        for name in CHOSEN
        for label, change in CHANGES.items()
    ),
)
