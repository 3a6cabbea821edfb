"""The parts of UserGroups: the states of groups of users, and the scores in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self, cast

import numpy as np

from streammetrics.combine.coarse_form import GroupScores, Path
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.declared import Declared
from streammetrics.core.parts.collapsed_counts import CollapsedColumn
from streammetrics.core.parts.many_slots import AnySlots, cell_slots
from streammetrics.core.parts.part import Column, Part, SeveralColumn, Slots, inner_slots


class _HasGroups(Protocol):
    """What these parts ask of their owner."""

    buckets: int

    @property
    def group_metric(self) -> Accumulator | None: ...
    @property
    def _forms(self) -> Mapping[Path, GroupScores]: ...


def _groups(owner: Declared) -> _HasGroups:
    return cast("_HasGroups", owner)


class GroupsColumn(Column):
    """`k` states for each slot, in one `child`: group g of slot s is in its slot s k + g. No child:
    groups keep no state of this kind."""

    def __init__(self, child: Accumulator | None, k: int, width: int) -> None:
        self.child, self.k, self.width = child, k, width

    @property
    def total_count(self) -> int:
        return 0 if self.child is None else self.child._exact_total_count() * self.k

    @property
    def nbytes(self) -> int:
        return 0 if self.child is None else self.child.nbytes

    def feed(self, rows: Batch, groups: Slots, slots: AnySlots | None) -> None:
        """Add rows to the states of their groups [n]; slots: of each row, or None for slot 0."""
        if self.child is not None:
            self.child._feed(rows, cell_slots(slots, self.k, groups))

    def states_of_slot(self, slot: int) -> Accumulator:
        """The k states of one slot, in separate memory."""
        return self.states_of_slots(np.array([slot], np.intp))

    def states_of_slots(self, slots: Slots) -> Accumulator:
        """The k states of each of these slots, in separate memory."""
        assert self.child is not None
        return self.child._take(self._positions(slots))

    def widen(self, width: int) -> None:
        self.width = width
        if self.child is not None:
            self.child._widen(width * self.k)

    def merge(self, other: Self, to: Slots) -> None:
        if self.child is not None and other.child is not None:
            self.child._merge_slots(other.child, self._positions(to))

    def take(self, slots: Slots) -> Self:
        child = None if self.child is None else self.states_of_slots(slots)
        return type(self)(child, self.k, len(slots))

    def encode(self, out: Writer) -> None:
        if self.child is not None:
            self.child._encode(out)

    def _positions(self, slots: Slots) -> Slots:
        return inner_slots(slots, self.k)


class GroupStates(Part[GroupsColumn]):
    """States of the owner's `group_metric` in each of its buckets."""

    def empty(self, owner: Declared, width: int) -> GroupsColumn:
        metric, k = _groups(owner).group_metric, _groups(owner).buckets
        return GroupsColumn(None if metric is None else metric._empty(width * k), k, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> GroupsColumn:
        metric, k = _groups(owner).group_metric, _groups(owner).buckets
        return GroupsColumn(None if metric is None else metric._decode(width * k, data), k, width)


class ScoresColumn(Column):
    """For each metric that keeps scores their counts in all groups of each slot."""

    def __init__(self, by_path: dict[Path, SeveralColumn[CollapsedColumn]], width: int) -> None:
        self.by_path, self.width = by_path, width

    @property
    def total_count(self) -> int:
        return max((column.total_count for column in self.by_path.values()), default=0)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.by_path.values())

    def widen(self, width: int) -> None:
        self.width = width
        for column in self.by_path.values():
            column.widen(width)

    def merge(self, other: Self, to: Slots) -> None:
        for path, column in self.by_path.items():
            column.merge(other.by_path[path], to)

    def take(self, slots: Slots) -> Self:
        columns = {path: column.take(slots) for path, column in self.by_path.items()}
        return type(self)(columns, len(slots))

    def encode(self, out: Writer) -> None:
        for path in sorted(self.by_path):
            self.by_path[path].encode(out)


class ScoresInGroups(Part[ScoresColumn]):
    """The scores in the owner's buckets, of its metrics that keep them."""

    def empty(self, owner: Declared, width: int) -> ScoresColumn:
        forms, k = _groups(owner)._forms, _groups(owner).buckets
        return ScoresColumn({path: form.column(k, width) for path, form in forms.items()}, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> ScoresColumn:
        column = self.empty(owner, width)
        for path in sorted(column.by_path):
            column.by_path[path].inner.read(data)
        return column
