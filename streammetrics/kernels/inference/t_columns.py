"""Intervals of many estimates as columns: Student's t of many degrees of freedom, with the bits of
`tails` and `t_interval`.

Sums, products, quotients and roots are those of arrays, which round as Python's do. Logarithms and
exponentials are Python's, number by number, since numpy's have other last bits on some machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.inference.tails import (
    CLOSE,
    CORNISH_FISHER,
    FAR,
    NEAR_NORMAL,
    SETTLED,
    STEPS,
    STIRLING,
    TERMS,
    TINY,
    normal_isf,
    normal_sf,
    polynomial,
    t_isf,
)

Floats = NDArray[np.float64]
Function = Callable[[float], float]

_FEW: Final = 16  # degrees of freedom that are as quick one by one
_MANY: Final = 2.0**50  # and those beyond


def critical_columns(level: float, df: Floats | None = None) -> Floats | float:
    """`critical` of many degrees of freedom [k]; None: of the normal.

    >>> critical_columns(0.95, np.array([7.0, 7.0, math.nan])).round(6).tolist()
    [2.364624, 2.364624, nan]
    """
    p = (1.0 - level) / 2.0
    if df is None:
        return t_isf(p, math.inf)
    different, positions = np.unique(df, return_inverse=True)
    values: Floats = t_isf_columns(p, different)[positions]
    return values


def symmetric_bound_columns(
    estimates: Floats, se: Floats, q: Floats | float
) -> tuple[Floats, Floats]:
    """`symmetric_bounds` of many estimates [k]."""
    with np.errstate(over="ignore", invalid="ignore"):
        half = q * se
        unknown = np.isnan(half) | np.isnan(estimates) | (half < 0)
        lower, upper = estimates - half, estimates + half
    return np.where(unknown, -np.inf, lower), np.where(unknown, np.inf, upper)


def logit_bound_columns(estimates: Floats, se: Floats, q: Floats | float) -> tuple[Floats, Floats]:
    """`logit_bounds` of many estimates [k].

    >>> lower, upper = logit_bound_columns(np.array([0.5, 1.0]), np.array([0.1, 0.1]), 2.0)
    >>> lower.round(6).tolist(), upper.round(6).tolist()
    ([0.310026, -inf], [0.689974, inf])
    """
    proper = (estimates > 0) & (estimates < 1)
    x = np.where(proper, estimates, 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        odds, half = x / (1.0 - x), q * se / (x * (1.0 - x))
        defined = proper & (half >= 0)
        times = _each(math.exp, np.where(defined, np.minimum(half, 700.0), 0.0))
        lower, upper = odds / (odds + times), odds * times / (1.0 + odds * times)
    return np.where(defined, lower, -np.inf), np.where(defined, upper, np.inf)


def t_isf_columns(p: float, df: Floats) -> Floats:
    """`t_isf` of many degrees of freedom [k], by the same steps.

    >>> df = np.arange(1.0, 100.0)
    >>> t_isf_columns(0.025, df).tolist() == [t_isf(0.025, x) for x in df.tolist()]
    True
    """
    values = np.full(len(df), np.nan)
    usual = (df >= 1) & (df < _MANY) & (0 < p < 0.5)
    rows = np.flatnonzero(usual)
    if len(rows) >= _FEW:
        with np.errstate(over="ignore"):
            values[rows] = _newton(p, df[rows])
    for i in np.flatnonzero(np.isnan(values)).tolist():
        values[i] = t_isf(p, float(df[i]))
    return values


def _newton(p: float, df: Floats) -> Floats:
    """The steps of `t_isf`; nan where one of them leaves the bracket."""
    values = np.full(len(df), np.nan)
    z, goal = normal_isf(p), math.log(p)
    log_b = _log_beta_half(0.5 * df)
    log_height = -0.5 * _each(math.log, df) - log_b
    t = z * (1.0 + (z * z + 1.0) / (4.0 * df))
    terms = [
        polynomial(c, z * z) * z / _each(lambda x, k=k: x**k, df)  # type: ignore[misc]
        for k, c in enumerate(CORNISH_FISHER, 1)
    ]
    sums = map(math.fsum, zip(*(term.tolist() for term in terms), strict=True))
    near = z + np.fromiter(sums, np.float64, len(df))
    t = np.where((near > 0) & (df > 1) & (df < NEAR_NORMAL), near, t)
    rows, low, high = np.arange(len(df)), np.zeros(len(df)), np.full(len(df), np.inf)
    for _ in range(STEPS):
        share = _upper_tail(t, df, log_b)
        low, high = np.where(share > p, t, low), np.where(share > p, high, t)
        ordinary = share > 0
        log_share = _each(math.log, np.where(ordinary, share, 1.0))
        log_density = log_height - 0.5 * (df + 1.0) * _each(math.log1p, t / df * t)
        slope = _each(math.exp, log_density + _each(math.log, t) - log_share)
        ordinary &= slope > 0
        step = (log_share - goal) / np.where(ordinary, slope, 1.0)
        following = t * _each(math.exp, np.minimum(np.maximum(step, -50.0), 50.0))
        ordinary &= (low <= following) & (following <= high) & (following < np.inf)
        settled = ordinary & (np.abs(following - t) <= SETTLED * t)
        values[rows[settled]] = following[settled]
        left = np.flatnonzero(ordinary & ~settled)
        if not len(left):
            break
        t = following[left]
        rows, df, log_b, log_height = rows[left], df[left], log_b[left], log_height[left]
        low, high = low[left], high[left]
    return values


def _upper_tail(t: Floats, df: Floats, log_b: Floats) -> Floats:
    """`t_sf` for 0 < t < inf; log_b: of B(df / 2, 1 / 2)."""
    shares = np.empty(len(t))
    far = df >= NEAR_NORMAL
    rows = np.flatnonzero(far)
    if len(rows):
        shares[rows] = _each(normal_sf, _as_normal(t[rows], df[rows]))
    rows = np.flatnonzero(~far)
    if not len(rows):
        return shares
    t, df = t[rows], df[rows]
    x, y = 1.0 / (1.0 + t / df * t), 1.0 / (1.0 + df / t / t)
    shares[rows] = 0.5 * _beta_p_half(0.5 * df, x, y, log_b[rows])
    return shares


def _as_normal(t: Floats, df: Floats) -> Floats:
    a = df - 0.5
    b = 48.0 * a * a
    square = a * _each(math.log1p, t / df * t)
    z = np.sqrt(square)
    third = z * (855.0 + square * (240.0 + square * (33.0 + square * 4.0)))
    near: Floats = (
        z + z * (square + 3.0) / b - third / (10.0 * b * (b + 0.8 * square * square + 100.0))
    )
    return near


def _beta_p_half(a: Floats, x: Floats, y: Floats, log_b: Floats) -> Floats:
    """`beta_p` with b = 1/2."""
    inside = (x > 0) & (y > 0)
    x_safe, y_safe = np.where(inside, x, 0.5), np.where(inside, y, 0.5)
    log_x, log_y = _log_of_share(x_safe, y_safe), _log_of_share(y_safe, x_safe)
    factor = _each(math.exp, a * log_x + 0.5 * log_y - log_b)
    direct = x_safe < (a + 1.0) / (a + 0.5 + 2.0)
    halves = np.full(len(a), 0.5)
    first, second = np.where(direct, a, halves), np.where(direct, halves, a)
    fraction = _beta_fraction(first, second, np.where(direct, x_safe, y_safe))
    part = factor * fraction / first
    shares = np.where(direct, part, 1.0 - part)
    return np.where(x <= 0, 0.0, np.where(y <= 0, 1.0, shares))


def _log_of_share(x: Floats, rest: Floats) -> Floats:
    """The logarithm of x, from 1 - x if that is the smaller one."""
    pairs = zip(x.tolist(), rest.tolist(), strict=True)
    logs = (math.log(a) if a < 0.5 else math.log1p(-b) for a, b in pairs)
    return np.fromiter(logs, np.float64, len(x))


def _beta_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    values, rows, n = np.empty(len(a)), np.arange(len(a)), a + b
    c, d = np.ones(len(a)), 1.0 / _away_from_zero(1.0 - n * x / (a + 1.0))
    value = d
    for m in range(1, TERMS):
        for top in (
            m * (b - m) * x / ((a + (2 * m - 1)) * (a + 2 * m)),
            -(a + m) * (n + m) * x / ((a + 2 * m) * (a + (2 * m + 1))),
        ):
            d = 1.0 / _away_from_zero(1.0 + top * d)
            c = _away_from_zero(1.0 + top / c)
            value = value * (c * d)
        left = np.abs(c * d - 1.0) >= CLOSE * 2
        if not left.all():
            values[rows[~left]] = value[~left]
            rows, a, b, x, n = rows[left], a[left], b[left], x[left], n[left]
            c, d, value = c[left], d[left], value[left]
            if not len(rows):
                break
    return values


def _log_beta_half(a: Floats) -> Floats:
    """`log_beta` of a >= 1/2 and 1/2."""
    n, logs = a + 0.5, np.empty(len(a))
    rows = np.flatnonzero(a < FAR)
    sums = math.lgamma(0.5) + _each(math.lgamma, a[rows])
    logs[rows] = sums - _each(math.lgamma, n[rows])
    rows = np.flatnonzero(a >= FAR)
    a, n = a[rows], n[rows]
    correction = _stirling(a) - _stirling(n)
    first = math.lgamma(0.5) + 0.5 - 0.5 * _each(math.log, n)
    logs[rows] = first - (a - 0.5) * _each(math.log1p, 0.5 / a) + correction
    return logs


def _stirling(x: Floats) -> Floats:
    """`stirling_remainder` from `FAR` on."""
    square, sum_ = 1.0 / (x * x), np.zeros(len(x))
    for term in reversed(STIRLING):
        sum_ = sum_ * square + term
    # The sum of `stirling_remainder` begins with 0.0.
    return 0.0 + sum_ / x


def _away_from_zero(x: Floats) -> Floats:
    return np.where(np.abs(x) > TINY, x, TINY)


def _each(function: Function, x: Floats) -> Floats:
    return np.fromiter(map(function, x.tolist()), np.float64, len(x))
