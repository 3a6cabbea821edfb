"""The normal mixture on the information clock: intervals and e-values valid at every look.

An estimate with variance V has the information v = 1/V, which is its clock: it stops while nothing
is learnt. With S = estimate · v, approximately normal with variance v if the true effect is 0, and
a normal prior N(0, 1/ρ) over effects, the mixture of the likelihood ratios is

    e = √(ρ / (v + ρ)) · exp(S² / (2 (v + ρ))),

of mean 1 without an effect, at any number of looks. The effects with e < 1/α form an interval that
covers the true effect at all looks together, with probability 1 - α.
(Robbins 1970, Ann. Math. Stat. 41, 1397-1409; Howard et al. 2021, Ann. Stat. 49, 1055-1080,
section 3.2 (one side: eq. 3.7); Waudby-Smith et al., arXiv 2103.06476, eq. 9, with their
ρ² = 1 / (ρ σ²).) These are the last steps of a result; no state stores them.
"""

from __future__ import annotations

import math
import sys
from typing import Final

from streammetrics.kernels.inference.tails import normal_isf, normal_sf, t_isf, t_sf

# A t-statistic as the normal z of equal tail probability, and back.


def gaussianised(z: float, df: float) -> float:
    """The normal z whose tail equals that of z under Student's t; z itself if df is infinite.

    Its absolute value is at most |z|. nan unless df > 0. For tails below the smallest float it is
    the z of that float, about 38, a certain lower bound.

    >>> round(gaussianised(2.364624251592785, 7.0), 9), gaussianised(-1.5, math.inf)
    (1.959963985, -1.5)
    """
    if df == math.inf or math.isnan(z) or z == 0:
        return z
    tail = t_sf(abs(z), df)
    moved = normal_isf(max(tail, sys.float_info.min)) if df > 0 else math.nan
    return math.copysign(min(moved, abs(z)), z) if moved == moved else math.nan


def as_t(c: float, df: float) -> float:
    """The t with df degrees of freedom whose tail equals the normal tail of c.

    The inverse of `gaussianised`. Infinite if the tail is below the smallest float (c > 38), so
    that an interval is wider, never narrower. nan unless df > 0.

    >>> round(as_t(1.9599639845400545, 7.0), 9), as_t(3.0, math.inf)
    (2.364624252, 3.0)
    """
    if df == math.inf or math.isnan(c) or c == 0:
        return c
    if not df > 0:
        return math.nan
    tail = normal_sf(abs(c))
    moved = t_isf(tail, df) if tail >= sys.float_info.min else math.inf
    return math.copysign(moved, c)


_STEPS: Final = 100  # of Newton's method; six are usual
_FAR_TAIL: Final = -20.0  # below it ln Φ is computed from its asymptotic series


def tuned(v_opt: float, alpha: float) -> float:
    """The ρ that makes the interval narrow near the information v_opt, at level alpha.

    ρ = v_opt / L with L = 2 ln(1/α) + ln(1 + 2 ln(1/α)). The optimal L is the root of
    L = 2 ln(1/α) + ln(1 + L), which makes `multiplier` at v_opt smaller by less than 1e-3 of its
    size. 0 < alpha < 1, v_opt > 0; for a one-sided bound, pass twice its alpha. It never underflows
    to 0; the interval holds with any other ρ as well.

    >>> round(1 / tuned(1.0, 0.05), 6)
    7.936155
    """
    base = -2.0 * math.log(alpha)
    return max(v_opt / (base + math.log1p(base)), sys.float_info.min)


def multiplier(v: float, rho: float, alpha: float) -> float:
    """The half-width of the interval in standard errors: the |z| at which e is 1/α.

    c = √( (v + ρ)/v · [ln((v + ρ)/ρ) + 2 ln(1/α)] ). Infinite without information.

    >>> round(multiplier(1.0, tuned(1.0, 0.05), 0.05), 3)
    3.035
    """
    if not 0 < v < math.inf:
        return math.inf
    return math.sqrt((1.0 + rho / v) * (math.log1p(v / rho) - 2.0 * math.log(alpha)))


def log_e(z: float, v: float, rho: float) -> float:
    """The logarithm of the e-value against no effect, of z = estimate / √V.

    ½ ln(ρ/(v + ρ)) + z² v / (2 (v + ρ)); 0 where z or v is undefined.

    >>> log_e(0.0, 3.0, 1.0) == -math.log(2)
    True
    """
    if math.isnan(z) or not 0 < v < math.inf:
        return 0.0
    return 0.5 * (z * z / (1.0 + rho / v) - math.log1p(v / rho))


def anytime_p(sup_log_e: float) -> float:
    """The always-valid p-value: min(1, 1 / the largest e-value so far).

    >>> anytime_p(-3.0), round(anytime_p(math.log(20)), 12)
    (1.0, 0.05)
    """
    return math.exp(-sup_log_e) if sup_log_e > 0 else 1.0


def one_sided_log_e(z: float, v: float, rho: float) -> float:
    """The logarithm of the e-value against an effect of at most 0.

    The prior is the half of N(0, 1/ρ) above 0: with x = z √(v/(v + ρ)),
    e = 2 √(ρ/(v + ρ)) exp(x²/2) Φ(x). 0 where z or v is undefined.

    >>> one_sided_log_e(0.0, 3.0, 1.0) == log_e(0.0, 3.0, 1.0)
    True
    """
    if math.isnan(z) or not 0 < v < math.inf:
        return 0.0
    return _half_mixture(z / math.sqrt(1.0 + rho / v)) - 0.5 * math.log1p(v / rho)


def one_sided_multiplier(v: float, rho: float, alpha: float) -> float:
    """The distance of a one-sided bound in standard errors: the z at which e is 1/α.

    Negative if the bound is on the other side of the estimate, which needs an alpha above 1/2.
    Infinite without information.

    >>> rho = tuned(1.0, 0.1)
    >>> round(one_sided_log_e(one_sided_multiplier(1.0, rho, 0.05), 1.0, rho), 12)
    2.995732273554
    """
    if not 0 < v < math.inf:
        return math.inf
    goal = 0.5 * math.log1p(v / rho) - math.log(alpha)
    # x²/2 + ln 2Φ(x) is convex and increasing, so Newton's method stays above the root.
    x = math.sqrt(2.0 * max(goal, 0.0))
    for _ in range(_STEPS):
        share = normal_sf(-x)
        slope = x + math.exp(-0.5 * x * x) / (math.sqrt(2.0 * math.pi) * share)
        following = x - (_half_mixture(x) - goal) / slope
        if abs(following - x) <= 2.0**-51 * abs(x):
            break
        x = following
    return x * math.sqrt(1.0 + rho / v)


def _half_mixture(x: float) -> float:
    """x²/2 + ln 2Φ(x)."""
    if x > _FAR_TAIL:
        return 0.5 * x * x + math.log(2.0 * normal_sf(-x))
    # Φ(x) = φ(x)/|x| · (1 - 1/x² + 3/x⁴ - 15/x⁶ + ...). (Abramowitz and Stegun 1964, 26.2.12.)
    w = 1.0 / (x * x)
    series = 1.0 - w * (1.0 - 3.0 * w * (1.0 - 5.0 * w * (1.0 - 7.0 * w * (1.0 - 9.0 * w))))
    return math.log(series) - math.log(-x) + 0.5 * math.log(2.0 / math.pi)
