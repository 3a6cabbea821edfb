"""Bag: the multiset of the rows themselves, the state of every exact metric that orders rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.batch import Batch
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.ids.group_ids import Ids, Indices
from streammetrics.core.multiset.bag_keys import Groups, Keys
from streammetrics.core.multiset.bag_layout import U64, Layout, Rule, bits_of, layout_for
from streammetrics.core.multiset.bag_table import Table, read_table, table_of, write_table
from streammetrics.core.multiset.group_sums import KeptSums
from streammetrics.core.multiset.sorted_run import Run, Words, key_pieces
from streammetrics.core.multiset.tiers import PairSum
from streammetrics.core.parts.part import Column, Part, SeveralColumn, Slots
from streammetrics.core.parts.score_bits import (
    AUTO,
    TYPES,
    Scores,
    Values,
    as_float32,
    result_type,
    scores_of,
    typed_values,
)
from streammetrics.core.pieces import Pieces, parts_of
from streammetrics.core.rows import DictionaryColumn, distinct, exact_total, sorted_distinct
from streammetrics.core.weights import Units, add_surplus

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

_PIECE: Final = 1 << 24  # rows of a huge batch that are sorted at once: 128 MB of keys
_WAIT: Final = 1 << 18  # rows whose group ids are looked up at once
_LIMIT: Final = "max_rows"  # the setting or property of every owner of a bag
_FEW: Final = 1 << 20  # entries; equal ones among fewer are not worth counting: 8 MB


class BagColumn(Column):
    """The rows of each slot, as keys.

    `totals` counts all rows of a slot, even if it is past `max_rows` and holds none of them: the
    total alone decides that, so the order of rows and merges does not matter. `surplus` is by how
    much the units of weight of the rows held exceed their number.
    """

    def __init__(
        self, rule: Rule, width: int, ids: Ids | None = None, values: str | None = None
    ) -> None:
        self.rule, self.width = rule, width
        self.values = rule.first_type if values is None else values  # the type of those held
        self.ids = rule.no_ids() if ids is None else ids
        self.totals = np.zeros(width, np.int64)
        self.surplus = np.zeros(width, np.int64)
        self.over = np.zeros(width, np.bool_)  # past `max_rows`
        self.dead = 0  # at most this many of the rows held belong to slots past `max_rows`
        self.waiting = Pieces()  # rows whose ids have no index yet
        self.keys = Keys(self._layout(None))
        self.enough = _FEW  # number of entries after which equal ones are counted

    # -- contents -------------------------------------------------------------------------
    @property
    def total_count(self) -> int:
        return exact_total(self.totals) + exact_total(self.surplus)

    @property
    def nbytes(self) -> int:
        row_bytes = self.keys.nbytes + self.waiting.nbytes
        ids = 0 if self.ids is None else self.ids.nbytes
        return row_bytes + ids + self.totals.nbytes + self.surplus.nbytes + self.over.nbytes

    @property
    def total(self) -> int:
        """Rows of slot 0, dropped ones included."""
        return int(self.totals[0])

    @property
    def units(self) -> int:
        """Units of weight in slot 0."""
        return int(self.totals[0] + self.surplus[0])

    @property
    def dropped(self) -> bool:
        """Whether slot 0 is past `max_rows`."""
        return bool(self.over[0])

    @property
    def why_dropped(self) -> str:
        """The reason why slot 0 is undefined, if it is dropped."""
        return self.reason(0)

    def reason(self, slot: int) -> str:
        """The reason why a slot is undefined, if it is dropped."""
        return f"{self.totals[slot]} rows exceed max_rows={self.rule.max_rows}"

    def settled(self) -> tuple[Layout, list[Run]]:
        """The layout of the keys, and all rows, as one sorted run for each store."""
        self._index_waiting()
        self._purge()
        return self.keys.layout, self.keys.runs()

    def planes(self) -> list[tuple[Words, Words | None]]:
        """Keys of the one slot and their counts, in pieces of ascending value. Within a piece keys
        compare as single words. Labels are the lowest bits."""
        pieces = []
        for run in self.settled()[1]:
            cuts = [0]
            if run.high is not None and len(run):  # equal but for the sign of the value
                cuts += (np.flatnonzero(run.high[1:] != run.high[:-1]) + 1).tolist()
            for start, end in pairwise([*cuts, len(run)]):
                piece = run.slice(start, end)
                pieces.append((piece.low, piece.counts))
        return pieces

    def points(self) -> Callable[[], tuple[Scores, NDArray[np.int64]]]:
        """A function that returns the different scores of the one slot at this time, ascending [k],
        and their counts by label [labels, k]. Runs never change, so none is copied."""
        self._index_waiting()
        self._purge()
        keys, totals = self.keys.twin(), self.totals.copy()

        def count() -> tuple[Scores, NDArray[np.int64]]:
            table = table_of(self.rule, keys.layout, keys.runs(), totals, None)
            scores = typed_values(scores_of(table.codes), result_type(self.rule.values))
            return cast("Scores", scores), np.array(table.counts, np.int64)

        return count

    def pieces(self) -> Callable[[], Iterator[Iterator[tuple[Words, Words | None]]]]:
        """A function that returns what `planes` returns of the one slot at this time, each plane in
        several pieces: it merges no runs and copies none, so it takes little memory."""
        self._index_waiting()
        self._purge()
        if self.keys.layout.form != "planes":
            planes = self.planes()
            return lambda: (iter([piece]) for piece in planes)
        stores, bits = self.keys.twin().stores, self.rule.label_bits
        return lambda: (
            ((run.low, run.counts) for run in key_pieces(store.runs, bits)) for store in stores
        )

    def points_of_each(self) -> list[tuple[Scores, NDArray[np.int64]]]:
        """As `points`, of each slot, in one pass over all; views of common arrays."""
        self._index_waiting()
        self._purge()
        table = table_of(self.rule, self.keys.layout, self.keys.runs(), self.totals, None)
        scores = typed_values(scores_of(table.codes), result_type(self.rule.values))
        counts, sizes = np.array(table.counts, np.int64), np.zeros(self.width + 1, np.intp)
        sizes[table.slots + 1] = table.sizes
        return [
            (cast("Scores", scores[start:end]), counts[:, start:end])
            for start, end in pairwise(sizes.cumsum().tolist())
        ]

    def pair_sums(self, pairs_for: Callable[[Layout], PairSum | None]) -> list[KeptSums] | None:
        """The sums over all keys of each store and over their pairs, which `pairs_for` defines for
        this layout; None if it does not, or if they cannot be kept."""
        self._index_waiting()
        self._purge()
        pairs = pairs_for(self.keys.layout)
        optional_sums = [] if pairs is None else [store.sums(pairs) for store in self.keys.stores]
        store_sums = [sums for sums in optional_sums if sums is not None]
        return store_sums if len(store_sums) == len(self.keys.stores) else None

    def labels(self) -> NDArray[np.uint8]:
        """The different labels of all rows, ascending."""
        layout, runs = self.settled()
        last = np.uint64((1 << layout.label_bits) - 1)
        return sorted_distinct(np.concatenate([(run.low & last).astype(np.uint8) for run in runs]))

    def groups(self) -> Groups:
        """The groups of the one slot, with their rows."""
        layout, (run,) = self.settled()
        return Groups(layout, run)

    def order(self, indices: Indices) -> NDArray[np.intp]:
        """The positions of these ids of groups, in the sorted order of the ids."""
        return np.argsort(self.known_ids().ranks(indices))

    def integer_ids(self, indices: Indices) -> NDArray[np.int64]:
        """These ids, of a bag whose ids are integers."""
        return self.known_ids().words().view(np.int64)[indices]

    def known_ids(self) -> Ids:
        """The ids of its groups."""
        if self.ids is None:
            raise TypeError("a bag without groups has no ids")
        return self.ids

    # -- growing --------------------------------------------------------------------------
    def add(
        self,
        values: Values,
        labels: NDArray[np.uint8] | None,
        slots: Slots | None = None,
        groups: NDArray[np.int64] | DictionaryColumn | None = None,
        units: NDArray[np.int64] | None = None,
    ) -> None:
        """Add rows [n], without NaN. slots None: all to slot 0; labels None: all are 0; units: of
        weight, at least 1, None: 1 each."""
        inputs = {"values": values, "labels": labels, "slots": slots, "ids": groups, "units": units}
        rows = Batch(len(values), {name: c for name, c in inputs.items() if c is not None})
        if slots is None:
            self.totals[0] += rows.n
        else:
            np.add.at(self.totals, slots, 1)
        if units is not None:
            add_surplus(self.surplus, slots, units)
        self._drop()
        if self.rule.max_rows is not None and self.over.any():
            row_slots = np.zeros(rows.n, np.intp) if slots is None else slots
            rows = rows.take(np.flatnonzero(~self.over[row_slots]))
        if isinstance(groups, np.ndarray) and rows.n < _WAIT // 2:
            # Looking up a few ids costs nearly as much as looking up thousands.
            parts = parts_of(rows)
            if parts[0] != self.waiting.kinds:
                self._index_waiting()
                self.waiting = Pieces(rows, parts)
            self.waiting.add(rows.n, parts)
            if self.waiting.count[0] >= _WAIT:
                self._index_waiting()
            return
        for i in range(0, rows.n, _PIECE):
            piece = rows.take(np.arange(i, min(i + _PIECE, rows.n))) if rows.n > _PIECE else rows
            self._add(piece)

    def _index_waiting(self) -> None:
        if n := self.waiting.count[0]:
            rows = self.waiting.batch(n)
            self.waiting.clear()
            self._add(rows)

    def _add(self, rows: Batch) -> None:
        indices = None
        if self.ids is not None:
            indices = self.ids.index(rows.as_ids("ids"))
            self._lay_out()
        values = self._typed_values(rows.values)
        labels, slots = rows.optional("labels"), rows.optional("slots")
        self.keys.add(values, labels, slots, indices, rows.optional("units"))
        self._count()

    def _typed_values(self, values: Values) -> Values:
        """The values in the type of those held, which become float64 where float32 would change a
        new one: once in the life of a state."""
        if self.rule.values == AUTO and self.values == "float32":
            narrow = as_float32(cast("Scores", values))
            if narrow is not None:
                return narrow
            self._hold("float64")
        return typed_values(values, self.values)

    def _hold(self, values: str) -> None:
        """Hold values of this type, which has those held."""
        self.values = values
        self._lay_out()

    def widen(self, width: int) -> None:
        n_new = width - self.width
        self.totals = np.concatenate([self.totals, np.zeros(n_new, np.int64)])
        self.surplus = np.concatenate([self.surplus, np.zeros(n_new, np.int64)])
        self.over = np.concatenate([self.over, np.zeros(n_new, np.bool_)])
        self.width = width
        self._lay_out()

    def merge(self, other: Self, to: Slots) -> None:
        other._index_waiting()
        other._purge()
        if other.values != self.values and other.values == "float64":
            self._hold("float64")
        indices: U64 | None = None
        if self.ids is not None and other.ids is not None:
            if self.totals.any():
                indices = self.ids.index_all(other.ids).astype(np.uint64)
            else:
                self.ids = other.ids.twin()  # the same ids serve both
            self._lay_out()
        np.add.at(self.totals, to, other.totals)
        np.add.at(self.surplus, to, other.surplus)
        self._drop()
        self.keys.merge(other.keys, to, indices, self.over if self.over.any() else None)
        self._count()

    def take(self, slots: Slots) -> Self:
        self._index_waiting()
        self._purge()
        layout = self.keys.layout
        new = type(self)(self.rule, len(slots), values=self.values)
        new.totals, new.over, new.surplus = (
            self.totals[slots],
            self.over[slots],
            self.surplus[slots],
        )
        if len(slots) == self.width and bool((slots == np.arange(self.width)).all()):
            new.ids = None if self.ids is None else self.ids.twin()
            new.keys = self.keys.twin()
            return new
        for fields, run, sizes in self.keys.picked(slots):
            slot_of = np.repeat(np.arange(len(slots), dtype=np.uint64), sizes)
            groups = None
            if self.ids is not None:
                used, positions = distinct(layout.parts(fields.lead)[1].view(np.intp), self.ids.n)
                new.ids, indices = self.ids.subset(used.astype(np.uint32))
                new._lay_out()
                groups = indices.astype(np.uint64)[positions]
            new.keys.put(fields.led_by(new.keys.layout.lead(slot_of, groups)), run.counts)
        return new

    # -- bytes ----------------------------------------------------------------------------
    def table(self) -> Table:
        """Equal rows counted, in the one canonical form."""
        layout, runs = self.settled()
        return table_of(self.rule, layout, runs, self.totals, self.ids)

    def encode(self, out: Writer) -> None:
        write_table(self.rule, self.table(), out)

    @classmethod
    def from_table(cls, rule: Rule, table: Table) -> BagColumn:
        """The column of the rows in a table."""
        wide = rule.values == AUTO and table.codes.dtype == np.uint64
        new = cls(rule, len(table.totals), table.ids, "float64" if wide else None)
        new.totals = table.totals
        if rule.max_rows is not None:
            new.over = table.totals > rule.max_rows
        if table.held is not None:
            new.surplus = np.where(new.over, 0, table.held - table.totals)
        new.keys.add_table(table)
        return new

    # -- keeping order --------------------------------------------------------------------
    def _layout(self, before: Layout | None) -> Layout:
        bits, n_ids = bits_of(self.values), None if self.ids is None else self.ids.n
        return layout_for(bits, self.rule.label_bits, self.width, n_ids, before)

    def _lay_out(self) -> None:
        """Lay out all keys again if slots, groups or values no longer fit."""
        old = self.keys
        layout = self._layout(old.layout)
        if layout == old.layout:
            return

        def shifted(lead: U64) -> tuple[U64, None]:
            slots, groups = old.layout.parts(lead)
            return layout.lead(slots, None if self.ids is None else groups), None

        self.keys = Keys(layout)
        self.keys.carry(old, shifted, ascending=True)

    def _count(self) -> None:
        """If few different rows repeat, count equal ones once half of the entries are new."""
        if self.rule.repeats and len(self.keys) > self.enough:
            self.keys.runs()
            self.enough = 2 * len(self.keys) + _FEW

    def _drop(self) -> None:
        """Mark the slots that have passed `max_rows`, and drop their rows once that pays."""
        limit = self.rule.max_rows
        if limit is None:
            return
        self.surplus[self.totals > limit] = 0
        passed = np.flatnonzero((self.totals > limit) & ~self.over)
        if not len(passed):
            return
        self.over[passed] = True
        self.dead += limit * len(passed)
        if 2 * self.dead >= self.waiting.count[0] + len(self.keys):
            if not self.over.all():
                self._index_waiting()
            self._purge()

    def _purge(self) -> None:
        """Drop the rows of slots past `max_rows`."""
        if not self.dead:
            return
        keys, over, self.dead = self.keys, self.over, 0
        self.keys = Keys(keys.layout)
        if over.all():
            self.waiting, self.ids = Pieces(), self.rule.no_ids()
            return

        def kept(lead: U64) -> tuple[U64, NDArray[np.intp]]:
            return lead, np.flatnonzero(~over[keys.layout.parts(lead)[0]])

        self.keys.carry(keys, kept, ascending=True)


class Bag(Part[BagColumn]):
    """A multiset of rows (group, value, label).

    values: their type, "float32", "float64", "int64" or "auto", or the setting that holds it.
    labels: the number of labels, 0 to labels - 1; a single label is not stored. ids: the setting
    with the kind of group ids, or None for rows without groups. repeats: the setting that is None
    or False unless few different rows repeat, so that the state must not grow with their number.
    weighted: rows may have units of weight. The setting `max_rows` limits the rows that a state
    holds, or is None. Each of these settings may also be a property of the owner.
    """

    def __init__(
        self,
        values: str = "score_type",
        labels: int = 2,
        ids: str | None = None,
        repeats: str | None = None,
        weighted: bool = False,
    ) -> None:
        self.values, self.labels, self.ids = values, labels, ids
        self.repeats, self.weighted = repeats, weighted

    def rule(self, owner: Declared) -> Rule:
        """The rule of a bag in an accumulator with these settings."""
        ids: str | None = None if self.ids is None else getattr(owner, self.ids)
        limit: int | None = getattr(owner, _LIMIT)
        values: str = self.values if self.values in (*TYPES, AUTO) else getattr(owner, self.values)
        repeats = self.repeats is not None and getattr(owner, self.repeats) not in (None, False)
        return Rule(values, self.labels, ids, limit, repeats, self.weighted)

    def empty(self, owner: Declared, width: int) -> BagColumn:
        return BagColumn(self.rule(owner), width)

    def decode(self, owner: Declared, width: int, data: Reader) -> BagColumn:
        rule = self.rule(owner)
        return BagColumn.from_table(rule, read_table(rule, width, data))


# Bags: as many bags in each state as a setting or property says, one for each class.


class BagsColumn(SeveralColumn[BagColumn]):
    """`width` states of `n` bags each. later: without bags it has no bytes."""

    def __init__(self, inner: BagColumn, n: int, width: int, later: bool = False) -> None:
        super().__init__(inner, n, width)
        self.later = later

    def like(self, inner: BagColumn, width: int) -> Self:
        """Other bags, as many in each of `width` states."""
        return type(self)(inner, self.n, width, self.later)

    def take(self, slots: Slots) -> Self:
        return self.like(self.inner.take(self._inner_slots(slots)), len(slots))

    def encode(self, out: Writer) -> None:
        if self.n or not self.later:
            super().encode(out)

    def add(
        self,
        values: Values,
        labels: NDArray[np.uint8],
        bags: NDArray[np.intp],
        slots: Slots | None = None,
        units: Units | None = None,
        groups: NDArray[np.int64] | DictionaryColumn | None = None,
    ) -> None:
        """Add rows [m] to these bags of the states at `slots`; None: of state 0."""
        bag_slots = bags if slots is None else slots * self.n + bags
        self.inner.add(values, labels, bag_slots, groups, units)

    def bag(self, number: int) -> BagColumn:
        """One bag of state 0, as a column of its own."""
        return self.inner.take(np.array([number], np.intp))


class Bags(Part[BagsColumn]):
    """Several bags in each state, such as one for each class. n: the setting or property with their
    number, where True is 1 and False is 0. later: states without bags keep the bytes that they had
    before the metric had this part. The rest as in Bag."""

    def __init__(
        self,
        n: str,
        values: str = "score_type",
        labels: int = 2,
        ids: str | None = None,
        repeats: str | None = None,
        weighted: bool = False,
        later: bool = False,
    ) -> None:
        self.n, self.later = n, later
        self.part = Bag(values, labels, ids, repeats, weighted)

    def empty(self, owner: Declared, width: int) -> BagsColumn:
        n = int(getattr(owner, self.n))
        return BagsColumn(self.part.empty(owner, width * n), n, width, self.later)

    def decode(self, owner: Declared, width: int, data: Reader) -> BagsColumn:
        n = int(getattr(owner, self.n))
        if self.later and not n:
            return self.empty(owner, width)
        return BagsColumn(self.part.decode(owner, width * n, data), n, width, self.later)
