"""Measures of novelty: an item counts less for each subtopic that items above it have answered.

The gain of an item at rank i is the sum, over the subtopics that it answers, of (1 - α)^c, where c
items above it answer the subtopic (Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and
MacKinnon 2008, "Novelty and diversity in information retrieval evaluation", SIGIR, section 5). So a
measure is a sum over subtopics, each with the ranks of its own items. With weights 1/log2(i + 1) it
is the α-DCG, with 1/i the intent-aware ERR, and with α = 1 and weights 1 the number of subtopics
that are answered at all.

In a group of m tied items of which c answer a subtopic, each rank has one of these c in c/m of all
orders. The other c - 1 are then in any order among the other m - 1, and the mean of (1 - α)^(those
above) over these orders is that of ERR, for a user who stops at each with probability α.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.score_bits import codes_of
from streammetrics.core.rows import Ragged
from streammetrics.kernels.exact.double_double import (
    Pair,
    add,
    divided,
    divided_by,
    scaled,
    times,
    totals,
)
from streammetrics.kernels.ranking.gain import mean_continuations
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.positions import deduplicate
from streammetrics.kernels.ranking.rank_tables import Floats, discounts, fading, reciprocals
from streammetrics.kernels.ranking.ranked import groups_of_length, key_rows
from streammetrics.kernels.ranking.subtopics import Ints, Subtopics
from streammetrics.kernels.ranking.ties import Indices, Keys, first_of_run, run_starts
from streammetrics.kernels.ranking.topic_masks import (
    MOST,
    TopicMasks,
    Weights,
    Words,
    answering_hits,
    gained,
    greedy,
    topic_masks,
)

_NEGLIGIBLE: Final = 2.0**-200
_SCALE: Final = 52  # binary places of the gains that the greedy order compares


def alpha_ndcg(lists: Ranked, alpha: float, rel: int, cut: int | None) -> Floats:
    """α-DCG over that of the greedy order of all known items, both of the first `cut`; [n]. 0 for a
    list without subtopics."""
    value, best = _gained(lists, alpha, rel, cut, _discounts), _greedy(lists, alpha, rel, cut)
    nonzero = np.flatnonzero(best.high > 0)
    quotients = np.zeros(lists.n)
    quotients[nonzero] = divided(value.take(nonzero), best.take(nonzero)).high
    return quotients


def intent_aware_err(lists: Ranked, alpha: float, rel: int, cut: int, over_perfect: bool) -> Pair:
    """The mean over subtopics of Σ 1/i (1 - α)^c over the ranks i of its items, divided by that of
    a list whose every item answers it (`over_perfect`), or times α: the mean of 1/rank where a user
    who stops at such an item with probability α stops; [n]. 0 for a list without subtopics."""
    value = _mean_of_topics(lists, rel, _gained(lists, alpha, rel, cut, _reciprocals))
    if over_perfect:
        return divided(value, _perfect(alpha, cut))
    exact = Fraction(repr(alpha))
    high = float(exact)
    return times(value, Pair(np.array([high]), np.array([float(exact - Fraction(high))])))


def subtopic_recall(lists: Ranked, rel: int, cut: int | None) -> Pair:
    """The share of the subtopics that an item among the first `cut` answers; [n]. 0 for a list
    without subtopics."""
    return _mean_of_topics(lists, rel, _gained(lists, 1.0, rel, cut, _ones))


def _discounts(ranks: Ints) -> Pair:
    upper, lower = (table[ranks] for table in discounts(int(ranks.max(initial=0)) + 1))
    return add(Pair(upper, np.zeros_like(upper)), Pair(lower, np.zeros_like(lower)))


def _reciprocals(ranks: Ints) -> Pair:
    return reciprocals(int(ranks.max(initial=0)) + 1).take(ranks)


def _ones(ranks: Ints) -> Pair:
    return Pair(np.ones(ranks.shape), np.zeros(ranks.shape))


def _mean_of_topics(lists: Ranked, rel: int, sums: Pair) -> Pair:
    masks = lists.once(_masks, rel)
    topics = np.bitwise_count(_any_of(masks.words, _subtopics(lists).places)).astype(np.int64)
    wide = ~masks.fits
    if wide.any():
        topics += np.bincount(
            _subtopics(lists).answers_at_least(rel, wide).owners, minlength=lists.n
        )
    return divided_by(sums, np.maximum(topics, 1).astype(np.float64))


def _perfect(alpha: float, cut: int) -> Pair:
    """Σ (1 - α)^(i - 1) / i over the first `cut` ranks; [1]."""
    n = 128
    while n < cut and fading(alpha)(n).high[n - 1] > _NEGLIGIBLE:
        n *= 2
    ranks = np.arange(min(n, cut))
    terms = times(fading(alpha)(len(ranks)).take(ranks), _reciprocals(ranks))
    return totals(terms, np.zeros(len(ranks), np.intp), 1)


def _subtopics(lists: Ranked) -> Subtopics:
    subtopics = lists.whole.subtopics
    return Subtopics.none(lists.n) if subtopics is None else subtopics  # nothing is relevant


# The sum over the items of each subtopic.


def _gained(lists: Ranked, alpha: float, rel: int, cut: int | None, weights: Weights) -> Pair:
    """Σ (1 - α)^c times the weight of the rank, over subtopics and the items that answer them; [n].

    Tied items count as in the mean of all orders.
    """
    hits, masks = lists.once(answering_hits), lists.once(_masks, rel)
    gains = gained(hits, masks.words, lists.n, cut, alpha, weights)
    is_open = ~(hits.untied & masks.fits)
    if is_open.any():
        pairs = _gained_by_pairs(lists, is_open, alpha, rel, cut, weights)
        gains.high[is_open], gains.low[is_open] = pairs.high[is_open], pairs.low[is_open]
    return gains


def _gained_by_pairs(
    lists: Ranked,
    selected: NDArray[np.bool_],
    alpha: float,
    rel: int,
    cut: int | None,
    weights: Weights,
) -> Pair:
    """The same of some lists, with ties and any number of subtopics."""
    answers = _subtopics(lists).answers_at_least(rel, selected)
    above, tied = lists.once(_placed)
    ranks, topics = above[answers.items], answers.topics
    indices = np.flatnonzero(ranks >= 0 if cut is None else (ranks >= 0) & (ranks < cut))
    order = indices[np.lexsort((ranks[indices], topics[indices]))]
    ranks, topics, sizes = ranks[order], topics[order], tied[answers.items[order]]
    # An item, or those of a tie, that answer one subtopic.
    new = np.ones(len(order), np.bool_)
    new[1:] = (topics[1:] != topics[:-1]) | (ranks[1:] != ranks[:-1])
    firsts = np.flatnonzero(new)
    counts = np.diff(firsts, append=len(order))
    begins, sizes, topics = ranks[firsts], sizes[firsts], topics[firsts]
    before = firsts - firsts[first_of_run(topics)]
    powers = fading(alpha)(int(before.max(initial=0)) + 1).take(before)
    ties = np.flatnonzero(sizes > 1)
    inside = weights(begins)
    if len(ties):
        tied_gains = _tie_gains(alpha, begins[ties], sizes[ties], counts[ties], cut, weights)
        inside.high[ties], inside.low[ties] = tied_gains
    return totals(times(powers, inside), answers.owners[topics], lists.n)


def _tie_gains(
    alpha: float, begins: Ints, sizes: Ints, counts: Ints, cut: int | None, weights: Weights
) -> Pair:
    """The mean over all orders of Σ (1 - α)^c times the weight, over the `counts` of `sizes` tied
    items that answer one subtopic; c counts those of the tie alone; [g]."""
    different = deduplicate(begins, sizes, counts)
    firsts = different.firsts
    begins, sizes, counts = begins[firsts], sizes[firsts], counts[firsts]
    room = sizes if cut is None else np.minimum(sizes, cut - begins)
    means = Pair(np.zeros(len(firsts)), np.zeros(len(firsts)))
    stay = fading(alpha)(2)
    for groups in groups_of_length(room):
        steps = int(room[groups].max())
        other_counts = counts[groups] - 1
        shape = np.ones((len(groups), int(other_counts.max())))
        stays = Pair(stay.high[1] * shape, stay.low[1] * shape)
        left = mean_continuations(sizes[groups] - counts[groups], other_counts, stays, steps - 1)
        t = np.arange(steps)
        is_inside = t < room[groups, None]
        terms = times(left, weights(begins[groups, None] + t))
        rows = np.repeat(np.arange(len(groups)), steps)[is_inside.ravel()]
        sums = totals(Pair(*(part[is_inside] for part in terms)), rows, len(groups))
        shares = scaled(sums, counts[groups].astype(np.float64))
        means.high[groups], means.low[groups] = divided_by(shares, sizes[groups].astype(np.float64))
    return means.take(different.which)


def _masks(lists: Ranked, rel: int) -> TopicMasks:
    return topic_masks(_subtopics(lists), rel)


def _any_of(words: Words, places: Ragged[np.int64]) -> Words:
    """The bits that any item of each list has; [n]."""
    bits = np.zeros(len(places), np.uint64)
    filled = np.flatnonzero(places.sizes)
    if len(filled):
        bits[filled] = np.bitwise_or.reduceat(words, places.offsets[filled])
    return bits


def _placed(ranked: Ranked) -> tuple[Ints, Ints]:
    """For each item that answers a subtopic the number of ranks above it and above its ties, -1 if
    it is not in the list, and the number of items of its score; list by list. Those of lists whose
    items all have a bit and no ties are not computed, but -1 and 0."""
    lists, subtopics = ranked.whole, _subtopics(ranked)
    places, owners = subtopics.places.values, subtopics.owners
    if lists.scores is None:
        return places, np.ones_like(places)
    keys = (~codes_of(lists.scores)).astype(np.uint64)
    begins, ends = np.full(len(places), -1), np.zeros(len(places), np.int64)
    is_listed = places >= 0
    item_keys = np.zeros(len(places), np.uint64)
    item_keys[is_listed] = keys[lists.offsets[owners[is_listed]] + places[is_listed]]
    rows_of = np.full(len(lists), -1)
    open_ = ~(ranked.once(answering_hits).untied & ranked.once(_masks, 1).fits)
    for part in groups_of_length(np.where(open_, np.diff(lists.offsets), 0)):
        rows = key_rows(keys, lists.offsets, part)
        rows.sort(axis=1)
        rows_of[part] = np.arange(len(part))
        indices = np.flatnonzero(is_listed & (rows_of[owners] >= 0))
        begins[indices] = _counts_below(rows, rows_of[owners[indices]], item_keys[indices])
        ends[indices] = _counts_below(
            rows, rows_of[owners[indices]], item_keys[indices] + np.uint64(1)
        )
        rows_of[part] = -1
    return begins, ends - begins


def _counts_below(rows: Keys, row_numbers: Indices, keys: Keys) -> Ints:
    """How many keys of its sorted row each key is above; [m]."""
    flat, width = rows.reshape(-1), rows.shape[1]
    counts = np.zeros(len(keys), np.int64)
    step = 1 << width.bit_length() - 1
    while step:
        further = np.minimum(counts + step, width)
        above = flat[row_numbers * width + further - 1] < keys
        counts = np.where(above, further, counts)
        step >>= 1
    return counts


# The greedy order, which defines the ideal.


def _greedy(lists: Ranked, alpha: float, rel: int, cut: int | None) -> Pair:
    """The α-DCG of the order in which each rank has an item of the greatest gain; [n].

    An order with the greatest α-DCG is hard to find (NP-complete: Clarke et al. 2008, section 5.2);
    this is that of the TREC tool ndeval. Of equal gains the first item in `places` is taken.
    """
    masks, places = lists.once(_masks, rel), _subtopics(lists).places
    selected = np.flatnonzero(masks.fits & (places.sizes > 0))
    depth = MOST if cut is None else min(cut, MOST)
    gains = _gain_table(alpha, MOST)
    firsts, sizes = places.offsets[selected], places.sizes[selected]
    high, low = np.zeros(lists.n), np.zeros(lists.n)
    high[selected], low[selected] = greedy(
        firsts, sizes, masks.words, depth, alpha, _discounts, gains
    )
    if not masks.fits.all():
        _greedy_by_pairs(lists, ~masks.fits, alpha, rel, cut, Pair(high, low))
    return Pair(high, low)


def _greedy_by_pairs(
    lists: Ranked,
    wide: NDArray[np.bool_],
    alpha: float,
    rel: int,
    cut: int | None,
    sums_out: Pair,
) -> None:
    """Write the same of some lists, with any number of items and subtopics, to `sums_out`."""
    answers = _subtopics(lists).answers_at_least(rel, wide)
    firsts = run_starts(answers.items)
    owners = _subtopics(lists).owners[answers.items[firsts]]
    of_items = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(answers.items)))
    per_list = np.bincount(owners, minlength=lists.n)
    group = np.full(lists.n, -1)
    for i, part in enumerate(groups_of_length(per_list)):
        group[part] = i
        pairs = np.flatnonzero(group[owners[of_items]] == i)
        depth = int(per_list[part].max())
        depth = depth if cut is None else min(cut, depth)
        items = np.unique(of_items[pairs], return_inverse=True)[1]
        item_owners = owners[of_items[pairs[run_starts(items)]]]
        sums = _greedy_sums(alpha, depth, items, answers.topics[pairs], item_owners, lists.n)
        sums_out.high[part], sums_out.low[part] = sums.high[part], sums.low[part]


def _greedy_sums(alpha: float, depth: int, items: Ints, topics: Ints, owners: Ints, n: int) -> Pair:
    """The sums of the first `depth` ranks. items, topics: [p], by item; owners: the list of each
    item, ascending."""
    if not len(items):
        return Pair(np.zeros(n), np.zeros(n))
    gains = _gain_table(alpha, depth)
    powers = fading(alpha)(depth + 1)
    topics = np.unique(topics, return_inverse=True)[1]
    above = np.zeros(int(topics.max()) + 1, np.int64)
    starts = run_starts(items)
    lengths = np.diff(starts, append=len(items))
    lists, weights = run_starts(owners), _discounts(np.arange(depth))
    numbers = np.repeat(np.arange(len(lists)), np.diff(lists, append=len(owners)))
    is_taken = np.zeros(len(owners), np.bool_)
    terms: list[Pair] = []
    pair_owners: list[Ints] = []
    for rank in range(depth):
        gained = np.add.reduceat(gains[above[topics]], starts)
        gained[is_taken] = -1
        best = np.maximum.reduceat(gained, lists)
        best_items = np.flatnonzero((gained == best[numbers]) & ~is_taken)
        best_items = best_items[run_starts(numbers[best_items])]
        is_taken[best_items] = True
        ends = np.cumsum(lengths[best_items])
        pairs = np.arange(int(ends[-1]) if len(ends) else 0)
        pairs += np.repeat(starts[best_items] - ends + lengths[best_items], lengths[best_items])
        weight = np.full(len(pairs), weights.high[rank]), np.full(len(pairs), weights.low[rank])
        terms.append(times(powers.take(above[topics[pairs]]), Pair(*weight)))
        pair_owners.append(owners[items[pairs]])
        above[topics[pairs]] += 1  # an item answers a subtopic once
    joined = Pair(*(np.concatenate(parts) for parts in zip(*terms, strict=True)))
    return totals(joined, np.concatenate(pair_owners), n)


def _gain_table(alpha: float, depth: int) -> Ints:
    """(1 - α)^c for c = 0 ... depth in multiples of 2**-52, so that sums are exact in any order."""
    table = np.rint(fading(alpha)(depth + 1).high[: depth + 1] * (1 << _SCALE))
    return table.astype(np.int64)
