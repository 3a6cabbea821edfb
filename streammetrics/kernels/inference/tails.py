"""Tails and quantiles of the normal, of Student's t and of chi-square.

They are based on the regularised incomplete gamma and beta functions. For large arguments, the
factor before each series or continued fraction is prone to lose digits. Here it is computed from
deviances and the remainder of Stirling's formula, neither of which is a difference of large
numbers. The fractions are evaluated by Lentz's method (Appl. Opt. 15, 668-671, 1976).

No state stores these values. They are the last step of a result, and only there are libm's `exp`,
`log` and `erfc` used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

# The remainder of Stirling's formula, and functions based on it: ln B(a, b), and deviances.

LOG_ROOT_TAU: Final = 0.5 * math.log(2.0 * math.pi)
FAR: Final = 16.0  # from here on Stirling's series has 17 digits

# B(2k) / (2k (2k - 1)) of the Bernoulli numbers.
STIRLING: Final = (
    *(1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400),
)


def stirling_remainder(x: float) -> float:
    """R(x) = ln Γ(x) - (x - 1/2) ln x + x - ln(2π) / 2; x > 0; relative error <= 2e-15.

    (Abramowitz and Stegun 1964, 6.1.41.)

    >>> round(stirling_remainder(1.0), 15)
    0.081061466795327
    """
    # R(x) = R(x + 1) + (x + 1/2) ln(1 + 1/x) - 1 raises x to where the series is accurate.
    lifted = 0.0
    while x < FAR:
        lifted += _climb(x)
        x += 1.0
    square, sum_ = 1.0 / (x * x), 0.0
    for term in reversed(STIRLING):
        sum_ = sum_ * square + term
    return lifted + sum_ / x


def _climb(x: float) -> float:
    """(x + 1/2) ln(1 + 1/x) - 1 > 0, as the series Σ u^2k / (2k + 1), u = 1 / (2x + 1)."""
    if x < 0.5:
        return (x + 0.5) * math.log1p(1.0 / x) - 1.0
    square = 1.0 / ((2.0 * x + 1.0) * (2.0 * x + 1.0))
    power, k, sum_ = square, 3.0, 0.0
    while sum_ + power / k != sum_:
        sum_ += power / k
        power *= square
        k += 2.0
    return sum_


def log_beta(a: float, b: float) -> float:
    """The logarithm of B(a, b) = Γ(a) Γ(b) / Γ(a + b), a, b > 0, within 1e-14 of its size or of 1.

    >>> round(log_beta(2.0, 3.0), 14), round(log_beta(1e9, 0.5), 12)
    (-2.484906649788, -9.789267975424)
    """
    a, b = min(a, b), max(a, b)
    n = a + b
    if b < FAR:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(n)
    correction = stirling_remainder(b) - stirling_remainder(n)
    if a < FAR:
        return math.lgamma(a) + a - a * math.log(n) - (b - 0.5) * math.log1p(a / b) + correction
    correction += stirling_remainder(a) + LOG_ROOT_TAU - 0.5 * math.log(n)
    return (a - 0.5) * math.log(a / n) - (b - 0.5) * math.log1p(a / b) + correction


def deviance(x: float, mean: float) -> float:
    """`x ln(x / mean) - x + mean` >= 0, without cancellation where the two are close; mean > 0."""
    if x == 0:
        return mean
    u = (x - mean) / mean
    if abs(u) > 0.1:
        return x * math.log(x / mean) - x + mean
    return deviance_near(x, x - mean, (x - mean) / (x + mean))


def deviance_near(x: float, apart: float, v: float) -> float:
    """The deviance from x - mean and v = (x - mean) / (x + mean), for small v."""
    # x ln(x / mean) = 2 x (v + v³/3 + v⁵/5 + ...).
    sum_, power, k = apart * v, 2.0 * x * v, 3.0
    while True:
        power *= v * v
        following = sum_ + power / k
        if following == sum_:
            return sum_
        sum_, k = following, k + 2.0


TINY: Final = 1e-300
CLOSE: Final = 2.0**-53
TERMS: Final = 2_000_000  # a limit on iterations that no result approaches


def gamma_p(a: float, x: float) -> float:
    """The lower regularised incomplete gamma function, a > 0, x >= 0; relative error <= 1e-12.

    >>> round(gamma_p(1.0, 1.0), 14) == round(1 - math.exp(-1), 14)
    True
    """
    if not (a > 0 and x >= 0):
        return math.nan
    if x == math.inf:
        return 1.0
    return math.exp(log_gamma_p(a, x)) if x > 0 else 0.0


def gamma_q(a: float, x: float) -> float:
    """The upper regularised incomplete gamma function, 1 - `gamma_p`; relative error <= 1e-12.

    >>> round(gamma_q(0.5, 2.88), 14)
    0.01639507184919
    """
    if not (a > 0 and x >= 0):
        return math.nan
    if x == math.inf:
        return 0.0
    if x < a + 1.0:
        return 1.0 - gamma_p(a, x)
    return math.exp(_log_gamma_factor(a, x)) * a * _upper_fraction(a, x)


def log_gamma_p(a: float, x: float) -> float:
    """The logarithm of `gamma_p`, which does not underflow; a > 0, x > 0."""
    if x < a + 1.0:
        return _log_gamma_factor(a, x) + math.log(_lower_series(a, x))
    return math.log1p(-gamma_q(a, x))


def _log_gamma_factor(a: float, x: float) -> float:
    """ln(x^a e^-x / Γ(a + 1))."""
    if a < FAR:
        return a * math.log(x) - x - math.lgamma(a + 1.0)
    return -deviance(a, x) - stirling_remainder(a) - LOG_ROOT_TAU - 0.5 * math.log(a)


def _lower_series(a: float, x: float) -> float:
    """1 + x/(a+1) + x²/((a+1)(a+2)) + ... (Abramowitz and Stegun 1964, 6.5.29.)"""
    term = sum_ = 1.0
    for k in range(1, TERMS):
        term *= x / (a + k)
        sum_ += term
        if term < sum_ * CLOSE:
            break
    return sum_


def _upper_fraction(a: float, x: float) -> float:
    """1/(x+1-a- 1(1-a)/(x+3-a- ...)). (Abramowitz and Stegun 1964, 6.5.31, contracted.)"""
    b = x + 1.0 - a
    c, d = 1.0 / TINY, 1.0 / b
    value = d
    for k in range(1, TERMS):
        top = -k * (k - a)
        b += 2.0
        d = 1.0 / _away_from_zero(top * d + b)
        c = _away_from_zero(b + top / c)
        value *= c * d
        if abs(c * d - 1.0) < CLOSE * 2:
            break
    return value


def beta_p(a: float, b: float, x: float, y: float) -> float:
    """The regularised incomplete beta function I(x; a, b); relative error <= 1e-12.

    a, b > 0; x in [0, 1]; y is 1 - x, which the caller may know more accurately. (Abramowitz and
    Stegun 1964, 26.5.8, on the side where it converges.)

    >>> round(beta_p(2.0, 3.0, 0.25, 0.75), 12)
    0.26171875
    """
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    if x < (a + 1.0) / (a + b + 2.0):
        return _beta_factor(a, b, x, y) * _beta_fraction(a, b, x) / a
    return 1.0 - _beta_factor(a, b, x, y) * _beta_fraction(b, a, y) / b


def _beta_factor(a: float, b: float, x: float, y: float) -> float:
    """x^a y^b / B(a, b)."""
    n = a + b
    if min(a, b) < FAR:
        log_x = math.log(x) if x < 0.5 else math.log1p(-y)
        log_y = math.log(y) if y < 0.5 else math.log1p(-x)
        return math.exp(a * log_x + b * log_y - log_beta(a, b))
    correction = stirling_remainder(n) - stirling_remainder(a) - stirling_remainder(b)
    apart = deviance(a, n * x) + deviance(b, n * y)
    return math.sqrt(a / n * b / (2.0 * math.pi)) * math.exp(correction - apart)


def _beta_fraction(a: float, b: float, x: float) -> float:
    n = a + b
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - n * x / (a + 1.0))
    value = d
    for m in range(1, TERMS):
        for top in (
            m * (b - m) * x / ((a + (2 * m - 1)) * (a + 2 * m)),
            -(a + m) * (n + m) * x / ((a + 2 * m) * (a + (2 * m + 1))),
        ):
            d = 1.0 + top * d  # `_away_from_zero`, inlined: calls would take a third of the time
            d = 1.0 / (d if abs(d) > TINY else TINY)
            c = 1.0 + top / c
            c = c if abs(c) > TINY else TINY
            value *= c * d
        if abs(c * d - 1.0) < CLOSE * 2:
            break
    return value


def _away_from_zero(x: float) -> float:
    return x if abs(x) > TINY else TINY


# The end of an interval: the last float inside it.


def last_inside(inside: float, outside: float, holds: Callable[[float], bool]) -> float:
    """The last float where `holds` is true, by bisection from `inside` (true) to `outside` (false).

    Both are finite. `holds` is called at floats strictly between them, some 60 times; if it changes
    more than once in between, one of the changes is found.

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


_ROOT_HALF: Final = math.sqrt(0.5)
STEPS: Final = 200  # of root finding; six are usual
NEAR_NORMAL: Final = 4096.0  # df from which on t is computed as a transformed normal


def normal_sf(z: float) -> float:
    """The upper tail of the standard normal at z; relative error <= 1e-13 (2e-16 + z² 2e-16).

    >>> normal_sf(0.0), round(normal_sf(1.959963984540054), 15)
    (0.5, 0.025)
    """
    return 0.5 * math.erfc(z * _ROOT_HALF)


def normal_isf(p: float) -> float:
    """The z with an upper tail p of the standard normal, within 1e-15 of z or of 0.1.

    p in [0, 1]; nan for others. (Wichura 1988, Algorithm AS 241, Appl. Statist. 37, 477-484.)

    >>> normal_isf(0.025), normal_isf(0.0)
    (1.9599639845400538, inf)
    """
    if not 0 < p < 1:
        return math.inf if p == 0 else -math.inf if p == 1 else math.nan
    from statistics import NormalDist  # which loads `random`, and counting needs neither

    return -NormalDist().inv_cdf(p)


def t_sf(t: float, df: float) -> float:
    """The upper tail of Student's t with df degrees of freedom at t; relative error <= 1e-12.

    df > 0 need not be an integer; inf is the normal. I(df / (df + t²); df/2, 1/2) / 2 for t >= 0
    (Abramowitz and Stegun 1964, 26.7.1), and from df = 4096 on the normal tail of a transformed t
    (Hill 1970, Algorithm 395, Comm. ACM 13, 617-619). nan unless df > 0.

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
    if df >= NEAR_NORMAL:
        return normal_sf(_as_normal(t, df))
    # df / (df + t²) and its complement, rounded separately.
    return 0.5 * beta_p(0.5 * df, 0.5, 1.0 / (1.0 + t / df * t), 1.0 / (1.0 + df / t / t))


def _as_normal(t: float, df: float) -> float:
    """The z whose normal tail equals that of t > 0, for many degrees of freedom."""
    a = df - 0.5
    b = 48.0 * a * a
    square = a * math.log1p(t / df * t)
    z = math.sqrt(square)
    third = z * (855.0 + square * (240.0 + square * (33.0 + square * 4.0)))
    return z + z * (square + 3.0) / b - third / (10.0 * b * (b + 0.8 * square * square + 100.0))


# Of each power of 1 / df the coefficients of z, z³, z⁵, ...
CORNISH_FISHER: Final = (
    (1 / 4, 1 / 4),
    (3 / 96, 16 / 96, 5 / 96),
    (-15 / 384, 17 / 384, 19 / 384, 3 / 384),
    (-945 / 92160, -1920 / 92160, 1482 / 92160, 776 / 92160, 79 / 92160),
)
SETTLED: Final = 2.0**-28  # a step of Newton's after which the next one is below the last place


def polynomial(coefficients: tuple[float, ...], x: float) -> float:
    """c0 + c1 x + c2 x² + ..."""
    sum_ = 0.0
    for coefficient in reversed(coefficients):
        sum_ = sum_ * x + coefficient
    return sum_


@lru_cache(maxsize=4096)
def t_isf(p: float, df: float) -> float:
    """The t with an upper tail p of Student's t, p in [0, 1]; relative error <= 1e-12.

    Near p = 1/2, the last place of p limits the accuracy.

    Newton's method for ln t_sf as a function of ln t, where it is nearly linear, inside a shrinking
    bracket, from Fisher and Cornish's expansion (Abramowitz and Stegun 1964, 26.7.5): a few steps,
    0.03 ms, and cached. nan unless df > 0 and p is in [0, 1].

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
    if 1 < df < NEAR_NORMAL:
        near = z + math.fsum(
            [polynomial(c, z * z) * z / df**k for k, c in enumerate(CORNISH_FISHER, 1)]
        )
        t = near if near > 0 else t
    for _ in range(STEPS):
        share = t_sf(t, df)
        if share > p:
            low = t
        else:
            high = t
        if share > 0 and 0 < t < math.inf:
            log_density = log_height - 0.5 * (df + 1.0) * math.log1p(t / df * t)
            slope = math.exp(log_density + math.log(t) - math.log(share))
            step = (math.log(share) - goal) / slope if slope else math.inf
            following = t * math.exp(min(max(step, -50.0), 50.0))
        else:
            following = math.nan
        if not low <= following <= high or following == math.inf:
            following = 0.5 * (low + high) if high < math.inf else 2.0 * t + 1.0
        if abs(following - t) <= SETTLED * t:
            return following
        t = following
    return t


def chi2_sf(x: float, df: float) -> float:
    """The upper tail of chi-square with df > 0 degrees of freedom at x; relative error <= 1e-13.

    >>> round(chi2_sf(5.76, 1), 14)
    0.01639507184919
    """
    return 1.0 if x <= 0 else gamma_q(0.5 * df, 0.5 * x)
