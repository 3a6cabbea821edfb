"""Parts of UserGroups: the states of a metric in k groups of each slot, and that of all rows."""

from __future__ import annotations

from typing import Self

import numpy as np

from streammetrics.combine.children import ProductColumn
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.declared import Declared
from streammetrics.core.parts import Column, Part, Slots


class GroupsColumn(Column):
    """`k` states for each slot, in one `child`: group g of slot s lies in its slot s k + g."""

    def __init__(self, child: Accumulator, k: int, width: int) -> None:
        self.child, self.k, self.width = child, k, width

    @property
    def mass(self) -> int:
        return self.child._exact_mass() * self.k

    @property
    def nbytes(self) -> int:
        return self.child.nbytes

    def locate(self, groups: Slots, slots: Slots | None) -> Slots:
        """The child's slot of each row. groups: [n]; slots: [n], or None for slot 0."""
        return groups if slots is None else slots * self.k + groups

    def of_slot(self, slot: int) -> Accumulator:
        """The k states of one slot, in memory of their own."""
        return self.child._take(self._places(np.array([slot], np.intp)))

    def widen(self, width: int) -> None:
        self.width = width
        self.child._widen(width * self.k)

    def merge(self, other: Self, to: Slots) -> None:
        self.child._merge_slots(other.child, self._places(to))

    def take(self, slots: Slots) -> Self:
        return type(self)(self.child._take(self._places(slots)), self.k, len(slots))

    def encode(self, out: Writer) -> None:
        self.child._encode(out)

    def _places(self, slots: Slots) -> Slots:
        places: Slots = (slots[:, None] * self.k + np.arange(self.k)).ravel()
        return places


class GroupStates(Part[GroupsColumn]):
    """States of the owner's `group_metric` in `k` groups."""

    def empty(self, owner: Declared, width: int) -> GroupsColumn:
        k = _groups(owner)
        return GroupsColumn(_metric(owner, "group_metric")._empty(width * k), k, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> GroupsColumn:
        k = _groups(owner)
        return GroupsColumn(_metric(owner, "group_metric")._decode(width * k, data), k, width)


class WholeState(Part[ProductColumn]):
    """The state of the owner's `metric`, unless the groups add up to it: then there is none."""

    def empty(self, owner: Declared, width: int) -> ProductColumn:
        kept = {"metric": _metric(owner, "metric")._empty(width)} if _is_coarse(owner) else {}
        return ProductColumn(kept, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> ProductColumn:
        if not _is_coarse(owner):
            return self.empty(owner, width)
        return ProductColumn({"metric": _metric(owner, "metric")._decode(width, data)}, width)


def _is_coarse(owner: Declared) -> bool:
    return _metric(owner, "group_metric")._head() != _metric(owner, "metric")._head()


def _metric(owner: Declared, name: str) -> Accumulator:
    metric = getattr(owner, name)
    assert isinstance(metric, Accumulator)
    return metric


def _groups(owner: Declared) -> int:
    k = owner.settings()["k"]
    assert isinstance(k, int)
    return k
