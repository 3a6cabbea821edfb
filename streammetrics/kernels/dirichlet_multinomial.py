"""The e-value of counts against given shares, under a Dirichlet mixture of other shares.

    e = B(a + n) / B(a) · Π p_i^(-n_i),

with counts n_i, shares p_i, the prior a_i, and B the multivariate beta function: a likelihood
ratio, of mean 1 under the shares, whenever one looks. Two classes are the beta-binomial mixture.
(Robbins 1970, Ann. Math. Stat. 41, 1397-1409; Lindon and Malek 2022, NeurIPS, section 3.)

As a difference of ln Γ this is off by 2.4e-6 at 1e9 rows and 2.5e-3 at 1e12. Here the large terms
of Stirling's formula are joined before any is rounded, which is off by less than 1e-13 of the
value or of 1 at any size: with A_i = a_i + n_i, A = Σ A_i, a = Σ a_i, the deviance
D(x, m) = x ln(x/m) - x + m, and R what Stirling's formula leaves over,

    ln e = Σ D(A_i, A p_i) - Σ D(a_i, a p_i) - ½ Σ ln(A_i a / (A a_i)) - (K - 1)/2 ln(A/a)
           + Σ (R(A_i) - R(a_i)) - R(A) + R(a).

All differences and ratios are exact. It is the last function of a result, and no state holds it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from streammetrics.kernels.stirling import stirling_remainder

Number = int | float | Fraction


def log_e(counts: Sequence[int], shares: Sequence[Number], prior: Sequence[Number]) -> float:
    """The logarithm of e: counts [k] against shares [k] of sum 1, with a prior [k] above 0.

    One row in a class of share 0 is infinite evidence; such a class may have a prior of 0, and is
    then as if it were not there. 0 where there are no rows.

    >>> log_e([1, 0], [Fraction(1, 2), Fraction(1, 2)], [1.0, 1.0]), log_e([3, 1], [1, 0], [1, 1])
    (0.0, inf)
    """
    classes = [(n, Fraction(p), Fraction(a)) for n, p, a in zip(counts, shares, prior, strict=True)]
    if any(n and not p for n, p, _ in classes):
        return math.inf
    classes = [one for one in classes if one[2]]
    before = sum((a for _, _, a in classes), Fraction(0))
    after = before + sum(n for n, _, _ in classes)
    if after == before:
        return 0.0
    # A share without rows is in no term of e, so that a class of share 0 may be given one: the
    # rest then has less by a factor, which is put back.
    given = sum((a for _, p, a in classes if not p), Fraction(0)) / after
    terms = [
        float(after - before) * log_ratio(1 - given),
        -0.5 * (len(classes) - 1) * log_ratio(after / before),
        stirling_remainder(float(before)) - stirling_remainder(float(after)),
    ]
    for n, share, a in classes:
        p = share * (1 - given) if share else a / after
        terms += (
            _deviance(a + n, after * p),
            -_deviance(a, before * p),
            -0.5 * log_ratio((a + n) * before / (after * a)),
            stirling_remainder(float(a + n)) - stirling_remainder(float(a)),
        )
    return math.fsum(terms)


def _deviance(x: Fraction, mean: Fraction) -> float:
    """`x ln(x / mean) - x + mean`, of fractions, so that the two may be as close as they like."""
    apart, v = float(x - mean), float((x - mean) / (x + mean))
    if abs(v) > 0.05:
        return float(x) * log_ratio(x / mean) - apart
    # x ln(x / mean) = 2 x (v + v³/3 + v⁵/5 + ...).
    sum_, power, k = apart * v, 2.0 * float(x) * v, 3.0
    while True:
        power *= v * v
        following = sum_ + power / k
        if following == sum_:
            return sum_
        sum_, k = following, k + 2.0


def log_ratio(ratio: Fraction) -> float:
    """The logarithm of a positive fraction, within two last places however close to 1 it is.

    >>> log_ratio(Fraction(10**30 + 1, 10**30))
    1e-30
    """
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)
