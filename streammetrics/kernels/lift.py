"""Intervals of a relative lift, treatment / control - 1, of two independent estimates.

RelaImpr is the lift of area - 1/2. `log` and `exp` are the last functions of a result.
"""

from __future__ import annotations

import math
from typing import Final

from streammetrics.kernels.t_interval import EVERYTHING, Ends

_MOST: Final = 700.0  # whose e-fold is still a float


def fieller_ends(
    control: float, variance_c: float, treatment: float, variance_t: float, q: float
) -> Ends:
    """The lifts r with |treatment - (1 + r) control| <= q √(Vt + (1 + r)² Vc).

    (Fieller 1954, J. R. Stat. Soc. B 16, 175-185.) With s = treatment / control, g = q² Vc /
    control²: (s ∓ q / |control| √(Vt + s² Vc - g Vt)) / (1 - g) - 1. Infinite where g >= 1: then
    the control may be 0, and any lift is possible.

    >>> z, va, vb = 1.959963984540054, 0.052 * 0.948 / 9999, 0.0585 * 0.9415 / 9999
    >>> lower, upper = fieller_ends(0.052, va, 0.0585, vb, z)
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


def log_lift_ends(
    control: float, variance_c: float, treatment: float, variance_t: float, q: float
) -> Ends:
    """The symmetric interval of ln(treatment / control), taken back: wider than it need be.

    Infinite where the two are not of one sign.

    >>> z, va, vb = 1.959963984540054, 0.052 * 0.948 / 9999, 0.0585 * 0.9415 / 9999
    >>> lower, upper = log_lift_ends(0.052, va, 0.0585, vb, z)
    >>> round(lower, 8), round(upper, 8)
    (0.00295253, 0.2618992)
    """
    if not (control and treatment and control / treatment > 0):
        return EVERYTHING
    error_c, error_t = _relative_error(control, variance_c), _relative_error(treatment, variance_t)
    half = q * math.sqrt(error_c * error_c + error_t * error_t)
    if math.isnan(half):
        return EVERYTHING
    if half > _MOST:
        return -1.0, math.inf
    times, s = math.exp(half), treatment / control
    return s / times - 1.0, s * times - 1.0


def _relative_error(estimate: float, variance: float) -> float:
    """The standard error over |estimate|; nan where it is not known or the estimate is 0."""
    return math.sqrt(variance) / abs(estimate) if estimate and variance >= 0 else math.nan
