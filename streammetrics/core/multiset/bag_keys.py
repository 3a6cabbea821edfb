"""The keys of a bag: stores of one layout, and moves of keys between slots and layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.ids.group_ids import Indices
from streammetrics.core.multiset.bag_layout import U64, Fields, Layout
from streammetrics.core.multiset.bag_table import Table, group_starts
from streammetrics.core.multiset.sorted_run import Run, Words, narrowed
from streammetrics.core.multiset.tiers import Tiers
from streammetrics.core.parts.score_bits import Codes, Values, widened
from streammetrics.core.rows import ranges, sorted_distinct

# The rows of a settled bag, group by group.


class Groups:
    """The groups of all slots, in the order of their keys.

    slots: int64 [g]. indices: uint32 [g], the index of each group's id. sizes: int64 [g], its rows.
    """

    __slots__ = ("_bounds", "_layout", "_run", "indices", "sizes", "slots")

    def __init__(self, layout: Layout, run: Run) -> None:
        self._layout, self._run = layout, run
        starts = group_starts(run.lead, layout.group_shift)
        self._bounds = np.append(starts, len(run))
        firsts = run.lead[starts] >> np.uint64(layout.group_shift)
        slots, indices = layout.parts(firsts.astype(np.uint64))
        self.slots: NDArray[np.int64] = slots.astype(np.int64)
        self.indices: Indices = indices.astype(np.uint32)
        self.sizes: NDArray[np.int64] = np.diff(self._bounds)
        if run.counts is not None:
            running = np.zeros(len(run) + 1, np.int64)
            np.cumsum(run.counts, out=running[1:])
            self.sizes = np.diff(running[self._bounds])

    def __len__(self) -> int:
        return len(self.indices)

    def rows(self, groups: NDArray[np.intp]) -> tuple[Codes, NDArray[np.uint8]]:
        """The codes of the values, in their width, and the labels of all rows of these groups (by
        position, ascending), one group after the other; the values of a group ascend."""
        positions, _ = ranges(self._bounds[groups], self._bounds[groups + 1])
        whole = len(positions) > 0 and positions[-1] - positions[0] + 1 == len(positions)
        run = (
            self._run.slice(int(positions[0]), int(positions[-1]) + 1)
            if whole
            else self._run.take(positions)
        )
        codes, labels = self._layout.codes(self._layout.open(run))
        if self._layout.value_bits == 32:
            codes = codes.astype(np.uint32)
        if run.counts is None:
            return codes, labels
        return np.repeat(codes, run.counts), np.repeat(labels, run.counts)

    def repeated(self) -> NDArray[np.intp]:
        """The positions of the groups in which some row occurs more than once."""
        run = self._run
        repeats = ~run.firsts() if run.counts is None else run.counts > 1
        positions = np.searchsorted(self._bounds, np.flatnonzero(repeats), side="right") - 1
        return sorted_distinct(positions)


_CHUNK: Final = 1 << 15  # keys at a time: temporaries stay in the second-level cache

# From the leads of some keys to their new leads, and the keys to keep (None: all).
Change: TypeAlias = Callable[[U64], tuple[U64, NDArray[np.intp] | None]]


class Keys:
    """Keys in tiers, all of one layout."""

    __slots__ = ("layout", "stores")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.stores = [Tiers(layout.kind, layout.form == "wide") for _ in range(layout.stores)]

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(store.nbytes for store in self.stores)

    def __len__(self) -> int:
        """Entries held; equal rows may have several."""
        return sum(map(len, self.stores))

    def runs(self) -> list[Run]:
        """All keys, as one sorted run for each store."""
        return [store.settle() for store in self.stores]

    def add(
        self,
        values: Values,
        labels: NDArray[np.uint8] | None,
        slots: NDArray[np.intp] | None,
        groups: NDArray[np.uint32] | None,
        units: NDArray[np.int64] | None = None,
    ) -> None:
        """Add the keys of rows [n]; units: how often each counts, or None for once."""
        built = self.layout.build(values, labels, slots, groups)
        if units is not None:
            parts = self.layout.apart(values, narrowed(units))
            built = [Run(run.low, run.high, u) for run, u in zip(built, parts, strict=True)]
        for store, run in zip(self.stores, built, strict=True):
            store.add(run)

    def add_table(self, table: Table) -> None:
        """Add the rows that a table counts."""
        lead = table.slots.astype(np.uint64)
        if table.groups is not None:
            lead = lead << np.uint64(self.layout.group_bits) | table.groups
        built = self._built(table, lead)
        ascending = bool((lead[1:] > lead[:-1]).all())
        first = next(built, None)
        if first is not None and ascending and len(self.stores) == 1:
            # Written where they stay: pages that are new to a large process cost more than keys.
            most = len(table.counts) * len(table.codes)
            if table.held is not None:
                most = min(most, int(table.held.sum()))
            runs = (run for (run,) in chain([first], built))
            self.stores[0].add_sorted(Run.filled(Run.room(most, first[0]), runs))
        elif first is not None:
            moved = [[*pieces] for pieces in zip(first, *built, strict=True)]
            self._put(moved, ascending)

    def _built(self, table: Table, lead: U64) -> Iterator[list[Run]]:
        """The keys of a table in pieces, as a run for each store."""
        for leads, codes, counts in table.pieces(lead):
            entry, label, entry_counts = _entries(counts, self.layout.label_bits)
            fields = self.layout.fields(leads[entry], codes[entry], label)
            several = None if int(entry_counts.max()) == 1 else narrowed(entry_counts)
            yield self.layout.close(fields, several)

    def merge(
        self,
        other: Keys,
        to: NDArray[np.intp],
        groups: U64 | None,
        over: NDArray[np.bool_] | None,
    ) -> None:
        """Add the keys of another: from slot i to slot `to[i]` and from group i to `groups[i]`
        (None: the same groups), but none to the slots that are `over`."""
        layout, other_layout = self.layout, other.layout
        same_slots = bool((to == np.arange(len(to))).all())
        if groups is None and over is None and layout == other_layout and same_slots:
            for store, of_other in zip(self.stores, other.stores, strict=True):
                for run in of_other.flush():
                    store.add_sorted(run)
            return
        slot_of = to.astype(np.uint64)
        one_slot = groups is not None and over is None and len(to) == 1
        leads = layout.lead(slot_of, groups) if one_slot else None  # a lead is a group's index

        def renamed(lead: U64) -> tuple[U64, NDArray[np.intp] | None]:
            if leads is not None:
                return leads.take(lead.view(np.intp), mode="clip"), None  # clip: no copy
            slots, of_group = other_layout.parts(lead)
            slots = slot_of[slots]
            keep = None if over is None else np.flatnonzero(~over[slots])
            return layout.lead(slots, of_group if groups is None else groups[of_group]), keep

        self.carry(other, renamed)

    def carry(self, other: Keys, change: Change, ascending: bool = False) -> None:
        """Add the keys of another, whose values are as wide or narrower, with changed leads;
        `ascending`: their order stays."""
        for number, store in enumerate(other.stores):
            for run in store.flush():
                moved: list[list[Run]] = [[] for _ in self.stores]
                for i in range(0, len(run), _CHUNK):
                    chunk = run.slice(i, i + _CHUNK)
                    fields = other.layout.open(chunk, number)
                    if other.layout.value_bits < self.layout.value_bits:
                        codes, labels = other.layout.codes(fields)
                        fields = self.layout.fields(fields.lead, widened(codes), labels)
                    lead, keep = change(fields.lead)
                    fields, counts = fields.led_by(lead), chunk.counts
                    if keep is not None:
                        fields, counts = fields.take(keep), None if counts is None else counts[keep]
                    closed = self.layout.close(fields, counts)
                    for pieces, piece in zip(moved, closed, strict=True):
                        pieces.append(piece)
                self._put(moved, ascending)

    def picked(self, slots: NDArray[np.intp]) -> list[tuple[Fields, Run, NDArray[np.intp]]]:
        """For each store: the keys of these slots one after another, as fields and as a run, and
        the number of keys of each slot."""
        selections = []
        for number, run in enumerate(self.runs()):
            positions, sizes = ranges(*self.layout.bounds(run, slots))
            keys = run.take(positions)
            selections.append((self.layout.open(keys, number), keys, sizes))
        return selections

    def put(self, fields: Fields, counts: NDArray[np.unsignedinteger] | None) -> None:
        """Add keys in ascending order."""
        self._put([[run] for run in self.layout.close(fields, counts)], ascending=True)

    def twin(self) -> Keys:
        """The same keys; the runs are shared."""
        new = Keys(self.layout)
        new.stores = [store.twin() for store in self.stores]
        return new

    def _put(self, moved: list[list[Run]], ascending: bool) -> None:
        for store, pieces in zip(self.stores, moved, strict=True):
            if ascending and pieces:
                store.add_sorted(pieces[0] if len(pieces) == 1 else Run.join(pieces))
            else:
                for piece in pieces:
                    store.add(piece)


def _entries(
    counts: Sequence[Words], label_bits: int
) -> tuple[NDArray[np.intp] | slice, NDArray[np.uint8], Words]:
    """Of rows [m] of which each label counts some, and all at least one: the row, the label and the
    count of each that is not 0, row by row."""
    # Of a table in this order numpy finds what is not 0 in a fifth of the time of the other.
    table = np.zeros((len(counts[0]), 1 << label_bits), np.result_type(*counts))
    for label, of_label in enumerate(counts):
        table[:, label] = of_label
    cells: Words = table.reshape(-1)
    used = np.flatnonzero(cells != 0)
    labels = (used & ((1 << label_bits) - 1)).astype(np.uint8)
    # Most scores have one label.
    rows = slice(None) if len(used) == len(table) else used >> label_bits
    return rows, labels, cells[used]
