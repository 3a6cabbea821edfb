"""Several comparisons at once: Bonferroni, Holm, Benjamini and Hochberg, and e-BH.

Bonferroni and Holm keep the chance of any false rejection below alpha under every dependence; on
anytime p-values, at all looks together. e-BH keeps the expected share of false ones among the
rejected (the false discovery rate), under every dependence and however one stops; it wants the
e-values of this look, since the largest so far is not an e-value. Benjamini and Hochberg's own is
for p-values of one look that was fixed beforehand: on the least p-value of many looks it fails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def bonferroni(pvalues: Sequence[float]) -> list[float]:
    """min(1, m p) of p-values [m], in their order. (Dunn 1961, J. Am. Stat. Assoc. 56, 52-64.)

    >>> bonferroni([0.01, 0.5])
    [0.02, 1.0]
    """
    return [min(1.0, len(pvalues) * p) for p in pvalues]


def holm(pvalues: Sequence[float]) -> list[float]:
    """Adjusted p-values [m], in the order given. (Holm 1979, Scand. J. Stat. 6, 65-70.)

    The i-th smallest, from 0, is max over j <= i of (m - j) p_(j), at most 1.

    >>> [round(p, 6) for p in holm([0.001, 0.012, 0.02, 0.04, 0.3])]
    [0.005, 0.048, 0.06, 0.08, 0.3]
    """
    adjusted, worst = [1.0] * len(pvalues), 0.0
    for rank, i in enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__)):
        worst = max(worst, (len(pvalues) - rank) * pvalues[i])
        adjusted[i] = min(1.0, worst)
    return adjusted


def benjamini_hochberg(pvalues: Sequence[float]) -> list[float]:
    """Adjusted p-values [m] of one look, in the order given.

    The i-th smallest, from 1, is min over j >= i of m p_(j) / j. (Benjamini and Hochberg 1995,
    J. R. Stat. Soc. B 57, 289-300.)

    >>> [round(p, 6) for p in benjamini_hochberg([0.001, 0.012, 0.02, 0.04, 0.3])]
    [0.005, 0.03, 0.033333, 0.05, 0.3]
    """
    adjusted, best = [1.0] * len(pvalues), 1.0
    order = sorted(range(len(pvalues)), key=pvalues.__getitem__)
    for rank in range(len(order), 0, -1):
        best = min(best, len(pvalues) * pvalues[order[rank - 1]] / rank)
        adjusted[order[rank - 1]] = best
    return adjusted


def e_bh(e_values: Sequence[float], alpha: float) -> list[bool]:
    """Which of the e-values [m] of this look are rejected, in the order given.

    The k largest, for the largest k with e_(k) >= m / (alpha k). Compared as rational numbers, with
    alpha as it is written (0.05 is 1/20), so that equality counts. (Wang and Ramdas 2022, J. R.
    Stat. Soc. B 84, 822-852.)

    >>> e_bh([200.0, 60.0, 40.0, 12.0, 1.0, 0.3], 0.05)
    [True, True, True, False, False, False]
    """
    level, most = Fraction(repr(float(alpha))), 0
    order = sorted(range(len(e_values)), key=lambda i: -e_values[i])
    for rank, i in enumerate(order, start=1):
        if _reaches(e_values[i], Fraction(len(e_values), rank) / level):
            most = rank
    # Equal e-values stand or fall together, so that no order of the comparisons decides.
    least = e_values[order[most - 1]] if most else math.inf
    return [bool(most) and e >= least for e in e_values]


def _reaches(e: float, threshold: Fraction) -> bool:
    return e == math.inf or (e > 0 and Fraction(e) >= threshold)
