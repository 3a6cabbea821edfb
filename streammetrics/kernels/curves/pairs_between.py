"""Pairs of one row in a large sorted run and one in a small one, without reading the large run.

Keys are those of `segments`. With L(b) keys of the large run below the key b, and P(i) positives
among its first i keys, a positive b of a group that begins at s does not lose to
(L - P(L)) - (s - P(s)) negatives, and a negative b of a group that ends at e does not beat
P(e) - P(L) positives. So each new key costs one search, whose cost hardly depends on the size of
the large run.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.multiset.group_sums import GroupSums
from streammetrics.core.multiset.sorted_run import Run
from streammetrics.kernels.curves.area_sums import AreaSoFar
from streammetrics.kernels.curves.counted_ranks import CountedRanks
from streammetrics.kernels.curves.label_ranks import LabelRanks, Words
from streammetrics.kernels.curves.segments import group_pairs, sorted_pairs

_PIECE: Final = 1 << 16  # keys of the small run at a time


class RankedRun:
    """A large sorted run, and the ranks of its labels.

    words: [n]. group_shift: as in LabelPairs.
    """

    def __init__(self, run: Run, group_shift: int | None) -> None:
        self.words, self.group_shift = run.low, group_shift
        self.labels: LabelRanks | CountedRanks = (
            LabelRanks(run.low) if run.counts is None else CountedRanks(run.low, run.counts)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without the keys."""
        return self.labels.nbytes

    def add_between(self, newer: Run, sums: GroupSums) -> None:
        """Add those of the pairs of a row of this run and one of another, which count no row."""
        for i in range(0, len(newer), _PIECE):
            _add_pairs(self, newer.slice(i, i + _PIECE), sums)


class LabelPairs(NamedTuple):
    """The sums that `core.multiset.tiers` keeps for areas: of each group the pairs won or tied, the
    pairs tied, positives and negatives; int64 [4, groups].

    The group of a key is `key >> group_shift`, or 0 if that is None. totals: of no groups.
    """

    group_shift: int | None = None
    totals: AreaSoFar | None = None

    @property
    def takes_counts(self) -> bool:
        """Whether keys may have counts: those of groups may not."""
        return self.group_shift is None

    def alone(self, run: Run) -> GroupSums:
        """The sums of a run, in which no group has `LARGE` rows."""
        return _alone(run, self.group_shift)

    def ranked(self, run: Run) -> RankedRun:
        """A run prepared for searches."""
        return RankedRun(run, self.group_shift)


def _alone(run: Run, group_shift: int | None) -> GroupSums:
    words = run.low
    if group_shift is None:
        pairs = sorted_pairs(words, run.counts)
        sums = pairs.wins + pairs.ties, pairs.ties, pairs.positives, pairs.negatives
        return GroupSums(np.zeros(1, np.intp), np.array(sums, np.int64)[:, None])
    by_group = group_pairs(words, group_shift)
    rows = by_group.positives + by_group.negatives
    groups = _groups(words[np.cumsum(rows) - rows], group_shift)
    columns = by_group.not_lost, by_group.ties, by_group.positives, by_group.negatives
    return GroupSums(groups, np.stack(columns))


def _add_pairs(older: RankedRun, newer_run: Run, out: GroupSums) -> None:
    newer, counts = newer_run.low, newer_run.counts
    words, group_shift, label_bit = older.words, older.group_shift, newer.dtype.type(1)
    first, last = newer[0] & ~label_bit, newer[-1] | label_bit
    if group_shift is None:
        starts = np.zeros(1, np.intp)
        begins, ends = np.zeros(1, np.intp), np.full(1, len(words))
    else:
        shift = newer.dtype.type(group_shift)
        step = newer.dtype.type(1 << group_shift)
        new = (newer[1:] ^ newer[:-1]) >= step
        starts = np.concatenate([[0], np.flatnonzero(new) + 1])
        least = newer[starts] >> shift << shift
        begins, ends = (
            words.searchsorted(least),
            words.searchsorted(least | (step - label_bit), "right"),
        )
        first, last = least[0], least[-1] | (step - label_bit)
    # Only this range of the large run is searched.
    low, high = int(words.searchsorted(first)), int(words.searchsorted(last, "right"))
    near = words[low:high]
    below = near.searchsorted(newer)
    positive = (newer & label_bit) != 0
    ties = np.zeros(len(newer), np.int64)
    if high > low:
        # The key before a positive, or from a negative on, has its value: there may be ties.
        before = near.take(np.maximum(below - 1, 0))
        after = near.take(np.minimum(below, len(near) - 1))
        tied = np.where(positive, (before ^ newer) == label_bit, (after ^ newer) <= label_bit)
        tied_keys = np.flatnonzero(tied)
        if len(tied_keys):
            twins = newer[tied_keys] ^ label_bit  # the key of the same value with the other label
            firsts, lasts = near.searchsorted(twins), near.searchsorted(twins, "right")
            ties[tied_keys] = older.labels.repeats(low + firsts, low + lasts)
    negatives_below, positives_below = older.labels.rows(below + low)
    not_lost = np.where(positive, negatives_below, -positives_below)
    if counts is None:
        p = np.add.reduceat(positive, starts, dtype=np.int64)
        n = np.diff(starts, append=len(newer)) - p
    else:
        rows = counts.astype(np.int64)
        not_lost *= rows
        ties *= rows
        p = np.add.reduceat(rows * positive, starts)
        n = np.add.reduceat(rows, starts) - p
    n_begin, p_end = older.labels.rows(begins)[0], older.labels.rows(ends)[1]
    slots = np.searchsorted(out.groups, _groups(newer[starts], group_shift))
    # Sums may wrap around; their total is right, since it fits.
    out.sums[0, slots] += np.add.reduceat(not_lost, starts) + n * p_end - p * n_begin
    out.sums[1, slots] += np.add.reduceat(ties, starts)


def _groups(words: Words, group_shift: int | None) -> NDArray[np.intp]:
    if group_shift is None:
        return np.zeros(len(words), np.intp)
    return (words >> words.dtype.type(group_shift)).astype(np.intp)
