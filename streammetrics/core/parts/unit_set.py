"""Sets of units: all ids, or those whose hash is under a threshold; merged by union."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, Self, cast

import numpy as np

from streammetrics.core.codec import Reader, Writer, damaged
from streammetrics.core.conversion import as_float
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.many_slots import SLOTS_OF_WORD, AnySlots, ManySlots
from streammetrics.core.parts.part import Column, Part, Slots
from streammetrics.core.parts.shared_units import FEW, SharedUnits
from streammetrics.core.rows import ranges, sorted_distinct

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

_LONG: Final = 32  # hashes of a set, on average, from which sets are sorted one by one


class UnitsColumn(Column):
    """For each slot the set of hashes that lie under the threshold.

    `slots` and `hashes` are settled: ascending by slot and then by hash, each once. `pending` is
    not, and so are those of `shared`, of rows that count in many slots. Past `max_units` a slot is
    `over` and holds none: the number of different hashes alone decides that, so the order of rows
    and merges does not matter.
    """

    def __init__(self, last: int, max_units: int | None, width: int) -> None:
        self.last, self.max_units, self.width = np.uint64(last), max_units, width
        self.slots = np.empty(0, np.intp)
        self.hashes = np.empty(0, np.uint64)
        self.over = np.zeros(width, np.bool_)
        self.pending: list[tuple[Slots, Words]] = []
        self.n_pending = 0
        self.shared = SharedUnits()

    @property
    def total_count(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        waiting = sum(slots.nbytes + hashes.nbytes for slots, hashes in self.pending)
        waiting += self.shared.nbytes
        return self.slots.nbytes + self.hashes.nbytes + self.over.nbytes + waiting

    def add(self, hashes: Words, slots: AnySlots | None = None) -> None:
        """Add hashes [n] to the sets of their slots, or all to that of slot 0."""
        if self.last < np.iinfo(np.uint64).max:
            rows = np.flatnonzero(hashes <= self.last)
            hashes, slots = hashes[rows], None if slots is None else slots[rows]
        if slots is None:
            unique_hashes = sorted_distinct(hashes)
            self._append(np.zeros(len(unique_hashes), np.intp), unique_hashes)
        elif not isinstance(slots, ManySlots):
            self._append(*_distinct_pairs(slots, hashes))
        elif slots.cells is None and self.width <= SLOTS_OF_WORD * len(slots.groupings):
            self.shared.add(hashes, slots.members(self.width))
            if self.max_units is not None and self.shared.n > max(FEW, self.max_units):
                self.settle()
        else:
            for members, member_slots in slots.each():
                member_hashes = hashes if members is None else hashes[members]
                self._append(*_distinct_pairs(member_slots, member_hashes))

    def units_of_slot(self, slot: int = 0) -> Words | None:
        """One set, ascending; None if it is past `max_units`."""
        self.settle()
        if self.over[slot]:
            return None
        a, b = np.searchsorted(self.slots, [slot, slot + 1])
        return self.hashes[a:b].copy()

    def settle(self) -> None:
        """Add the pending hashes to the rest, and clear the slots that are past `max_units`."""
        if self.shared.n:
            pairs, self.shared = self.shared.pairs(), SharedUnits()
            if len(self.hashes):
                self.pending.append(pairs)
            else:
                self.slots, self.hashes = pairs
        if self.pending:
            slots = np.concatenate([self.slots, *(new_slots for new_slots, _ in self.pending)])
            hashes = np.concatenate([self.hashes, *(new_hashes for _, new_hashes in self.pending)])
            self.pending, self.n_pending = [], 0
            self.slots, self.hashes = _distinct_pairs(slots, hashes, runs=True)
        if self.max_units is not None:
            self.over |= np.bincount(self.slots, minlength=self.width) > self.max_units
            if self.over.any():
                is_kept = ~self.over[self.slots]
                self.slots, self.hashes = self.slots[is_kept], self.hashes[is_kept]

    def widen(self, width: int) -> None:
        self.over = np.concatenate([self.over, np.zeros(width - self.width, np.bool_)])
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        other.settle()
        self.over[to[other.over]] = True
        self._append(to[other.slots], other.hashes)

    def take(self, slots: Slots) -> Self:
        self.settle()
        new = type(self)(int(self.last), self.max_units, len(slots))
        new.over = self.over[slots]
        first = np.searchsorted(self.slots, slots)
        positions, sizes = ranges(first, np.searchsorted(self.slots, slots, side="right"))
        new.slots = np.repeat(np.arange(len(slots)), sizes)
        new.hashes = self.hashes[positions]
        return new

    def encode(self, out: Writer) -> None:
        self.settle()
        out.bits(self.over)
        out.ints(np.bincount(self.slots, minlength=self.width))
        out.words(self.hashes)

    def read(self, data: Reader) -> None:
        """Fill an empty column from the bytes that `encode` wrote."""
        over, sizes = data.bits(self.width), data.ints(self.width)
        n = sum(sizes.tolist())
        if 8 * n > data.left:
            raise damaged(f"{n} hashes in {data.left} bytes")
        hashes = data.words(n)
        slots = np.repeat(np.arange(self.width), sizes)
        ascending = (hashes[1:] > hashes[:-1]) | (slots[1:] > slots[:-1])
        if n and not (bool(ascending.all()) and hashes.max() <= self.last):
            raise damaged("hashes out of order or above the threshold")
        if over.any() and self.max_units is None:
            raise damaged("an exceeded limit in a set without a limit")
        if bool(sizes[over].any()) or (self.max_units or n) < sizes.max(initial=0):
            raise damaged("hashes of a set that exceeded its limit")
        self.over, self.slots, self.hashes = over, slots, hashes

    def _append(self, slots: Slots, hashes: Words) -> None:
        self.pending.append((slots, hashes))
        self.n_pending += len(slots)
        if self.n_pending > max(FEW, len(self.hashes)):
            self.settle()


class UnitSet(Part[UnitsColumn]):
    """A set of the hashes of ids.

    The setting `share` is the share of all ids that are kept, by the hash alone; `max_units` is the
    most that a set may hold, unless it is None.
    """

    def empty(self, owner: Declared, width: int) -> UnitsColumn:
        settings = owner.settings()
        share = cast("float", settings["share"])
        limit = cast("int | None", settings["max_units"])
        return UnitsColumn(int(Fraction(share) * (1 << 64)) - 1, limit, width)

    def idempotent(self, owner: Declared) -> bool:
        return True

    def decode(self, owner: Declared, width: int, data: Reader) -> UnitsColumn:
        column = self.empty(owner, width)
        column.read(data)
        return column


def check_unit_settings(owner: Declared) -> None:
    """SettingsError unless the settings `share` and `max_units` of a metric fit a UnitSet."""
    kind, settings = type(owner).__name__, owner.settings()
    share, limit = as_float(settings["share"]), settings["max_units"]
    if share is None or not 2.0**-64 <= share <= 1:
        raise SettingsError(
            expected="a number above 0, and at most 1",
            got=shown(settings["share"]),
            where=f"{kind}.share",
            hint="pass 1 for all",
        )
    owner._set("share", share)
    if limit is not None and (type(limit) is not int or not 1 <= limit < 1 << 63):
        raise SettingsError(
            expected="a number from 1, or None for no limit",
            got=shown(limit),
            where=f"{kind}.max_units",
            hint="pass the maximum number of units in a state",
        )


def _distinct_pairs(slots: Slots, hashes: Words, *, runs: bool = False) -> tuple[Slots, Words]:
    """Each pair once, ascending. runs: whether the hashes of a slot are ascending runs."""
    if not len(slots) or (slots[0] == slots).all():
        unique_hashes = sorted_distinct(hashes, runs=runs)
        return slots[: len(unique_hashes)].copy(), unique_hashes  # a view would keep all of them
    order = np.argsort(slots, kind="stable")
    slots, hashes = slots[order], hashes[order]
    starts = _first(slots[1:] != slots[:-1])
    if len(slots) > _LONG * len(starts):  # sorting each set takes a fraction of the time of pairs
        sets = [
            sorted_distinct(slot_hashes, runs=runs) for slot_hashes in np.split(hashes, starts[1:])
        ]
        return np.repeat(slots[starts], [*map(len, sets)]), np.concatenate(sets)
    order = np.lexsort((hashes, slots))
    slots, hashes = slots[order], hashes[order]
    firsts = _first((slots[1:] != slots[:-1]) | (hashes[1:] != hashes[:-1]))
    return slots[firsts], hashes[firsts]


def _first(changed: np.typing.NDArray[np.bool_]) -> np.typing.NDArray[np.intp]:
    return np.flatnonzero(np.concatenate([[True], changed]))
