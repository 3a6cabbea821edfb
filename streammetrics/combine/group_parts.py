"""The parts of UserGroups: the states of groups of users, and the scores in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, Self, cast

import numpy as np

from streammetrics.combine.coarse_form import GroupScores, Path
from streammetrics.combine.panel import Panel
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import Lacking, Reader, Writer
from streammetrics.core.declared import Declared
from streammetrics.core.parts.collapsed_counts import CollapsedColumn
from streammetrics.core.parts.many_slots import AnySlots, cell_slots
from streammetrics.core.parts.part import Column, Part, SeveralColumn, Slots, inner_slots

_FEW: Final = 1 << 10  # empty states that may take memory


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
    groups keep no state of this kind.

    The child may have fewer slots: states past its last are empty, and take no memory. The bytes of
    empty states are as few for many groups as for one.
    """

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
            self.whole_child()._feed(rows, cell_slots(slots, self.k, groups))

    def whole_child(self) -> Accumulator:
        """The child, with a slot for each group."""
        assert self.child is not None
        if self.child._width < self.width * self.k:
            self.child._widen(self.width * self.k)
        return self.child

    def states_of_slot(self, slot: int) -> Accumulator:
        """The k states of one slot, in separate memory."""
        return self.states_of_slots(np.array([slot], np.intp))

    def states_of_slots(self, slots: Slots) -> Accumulator:
        """The k states of each of these slots, in separate memory."""
        assert self.child is not None
        if not self.child._width:
            return self.child._empty(len(slots) * self.k)
        return self.whole_child()._take(self._positions(slots))

    def widen(self, width: int) -> None:
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        if self.child is not None and other.child is not None and other.child._width:
            positions = self._positions(to)[: other.child._width]
            self.whole_child()._merge_slots(other.child, positions)

    def take(self, slots: Slots) -> Self:
        child = self.child
        if child is not None:
            child = self.states_of_slots(slots) if child._width else child._empty(0)
        return type(self)(child, self.k, len(slots))

    def encode(self, out: Writer) -> None:
        if self.child is None:
            return
        empty_bytes = None
        if not self.child._width and self.width * self.k > _FEW and out.left_out is None:
            empty_bytes = _empty_bytes(self.child, out.lacking)
        if empty_bytes is None:
            self.whole_child()._encode(out)
        else:
            out.raw(empty_bytes)

    def projected(self, name: str, slots: Slots) -> GroupsColumn:
        """The states of one metric of a Panel in these slots, in separate memory."""
        if not (isinstance(self.child, Panel) and name in self.child.metrics):
            return GroupsColumn(None, self.k, len(slots))
        panel = cast("Panel", self.whole_child()) if self.child._width else self.child
        return GroupsColumn(panel.states.by_name[name], self.k, self.width).take(slots)

    def _positions(self, slots: Slots) -> Slots:
        return inner_slots(slots, self.k)


class GroupStates(Part[GroupsColumn]):
    """States of the owner's `group_metric` in each of its buckets."""

    def empty(self, owner: Declared, width: int) -> GroupsColumn:
        metric, k = _groups(owner).group_metric, _groups(owner).buckets
        return GroupsColumn(None if metric is None else metric._empty(0), k, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> GroupsColumn:
        metric, k = _groups(owner).group_metric, _groups(owner).buckets
        if metric is not None and width * k > _FEW and data.left and not data.data[data.at]:
            empty_bytes = _empty_bytes(metric, data.lacking) or b""
            end = data.at + len(empty_bytes)
            if empty_bytes and end <= data.end and data.data[data.at : end] == empty_bytes:
                data.raw(len(empty_bytes))
                return self.empty(owner, width)
        return GroupsColumn(None if metric is None else metric._decode(width * k, data), k, width)


def _empty_bytes(metric: Accumulator, lacking: Lacking) -> bytes | None:
    """The bytes of any number of empty states, where all numbers of them have the same."""
    bytes_of = []
    for width in (9, 17):
        out = Writer()
        out.lacking = lacking
        metric._empty(width)._encode(out)
        bytes_of.append(out.bytes_())
    return bytes_of[0] if bytes_of[0] == bytes_of[1] else None


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
