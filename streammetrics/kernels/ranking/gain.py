"""Gains of ranked lists: CG, DCG and NDCG (Jaervelin and Kekaelaeinen 2002, ACM TOIS 20(4)).

A value depends on its list alone, to the last bit: sums of whole gains and table entries are exact
(`rank_tables`), so their order does not matter, and every rounding is one IEEE operation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import Pair, add, over, scaled, times, totals
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.rank_tables import (
    GAINS,
    Floats,
    comes,
    discount_totals,
    discounts,
    looks,
    stops,
)
from streammetrics.kernels.ranking.ties import Indices, first_of_run

# Rank-biased precision: RBP (Moffat and Zobel 2008, ACM TOIS 27(1), article 2).


def rank_biased_precision(lists: Ranked, p: float, rel: int, cut: int | None) -> Pair:
    """(1 - p) Σ p^(rank - 1) over the relevant ranks among the first `cut`; [n].

    Ranks are counted from the first relevant one of a list, and what comes before it is
    multiplied in at the end, so that no digit is lost where that one is far down.
    """
    hits = lists.within(cut, rel)
    owners, starts = hits.lists, hits.ranks[first_of_run(hits.lists)]
    steps = hits.ranks - starts
    terms = comes(p)(int(steps.max(initial=0)) + 1).take(steps)
    first = np.zeros(lists.n, np.intp)
    first[owners] = starts
    if len(lists.ties):
        more, of, starts = _tied_terms(lists, p, rel, cut)
        terms = Pair(*(np.concatenate(both) for both in zip(terms, more, strict=True)))
        first[of] = starts
        owners = np.concatenate([owners, of])
    before = comes(p)(int(first.max(initial=0)) + 1).take(first)
    return times(times(totals(terms, owners, lists.n), stops(p)), before)


def _tied_terms(
    lists: Ranked, p: float, rel: int, cut: int | None
) -> tuple[Pair, Indices, Indices]:
    """What each tie group adds, its list, and where the first such group of the list begins.

    A group of m items with r relevant ones has one at each of its ranks in r/m of all orders.
    """
    ties = lists.ties
    relevant = ties.relevant(rel)
    at = np.flatnonzero(relevant > 0 if cut is None else (relevant > 0) & (ties.begins < cut))
    owners, begins, sizes = ties.lists[at], ties.begins[at], ties.sizes[at]
    room = sizes if cut is None else np.minimum(sizes, cut - begins)
    starts = begins[first_of_run(owners)]
    steps = begins - starts
    found = times(
        comes(p)(int(steps.max(initial=0)) + 1).take(steps),
        looks(p)(int(room.max(initial=0)) + 1).take(room),
    )
    shares = scaled(found, relevant[at].astype(np.float64))
    return over(shares, sizes.astype(np.float64)), owners, starts


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
