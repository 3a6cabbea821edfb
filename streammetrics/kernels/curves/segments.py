"""The area under the ROC curve from sorted keys, of one group or of many.

A key packs (group, score, label) into one or two unsigned words, with the label in the lowest bit.
So in a sorted array, the negatives of a tie come directly before its positives. With positives at
indices i_1 < … < i_P of a group's n keys, Σ i_k − P(P−1)/2 counts the pairs whose negative is below
or tied. Ties are found where neighbours differ in the last bit only (Mann and Whitney, Ann. Math.
Stat. 18, 1947). All arithmetic is in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.area import Pairs
from streammetrics.kernels.curves.label_ranks import Ints, LabelRanks, Words
from streammetrics.kernels.exact.rounding import exact_dot, exact_sum

_CHUNK: Final = 1 << 16  # keys at a time, so that temporaries stay in the L2 cache
LARGE: Final = 1 << 31  # rows of a group from which on 2·P·N may exceed int64


def sorted_pairs(words: Words, counts: NDArray[np.unsignedinteger] | None = None) -> Pairs:
    """The pairs of one group. words: [n], ascending, distinct if there are counts [n]."""
    if counts is not None:
        return _counted_pairs(words, counts)
    ranks = LabelRanks(words)
    p, ties = ranks.total, ranks.ties(words)
    below_or_tied = ranks.index_sum() - p * (p - 1) // 2
    return Pairs(below_or_tied - ties, ties, p, len(words) - p)


def joined_pairs(planes: Sequence[Pairs]) -> Pairs:
    """The pairs of all rows, from those of score ranges in ascending order."""
    wins = ties = p = n = 0
    for plane in planes:
        wins += plane.wins + plane.positives * n
        ties += plane.ties
        p += plane.positives
        n += plane.negatives
    return Pairs(wins, ties, p, n)


def _counted_pairs(words: Words, counts: NDArray[np.unsignedinteger]) -> Pairs:
    label_bit = words.dtype.type(1)
    wins = ties = p = n = 0
    for i in range(0, len(words), _CHUNK):
        chunk, weights = words[i : i + _CHUNK + 1], counts[i : i + _CHUNK + 1].astype(np.int64)
        size = min(_CHUNK, len(chunk))
        positive = (chunk[:size] & label_bit) != 0
        chunk_weights = weights[:size]
        below = np.cumsum(np.where(positive, 0, chunk_weights))
        more_n = int(below[-1])
        p_indices = np.flatnonzero(positive)
        more_p = exact_sum(chunk_weights[p_indices])
        wins += exact_dot(chunk_weights[p_indices], below[p_indices]) + n * more_p
        turns = np.flatnonzero((chunk[1:] ^ chunk[:-1]) == label_bit)
        ties += exact_dot(weights[turns], weights[turns + 1]) if len(turns) else 0
        p, n = p + more_p, n + more_n
    return Pairs(wins - ties, ties, p, n)


def _tie_sizes(
    words: Words, turns: NDArray[np.intp], high: NDArray[np.uint64] | None
) -> tuple[Ints, Ints]:
    """The negatives and positives of each tie; turns: the indices of their last negatives."""
    if high is not None:
        firsts = _run_starts(words, high)
        run = np.searchsorted(firsts, turns, "right")  # of the positives; run - 1: of the negatives
        return turns + 1 - firsts[run - 1], np.append(firsts, len(words))[run + 1] - firsts[run]
    negatives, positives = np.ones(len(turns), np.int64), np.ones(len(turns), np.int64)
    last = len(words) - 1
    larger_ties = np.flatnonzero((turns > 0) & (words[np.maximum(turns - 1, 0)] == words[turns]))
    negatives[larger_ties] += turns[larger_ties] - np.searchsorted(
        words, words[turns[larger_ties]], "left"
    )
    beyond = np.minimum(turns + 2, last)
    larger_ties = np.flatnonzero((turns + 1 < last) & (words[beyond] == words[turns + 1]))
    ends = np.searchsorted(words, words[turns[larger_ties] + 1], "right")
    positives[larger_ties] = ends - (turns[larger_ties] + 1)
    return negatives, positives


def _run_starts(words: Words, high: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The start of each run of equal keys."""
    starts = [np.zeros(min(1, len(words)), np.intp)]
    for i in range(0, len(words), _CHUNK):
        chunk, above = words[i : i + _CHUNK + 1], high[i : i + _CHUNK + 1]
        new = (chunk[1:] != chunk[:-1]) | (above[1:] != above[:-1])
        starts.append(np.flatnonzero(new) + (i + 1))
    return np.concatenate(starts)


@dataclass(frozen=True, slots=True, eq=False)
class GroupPairs:
    """The pairs of each group, in the order of the keys; all int64 [g].

    not_lost: pairs won or tied. ties: pairs tied. positives, negatives: rows of each label. large:
    the pairs of each group of `LARGE` rows or more, for which not_lost and ties are 0.
    """

    not_lost: Ints
    ties: Ints
    positives: Ints
    negatives: Ints
    large: dict[int, Pairs]

    def groups_between(self, start: int, end: int) -> GroupPairs:
        """The groups [start, end), in memory of their own."""
        span = slice(start, end)
        large = {g - start: pairs for g, pairs in self.large.items() if start <= g < end}
        return GroupPairs(
            self.not_lost[span].copy(),
            self.ties[span].copy(),
            self.positives[span].copy(),
            self.negatives[span].copy(),
            large,
        )


def group_pairs(
    low: Words,
    group_shift: int,
    high: NDArray[np.uint64] | None = None,
    counts: NDArray[np.unsignedinteger] | None = None,
) -> GroupPairs:
    """Count the pairs of each group. low, high, counts: [n], keys in ascending order.

    The group is `low >> group_shift`, or `high >> group_shift` if `high` is given.
    """
    n = len(low)
    starts, turns = _scan(low, group_shift, high)
    bounds = np.append(starts, n)
    # Running sums over all groups may wrap around; a difference of two is right if it fits.
    if counts is None:
        p, index_sums = map(np.diff, LabelRanks(low).index_sums(bounds))
        size = np.diff(bounds)
        not_lost = index_sums - p * starts - (p * (p - 1) >> 1)
        tied = np.empty(0, np.int64)
        if len(turns):
            negatives, positives = _tie_sizes(low, turns, high)
            tied = negatives * positives
    else:
        rows = counts.astype(np.int64)
        positive = (low & low.dtype.type(1)) != 0
        size = np.diff(_running(rows)[bounds])
        p = np.diff(_running(np.where(positive, rows, 0))[bounds])
        below = np.cumsum(np.where(positive, 0, rows))
        first = np.repeat(below[starts] - np.where(positive, 0, rows)[starts], np.diff(bounds))
        pairs = np.where(positive, rows, 0) * (below - first)
        not_lost = np.diff(_running(pairs)[bounds])
        tied = rows[turns] * rows[turns + 1]
    ties = np.zeros(len(starts), np.int64)
    np.add.at(ties, np.searchsorted(starts, turns, "right") - 1, tied)
    large = {}
    for g in np.flatnonzero(size >= LARGE).tolist():
        span = slice(int(bounds[g]), int(bounds[g + 1]))
        large[g] = _large(low[span], None if high is None else high[span], counts, span)
        not_lost[g] = ties[g] = 0
    return GroupPairs(not_lost, ties, p, size - p, large)


def _large(
    low: Words,
    high: NDArray[np.uint64] | None,
    counts: NDArray[np.unsignedinteger] | None,
    span: slice,
) -> Pairs:
    """The pairs of one group of any size."""
    group_counts = None if counts is None else counts[span]
    cuts = [0] if high is None else np.flatnonzero(np.diff(high, prepend=~high[:1]) != 0).tolist()
    planes = [
        sorted_pairs(low[a:b], None if group_counts is None else group_counts[a:b])
        for a, b in zip(cuts, [*cuts[1:], len(low)], strict=True)
    ]
    return joined_pairs(planes)


def _scan(
    low: Words, group_shift: int, high: NDArray[np.uint64] | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first index of each group, and that of the last negative of each tie with both labels."""
    label_bit = low.dtype.type(1)
    step = (np.uint64 if high is not None else low.dtype.type)(1 << group_shift)
    starts = [np.zeros(min(1, len(low)), np.intp)]
    turns = [np.empty(0, np.intp)]
    for i in range(0, len(low), _CHUNK):
        chunk = low[i : i + _CHUNK + 1]
        change = chunk[1:] ^ chunk[:-1]
        turn = change == label_bit
        if high is None:
            new = change >= step
        else:
            above = high[i : i + _CHUNK + 1]
            moved = above[1:] ^ above[:-1]
            new = moved >= step
            turn &= moved == 0
        starts.append(np.flatnonzero(new) + (i + 1))
        turns.append(np.flatnonzero(turn) + i)
    return np.concatenate(starts), np.concatenate(turns)


def _running(values: NDArray[np.signedinteger]) -> Ints:
    """0 and the running sums; int64 [n + 1]."""
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums
