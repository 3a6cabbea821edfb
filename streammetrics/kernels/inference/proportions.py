"""Intervals of shares: Wilson's, for independent and for clustered rows, and Newcombe's.

For accuracy, precision, recall, specificity, error rates and hit rates, each a share of counted
rows; and for F1, which is a function of such a share.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.t_interval import EVERYTHING, Bounds


def wilson_bounds(successes: int, n: int, q: float, *, n_eff: float | None = None) -> Bounds:
    """The shares θ with |p - θ| <= q √(θ(1 - θ) / n), where p = successes / n.

    n_eff: the equivalent number of independent rows, if not n (`effective_size`).
    q: `critical(level)`, of the normal, or of t with the degrees of freedom of a clustered
    variance. Infinite without rows. (Wilson 1927, JASA 22, 209-212; for clustered rows
    Kott and Carr 1997, J. Off. Stat. 13, 367-383; Korn and Graubard 1998, Surv. Methodol. 24,
    193-201.)

    The bounds are the roots of (1 + c) θ² - (2 p + c) θ + p², c = q² / n; the lower is computed
    from the upper, so that no digit is lost if p is small.

    >>> lower, upper = wilson_bounds(3, 10, 1.959963984540054)
    >>> round(lower, 12), round(upper, 12)
    (0.107791267406, 0.603221852539)
    """
    size = float(n) if n_eff is None else n_eff
    if not size > 0 or not n or math.isnan(q):
        return EVERYTHING
    if q == math.inf:
        return 0.0, 1.0
    p, failure_share = ratio(successes, n), ratio(n - successes, n)
    c = q * q / size
    larger = p + 0.5 * c + q * math.sqrt(p * failure_share / size + 0.25 * c / size)
    lower = p * p / larger if p else 0.0
    return min(lower, p), max(min(larger / (1.0 + c), 1.0), p)


def effective_size(successes: int, n: int, variance: float, known_deff: float = 1.0) -> float:
    """The number of independent rows with the variance of this share: p (1 - p) / variance.

    variance: of the share, from groups of users. If p is 0 or 1, or the variance is 0 or unknown,
    it carries no information; then n is divided by the last known design effect, if that is above
    1. nan without rows.

    >>> effective_size(50, 100, 0.005), effective_size(0, 100, 0.0, known_deff=4.0)
    (50.0, 25.0)
    """
    if not n:
        return math.nan
    if 0 < successes < n and variance > 0:
        return ratio(successes * (n - successes), n * n) / variance
    return n / known_deff if known_deff > 1 else float(n)


def share_variance(successes: int, n: int) -> float:
    """The variance of a share of n independent rows: p (1 - p) / n; nan for n = 0.

    Of counts, so it divides by n, as in Wald's interval and in every multinomial variance here;
    the variance of a mean of other values divides by n - 1 (`variances.mean_variance`).

    >>> share_variance(1, 2)
    0.125
    """
    return ratio(successes * (n - successes), n**3)


def newcombe_bounds(
    a: float, bounds_a: Bounds, b: float, bounds_b: Bounds, correlation: float = 0.0
) -> Bounds:
    """The interval of b - a from those of the two shares a and b (Wilson's).

    (Newcombe 1998, Statistics in Medicine 17, 873-890, method 10.) D = b - a;
    D - √((b - lower_b)² + (upper_a - a)²), D + √((upper_b - b)² + (a - lower_a)²).
    An end is infinite if one of the two ends that it follows from is; both are if a share is not
    finite, or an end nan. correlation: of a and b, whose covariance is subtracted. (Zou 2007,
    Psychol. Methods 12, 399-413.)

    >>> z = 1.959963984540054
    >>> lower, upper = newcombe_bounds(
    ...     0.052, wilson_bounds(520, 10000, z), 0.0585, wilson_bounds(585, 10000, z))
    >>> round(lower, 12), round(upper, 12)
    (0.000164880491, 0.012844943543)
    """
    if not (math.isfinite(a) and math.isfinite(b)) or any(map(math.isnan, bounds_a + bounds_b)):
        return EVERYTHING
    down_b, up_a = b - bounds_b[0], bounds_a[1] - a
    up_b, down_a = bounds_b[1] - b, a - bounds_a[0]
    difference = b - a
    return (
        difference - _hypotenuse(down_b, up_a, correlation),
        difference + _hypotenuse(up_b, down_a, correlation),
    )


def newcombe_lift_bounds(a: float, bounds_a: Bounds, b: float, bounds_b: Bounds) -> Bounds:
    """The interval of b / a - 1 from those of two shares (Wilson's): it excludes 0 exactly where
    `newcombe_bounds` does.

    The ratios r at which the interval of b - r a, combined in the same way, contains 0: with
    A = upper_a (2 a - upper_a) and B = lower_b (2 b - lower_b) the lower one is
    B / (a b + √((a b)² - A B)); the upper one is (a b + √((a b)² - A B)) / A of the other two
    bounds. (MOVER-R: Newcombe 2016, Stat. Methods Med. Res. 25, 1774-1778.) Infinite where a is 0.

    >>> z = 1.959963984540054
    >>> lower, upper = newcombe_lift_bounds(
    ...     0.052, wilson_bounds(520, 10000, z), 0.0, wilson_bounds(0, 10, z))
    >>> round(lower, 12), round(upper, 12)
    (-1.0, 4.354514992767)
    """
    if not a > 0 or math.isnan(b) or not bounds_a[0] > 0:
        return EVERYTHING
    product = a * b
    of_a, of_b = bounds_a[1] * (2.0 * a - bounds_a[1]), bounds_b[0] * (2.0 * b - bounds_b[0])
    root = math.sqrt(max(0.0, product * product - of_a * of_b))
    lower = of_b / (product + root) if of_b > 0 else 0.0
    of_a, of_b = bounds_a[0] * (2.0 * a - bounds_a[0]), bounds_b[1] * (2.0 * b - bounds_b[1])
    root = math.sqrt(max(0.0, product * product - of_a * of_b))
    return lower - 1.0, (product + root) / of_a - 1.0


Arms: TypeAlias = tuple[
    tuple[Fraction | int, Fraction | int], tuple[Fraction | int, Fraction | int]
]


def difference_bounds(arms: Arms, q: float, deff: float = 1.0) -> Bounds:
    """Newcombe's interval of the second share less the first, each given as successes and rows;
    both may be parts of rows. deff: the design effect of the difference.

    >>> lower, upper = difference_bounds(((520, 10000), (585, 10000)), 1.959963984540054)
    >>> round(lower, 12), round(upper, 12)
    (0.000164880491, 0.012844943543)
    """
    shares = []
    for successes, n in arms:
        y, whole = (successes / Fraction(n)).as_integer_ratio() if n else (0, 0)
        size = ratio(*n.as_integer_ratio())
        shares.append((ratio(y, whole), wilson_bounds(y, whole, q, n_eff=size / deff)))
    (a, bounds_a), (b, bounds_b) = shares
    return newcombe_bounds(a, bounds_a, b, bounds_b)


def difference_variance(arms: Arms) -> float:
    """The variance of the difference of two shares of independent rows; nan without rows of one."""
    if not (arms[0][1] and arms[1][1]):
        return math.nan
    variances = (Fraction(y * (n - y)) / n**3 for y, n in arms)
    return math.fsum(ratio(*variance.as_integer_ratio()) for variance in variances)


def _hypotenuse(a: float, b: float, correlation: float) -> float:
    if math.inf in (a, b):
        return math.inf
    return math.sqrt(max(0.0, a * a + b * b - 2.0 * correlation * a * b))


def f_beta_variance(tp: int, fp: int, fn: int, beta_squared: Fraction | int) -> float:
    """The multinomial delta variance of F = (1 + b) tp / D, D = (1 + b) tp + b fn + fp, b = β².

    (tp ((1 + b)(1 - F))² + fn (b F)² + fp F²) / D², in fractions, rounded once; nan where D is 0.
    It is 0, and uninformative, where F is 0 or 1. In the other form of F, α is 1 / (1 + b).

    >>> import math
    >>> round(math.sqrt(f_beta_variance(40, 10, 30, 4)), 12)
    0.055477713377
    """
    b, unit = beta_squared.as_integer_ratio()
    errors = b * fn + unit * fp  # of D, in units of 1 / unit, as the next two
    hits = (unit + b) * tp
    square = tp * ((unit + b) * errors) ** 2 + (fn * b * b + fp * unit * unit) * hits * hits
    return ratio(square, (hits + errors) ** 4)
