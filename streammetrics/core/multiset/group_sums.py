"""Sums of integers by group, which grow by a few groups at a time at the cost of these groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
_SHARE: Final = 4  # groups for each that may have changed until all are written anew


class GroupTotals(Protocol):
    """Numbers over all groups, such as a mean, that follow the sums of the groups which change."""

    def changed(self, old: Ints, new: Ints) -> Self:
        """With sums [k, groups] in place of old ones, which are 0 for a new group."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """Sums of the groups that have keys. groups: their numbers, ascending [g]; sums: [k, g]."""

    groups: NDArray[np.intp]
    sums: Ints

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.groups.nbytes + self.sums.nbytes

    def put(self, groups: NDArray[np.intp], sums: Ints) -> GroupSums:
        """With these sums in place of those of these groups, which ascend."""
        is_kept = np.ones(len(self.groups), np.bool_)
        is_kept[self._places(groups)[0]] = False
        numbers = np.concatenate([self.groups[is_kept], groups])
        order = np.argsort(numbers, kind="stable")  # which merges two sorted parts
        return GroupSums(
            numbers[order], np.concatenate([self.sums[:, is_kept], sums], axis=1)[:, order]
        )

    def read(self, groups: NDArray[np.intp], out: Ints) -> None:
        """Write the sums of those of these groups that are here; out: [k, groups]."""
        places, positions = self._places(groups)
        out[:, positions] = self.sums[:, places]

    def _places(self, groups: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where those of these groups that are here stand here, and among the given ones."""
        places = np.searchsorted(self.groups, groups)
        near = np.minimum(places, max(len(self.groups) - 1, 0))
        is_here = self.groups[near] == groups if len(self.groups) else np.zeros(len(groups), bool)
        return places[is_here], np.flatnonzero(is_here)


@dataclass(frozen=True, slots=True, eq=False)
class KeptSums:
    """The sums of all groups as written last, those of groups that changed since, and totals."""

    written: GroupSums
    recent: GroupSums
    totals: GroupTotals | None

    @staticmethod
    def first(sums: GroupSums, totals: GroupTotals | None) -> KeptSums:
        """All groups, with the totals of none."""
        none = GroupSums(sums.groups[:0], sums.sums[:, :0])
        new = None if totals is None else totals.changed(np.zeros_like(sums.sums), sums.sums)
        return KeptSums(sums, none, new)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        totals = 0 if self.totals is None else self.totals.nbytes
        return self.written.nbytes + self.recent.nbytes + totals

    def plus(self, added: GroupSums) -> KeptSums:
        """With these sums added to those of their groups."""
        old = np.zeros_like(added.sums)
        self.written.read(added.groups, old)
        self.recent.read(added.groups, old)
        new = old + added.sums
        totals = None if self.totals is None else self.totals.changed(old, new)
        recent = self.recent.put(added.groups, new)
        kept_sums = KeptSums(self.written, recent, totals)
        if _SHARE * len(recent.groups) <= len(self.written.groups):
            return kept_sums
        none = GroupSums(recent.groups[:0], recent.sums[:, :0])
        return KeptSums(kept_sums.all_groups(), none, totals)

    def all_groups(self) -> GroupSums:
        """The sums of all groups."""
        if not len(self.recent.groups):
            return self.written
        return self.written.put(self.recent.groups, self.recent.sums)
