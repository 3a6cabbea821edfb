"""The regularised incomplete gamma and beta functions.

The factor before each series or continued fraction is what loses digits where arguments are
large; it is built here of deviances and of what Stirling's formula leaves over, neither of which
is a difference of large numbers. The fractions are taken by Lentz's method (Appl. Opt. 15,
668-671, 1976). No state holds what these give: they are the last functions of a result.
"""

from __future__ import annotations

import math
from typing import Final

# What Stirling's formula leaves over, and what is built of it: ln B(a, b), and deviances.

LOG_ROOT_TAU: Final = 0.5 * math.log(2.0 * math.pi)
FAR: Final = 16.0  # from here on Stirling's series has 17 digits

# B(2k) / (2k (2k - 1)) of the Bernoulli numbers.
_STIRLING: Final = (
    *(1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400),
)


def stirling_remainder(x: float) -> float:
    """What ln Γ(x) is above (x - 1/2) ln x - x + ln(2π) / 2; x > 0, within 2e-15 of its size.

    (Abramowitz and Stegun 1964, 6.1.41.)

    >>> round(stirling_remainder(1.0), 15)
    0.081061466795327
    """
    # R(x) = R(x + 1) + (x + 1/2) ln(1 + 1/x) - 1 climbs to where the series is good.
    lifted = 0.0
    while x < FAR:
        lifted += _climb(x)
        x += 1.0
    square, sum_ = 1.0 / (x * x), 0.0
    for term in reversed(_STIRLING):
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
    rest = stirling_remainder(b) - stirling_remainder(n)
    if a < FAR:
        return math.lgamma(a) + a - a * math.log(n) - (b - 0.5) * math.log1p(a / b) + rest
    rest += stirling_remainder(a) + LOG_ROOT_TAU - 0.5 * math.log(n)
    return (a - 0.5) * math.log(a / n) - (b - 0.5) * math.log1p(a / b) + rest


def deviance(x: float, mean: float) -> float:
    """`x ln(x / mean) - x + mean` >= 0, without cancellation where the two are close; mean > 0."""
    if x == 0:
        return mean
    u = (x - mean) / mean
    if abs(u) > 0.1:
        return x * math.log(x / mean) - x + mean
    # With v = (x - mean) / (x + mean), x ln(x / mean) = 2 x (v + v³/3 + v⁵/5 + ...).
    v = (x - mean) / (x + mean)
    sum_, power, k = (x - mean) * v, 2.0 * x * v, 3.0
    while True:
        power *= v * v
        following = sum_ + power / k
        if following == sum_:
            return sum_
        sum_, k = following, k + 2.0


_TINY: Final = 1e-300
_CLOSE: Final = 2.0**-53
_TERMS: Final = 2_000_000  # a bound on work that no result comes near


def gamma_p(a: float, x: float) -> float:
    """The lower regularised incomplete gamma function, a > 0, x >= 0, within 1e-12 of its size.

    >>> round(gamma_p(1.0, 1.0), 14) == round(1 - math.exp(-1), 14)
    True
    """
    if not (a > 0 and x >= 0):
        return math.nan
    if x == math.inf:
        return 1.0
    return math.exp(log_gamma_p(a, x)) if x > 0 else 0.0


def gamma_q(a: float, x: float) -> float:
    """The upper regularised incomplete gamma function, 1 - `gamma_p`, within 1e-12 of its size.

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
    for k in range(1, _TERMS):
        term *= x / (a + k)
        sum_ += term
        if term < sum_ * _CLOSE:
            break
    return sum_


def _upper_fraction(a: float, x: float) -> float:
    """1/(x+1-a- 1(1-a)/(x+3-a- ...)). (Abramowitz and Stegun 1964, 6.5.31, contracted.)"""
    b = x + 1.0 - a
    c, d = 1.0 / _TINY, 1.0 / b
    value = d
    for k in range(1, _TERMS):
        top = -k * (k - a)
        b += 2.0
        d = 1.0 / _off_zero(top * d + b)
        c = _off_zero(b + top / c)
        value *= c * d
        if abs(c * d - 1.0) < _CLOSE * 2:
            break
    return value


def beta_p(a: float, b: float, x: float, y: float) -> float:
    """The regularised incomplete beta function I(x; a, b), within 1e-12 of its size.

    a, b > 0; x in [0, 1]; y is 1 - x, which the caller may know more exactly. (Abramowitz and
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
    rest = stirling_remainder(n) - stirling_remainder(a) - stirling_remainder(b)
    apart = deviance(a, n * x) + deviance(b, n * y)
    return math.sqrt(a / n * b / (2.0 * math.pi)) * math.exp(rest - apart)


def _beta_fraction(a: float, b: float, x: float) -> float:
    n = a + b
    c, d = 1.0, 1.0 / _off_zero(1.0 - n * x / (a + 1.0))
    value = d
    for m in range(1, _TERMS):
        for top in (
            m * (b - m) * x / ((a + (2 * m - 1)) * (a + 2 * m)),
            -(a + m) * (n + m) * x / ((a + 2 * m) * (a + (2 * m + 1))),
        ):
            d = 1.0 + top * d  # off zero, as above: here calls would take a third of the time
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + top / c
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1.0) < _CLOSE * 2:
            break
    return value


def _off_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
