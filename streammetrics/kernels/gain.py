"""Gains of ranked lists: CG, DCG and NDCG (Jaervelin and Kekaelaeinen 2002, ACM TOIS 20(4)).

A value depends on its list alone, to the last bit: sums of whole gains and table entries are exact
(`discounts.py`), so their order does not matter, and every rounding is one IEEE operation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.discounts import GAINS, Floats, discount_totals, discounts
from streammetrics.kernels.double_double import Pair, add, over, scaled, totals
from streammetrics.kernels.lists import Ranked


def dcg(lists: Ranked, gain: str, cut: int | None) -> Floats:
    """Discounted cumulative gain of the first `cut` ranks: sum of gain/log2(rank + 1); [n].

    gain: "exponential", 2**grade - 1, or "linear", the grade (Burges et al. 2005, ICML).
    """
    gains = GAINS[gain]
    hits = lists.within(cut)
    gained = gains.astype(np.float64)[hits.grades]
    upper, lower = (
        np.bincount(hits.lists, weights=gained * table[hits.ranks], minlength=lists.n)
        for table in discounts(int(hits.ranks.max(initial=0)) + 1)
    )
    values = (upper + lower).astype(np.float64, copy=False)  # of no hits bincount makes integers
    if len(lists.ties):
        values += _tied_dcg(lists, gains, cut)
    return values


def ideal_dcg(lists: Ranked, gain: str, cut: int | None) -> Floats:
    """The greatest DCG that an order of all known relevant items can have; [n].

    Each item has the gains of all grades up to its own, one step after the other; so the best
    order has, for each grade, its step times the discounts of as many ranks as items reach it.
    """
    steps = np.diff(GAINS[gain])
    longest = int(lists.relevant.max(initial=0))
    upper_of, lower_of = discount_totals((longest if cut is None else min(cut, longest)) + 1)
    upper, lower, reach = np.zeros(lists.n), np.zeros(lists.n), np.zeros(lists.n, np.int64)
    for grade in range(lists.counts.shape[1] - 1, 0, -1):
        reach += lists.counts[:, grade]
        ranks = reach if cut is None else np.minimum(reach, cut)
        upper += steps[grade - 1] * upper_of[ranks]
        lower += steps[grade - 1] * lower_of[ranks]
    return upper + lower


def ndcg(lists: Ranked, gain: str, cut: int | None) -> Floats:
    """DCG over the ideal DCG; 0 for a list with nothing relevant; [n]."""
    values, best = dcg(lists, gain, cut), ideal_dcg(lists, gain, cut)
    np.divide(values, best, out=values, where=best > 0)
    # the mean over the orders of a long tie may be rounded up past the ideal
    return np.minimum(values, 1.0, out=values)


def _tied_dcg(lists: Ranked, gains: NDArray[np.int64], cut: int | None) -> Floats:
    ties = lists.ties
    gained = ties.sums(gains).astype(np.float64)
    last = ties.begins + ties.sizes
    if cut is not None:
        last = np.maximum(np.minimum(last, cut), ties.begins)
    upper, lower = discount_totals(int(last.max()) + 1)
    # sums of discounts are exact, so only the division is rounded
    shown = add(
        Pair(upper[last] - upper[ties.begins], np.zeros(len(ties))),
        Pair(lower[last] - lower[ties.begins], np.zeros(len(ties))),
    )
    terms = over(scaled(shown, gained), ties.sizes.astype(np.float64))
    return totals(terms, ties.lists, lists.n).high
