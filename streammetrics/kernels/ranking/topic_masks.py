"""The subtopics of items as the bits of words, for measures of novelty over many lists at a time.

A list takes part if it has at most 63 subtopics, at most 63 items that answer one, and no ties
among its relevant items; `novelty` computes the others pair by pair, with the same bits. The k-th
items of all lists are one array, so a step of the greedy order is a few operations on arrays. For
lists of nine relevant items with three subtopics each, α-nDCG takes half the time of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.score_bits import codes_of
from streammetrics.kernels.exact.double_double import Pair, joined, parts, times
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.rank_tables import Floats, fading
from streammetrics.kernels.ranking.ranked import LAST, groups_of_length, key_rows
from streammetrics.kernels.ranking.subtopics import Ints, Subtopics, topic_words
from streammetrics.kernels.ranking.ties import Indices, first_of_run

Words: TypeAlias = NDArray[np.unsignedinteger]
Weights: TypeAlias = Callable[[Ints], Pair]  # of 0-based ranks

_PLACE_BITS: Final = 6  # of the place of an item among those of its list, below its gain
MOST: Final = (1 << _PLACE_BITS) - 1  # subtopics of a list, and items of it that answer one
_WORD_BITS: Final = 63
_INDEX_BITS: Final = 21  # of the position of an item among the relevant ones, below its score
_NEAR: Final = 128  # ranks whose terms are kept, at least `MOST`
_FEW: Final = 8  # the share of lists, as 1 over it, below which they are taken one by one


class TopicMasks(NamedTuple):
    """The answers of all items, and the lists whose subtopics have a bit.

    words: [items], in the order of `places`, of the narrowest type; 0 for an item of another list.
    fits: bool [n].
    """

    words: Words
    fits: NDArray[np.bool_]


def topic_masks(subtopics: Subtopics, rel: int) -> TopicMasks:
    """The subtopics that each item answers in grade `rel` or more."""
    fits = subtopics.places.sizes <= MOST
    if subtopics.packed:
        words = subtopics.words(rel).view(np.uint64)
    else:
        items, topics, grades = subtopics.columns()
        n = len(subtopics.places.values)
        graded = np.flatnonzero(grades >= rel)
        words = topic_words(items[graded], topics[graded] & _WORD_BITS, n).view(np.uint64)
        fits[subtopics.owners[items[topics >= MOST]]] = False
    if not fits.all():
        words[~fits[subtopics.owners]] = 0
    return TopicMasks(words.astype(np.min_scalar_type(words.max(initial=0))), fits)


class Hits(NamedTuple):
    """Items that answer a subtopic, of untied lists, best rank first in each list; [h].

    lists, ranks (from 0), items (positions in `places`). untied: bool [n].
    """

    lists: Indices
    ranks: Indices
    items: Indices
    untied: NDArray[np.bool_]


def answering_hits(lists: Ranked) -> Hits:
    """The hits that answer a subtopic, down to the depth of the ranking.

    The order of relevant items by score is that of hits by rank, so the list is not sorted again.
    """
    whole, hits = lists.whole, lists.hits
    subtopics = whole.subtopics or Subtopics.none(lists.n)
    untied = np.ones(lists.n, np.bool_)
    untied[lists.ties.lists] = False
    if hits.items is not None:
        positions = hits.items
        untied[hits.lists[positions < 0]] = False
    else:
        positions, tied = _score_order(lists, hits.lists)
        untied[tied] = False
    items = np.full(len(whole.grades) + 1, -1, np.int32)
    places = subtopics.places.values
    item_positions = np.repeat(whole.offsets[:-1], subtopics.places.sizes)
    item_positions += places
    item_positions[places < 0] = len(whole.grades)
    items[item_positions] = np.arange(len(places), dtype=np.int32)
    hit_items = items[positions]
    indices = np.flatnonzero((hit_items >= 0) & untied[hits.lists])
    return Hits(
        hits.lists[indices], hits.ranks[indices], hit_items[indices].astype(np.intp), untied
    )


def _score_order(ranked: Ranked, owners: Indices) -> tuple[Indices, Indices]:
    """The position of each hit among all items, from the list that it is in; and the lists in which
    relevant items have equal scores, or scores that 43 bits cannot tell apart."""
    lists, (indices, ends) = ranked.whole, ranked.relevant_items
    assert lists.scores is not None
    if len(indices) >= 1 << _INDEX_BITS:
        return np.zeros(len(owners), np.intp), np.arange(len(lists))
    codes = (~codes_of(lists.scores[indices])).astype(np.uint64)
    if lists.scores.dtype == np.float32:
        codes &= np.uint64(0xFFFF_FFFF)
    else:
        codes >>= np.uint64(_INDEX_BITS)
    keys = codes << np.uint64(_INDEX_BITS) | np.arange(len(indices), dtype=np.uint64)
    kth = np.arange(len(owners)) - first_of_run(owners)
    rows_of, positions = np.full(len(lists), -1), np.zeros(len(owners), np.intp)
    tied: list[Indices] = []
    groups = [*groups_of_length(np.diff(ends))]
    for group in groups:
        rows = np.sort(key_rows(keys, ends, group), axis=1)
        upper = rows >> np.uint64(_INDEX_BITS)
        same = upper[:, 1:] == upper[:, :-1]
        pads = rows.shape[1] - 1 - (ends[group + 1] - ends[group])
        if np.count_nonzero(same) > np.maximum(pads, 0).sum():  # some are no pads
            same &= rows[:, 1:] != LAST
            tied.append(group[same.any(axis=1)])
        rows_of[group] = np.arange(len(group))
        hit_numbers = (
            np.arange(len(owners)) if len(groups) == 1 else np.flatnonzero(rows_of[owners] >= 0)
        )
        rows &= np.uint64((1 << _INDEX_BITS) - 1)
        positions[hit_numbers] = indices[
            rows[rows_of[owners[hit_numbers]], kth[hit_numbers]].astype(np.intp)
        ]
        rows_of[group] = -1
    return positions, np.concatenate([np.empty(0, np.intp), *tied])


# Sums of (1 - α)^c times the weight of a rank, where c items above answer the subtopic.


@lru_cache(maxsize=256)
def _near_terms(alpha: float, weight_of: Weights, above: int) -> Sequence[Floats]:
    """The terms of the first `_NEAR` ranks, in the parts that `totals` has."""
    return _terms(alpha, weight_of(np.arange(_NEAR)), above)


def _terms(alpha: float, weights: Pair, above: int) -> Sequence[Floats]:
    power = fading(alpha)(MOST).take(np.full(len(weights.high), above))
    return parts(times(power, weights))


def gained(
    hits: Hits, words: Words, n: int, cut: int | None, alpha: float, weight_of: Weights
) -> Pair:
    """The sum over the hits above the cut; [n], 0 for a tied list.

    Multiples of the parts of a term are exact, so the sum is that of `totals`.
    """
    above = words[hits.items] != 0
    if cut is not None:
        above &= hits.ranks < cut
    counted_hits = np.flatnonzero(above)
    lists, ranks = hits.lists[counted_hits], hits.ranks[counted_hits]
    left = words[hits.items[counted_hits]]
    top = int(ranks.max(initial=-1)) + 1
    weights = None
    if top > _NEAR:
        weights = weight_of(np.arange(top))
        if top > len(counted_hits):  # few hits far down: a table of their ranks alone
            different, ranks = np.unique(ranks, return_inverse=True)
            weights = weights.take(different)
    sums, powers, level = [np.zeros(n) for _ in range(3)], fading(alpha)(MOST).high, 0
    while len(lists) and powers[level]:
        if weights is None:
            terms = _near_terms(alpha, weight_of, level)
        else:
            terms = _terms(alpha, weights, level)
        answered = _answered_before(left, lists)
        topics = np.bitwise_count(left & ~answered).astype(np.float64)
        for total, of_rank in zip(sums, terms, strict=True):
            total += np.bincount(lists, topics * of_rank[ranks], n)
        left &= answered
        remaining_hits = np.flatnonzero(left)
        lists, ranks, left = lists[remaining_hits], ranks[remaining_hits], left[remaining_hits]
        level += 1
    return joined(sums)


def _answered_before(words: Words, lists: Indices) -> Words:
    """The bits of all items before each one of its list; lists: ascending."""
    answered = np.zeros_like(words)
    answered[1:] = words[:-1] * (lists[1:] == lists[:-1])
    step = 1
    while (same := lists[step:] == lists[:-step]).any():
        answered[step:] |= answered[:-step] * same
        step *= 2
    return answered


class Level(NamedTuple):
    """The subtopics of an item of each of these lists that `above` items had answered before it."""

    above: int
    lists: Indices | slice
    words: Words


class _Seen:
    """For each of `n` lists the subtopics that 1, 2, ... items have answered, and the sum of the
    terms of these items in parts."""

    def __init__(self, n: int, alpha: float, weight_of: Weights) -> None:
        self.words: list[Words] = []
        self.sums = [np.zeros(n) for _ in range(3)]
        self._alpha, self._weight_of = alpha, weight_of

    def add(self, words: Words, rank: int) -> list[Level]:
        """Add an item to each of the first lists; returns the subtopics that `c` items had
        answered, by c."""
        levels: list[Level] = []
        level = 0
        lists: Indices | slice = slice(len(words))
        while words.any():
            if level == len(self.words):
                self.words.append(np.zeros(len(self.sums[0]), words.dtype))
            answered = self.words[level][lists]
            fresh, words = words & ~answered, words & answered
            fresh_lists = lists
            is_fresh = fresh != 0
            count = np.count_nonzero(is_fresh)
            if count * _FEW < len(fresh):  # as at most levels
                indices = np.flatnonzero(is_fresh)
                fresh = fresh[indices]
                fresh_lists = indices if isinstance(lists, slice) else lists[indices]
            if count:
                topics = np.bitwise_count(fresh).astype(np.float64)
                terms = _near_terms(self._alpha, self._weight_of, level)
                for total, of_rank in zip(self.sums, terms, strict=True):
                    total[fresh_lists] += topics * of_rank[rank]
                self.words[level][fresh_lists] |= fresh
                levels.append(Level(level, fresh_lists, fresh))
            level += 1
        return levels


def greedy(
    firsts: Ints,
    sizes: Ints,
    words: Words,
    depth: int,
    alpha: float,
    weight_of: Weights,
    gains: Ints,
) -> Pair:
    """The sums of the greedy order of each list, of the first `depth` ranks; [n].

    firsts, sizes: [n], where in `words` its items begin, and how many it has, at most `MOST`; in
    the order in which items of equal gains are taken. gains: (1 - α)^c for c = 0, 1, ... as
    integers.
    """
    n = len(sizes)
    order = np.argsort((MOST - sizes).astype(np.uint8), kind="stable")  # the longest lists first
    starts, sizes = firsts[order], sizes[order]
    longest = int(sizes.max(initial=0))
    depth = min(depth, longest)
    ends = np.searchsorted(-sizes, -np.arange(1, longest + 1), "right").tolist()
    # Of the j-th item of each list its subtopics, and its gain, above MOST - j: the greatest of
    # these is the first item of the greatest gain. Both are 0 once it is taken.
    steps = _steps(gains[: depth + 1], words)
    item_words, left = np.zeros((longest, n), words.dtype), np.zeros((longest, n), steps.dtype)
    for j, end in enumerate(ends):
        item_words[j, :end] = words[starts[:end] + j]
        np.multiply(np.bitwise_count(item_words[j, :end]), steps[0], out=left[j, :end])
        left[j, :end] += steps.dtype.type(MOST - j)
    flat_words, flat_left, numbers = item_words.reshape(-1), left.reshape(-1), np.arange(n)
    answered, bands = _Seen(n, alpha, weight_of), _bands(ends)
    for rank in range(depth):
        end = ends[rank]  # lists with an item for this rank
        best = np.zeros(end, steps.dtype)
        for band, band_end in bands:
            gained_next = np.maximum.reduce(left[band, : min(end, band_end)], axis=0)
            head = best[: len(gained_next)]
            np.maximum(head, gained_next, out=head)
        item_indices = (MOST - (best & steps.dtype.type(MOST)).astype(np.intp)) * n + numbers[:end]
        word = flat_words[item_indices]
        flat_words[item_indices] = flat_left[item_indices] = 0
        levels = answered.add(word, rank)
        if rank + 2 < longest and rank + 1 < depth:  # of one item left the gain is not compared
            _reduce(left, item_words, bands, levels, steps, ends[rank + 2])
    sums = joined(answered.sums)
    high, low = np.zeros(n), np.zeros(n)
    high[order], low[order] = sums
    return Pair(high, low)


def _steps(gains: Ints, words: Words) -> Words:
    """Gains above the bits of a place, in the narrowest type that holds those of any item: without
    the binary places that none of them has, as half of them for α = 1/2."""
    common = int(np.bitwise_or.reduce(gains, initial=0))
    steps = [gain // (common & -common or 1) << _PLACE_BITS for gain in gains.tolist()]
    most = int(np.bitwise_count(words).max(initial=1)) * max(steps, default=0) + MOST
    return np.array(steps, np.min_scalar_type(most))


def _bands(ends: Sequence[int]) -> list[tuple[slice, int]]:
    """Consecutive items of lists, with how many lists have the first of them: not few of these have
    all."""
    bands: list[tuple[slice, int]] = []
    first = 0
    for j in range(1, len(ends) + 1):
        if j == len(ends) or _FEW * ends[j] < ends[first]:
            bands.append((slice(first, j), ends[first]))
            first = j
    return bands


def _reduce(
    left: Words,
    words: Words,
    bands: Sequence[tuple[slice, int]],
    levels: Sequence[Level],
    steps: Words,
    end: int,
) -> None:
    """Reduce the gains that are left in the first lists, by what items lose by these subtopics."""
    for level in levels:
        loss = steps[level.above] - steps[level.above + 1]
        if not loss:
            continue
        if not isinstance(level.lists, slice):
            n = np.searchsorted(level.lists, end)
            lists, fresh = level.lists[:n], level.words[:n]
            left[:, lists] -= np.bitwise_count(words[:, lists] & fresh) * loss
            continue
        for band, band_end in bands:
            fresh = level.words[: min(end, band_end)]
            cells = band, slice(len(fresh))
            left[cells] -= np.bitwise_count(words[cells] & fresh) * loss
