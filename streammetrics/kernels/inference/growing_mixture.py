"""The normal mixture for values that still grow: on the clock of the lift, with four tunings.

The sum of a unit's values so far, or whether it had an event so far, grows after the unit was
exposed, while further units are exposed. The variance V of a difference then falls as units come
and rises as their values grow: 1/V may stand still while the estimate goes on moving, and a mixture
on that clock does not pay for it. With outcomes at a constant rate the correlation of the z at two
times is √(τ / τ'), where τ is n P / (1 - P) for the share P of n units with an event, n t for sums
of independent values after a time t, and n for users who differ only in a constant rate. In all of
these τ is proportional to u = μ²/V, the information about the lift, μ the mean of both arms.

A planned effect on final values says nothing about u. So the e-value is the mean of four, tuned at
u = 100 to 100,000: at most 4 times less than the best of the four.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from streammetrics.kernels.inference.dirichlet_multinomial import log_sum
from streammetrics.kernels.inference.normal_mixture import log_e, one_sided_log_e, tuned

TUNINGS: Final = (100.0, 1_000.0, 10_000.0, 100_000.0)
_MOST: Final = 60.0  # standard errors; past it there is no interval
_STEPS: Final = 60  # halvings, to the last bit of a float

_Evidence = Callable[[float, float, float], float]


def growing_log_e(z: float, u: float, alpha: float) -> float:
    """The logarithm of the e-value against no effect, of z = estimate / √V.

    >>> round(growing_log_e(4.0, 1_000.0, 0.05), 3), growing_log_e(4.0, 0.0, 0.05)
    (5.215, 0.0)
    """
    return _mean(log_e, z, u, alpha)


def growing_multiplier(u: float, alpha: float) -> float:
    """The half-width of the interval in standard errors; infinite without information.

    >>> [round(growing_multiplier(u, 0.05), 2) for u in (100.0, 10_000.0, 1_000_000.0)]
    [3.45, 3.29, 3.54]
    """
    return _distance(log_e, u, alpha, alpha)


def one_sided_growing_log_e(z: float, u: float, alpha: float) -> float:
    """The logarithm of the e-value against an effect of at most 0.

    >>> round(one_sided_growing_log_e(4.0, 1_000.0, 0.05), 3)
    5.881
    """
    return _mean(one_sided_log_e, z, u, 2.0 * alpha)


def one_sided_growing_multiplier(u: float, alpha: float) -> float:
    """The distance of a one-sided bound in standard errors; alpha at most 1/2.

    >>> round(one_sided_growing_multiplier(10_000.0, 0.05), 2)
    3.04
    """
    return _distance(one_sided_log_e, u, 2.0 * alpha, alpha)


def _mean(evidence: _Evidence, z: float, u: float, tuned_for: float) -> float:
    share = 1.0 / len(TUNINGS)
    return log_sum((evidence(z, u, tuned(tuning, tuned_for)), share) for tuning in TUNINGS)


def _distance(evidence: _Evidence, u: float, tuned_for: float, alpha: float) -> float:
    """The least z above 0 whose e-value is 1 / alpha."""
    if not 0 < u < math.inf:
        return math.inf
    goal, low, high = -math.log(alpha), 0.0, _MOST
    if _mean(evidence, high, u, tuned_for) < goal:
        return math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if _mean(evidence, middle, u, tuned_for) < goal:
            low = middle
        else:
            high = middle
    return high
