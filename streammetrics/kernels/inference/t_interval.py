"""Intervals of an estimate with a standard error: symmetric, and on the logit scale.

Bounds are (lower, upper). Nothing here raises: if the estimate or its error is unknown, the bounds
are infinite and the p-value is nan. `log` and `exp` are used only in the last step of a result.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from streammetrics.kernels.inference.tails import t_isf, t_sf

Bounds: TypeAlias = tuple[float, float]
EVERYTHING: Final[Bounds] = (-math.inf, math.inf)


def critical(level: float, df: float = math.inf) -> float:
    """The q that Student's |t| exceeds with probability 1 - level; df = inf: the normal.

    level in (0, 1); nan unless df > 0.

    >>> round(critical(0.95), 6), round(critical(0.95, 7), 6)
    (1.959964, 2.364624)
    """
    return t_isf((1.0 - level) / 2.0, df)


def symmetric_bounds(estimate: float, se: float, q: float) -> Bounds:
    """The interval estimate - q se, estimate + q se; q from `critical`.

    >>> symmetric_bounds(1.0, 0.5, 2.0), symmetric_bounds(1.0, math.nan, 2.0)
    ((0.0, 2.0), (-inf, inf))
    """
    half = q * se
    if math.isnan(half) or math.isnan(estimate) or half < 0:
        return EVERYTHING
    return estimate - half, estimate + half


def logit_bounds(estimate: float, se: float, q: float) -> Bounds:
    """The symmetric interval of ln(x / (1 - x)), with error se / (x (1 - x)), transformed back.

    estimate: in (0, 1); at 0 and 1 the error of the logit is unknown, and the bounds are infinite.

    >>> lower, upper = logit_bounds(0.5, 0.1, 1.959963984540054)
    >>> round(lower, 9), round(upper, 9)
    (0.313461536, 0.686538464)
    """
    if not 0 < estimate < 1:
        return EVERYTHING
    odds, half = estimate / (1.0 - estimate), q * se / (estimate * (1.0 - estimate))
    if math.isnan(half) or half < 0:
        return EVERYTHING
    # expit(logit x - h) = x / (x + (1 - x) e^h); e^h may be too large for a float.
    times = math.exp(min(half, 700.0))
    return odds / (odds + times), odds * times / (1.0 + odds * times)


def two_sided_p(estimate: float, se: float, df: float = math.inf) -> float:
    """The probability of a |t| of at least |estimate / se|; nan if the error is unknown.

    >>> round(two_sided_p(1.959963984540054, 1.0), 12), two_sided_p(1.0, math.nan)
    (0.05, nan)
    """
    if (
        math.isnan(estimate)
        or math.isnan(se)
        or se < 0
        or not df > 0
        or (se == 0 and estimate == 0)
    ):
        return math.nan
    return min(1.0, 2.0 * t_sf(abs(estimate) / se if se else math.inf, df))


def welch_df(variance_a: float, df_a: float, variance_b: float, df_b: float) -> float:
    """Degrees of freedom of a difference: (Va + Vb)² / (Va² / df_a + Vb² / df_b).

    (Satterthwaite 1946, Biometrics Bull. 2, 110-114; Welch 1947.) nan if a variance or its df
    is unknown, or both variances are 0.

    >>> welch_df(1.0, 9.0, 1.0, 9.0), welch_df(1.0, 9.0, 0.0, 9.0)
    (18.0, 9.0)
    """
    total = variance_a + variance_b
    if not (total > 0 and df_a > 0 and df_b > 0):
        return math.nan
    share_a, share_b = variance_a / total, variance_b / total
    spread = share_a * share_a / df_a + share_b * share_b / df_b
    return 1.0 / spread if spread else math.inf


# Intervals of a relative lift, treatment / control - 1, of two independent estimates.


def fieller_bounds(
    control: float, variance_c: float, treatment: float, variance_t: float, q: float
) -> Bounds:
    """The lifts r with |treatment - (1 + r) control| <= q √(Vt + (1 + r)² Vc).

    (Fieller 1954, J. R. Stat. Soc. B 16, 175-185.) With s = treatment / control, g = q² Vc /
    control²: (s ∓ q / |control| √(Vt + s² Vc - g Vt)) / (1 - g) - 1. Infinite if g >= 1: then the
    control may be 0, and any lift is possible.

    >>> z, va, vb = 1.959963984540054, 0.052 * 0.948 / 9999, 0.0585 * 0.9415 / 9999
    >>> lower, upper = fieller_bounds(0.052, va, 0.0585, vb, z)
    >>> round(lower, 12), round(upper, 12)
    (0.003048416175, 0.262821682082)
    """
    root_g = q * _relative_error(control, variance_c)
    if not root_g < 1 or math.isnan(treatment) or not variance_t >= 0:
        return EVERYTHING
    g, s = root_g * root_g, treatment / control
    error_t = math.sqrt(variance_t) / control
    half = math.sqrt(q * q * error_t * error_t * (1.0 - g) + s * s * g)
    return (s - half) / (1.0 - g) - 1.0, (s + half) / (1.0 - g) - 1.0


def lift_variance(control: float, variance_c: float, treatment: float, variance_t: float) -> float:
    """The delta variance of a lift, Vt / control² + Vc treatment² / control⁴; nan at control 0.

    >>> round(math.sqrt(lift_variance(0.2, 0.004**2, 0.21, 0.004**2)), 12)
    0.029
    """
    error_c, s = _relative_error(control, variance_c), treatment / control if control else math.nan
    error_t = _relative_error(control, variance_t)
    return error_t * error_t + s * s * error_c * error_c


def _relative_error(estimate: float, variance: float) -> float:
    """The standard error over |estimate|; nan if it is unknown or the estimate is 0."""
    return math.sqrt(variance) / abs(estimate) if estimate and variance >= 0 else math.nan


def less(a: Bounds, b: Bounds) -> Bounds:
    """The bounds of a difference, a - b, from those of both; infinite where both ends are.

    >>> less((3.0, 5.0), (1.0, 2.0)), less((3.0, math.inf), (-math.inf, math.inf))
    ((1.0, 4.0), (-inf, inf))
    """
    low, high = a[0] - b[1], a[1] - b[0]
    return (-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)
