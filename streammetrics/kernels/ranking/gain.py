"""Measures from gains, and from users who stop: DCG, NDCG, RBP and ERR.

CG, DCG and NDCG are those of Jaervelin and Kekaelaeinen (2002, ACM TOIS 20(4)).

A value depends on its list alone, to the last bit: sums of integer gains times table entries are
exact in any order (`rank_tables`), and every rounding is one IEEE operation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import (
    Pair,
    add,
    divided_by,
    minus,
    scaled,
    times,
    totals,
)
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.rank_tables import (
    GAINS,
    Floats,
    continuation,
    discount_totals,
    discounts,
    expected_examined,
    reciprocals,
    stop_probability,
)
from streammetrics.kernels.ranking.ranked import groups_of_length
from streammetrics.kernels.ranking.ties import (
    IRRELEVANT,
    Indices,
    TieGroups,
    first_of_run,
    run_starts,
)

# Rank-biased precision: RBP (Moffat and Zobel 2008, ACM TOIS 27(1), article 2).


def rank_biased_precision(lists: Ranked, p: float, rel: int, cut: int | None) -> Pair:
    """(1 - p) Σ p^(rank - 1) over the relevant ranks among the first `cut`; [n].

    Ranks are counted from the first relevant rank of a list. The factor for the ranks before it is
    applied at the end, so that no digit is lost where the first relevant rank is low in the list.
    """
    hits = lists.within(cut, rel)
    owners, starts = hits.lists, hits.ranks[first_of_run(hits.lists)]
    steps = hits.ranks - starts
    terms = continuation(p)(int(steps.max(initial=0)) + 1).take(steps)
    first = np.zeros(lists.n, np.intp)
    first[owners] = starts
    if len(lists.ties):
        tied_terms, tied_owners, starts = _tied_terms(lists, p, rel, cut)
        terms = Pair(*(np.concatenate(halves) for halves in zip(terms, tied_terms, strict=True)))
        first[tied_owners] = starts
        owners = np.concatenate([owners, tied_owners])
    before = continuation(p)(int(first.max(initial=0)) + 1).take(first)
    return times(times(totals(terms, owners, lists.n), stop_probability(p)), before)


def _tied_terms(
    lists: Ranked, p: float, rel: int, cut: int | None
) -> tuple[Pair, Indices, Indices]:
    """The contribution of each tie group, its list, and the start of the list's first such group.

    In a group of m items, r of them relevant, a rank has a relevant item in r/m of all orders.
    """
    ties = lists.ties
    relevant = ties.relevant(rel)
    groups = np.flatnonzero(relevant > 0 if cut is None else (relevant > 0) & (ties.begins < cut))
    owners, begins, sizes = ties.lists[groups], ties.begins[groups], ties.sizes[groups]
    room = sizes if cut is None else np.minimum(sizes, cut - begins)
    starts = begins[first_of_run(owners)]
    steps = begins - starts
    examined = times(
        continuation(p)(int(steps.max(initial=0)) + 1).take(steps),
        expected_examined(p)(int(room.max(initial=0)) + 1).take(room),
    )
    shares = scaled(examined, relevant[groups].astype(np.float64))
    return divided_by(shares, sizes.astype(np.float64)), owners, starts


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
    values = (upper + lower).astype(np.float64, copy=False)  # bincount of no hits is integers
    if len(lists.ties):
        values += _tied_dcg(lists, gains, cut)
    return values


def ideal_dcg(lists: Ranked, gain: str, cut: int | None) -> Floats:
    """The greatest DCG of any order of all known relevant items; [n].

    The gain of an item is the sum of the steps of all grades up to its own. So the DCG of the best
    order is the sum over grades of the step times the discounts of the first ranks, as many as
    there are items of this grade or more.
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
    """DCG / ideal DCG; 0 for a list without a relevant item; [n]."""
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
    terms = divided_by(scaled(shown, gained), ties.sizes.astype(np.float64))
    return totals(terms, ties.lists, lists.n).high


# Expected reciprocal rank: ERR (Chapelle, Metzler, Zhang and Grinspan 2009, CIKM).
#
# A user who reaches an item of grade g stops with probability R = (2^g - 1) / 2^max_grade; ERR is
# the mean of 1/rank where the user stops. In a group of m tied items, let s_t be the probability,
# over all orders, that the user continues after the first t items: the mean of the products of
# 1 - R over all choices of t of the m items. Then the user stops at position t + 1 with probability
# s_t - s_(t+1). An item that joins a group of j items, at any of j + 1 positions with equal chance,
# changes s_t to ((j+1-t) s_t + t (1-R) s_(t-1)) / (j+1). So items are added one by one, the best
# grade first, after the irrelevant items, for which all s_t are 1.

_NEGLIGIBLE: Final = 2.0**-200  # smaller probabilities change no digit


def expected_reciprocal_rank(lists: Ranked, max_grade: int, cut: int | None) -> Pair:
    """Σ 1/rank · R · Π (1 - R of those above) over the first `cut` ranks; [n].

    max_grade: no item has a higher grade.
    """
    hits = lists.within(cut)
    chances = GAINS["exponential"].astype(np.float64) / float(1 << max_grade)
    table = reciprocals(int(hits.ranks.max(initial=0)) + 1)
    inside = scaled(table.take(hits.ranks), chances[hits.grades])
    after = Pair(1.0 - chances[hits.grades], np.zeros(len(hits.lists)))
    value = _chained(hits.lists, inside, after, lists.n)
    ties = lists.ties
    if cut is not None:
        ties = ties.take(np.flatnonzero(ties.begins < cut))
    if len(ties):
        value = add(value, _chained(ties.lists, *_groups(ties, chances, cut), lists.n))
    return value


def _chained(owners: Indices, inside: Pair, after: Pair, n: int) -> Pair:
    """For each owner, Σ inside · Π (after of preceding entries) over its entries in order; [n]."""
    firsts = run_starts(owners)
    sizes = np.diff(firsts, append=len(owners))
    alive = np.argsort(-sizes, kind="stable")  # owners with entries left are in front
    firsts, sizes = firsts[alive], sizes[alive]
    terms = Pair(np.zeros(len(owners)), np.zeros(len(owners)))
    still = Pair(np.ones(len(firsts)), np.zeros(len(firsts)))
    for i in range(int(sizes[0]) if len(sizes) else 0):
        left = int(np.searchsorted(-sizes, -i, "left"))
        entries = firsts[:left] + i
        reached = Pair(still.high[:left], still.low[:left])
        terms.high[entries], terms.low[entries] = times(reached, inside.take(entries))
        still = times(reached, after.take(entries))
        if not (still.high > _NEGLIGIBLE).any():
            break
    return totals(terms, owners, n)


def _groups(ties: TieGroups, chances: Floats, cut: int | None) -> tuple[Pair, Pair]:
    """For each tie group: the mean of 1/rank where a user stops in it (0 if at none), and the
    probability of continuing after it, if the cut leaves all of it; [g] each."""
    inside, after = (Pair(np.zeros(len(ties)), np.zeros(len(ties))) for _ in range(2))
    room = ties.sizes if cut is None else np.minimum(ties.sizes, cut - ties.begins)
    relevant = ties.relevant(1)
    for groups in groups_of_length(room):
        steps = int(room[groups].max())
        still = _still_there(ties, groups, relevant[groups], chances, steps)
        t = np.arange(steps)
        ranks = ties.begins[groups, None] + t
        stops = minus(*(Pair(*(p[:, a : a + steps] for p in still)) for a in (0, 1)))
        terms = times(stops, reciprocals(int(ranks.max()) + 1).take(ranks))
        is_inside = t < room[groups, None]
        rows = np.repeat(np.arange(len(groups)), steps)[is_inside.ravel()]
        terms = Pair(*(part[is_inside] for part in terms))
        inside.high[groups], inside.low[groups] = totals(terms, rows, len(groups))
        last = np.arange(len(groups)), room[groups]
        after.high[groups], after.low[groups] = (part[last] for part in still)
    return inside, after


def _still_there(
    ties: TieGroups, groups: Indices, relevant: NDArray[np.int64], chances: Floats, steps: int
) -> Pair:
    """s_t of these groups for t = 0 ... steps; [s, steps + 1]."""
    most = int(relevant.max(initial=0))
    items = ties.ends[groups, None] + np.minimum(np.arange(most), relevant[:, None] - 1)
    stays = 1.0 - chances[IRRELEVANT - ties.codes[items]]
    none = ties.sizes[groups] - relevant
    return mean_continuations(none, relevant, Pair(stays, np.zeros_like(stays)), steps)


def mean_continuations(
    none: NDArray[np.int64], relevant: NDArray[np.int64], stays: Pair, steps: int
) -> Pair:
    """The mean, over all orders of the items of each of s groups, of the product of the
    probabilities to continue after the first t items, for t = 0 ... steps; [s, steps + 1].

    none: [s], the items of a group after which every user continues; relevant: [s], its other
    items; stays: [s, r], the probability after each of these, r the most of a group.
    """
    t = np.arange(steps + 1)
    high = np.ones((len(none), steps + 1))
    low = np.zeros_like(high)
    for i in range(stays.high.shape[1]):
        rows = np.flatnonzero(relevant > i)
        n = (none[rows] + i + 1)[:, None].astype(np.float64)  # items including this one
        before = Pair(np.ones((len(rows), steps + 1)), np.zeros((len(rows), steps + 1)))
        before.high[:, 1:], before.low[:, 1:] = high[rows, :-1], low[rows, :-1]
        first = np.minimum(t, n)
        stay = Pair(stays.high[rows, i, None], stays.low[rows, i, None])
        joins = times(before, scaled(stay, first))
        leaves = scaled(Pair(high[rows], low[rows]), np.maximum(n - t, 0))
        high[rows], low[rows] = divided_by(add(leaves, joins), n)
    return Pair(high, low)
