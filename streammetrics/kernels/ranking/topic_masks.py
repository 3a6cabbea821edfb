"""The subtopics of items as the bits of words, for measures of novelty over many lists at a time.

A list takes part if it has at most 63 subtopics, at most 63 items that answer one, and no ties
among its relevant items; `novelty` computes the others pair by pair, with the same bits. The k-th
items of all lists are one array, so a step of the greedy order is a few operations on arrays. For
lists of nine relevant items with three subtopics each, α-nDCG takes half the time of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.score_bits import codes_of
from streammetrics.kernels.exact.double_double import Pair, joined, parts, times
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.rank_tables import Floats
from streammetrics.kernels.ranking.ranked import LAST, groups_of_length, key_rows
from streammetrics.kernels.ranking.subtopics import Ints, Subtopics, topic_words
from streammetrics.kernels.ranking.ties import Indices, first_of_run

Words: TypeAlias = NDArray[np.unsignedinteger]
Weights: TypeAlias = Callable[[Ints], Pair]  # of 0-based ranks

_PLACE_BITS: Final = 6  # of the place of an item among those of its list, below its gain
MOST: Final = (1 << _PLACE_BITS) - 1  # subtopics of a list, and items of it that answer one
_WORD_BITS: Final = 63
_INDEX_BITS: Final = 21  # of the position of an item among the relevant ones, below its score
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
    items, topics, grades = subtopics.columns()
    fits = subtopics.places.sizes <= MOST
    n = len(subtopics.places.values)
    graded = slice(None) if rel <= 1 else np.flatnonzero(grades >= rel)
    words = topic_words(items[graded], topics[graded] & _WORD_BITS, n).view(np.uint64)
    if int(topics.max(initial=0)) >= MOST:
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
    positions = whole.offsets[hits.lists] + hits.ranks
    if whole.scores is not None:
        positions, tied = _score_order(lists, hits.lists)
        untied[tied] = False
    items = np.full(len(whole.grades) + 1, -1, np.int32)
    places = subtopics.places.values
    item_positions = np.where(
        places < 0, len(whole.grades), whole.offsets[subtopics.owners] + places
    )
    items[item_positions] = np.arange(len(places), dtype=np.int32)
    hit_items = items[positions]
    indices = np.flatnonzero(
        (hit_items >= 0) & (positions < len(whole.grades)) & untied[hits.lists]
    )
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


class Level(NamedTuple):
    """The subtopics of an item of each of these lists that `above` items had answered before it."""

    above: int
    lists: Indices | slice
    words: Words


class _Seen:
    """For each of `n` lists the subtopics that 1, 2, ... items have answered, and the sum of the
    terms of these items, in the parts that `totals` has. Multiples of parts are exact, so the sum
    is that of `totals`."""

    def __init__(self, n: int, powers: Pair, weights: Pair) -> None:
        """powers: of 1 - α; weights: by rank."""
        self.words: list[Words] = []
        self.sums = [np.zeros(n) for _ in range(3)]
        self._powers, self._weights = powers, weights
        self._terms: list[list[Floats]] = []
        self._n = n

    def add(self, words: Words, ranks: Indices | int, lists: Indices | slice) -> list[Level]:
        """Add an item to each of these lists; returns the subtopics that `c` items had answered, by
        c. If `lists` is a slice, it begins at 0."""
        levels: list[Level] = []
        level = 0
        while words.any():
            if level == len(self.words):
                self.words.append(np.zeros(self._n, words.dtype))
                power = self._powers.take(np.full(len(self._weights.high), level))
                self._terms.append(parts(times(power, self._weights)))
            answered = self.words[level][lists]
            fresh, words = words & ~answered, words & answered
            fresh_lists, fresh_ranks = lists, ranks
            is_fresh = fresh != 0
            count = np.count_nonzero(is_fresh)
            if count * _FEW < len(fresh):  # as at most levels
                indices = np.flatnonzero(is_fresh)
                fresh = fresh[indices]
                fresh_lists = indices if isinstance(lists, slice) else lists[indices]
                fresh_ranks = ranks if isinstance(ranks, int) else ranks[indices]
            if count:
                topics = np.bitwise_count(fresh)
                for total, of_rank in zip(self.sums, self._terms[level], strict=True):
                    total[fresh_lists] += topics * of_rank[fresh_ranks]
                self.words[level][fresh_lists] |= fresh
                levels.append(Level(level, fresh_lists, fresh))
            level += 1
        return levels

    def total(self) -> Pair:
        """The sum of each list; [n]."""
        return joined(self.sums)


def gained(
    hits: Hits, words: Words, n: int, cut: int | None, powers: Pair, weight_of: Weights
) -> Pair:
    """The sum over the hits above the cut; [n], 0 for a tied list. powers: of 1 - α."""
    above = words[hits.items] != 0
    if cut is not None:
        above &= hits.ranks < cut
    counted_hits = np.flatnonzero(above)
    lists, ranks, items = (
        hits.lists[counted_hits],
        hits.ranks[counted_hits],
        hits.items[counted_hits],
    )
    top = int(ranks.max(initial=-1)) + 1
    weights = weight_of(np.arange(top))
    if top > len(counted_hits):  # few hits far down: a table of their ranks alone
        different, ranks = np.unique(ranks, return_inverse=True)
        weights = weights.take(different)
    answered = _Seen(n, powers, weights)
    kth = np.arange(len(lists)) - first_of_run(lists)
    for k in range(int(kth.max(initial=-1)) + 1):
        indices = np.flatnonzero(kth == k)
        answered.add(words[items[indices]], ranks[indices], lists[indices])
    return answered.total()


def greedy(
    firsts: Ints,
    sizes: Ints,
    words: Words,
    depth: int,
    powers: Pair,
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
    answered, bands = _Seen(n, powers, weight_of(np.arange(depth))), _bands(ends)
    for rank in range(depth):
        end = ends[rank]  # lists with an item for this rank
        best = np.zeros(end, steps.dtype)
        for band, band_end in bands:
            gained_next = np.maximum.reduce(left[band, : min(end, band_end)], axis=0)
            head = best[: len(gained_next)]
            np.maximum(head, gained_next, out=head)
        taken = (MOST - (best & steps.dtype.type(MOST)).astype(np.intp)) * n + numbers[:end]
        word = flat_words[taken]
        flat_words[taken] = flat_left[taken] = 0
        levels = answered.add(word, rank, slice(end))
        if rank + 1 < depth:
            _reduce(left, item_words, bands, levels, steps)
    sums = answered.total()
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
) -> None:
    """Reduce the gains that are left, by what items lose by these subtopics."""
    for level in levels:
        loss = steps[level.above] - steps[level.above + 1]
        if not loss:
            continue
        if not isinstance(level.lists, slice):
            lost = np.bitwise_count(words[:, level.lists] & level.words)
            left[:, level.lists] -= lost * loss
            continue
        for band, band_end in bands:
            fresh = level.words[:band_end]
            cells = band, slice(len(fresh))
            left[cells] -= np.bitwise_count(words[cells] & fresh) * loss
