"""Tails and quantiles of the normal and of Student's t, and the tail of chi-square.

What intervals and p-values are read from. No state holds what these give: they are the last
functions of a result, so here, and only where a result ends, libm's `exp`, `log` and `erfc` are
used. The relative errors that the tests allow are beside each function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from streammetrics.kernels.inference.incomplete import beta_p, gamma_q, log_beta

# Where an interval ends: the last float of those that are inside.


def last_inside(inside: float, outside: float, holds: Callable[[float], bool]) -> float:
    """The float next to where `holds` ends, between one where it holds and one where it does not.

    Both ends finite. `holds` is asked at floats strictly between them, some 60 times; if it
    changes more than once in between, one of the changes is found.

    >>> last_inside(1.0, 2.0, lambda x: x * x < 2) ** 2 < 2
    True
    """
    while True:
        middle = inside + 0.5 * (outside - inside)
        if middle in (inside, outside):
            return inside
        if holds(middle):
            inside = middle
        else:
            outside = middle


_NORMAL: Final = NormalDist()
_ROOT_HALF: Final = math.sqrt(0.5)
_STEPS: Final = 200  # of a root; six are usual
_NEAR_NORMAL: Final = 4096.0  # degrees of freedom from which on t is a transformed normal


def normal_sf(z: float) -> float:
    """The share of a standard normal above z, within 1e-13 of its size (2e-16 + z² 2e-16).

    >>> normal_sf(0.0), round(normal_sf(1.959963984540054), 15)
    (0.5, 0.025)
    """
    return 0.5 * math.erfc(z * _ROOT_HALF)


def normal_isf(p: float) -> float:
    """The z above which a share p of a standard normal lies, within 1e-15 of z or of 0.1.

    p in [0, 1]; nan for others. (Wichura 1988, Algorithm AS 241, Appl. Statist. 37,
    477-484.)

    >>> normal_isf(0.025), normal_isf(0.0)
    (1.9599639845400538, inf)
    """
    if not 0 < p < 1:
        return math.inf if p == 0 else -math.inf if p == 1 else math.nan
    return -_NORMAL.inv_cdf(p)


def t_sf(t: float, df: float) -> float:
    """The share of Student's t with df degrees of freedom above t, within 1e-12 of its size.

    df > 0 need not be whole; inf is the normal. I(df / (df + t²); df/2, 1/2) / 2 for t >= 0
    (Abramowitz and Stegun 1964, 26.7.1), and from df = 4096 on the normal tail of a transformed t
    (Hill 1970, Algorithm 395, Comm. ACM 13, 617-619). nan where df is not above 0.

    >>> round(t_sf(1.0, 1.0), 12), round(t_sf(-2.0, 2.0), 12)
    (0.25, 0.908248290464)
    """
    if not df > 0 or math.isnan(t):
        return math.nan
    if t < 0:
        return 1.0 - t_sf(-t, df)
    if df == math.inf or t == 0:
        return normal_sf(t)
    if t == math.inf:
        return 0.0
    if df >= _NEAR_NORMAL:
        return normal_sf(_as_normal(t, df))
    # df / (df + t²) and its complement, each rounded for itself.
    return 0.5 * beta_p(0.5 * df, 0.5, 1.0 / (1.0 + t / df * t), 1.0 / (1.0 + df / t / t))


def _as_normal(t: float, df: float) -> float:
    """The z whose normal tail is that of t > 0, for many degrees of freedom."""
    a = df - 0.5
    b = 48.0 * a * a
    square = a * math.log1p(t / df * t)
    z = math.sqrt(square)
    third = z * (855.0 + square * (240.0 + square * (33.0 + square * 4.0)))
    return z + z * (square + 3.0) / b - third / (10.0 * b * (b + 0.8 * square * square + 100.0))


@lru_cache(maxsize=4096)
def t_isf(p: float, df: float) -> float:
    """The t above which a share p of Student's t lies, within 1e-12 of its size; p in [0, 1].

    Next to p = 1/2 it is as near as the last place of p tells.

    Newton's method for ln t_sf as a function of ln t, where it is nearly straight, inside a
    bracket that shrinks; about 0.1 ms, and remembered. nan where df is not above 0 or p is no
    share.

    >>> round(t_isf(0.025, 7.0), 10), round(t_isf(0.25, 1.0), 12)
    (2.3646242516, 1.0)
    """
    if not (df > 0 and 0 <= p <= 1):
        return math.nan
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -t_isf(1.0 - p, df)
    z = normal_isf(p)
    if df == math.inf or p == 0:
        return z
    low, high, goal = 0.0, math.inf, math.log(p)
    log_height = -0.5 * math.log(df) - log_beta(0.5 * df, 0.5)  # of the density at 0
    t = z * (1.0 + (z * z + 1.0) / (4.0 * df))  # Fisher's first correction
    for _ in range(_STEPS):
        share = t_sf(t, df)
        if share > p:
            low = t
        else:
            high = t
        if share > 0 and t < math.inf:
            density = math.exp(log_height - 0.5 * (df + 1.0) * math.log1p(t / df * t))
            slope = t * density / share
            step = (math.log(share) - goal) / slope if slope else math.inf
            following = t * math.exp(min(max(step, -50.0), 50.0))
        else:
            following = math.nan
        if not low <= following <= high or following == math.inf:
            following = 0.5 * (low + high) if high < math.inf else 2.0 * t + 1.0
        if abs(following - t) <= 2.0**-52 * t:
            return following
        t = following
    return t


def chi2_sf(x: float, df: float) -> float:
    """The share of chi-square with df > 0 degrees of freedom above x, within 1e-13 of its size.

    >>> round(chi2_sf(5.76, 1), 14)
    0.01639507184919
    """
    return 1.0 if x <= 0 else gamma_q(0.5 * df, 0.5 * x)
