"""Several comparisons, by name: adjusted p-values, and which e-values are rejected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from streammetrics.core.errors import SettingsError, shown


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
        e, threshold = e_values[i], Fraction(len(e_values), rank) / level
        if e == math.inf or (e > 0 and Fraction(e) >= threshold):
            most = rank
    # Equal e-values stand or fall together, so that no order of the comparisons decides.
    least = e_values[order[most - 1]] if most else math.inf
    return [bool(most) and e >= least for e in e_values]


def adjust_fwer(
    pvalues: Mapping[str, float], method: Literal["holm", "bonferroni"] = "holm"
) -> dict[str, float]:
    """p-values adjusted so that any false rejection has probability alpha at most.

    Of anytime p-values (`Watched.p_value`) this holds at all looks together. Raises SettingsError
    for another method.

    >>> adjust_fwer({"ctr": 0.01, "auc": 0.04})
    {'ctr': 0.02, 'auc': 0.04}
    """
    if method not in ("holm", "bonferroni"):
        raise SettingsError(
            expected='"holm" or "bonferroni"',
            got=shown(method),
            where="method",
            hint='pass "holm", which rejects at least as much',
        )
    adjust = holm if method == "holm" else bonferroni
    return dict(zip(pvalues, adjust(list(pvalues.values())), strict=True))


def adjust_fdr(*, e_values: Mapping[str, float], alpha: float = 0.05) -> dict[str, bool]:
    """Which comparisons are rejected, with a false discovery rate of alpha at most (e-BH).

    e_values: of this look, never the largest so far.

    >>> adjust_fdr(e_values={"ctr": 60.0, "auc": 1.5})
    {'ctr': True, 'auc': False}
    """
    return dict(zip(e_values, e_bh(list(e_values.values()), alpha), strict=True))
