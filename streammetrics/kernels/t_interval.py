"""Intervals of an estimate with a standard error: as it is, and on the scale of the logit.

Ends = (lower, upper). Nothing here raises: where the estimate or its error is not known, the ends
are infinite and the p-value is 1. `log` and `exp` are the last functions of a result.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from streammetrics.kernels.tails import t_isf, t_sf

Ends: TypeAlias = tuple[float, float]
EVERYTHING: Final[Ends] = (-math.inf, math.inf)


def critical(level: float, df: float = math.inf) -> float:
    """The q that Student's |t| exceeds with probability 1 - level; df = inf: the normal.

    level in (0, 1); nan where df is not above 0.

    >>> round(critical(0.95), 6), round(critical(0.95, 7), 6)
    (1.959964, 2.364624)
    """
    return t_isf((1.0 - level) / 2.0, df)


def symmetric_ends(estimate: float, se: float, q: float) -> Ends:
    """The interval estimate - q se, estimate + q se; q from `critical`.

    >>> symmetric_ends(1.0, 0.5, 2.0), symmetric_ends(1.0, math.nan, 2.0)
    ((0.0, 2.0), (-inf, inf))
    """
    half = q * se
    if math.isnan(half) or math.isnan(estimate) or half < 0:
        return EVERYTHING
    return estimate - half, estimate + half


def logit_ends(estimate: float, se: float, q: float) -> Ends:
    """The symmetric interval of ln(x / (1 - x)), which has error se / (x (1 - x)), taken back.

    estimate: in (0, 1); at 0 and at 1 the logit has no error that is known, and nothing is.

    >>> lower, upper = logit_ends(0.5, 0.1, 1.959963984540054)
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
    """How often |t| is as far from 0 as estimate / se; 1 where the error is not known.

    >>> round(two_sided_p(1.959963984540054, 1.0), 12), two_sided_p(1.0, math.nan)
    (0.05, 1.0)
    """
    if (
        math.isnan(estimate)
        or math.isnan(se)
        or se < 0
        or not df > 0
        or (se == 0 and estimate == 0)
    ):
        return 1.0
    return min(1.0, 2.0 * t_sf(abs(estimate) / se if se else math.inf, df))


def welch_df(variance_a: float, df_a: float, variance_b: float, df_b: float) -> float:
    """Degrees of freedom of a difference: (Va + Vb)² / (Va² / df_a + Vb² / df_b).

    (Satterthwaite 1946, Biometrics Bull. 2, 110-114; Welch 1947.) nan where a variance or its df
    is not known, and where both variances are 0.

    >>> welch_df(1.0, 9.0, 1.0, 9.0), welch_df(1.0, 9.0, 0.0, 9.0)
    (18.0, 9.0)
    """
    total = variance_a + variance_b
    if not (total > 0 and df_a > 0 and df_b > 0):
        return math.nan
    share_a, share_b = variance_a / total, variance_b / total
    spread = share_a * share_a / df_a + share_b * share_b / df_b
    return 1.0 / spread if spread else math.inf
