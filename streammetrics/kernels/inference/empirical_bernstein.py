"""Means of values in [0, most], with intervals that are valid at every look and any sample size.

(Howard et al. 2021, Ann. Stat. 49, 1055-1080, theorem 4.) There the variance is taken about a
running prediction, which depends on the order of the rows. Here the prediction is a constant m0,
fixed before the data (a historical mean), so V = Σ (x - m0)² = Σx² - 2 m0 Σx + n m0² is a function
of mergeable totals. A bad m0 makes the interval wide, never invalid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.normal_mixture import tuned
from streammetrics.kernels.inference.tails import (
    deviance,
    last_inside,
    log_gamma_p,
    stirling_remainder,
)

# The gamma-exponential mixture: a one-sided boundary for sums of bounded differences.

_STEPS = 100  # of Newton's method; six are usual


def log_m(s: float, v: float, rho: float) -> float:
    """The logarithm of m(S, v), for S >= 0, v >= 0, rho > 0.

    >>> round(log_m(60.0, 100.0, tuned(100.0, 0.05)), 10)
    11.4244936978
    """
    a = v + rho
    x = s + a
    correction = stirling_remainder(a) - stirling_remainder(rho) + 0.5 * math.log(rho / a)
    return deviance(a, x) + correction + log_gamma_p(a, x) - log_gamma_p(rho, rho)


def boundary(v: float, rho: float, alpha: float) -> float:
    """The S at which m(S, v) is 1/alpha: a sum ever exceeds it with probability at most alpha.

    >>> round(boundary(100.0, tuned(100.0, 0.05), 0.025), 9)
    33.488369531
    """
    a, goal, s = v + rho, -math.log(alpha), 0.0
    # ln m is convex and increasing in S, so Newton's method is above the root after one step.
    for _ in range(_STEPS):
        step = (log_m(s, v, rho) - goal) / _slope(s, a)
        s -= step
        if abs(step) <= 2.0**-46 * s:
            break
    return s


def _slope(s: float, a: float) -> float:
    """The derivative of ln m: S/x + x^(a-1) e^-x / (Γ(a) P(a, x))."""
    x = s + a
    log_density = -deviance(a, x) - stirling_remainder(a) - log_gamma_p(a, x)
    return (s + math.sqrt(a / (2.0 * math.pi)) * math.exp(log_density)) / x


Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class Moments:
    """The number of values in [0, most], their sum and the sum of their squares.

    most: known before the data, such as 1 for shares.
    """

    n: int
    total: Number
    squares: Number
    most: Number = 1

    @property
    def mean(self) -> float:
        """The mean, correctly rounded; nan without a value."""
        return ratio(Fraction(self.total), self.n)

    def squares_about(self, reference: Number) -> float:
        """Σ (x / most - reference)², correctly rounded; 0 if rounded totals make it negative."""
        most = Fraction(self.most)
        m0 = Fraction(reference) * most
        spread = Fraction(self.squares) - m0 * (2 * Fraction(self.total) - self.n * m0)
        return max(0.0, float(spread / most / most))


def interval(
    moments: Moments, reference: Number, v_opt: float, alpha: float
) -> tuple[float, float]:
    """The interval of the mean at level 1 - alpha, within [0, most].

    reference: a mean from before the data, as a share of `most`. v_opt: the `about(reference)` for
    which the interval is tuned, chosen before the data. Half of alpha is spent on each side.
    [0, most] without a value.

    >>> low, high = interval(Moments(1000, 300, 300), Fraction(1, 4), 200.0, 0.05)
    >>> 0.24 < low < 0.3 < high < 0.36
    True
    """
    most = float(moments.most)
    if not moments.n:
        return 0.0, most
    radius = (
        most
        * boundary(moments.squares_about(reference), tuned(v_opt, alpha), alpha / 2)
        / moments.n
    )
    return max(0.0, moments.mean - radius), min(most, moments.mean + radius)


def difference(
    control: Moments, treatment: Moments, reference: Number, v_opt: float, alpha: float
) -> tuple[float, float]:
    """The interval of treatment - control, within [-most, most]: alpha/4 on each side of each arm.

    v_opt: that of one arm. [-most, most] if an arm has no value.
    """
    low, high = interval(treatment, reference, v_opt, alpha / 2)
    base_low, base_high = interval(control, reference, v_opt, alpha / 2)
    most = float(max(control.most, treatment.most))
    return max(-most, low - base_high), min(most, high - base_low)


def log_e(
    control: Moments, treatment: Moments, reference: Number, v_opt: float, alpha: float
) -> float:
    """The logarithm of the e-value against equal means; 0 where an arm has no value.

    If both arms have the mean μ, each side of each arm has an e-value, and the mean of the four is
    an e-value too. It is at least a quarter of the greater of the two that face μ, which is least
    at the μ where the two are equal. This reaches 1/alpha exactly where `difference` excludes 0.
    """
    if not (control.n and treatment.n):
        return 0.0
    below, above = sorted((control, treatment), key=lambda arm: arm.mean)
    most = float(max(control.most, treatment.most))
    rho = tuned(v_opt, alpha / 2)
    spread = (below.squares_about(reference), above.squares_about(reference))

    def from_below(mu: float) -> float:
        return log_m(max(0.0, below.n * ((mu - below.mean) / most)), spread[0], rho)

    def from_above(mu: float) -> float:
        return log_m(max(0.0, above.n * ((above.mean - mu) / most)), spread[1], rho)

    mu = last_inside(below.mean, above.mean, lambda mu: from_below(mu) < from_above(mu))
    return max(from_below(mu), from_above(mu)) - math.log(4.0)
