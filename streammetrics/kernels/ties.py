"""Lists in which items of different grades share a score.

Where m items share the ranks a+1 to a+m, each item has each of these ranks in 1/m of all orders
(McSherry and Najork 2008, "Computing information retrieval performance measures efficiently in
the presence of tied scores", ECIR). So the mean gain over all orders is, at each of these ranks,
the gain of the group over m; and where no relevant item came before, the next rank has the first
one in r/l of all orders, with l items of the group left and r of them relevant.

All of it depends on a list's counts of (score, grade) alone: the gains of a group are summed as
integers, and terms are added from the first rank on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.discounts import MAX_GRADE, Floats, discount_totals, reciprocals

Indices = NDArray[np.intp]
Grades = NDArray[np.uint8]
Keys = NDArray[np.uint64]  # ascend as scores descend, equal where scores are


def settle(keys: Keys, grades: Grades, ties: str) -> Grades:
    """The grades [s, w] of sorted lists with the "worst" or the "best" first in each tie."""
    groups = np.zeros(keys.shape, np.int64)
    np.cumsum(keys[:, 1:] != keys[:, :-1], axis=1, out=groups[:, 1:])
    flip = np.uint8(MAX_GRADE if ties == "best" else 0)
    groups <<= 4
    groups |= grades ^ flip
    groups.sort(axis=1)
    return (groups & MAX_GRADE).astype(np.uint8) ^ flip


@dataclass(frozen=True, slots=True, eq=False)
class Tied:
    """The mean over all orders of `s` sorted lists, at their first `d` ranks.

    lists: intp [s], which lists these are. grades: uint8 [s, w], high scores first.
    begin, end: intp [s, d], where the tie group of each rank begins, and where it has ended.
    """

    lists: Indices
    grades: Grades
    begin: Indices
    end: Indices
    _found: dict[int, tuple[Floats, Floats]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, lists: Indices, keys: Keys, grades: Grades, depth: int) -> Tied:
        """From sorted rows [s, w]; keys are equal where scores are."""
        column = np.arange(depth)
        changes = np.ones((len(keys), keys.shape[1] + 1), np.bool_)  # there, and at both ends
        np.not_equal(keys[:, 1:], keys[:, :-1], out=changes[:, 1:-1])
        begin = np.maximum.accumulate(np.where(changes[:, :depth], column, 0), axis=1)
        end = np.empty((len(keys), depth + 1), np.intp)
        end[:, :depth] = np.where(changes[:, :depth], column, keys.shape[1])
        end[:, depth] = depth + changes[:, depth:].argmax(axis=1)
        end = np.minimum.accumulate(end[:, ::-1], axis=1)[:, ::-1]
        return cls(lists, grades, begin, end[:, 1:])

    def group_sums(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """weights[grade], summed over the tie group of each rank; int64 [s, d]."""
        sums = np.zeros((len(self.grades), self.grades.shape[1] + 1), np.int64)
        np.cumsum(weights[self.grades], axis=1, out=sums[:, 1:])
        total = np.take_along_axis(sums, self.end, axis=1)
        total -= np.take_along_axis(sums, self.begin, axis=1)
        return total

    def dcg(self, gains: NDArray[np.int64], cut: int | None) -> Floats:
        """The mean discounted gain of the first `cut` ranks; [s]."""
        depth = self.end.shape[1]
        begins = self.begin == np.arange(depth)
        gained = np.where(begins, self.group_sums(gains), 0).astype(np.float64)
        stop = np.maximum(np.minimum(self.end, depth if cut is None else cut), self.begin)
        upper, lower = (
            # sums of discounts are exact, so only the division is rounded
            _total(gained * (table[stop] - table[self.begin]) / (self.end - self.begin), None)
            for table in discount_totals(depth)
        )
        return upper + lower

    def reciprocal_rank(self, rel: int, cut: int | None) -> tuple[Floats, Floats]:
        """The mean of 1/rank of the first item of grade `rel` or more, and what it leaves out."""
        first, _ = self._first(rel)
        high, low = (table[: first.shape[1]] for table in reciprocals(first.shape[1]))
        return _total(first * high, cut), _total(first * low, cut)

    def hit(self, rel: int, cut: int | None) -> Floats:
        """In which share of all orders the first `cut` hold an item of grade `rel` or more."""
        _, none = self._first(rel)
        return 1.0 - _until(none, cut)

    def _first(self, rel: int) -> tuple[Floats, Floats]:
        """In which share of all orders the first relevant item has this rank, and a later one."""
        if rel in self._found:
            return self._found[rel]
        relevant = self.group_sums((np.arange(MAX_GRADE + 1) >= rel).astype(np.int64))
        left = self.end - np.arange(self.end.shape[1])
        # `relevant` counts the group from its begin: that holds while none came, and where fewer
        # items are left than that, one has come for certain and the product is zero already.
        later = np.multiply.accumulate(np.maximum(left - relevant, 0) / left, axis=1)
        before = np.ones_like(later)
        before[:, 1:] = later[:, :-1]
        self._found[rel] = before * (relevant / left), later
        return self._found[rel]


def _total(terms: Floats, cut: int | None) -> Floats:
    """The sum of the first `cut` terms of each row, added from the left."""
    return _until(np.add.accumulate(terms, axis=1), cut)


def _until(running: Floats, cut: int | None) -> Floats:
    depth = running.shape[1]
    return running[:, (depth if cut is None else min(cut, depth)) - 1]
