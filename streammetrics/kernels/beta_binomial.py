"""One rate, valid at every look: the beta-binomial mixture of a count of successes.

(Robbins 1970, Ann. Math. Stat. 41, 1397-1409; Howard et al. 2021, Ann. Stat. 49, 1055-1080.)
"""

from __future__ import annotations

import math
from fractions import Fraction

from streammetrics.kernels.bisection import last_inside
from streammetrics.kernels.dirichlet_multinomial import log_e as log_e_of_counts

JEFFREYS = (0.5, 0.5)


def log_e(
    successes: int, trials: int, rate: float | Fraction, prior: tuple[float, float] = JEFFREYS
) -> float:
    """The logarithm of the e-value against a rate in [0, 1].

    prior: its weights of success and failure.

    >>> round(log_e(30, 100, 0.2), 12)
    0.285561953424
    """
    p = Fraction(rate)
    return log_e_of_counts([successes, trials - successes], [p, 1 - p], prior)


def interval(
    successes: int, trials: int, alpha: float, prior: tuple[float, float] = JEFFREYS
) -> tuple[float, float]:
    """The rates whose e-value is below 1/alpha: they hold the true one at all looks together.

    [0, 1] without a trial.

    >>> [round(end, 10) for end in interval(30, 100, 0.05)]
    [0.1656515354, 0.4628398651]
    """
    # The e-value is below 1 at the observed rate, and convex in ln(rate / (1 - rate)).
    goal = -math.log(alpha)
    seen = successes / trials if trials else 0.5

    def holds(rate: float) -> bool:
        return log_e(successes, trials, rate, prior) < goal

    low = last_inside(seen, 0.0, holds) if successes else 0.0
    high = last_inside(seen, 1.0, holds) if successes < trials else 1.0
    return low, high
