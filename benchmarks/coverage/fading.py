"""How often an effect that was shown is called another one since the decision, at 40 looks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.table import Row, Table
from streammetrics.experiments import ConfidenceSequence, Evidence

Floats = NDArray[np.float64]

LOOKS: Final = 40
ALPHA: Final = 0.05


@cache
def reaches() -> Floats:
    """Half the width of the always-valid interval after 1 to 40 units of information, tuned for
    half of the planned ones; infinite after none."""
    sequence = ConfidenceSequence(alpha=ALPHA, v_opt=LOOKS / 2)
    looks = [
        Evidence(effect_size=0.0, std_error=1 / math.sqrt(v), least_count=1000)
        for v in range(1, LOOKS + 1)
    ]
    return np.array([math.inf, *(sequence.at(look).upper for look in looks)])


def fading(
    errors: float, course: Callable[[Floats], Floats], rng: np.random.Generator
) -> tuple[float, float, float]:
    """Whether an effect is shown; whether it is then taken back at some look: because the last look
    alone no longer excludes 0, and by the rule in use.

    errors: the constant effect over the standard error at the end. course: by what it is multiplied
    at each time, as shares of the experiment.
    """
    time = np.arange(1, LOOKS + 1)
    rate = errors / math.sqrt(LOOKS) * course((time - 0.5) / LOOKS)
    sums = np.concatenate([[0.0], np.cumsum(rate + rng.standard_normal(LOOKS))])
    estimate, reach = sums[1:] / time, reaches()[1:]
    lower, upper = np.maximum.accumulate(estimate - reach), np.minimum.accumulate(estimate + reach)
    shown = np.flatnonzero((lower > 0) | (upper < 0))
    if not len(shown):
        return 0.0, math.nan, math.nan
    first, later = shown[0], np.arange(shown[0] + 1, LOOKS)
    former = (estimate[later] - reach[later] <= 0) & (estimate[later] + reach[later] >= 0)
    increment = (sums[later + 1] - sums[first + 1]) / (later - first)
    width = reaches()[later - first]
    since_lower = np.maximum.accumulate(increment - width)
    since_upper = np.minimum.accumulate(increment + width)
    apart = (since_lower > upper[later]) | (since_upper < lower[later])
    changed = bool((apart | (lower[later] > upper[later])).any())
    return 1.0, float(former.any()), float(changed)


def constant(time: Floats) -> Floats:
    """The same effect all along."""
    return np.ones_like(time)


def step_effect(start: float, factor: float, time: Floats) -> Floats:
    """An effect that is multiplied from a time on."""
    return np.where(time < start, 1.0, factor)


FADING: Final = Table(
    "fading",
    "effect, in standard errors at the end",
    ("shown at some look", "taken back: the last look alone does not show it",
     "taken back: the effect since the decision is another one (used)"),
    (
        *(
            Row(f"{errors}, constant", partial(fading, errors, constant), 4000, 0.15)
            for errors in (2.8, 3.5, 4.2, 6)
        ),
        *(
            Row(name, partial(fading, errors, partial(step_effect, start, factor)), 4000, 0.15)
            for name, errors, start, factor in (
                ("10, ends after a quarter", 10, 0.25, 0.0),
                ("20, ends after a quarter", 20, 0.25, 0.0),
                ("10, turns round after a quarter", 10, 0.25, -1.0),
                ("20, turns round after a quarter", 20, 0.25, -1.0),
                ("10, ends at half", 10, 0.5, 0.0),
                ("20, ends at half", 20, 0.5, 0.0),
                ("10, halved after a quarter", 10, 0.25, 0.5),
            )
        ),
    ),
)  # fmt: skip
