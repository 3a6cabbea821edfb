"""Means of values in [0, 1], with intervals that are certain at every look, at any sample size.

(Howard et al. 2021, Ann. Stat. 49, 1055-1080, theorem 4.) There the variance is taken about a
running prediction, which depends on the order of the rows. Here the prediction is one number m0
that was fixed before the data (a historical mean): V = Σ (x - m0)² = Σx² - 2 m0 Σx + n m0² is then
a function of mergeable totals. A bad m0 makes the interval wide and never wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.bisection import last_inside
from streammetrics.kernels.gamma_exponential import boundary, log_m, tuned_one_sided
from streammetrics.kernels.rounding import ratio

Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class Moments:
    """The number of values in [0, 1], their sum and the sum of their squares."""

    n: int
    total: Number
    squares: Number

    @property
    def mean(self) -> float:
        """Correctly rounded; nan without a value."""
        return ratio(Fraction(self.total), self.n)

    def about(self, reference: Number) -> float:
        """Σ (x - reference)², correctly rounded; what rounded totals leave below 0 is 0."""
        m0 = Fraction(reference)
        return max(
            0.0, float(Fraction(self.squares) - m0 * (2 * Fraction(self.total) - self.n * m0))
        )


def interval(found: Moments, reference: Number, v_opt: float, alpha: float) -> tuple[float, float]:
    """The interval of the mean at level 1 - alpha, within [0, 1].

    v_opt: the Σ (x - reference)² at which it shall be narrow, said before the data. Half of alpha
    is spent on each side. [0, 1] without a value.

    >>> low, high = interval(Moments(1000, 300, 300), Fraction(1, 4), 200.0, 0.05)
    >>> 0.24 < low < 0.3 < high < 0.36
    True
    """
    if not found.n:
        return 0.0, 1.0
    radius = _radius(found, reference, v_opt, alpha / 2)
    return max(0.0, found.mean - radius), min(1.0, found.mean + radius)


def difference(
    control: Moments, treatment: Moments, reference: Number, v_opt: float, alpha: float
) -> tuple[float, float]:
    """The interval of treatment - control, within [-1, 1]: alpha/4 on each side of each arm.

    v_opt is that of one arm. [-1, 1] where an arm has no value.
    """
    low, high = interval(treatment, reference, v_opt, alpha / 2)
    base_low, base_high = interval(control, reference, v_opt, alpha / 2)
    return max(-1.0, low - base_high), min(1.0, high - base_low)


def log_e(
    control: Moments, treatment: Moments, reference: Number, v_opt: float, alpha: float
) -> float:
    """The logarithm of the e-value against equal means; 0 where an arm has no value.

    Were μ the mean of both, each side of each arm would have an e-value, and their mean is one. A
    quarter of the greater of the two that lie towards μ is not above it; at the μ where the two
    are equal it is least. It reaches 1/alpha just where `difference` leaves out 0.
    """
    if not (control.n and treatment.n):
        return 0.0
    below, above = sorted((control, treatment), key=lambda arm: arm.mean)
    rho = tuned_one_sided(v_opt, alpha / 4)
    spread = (below.about(reference), above.about(reference))

    def from_below(mu: float) -> float:
        return log_m(max(0.0, below.n * (mu - below.mean)), spread[0], rho)

    def from_above(mu: float) -> float:
        return log_m(max(0.0, above.n * (above.mean - mu)), spread[1], rho)

    mu = last_inside(below.mean, above.mean, lambda mu: from_below(mu) < from_above(mu))
    return max(from_below(mu), from_above(mu)) - math.log(4.0)


def _radius(found: Moments, reference: Number, v_opt: float, alpha: float) -> float:
    rho = tuned_one_sided(v_opt, alpha)
    return boundary(found.about(reference), rho, alpha) / found.n
