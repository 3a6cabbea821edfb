"""The gamma-exponential mixture: a one-sided boundary for sums of bounded differences.

For a sum S of differences below 1 from their mean, with v the sum of their squares about any
prediction made beforehand,

    m(S, v) = ρ^ρ / (Γ(ρ) P(ρ, ρ)) · Γ(a) P(a, x) / x^a · exp(S + v),   a = v + ρ, x = S + v + ρ,

has mean at most 1 at all times, P being the lower regularised incomplete gamma function. Its
large terms are joined here: ln m = D(a, x) + ½ ln(ρ/a) + R(a) - R(ρ) + ln P(a, x) - ln P(ρ, ρ),
D(a, x) = a ln(a/x) - a + x and R what Stirling's formula leaves over.
(Howard et al. 2021, Ann. Stat. 49, 1055-1080, proposition 9 and theorem 4, with c = 1.) The last
function of a result.
"""

from __future__ import annotations

import math

from streammetrics.kernels.incomplete import log_gamma_p
from streammetrics.kernels.normal_mixture import tuned
from streammetrics.kernels.stirling import deviance, stirling_remainder

_STEPS = 100  # of Newton's method; six are usual


def tuned_one_sided(v_opt: float, alpha: float) -> float:
    """The ρ for a boundary that is low about v = v_opt: v_opt / (2 ln(1/2α) + ln(1 + 2 ln(1/2α))).

    0 < alpha < 1/2, the error of this one side.

    >>> round(100 / tuned_one_sided(100.0, 0.025), 6)
    7.936155
    """
    return tuned(v_opt, 2.0 * alpha)


def log_m(s: float, v: float, rho: float) -> float:
    """The logarithm of m(S, v), for S >= 0, v >= 0, rho > 0.

    >>> round(log_m(60.0, 100.0, tuned_one_sided(100.0, 0.025)), 10)
    11.4244936978
    """
    a = v + rho
    x = s + a
    rest = stirling_remainder(a) - stirling_remainder(rho) + 0.5 * math.log(rho / a)
    return deviance(a, x) + rest + log_gamma_p(a, x) - log_gamma_p(rho, rho)


def boundary(v: float, rho: float, alpha: float) -> float:
    """The S at which m(S, v) is 1/alpha: a sum that ever passes it has probability alpha at most.

    >>> round(boundary(100.0, tuned_one_sided(100.0, 0.025), 0.025), 9)
    33.488369531
    """
    a, goal, s = v + rho, -math.log(alpha), 0.0
    # ln m is convex in S and rises, so that Newton's method comes from above after one step.
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
