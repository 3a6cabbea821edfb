"""Lists in which items of different grades share a score.

Where m items share the ranks b+1 to b+m, each item has each of these ranks in 1/m of all orders
(McSherry and Najork 2008, "Computing information retrieval performance measures efficiently in
the presence of tied scores", ECIR). So a list whose order is open is a sequence of tie groups; an
untied item is a group of size 1. A measure needs only the start of a group, its size and its counts
of grades, so a value depends on the list's counts of (score, grade) alone. Groups without a
relevant item are omitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.ranking.positions import counts_below, nonzero
from streammetrics.kernels.ranking.rank_tables import MAX_GRADE

Indices = NDArray[np.intp]
Grades = NDArray[np.uint8]
Keys = NDArray[np.uint64]  # ascend as scores descend, equal where scores are

# Codes that sort items within a tie: 30 - grade, so that the best come first; and special ones.
CODE_BITS: Final = 5
IRRELEVANT: Final = 30
UNJUDGED: Final = 31  # an item that is not judged
PADDING: Final = 31  # no item: its key differs from all others


def settle_worst(keys: Keys, codes: Grades) -> Grades:
    """The codes [s, w] of sorted lists with the worst grades first in each tie."""
    groups = np.zeros(keys.shape, np.int64)
    np.cumsum(keys[:, 1:] != keys[:, :-1], axis=1, out=groups[:, 1:])
    groups <<= CODE_BITS
    groups |= PADDING - codes
    groups.sort(axis=1)
    return PADDING - (groups & PADDING).astype(np.uint8)


def run_starts(owners: Indices) -> Indices:
    """The index at which each run of equal owners begins; [runs]."""
    new = np.ones(len(owners), np.bool_)
    np.not_equal(owners[1:], owners[:-1], out=new[1:])
    return np.flatnonzero(new)


def first_of_run(owners: Indices) -> Indices:
    """For each entry, the index at which its run of equal owners begins; [h]."""
    firsts = run_starts(owners)
    return np.repeat(firsts, np.diff(firsts, append=len(owners)))


@dataclass(frozen=True, slots=True, eq=False)
class TieGroups:
    """`g` tie groups with a relevant item, list by list, high scores first.

    lists: intp [g], the list of each. begins: [g], the number of ranks above it. sizes: [g], its
    number of items. unjudged, unjudged_above: [g], the unjudged items in it and above it. codes:
    uint8 [relevant items], the best of each group first. ends: [g + 1], the start of each group's
    codes, and the end of the last.
    """

    lists: Indices
    begins: Indices
    sizes: Indices
    unjudged: Indices
    unjudged_above: Indices
    ends: Indices
    codes: Grades

    @classmethod
    def none(cls) -> TieGroups:
        """No groups."""
        no = np.empty(0, np.intp)
        return cls(no, no, no, no, no, np.zeros(1, np.intp), np.empty(0, np.uint8))

    @classmethod
    def from_rows(cls, lists: Indices, keys: Keys, codes: Grades, depth: int) -> TieGroups:
        """The groups of sorted rows [s, w] of these lists; keys are equal where scores are. Groups
        that begin at `depth` or below are omitted."""
        rows, width = keys.shape
        new = np.ones(keys.shape, np.bool_)
        np.not_equal(keys[:, 1:], keys[:, :-1], out=new[:, 1:])
        flat = codes.reshape(-1)
        starts, _ = nonzero(new.reshape(-1))
        # The best grade of a group comes first.
        relevant_groups = np.flatnonzero(flat[starts] < IRRELEVANT)
        starts, ends = starts[relevant_groups], np.append(starts, rows * width)[relevant_groups + 1]
        row = starts // width
        tops = row * width
        if depth < width:
            shown_groups = np.flatnonzero(starts - tops < depth)
            starts, ends, row, tops = (
                starts[shown_groups],
                ends[shown_groups],
                row[shown_groups],
                tops[shown_groups],
            )
        n = len(row)
        edges = np.concatenate([tops, starts, ends])
        above, before, after = counts_below(flat == UNJUDGED, edges).reshape(3, n)
        relevant = np.diff(counts_below(flat < IRRELEVANT, edges[n:]).reshape(2, n), axis=0)[0]
        inside, items = _runs(starts, relevant)
        return cls(
            lists[row],
            starts - tops,
            ends - starts,
            after - before,
            before - above,
            inside,
            flat[items],
        )

    @staticmethod
    def join(several: Sequence[TieGroups]) -> TieGroups:
        """The groups of several, concatenated."""
        if not several:
            return TieGroups.none()
        items = np.cumsum([0, *(len(ties.codes) for ties in several[:-1])])
        return TieGroups(
            np.concatenate([t.lists for t in several]),
            np.concatenate([t.begins for t in several]),
            np.concatenate([t.sizes for t in several]),
            np.concatenate([t.unjudged for t in several]),
            np.concatenate([t.unjudged_above for t in several]),
            np.concatenate([[0], *(t.ends[1:] + n for t, n in zip(several, items, strict=True))]),
            np.concatenate([t.codes for t in several]),
        )

    def __len__(self) -> int:
        return len(self.lists)

    def sums(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """weights[grade], summed over the items of each group; [g]. weights: [16], the first 0."""
        if not len(self):
            return np.zeros(0, np.int64)
        return np.add.reduceat(weights[IRRELEVANT - self.codes], self.ends[:-1])

    def judged(self) -> NDArray[np.int64]:
        """The number of judged items in each group; [g]."""
        return self.sizes - self.unjudged

    def relevant(self, rel: int) -> NDArray[np.int64]:
        """The number of items of grade `rel` or more in each group; [g]."""
        if rel <= 1:
            return np.diff(self.ends)
        return self.sums((np.arange(MAX_GRADE + 1) >= rel).astype(np.int64))

    def moved(self, first: int) -> TieGroups:
        """The same groups, with lists numbered from `first` on."""
        return replace(self, lists=self.lists + first)

    def take(self, indices: Indices) -> TieGroups:
        """The groups at these indices."""
        ends, items = _runs(self.ends[indices], np.diff(self.ends)[indices])
        return TieGroups(
            self.lists[indices],
            self.begins[indices],
            self.sizes[indices],
            self.unjudged[indices],
            self.unjudged_above[indices],
            ends,
            self.codes[items],
        )

    def sums_above(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of values [g] over the groups above each in its list; [g]."""
        before = np.cumsum(values) - values
        return before - before[first_of_run(self.lists)]


def _runs(starts: Indices, sizes: Indices) -> tuple[Indices, Indices]:
    """Runs [g] concatenated: the start of each and the end of the last [g + 1]; and the source
    index of each of their items."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return ends, np.arange(int(ends[-1])) + np.repeat(starts - ends[:-1], sizes)
