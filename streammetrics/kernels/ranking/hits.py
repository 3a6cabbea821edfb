"""Relevant items among the first ranks: the basis of P, R, R-precision and pooled HR.

Also cumulative gain, which weights each item with its gain. Under ties, a count is the mean over
all orders: if a cut leaves j ranks of a group of m items, it shows each item with probability j/m.
At most one group of a list is cut, so the mean is a ratio of integers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import Pair, minus, quotient, times, totals
from streammetrics.kernels.ranking.graded_lists import Cut, Lists, Ranked
from streammetrics.kernels.ranking.positions import deduplicate
from streammetrics.kernels.ranking.rank_tables import GAINS, MAX_GRADE, Floats, reciprocals
from streammetrics.kernels.ranking.ranked import groups_of_length, ranked
from streammetrics.kernels.ranking.ties import Indices, run_starts

# The rank of the first relevant item: MRR and HR (Voorhees 1999, TREC-8 question answering
# track).


def reciprocal_rank(lists: Ranked, rel: int, cut: int | None) -> Pair:
    """1/rank of the first item of grade `rel` or more, 0 where there is none; [n]."""
    high, low = np.zeros(lists.n), np.zeros(lists.n)
    first = lists.within(cut, rel).firsts()
    table = reciprocals(int(first.ranks.max(initial=0)) + 1)
    high[first.lists], low[first.lists] = table.take(first.ranks)
    owners, means = _first_groups_hits(lists, rel, cut, _mean_reciprocal)
    high[owners], low[owners] = means
    return Pair(high, low)


def hit(lists: Ranked, rel: int, cut: int | None) -> Pair:
    """1 where an item of grade `rel` or more is among the first `cut`, else 0; [n]."""
    high, low = np.zeros(lists.n), np.zeros(lists.n)
    high[lists.within(cut, rel).lists] = 1.0
    owners, shares = _first_groups_hits(lists, rel, cut, _some_share)
    high[owners], low[owners] = shares
    return Pair(high, low)


def _mean_reciprocal(begins: Indices, none: Pair) -> Pair:
    steps = none.high.shape[1] - 1
    firsts = minus(Pair(*(part[:, :-1] for part in none)), Pair(*(part[:, 1:] for part in none)))
    ranks = begins[:, None] + np.arange(steps)
    terms = times(firsts, reciprocals(int(ranks.max()) + 1).take(ranks))
    rows = np.repeat(np.arange(len(begins)), steps)
    return totals(Pair(*(part.ravel() for part in terms)), rows, len(begins))


def _some_share(begins: Indices, none: Pair) -> Pair:
    ones = Pair(np.ones(len(begins)), np.zeros(len(begins)))
    return minus(ones, Pair(none.high[:, -1], none.low[:, -1]))


def _first_groups_hits(
    lists: Ranked, rel: int, cut: int | None, value: Callable[[Indices, Pair], Pair]
) -> tuple[Indices, Pair]:
    """The lists that have tie groups with a relevant item, and a value of the first one of each.

    value: a function of s groups: the ranks above each [s], and the share of all orders in which
    its first t items are irrelevant, for t = 0 ... steps [s, steps + 1].
    """
    ties = lists.ties
    relevant = ties.relevant(rel)
    groups = np.flatnonzero(relevant > 0)
    if cut is not None:
        groups = groups[ties.begins[groups] < cut]
    owners = ties.lists[groups]
    first = run_starts(owners)
    groups, owners = groups[first], owners[first]
    different = deduplicate(ties.begins[groups], ties.sizes[groups], relevant[groups])
    groups = groups[different.firsts]
    begins, sizes, relevant = ties.begins[groups], ties.sizes[groups], relevant[groups]
    steps = sizes - relevant + 1  # among this many, one is always relevant
    if cut is not None:
        steps = np.minimum(steps, cut - begins)
    values = Pair(np.empty(len(groups)), np.empty(len(groups)))
    for rows in groups_of_length(steps):
        t = np.arange(int(steps[rows].max()))
        left = sizes[rows, None] - t
        dull = left - relevant[rows, None]
        beyond = t >= steps[rows, None]
        factors = quotient(
            np.where(beyond, 1, np.maximum(dull, 0)).astype(np.float64),
            np.where(beyond, 1, left).astype(np.float64),
        )
        values.high[rows], values.low[rows] = value(begins[rows], _products(factors))
    return owners, values.take(different.which)


def _products(factors: Pair) -> Pair:
    """1 and the products of the first 1, 2, ... factors of each row; [s, t + 1].

    It takes log2(t) steps. The multiplications of a product depend on its index alone.
    """
    high = np.ones((len(factors.high), factors.high.shape[1] + 1))
    low = np.zeros_like(high)
    high[:, 1:] = factors.high
    low[:, 1:] = factors.low
    step = 1
    while step < high.shape[1]:
        longer = times(Pair(high[:, step:], low[:, step:]), Pair(high[:, :-step], low[:, :-step]))
        high[:, step:], low[:, step:] = longer
        step *= 2
    return Pair(high, low)


def relevant_shown(lists: Ranked, rel: int, cut: Cut, divisors: Floats | None = None) -> Pair:
    """Items of grade `rel` or more among the first `cut` ranks, divided by `divisors`; [n]."""
    weights = (np.arange(MAX_GRADE + 1) >= rel).astype(np.int64)
    return _shown(lists, weights, rel, cut, divisors)


def judged_shown(lists: Ranked, cut: int | None) -> Pair:
    """The share of judged items among the first `cut` ranks that the list has; [n]."""
    whole = lists.whole
    sizes = np.diff(whole.offsets)
    divisors = np.maximum(sizes if cut is None else np.minimum(sizes, cut), 1).astype(np.float64)
    if whole.judged is None:
        return Pair((sizes > 0).astype(np.float64), np.zeros(lists.n))
    # As lists in which the judged items are the relevant ones.
    as_grades = Lists(whole.judged.astype(np.uint8), whole.scores, whole.offsets)
    parts = [
        relevant_shown(part, 1, cut, divisors[first : first + part.n])
        for first, part in ranked(as_grades, cut, lists.order)
    ]
    return Pair(*(np.concatenate([np.empty(0), *halves]) for halves in zip(*parts, strict=True)))


def cumulative_gain(lists: Ranked, gain: str, cut: Cut) -> Pair:
    """The sum of the gains of the first `cut` ranks; [n]."""
    return _shown(lists, GAINS[gain], 1, cut, None)


def _shown(
    lists: Ranked, weights: NDArray[np.int64], rel: int, cut: Cut, divisors: Floats | None
) -> Pair:
    """The sum of weights[grade] over the first `cut` ranks, divided by `divisors`; [n]."""
    hits = lists.within(cut, rel)
    if weights.max() > 1:
        counted = np.bincount(hits.lists, weights=weights[hits.grades], minlength=lists.n)
        whole = counted.astype(np.float64, copy=False)
    else:
        whole = np.bincount(hits.lists, minlength=lists.n).astype(np.float64)
    below = np.ones(lists.n) if divisors is None else divisors
    ties = lists.ties
    if len(ties):
        group_sums = ties.sums(weights)
        room = ties.sizes
        if cut is not None:
            ranks = cut if isinstance(cut, int) else cut[ties.lists]
            room = np.clip(ranks - ties.begins, 0, ties.sizes)
        inside = room == ties.sizes
        whole += np.bincount(ties.lists, weights=np.where(inside, group_sums, 0), minlength=lists.n)
        cut_groups = np.flatnonzero(~inside & (room > 0))
        owners, sizes = ties.lists[cut_groups], ties.sizes[cut_groups]
        whole[owners] = whole[owners] * sizes + group_sums[cut_groups] * room[cut_groups]
        below = below.copy()
        below[owners] *= sizes
    return quotient(whole, below)
