"""The value of each ranking measure for each of many ranked lists.

A value depends on its list alone, to the last bit: sums of whole gains and table entries are exact
(`discounts.py`), so their order does not matter, and every rounding is one IEEE operation.
"""

from __future__ import annotations

import numpy as np

from streammetrics.kernels.discounts import (
    GAINS,
    Floats,
    discount_totals,
    discounts,
    reciprocals,
)
from streammetrics.kernels.lists import Ranked


def dcg(lists: Ranked, gain: str, cut: int | None) -> Floats:
    """Discounted cumulative gain of the first `cut` ranks: sum of gain/log2(rank + 1); [n].

    gain: "exponential", 2**grade - 1, or "linear", the grade (Jaervelin and Kekaelaeinen 2002;
    Burges et al. 2005).
    """
    gains = GAINS[gain]
    hits = lists.within(cut)
    gained = gains.astype(np.float64)[hits.grades]
    upper, lower = (
        np.bincount(hits.lists, weights=gained * table[hits.ranks], minlength=lists.n)
        for table in discounts(int(hits.ranks.max(initial=0)) + 1)
    )
    values = (upper + lower).astype(np.float64, copy=False)  # of no hits bincount makes integers
    for tied in lists.tied:
        values[tied.lists] = tied.dcg(gains, cut)
    return values


def ideal_dcg(lists: Ranked, gain: str, cut: int | None) -> Floats:
    """The greatest DCG that an order of all known relevant items can have; [n].

    Each item has the gains of all grades up to its own, one step after the other; so the best
    order has, for each grade, its step times the discounts of as many ranks as items reach it.
    """
    steps = np.diff(GAINS[gain])
    upper, lower, reach = np.zeros(lists.n), np.zeros(lists.n), np.zeros(lists.n, np.int64)
    for grade in range(lists.counts.shape[1] - 1, 0, -1):
        reach += lists.counts[:, grade]
        ranks = reach if cut is None else np.minimum(reach, cut)
        upper_of, lower_of = discount_totals(int(ranks.max(initial=0)))
        upper += steps[grade - 1] * upper_of[ranks]
        lower += steps[grade - 1] * lower_of[ranks]
    return upper + lower


def ndcg(lists: Ranked, gain: str, cut: int | None) -> Floats:
    """DCG over the ideal DCG; 0 for a list with nothing relevant; [n]."""
    values, best = dcg(lists, gain, cut), ideal_dcg(lists, gain, cut)
    np.divide(values, best, out=values, where=best > 0)
    # the mean over the orders of a long tie may be rounded up past the ideal
    return np.minimum(values, 1.0, out=values)


def reciprocal_rank(lists: Ranked, rel: int, cut: int | None) -> tuple[Floats, Floats]:
    """1/rank of the first item of grade `rel` or more, 0 where there is none; [n].

    As a double and what it leaves out: together 106 bits.
    """
    upper, lower = np.zeros(lists.n), np.zeros(lists.n)
    first = lists.within(cut, rel).firsts()
    upper_of, lower_of = reciprocals(int(first.ranks.max(initial=0)) + 1)
    upper[first.lists] = upper_of[first.ranks]
    lower[first.lists] = lower_of[first.ranks]
    for tied in lists.tied:
        upper[tied.lists], lower[tied.lists] = tied.reciprocal_rank(rel, cut)
    return upper, lower


def hit(lists: Ranked, rel: int, cut: int | None) -> Floats:
    """1 where an item of grade `rel` or more is among the first `cut`, else 0; [n]."""
    values = np.zeros(lists.n)
    values[lists.within(cut, rel).lists] = 1.0
    for tied in lists.tied:
        values[tied.lists] = tied.hit(rel, cut)
    return values
