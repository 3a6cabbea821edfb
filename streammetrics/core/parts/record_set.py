"""Sets of records, whose union is the merge; and the part that holds one for each slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer, damaged
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.part import Column, Part, Slots
from streammetrics.core.parts.record_table import (
    MAX_TIME,
    Field,
    KeyTable,
    Table,
    Values,
    codes_of_kind,
    is_ascending,
    read_field,
    united,
    values_of,
    write_field,
)
from streammetrics.core.rows import DictionaryColumn, Key, sorted_distinct

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

_FEW: Final = 1 << 15  # records that may be pending, however few are settled
_BATCHES: Final = 1 << 11


class RecordSet:
    """A set of records. `run` is settled: in order, each once; `waiting` is pending.

    Pending records are united with the rest once they outnumber it, so n records cost n log n steps
    however small the batches are. Keys of the run are numbered in the order of their bytes, those
    of pending records in the order of arrival.
    """

    __slots__ = ("in_order", "keys", "kinds", "n_waiting", "run", "waiting")

    def __init__(self, kinds: tuple[str, ...], run: Table | None = None) -> None:
        self.kinds = kinds
        self.run = Table.empty(len(kinds)) if run is None else run
        self.keys = [KeyTable() if kind == "key" else None for kind in kinds]
        self.waiting: list[Table] = []
        self.n_waiting = 0
        self.in_order = run is None  # no record waits, and each key has a record

    @property
    def nbytes(self) -> int:
        """Bytes of memory; those of keys are estimated."""
        keys = sum(200 * len(table.values) for table in self.keys if table is not None)
        return self.run.nbytes + sum(table.nbytes for table in self.waiting) + keys

    def add(self, ids: Words, times: NDArray[np.int64], columns: Sequence[Values]) -> None:
        """Add records [n]; columns: checked values of each field."""
        fields = [self._field(i, column) for i, column in enumerate(columns)]
        self._append(Table(ids, times, tuple(fields)))

    def unite(self, other: RecordSet) -> None:
        """Add the records of another set of the same kinds, which does not change."""
        for table in (other.run, *other.waiting):
            if not len(table):  # its keys, if any, are unused
                continue
            renamed = table
            for i, (keys, other_keys) in enumerate(zip(self.keys, other.keys, strict=True)):
                if keys is not None and other_keys is not None:
                    numbers = keys.numbers(other_keys.values)
                    renamed = renamed.with_field(i, numbers[renamed.fields[i]])
            self._append(renamed)

    def settled(self) -> Table:
        """All records in order, keys numbered in the order of their bytes."""
        self._settle()
        if not self.in_order:
            for i, keys in enumerate(self.keys):
                if keys is not None:
                    self.keys[i], field = keys.ordered_by(self.run.fields[i])
                    self.run = self.run.with_field(i, field)
            self.in_order = True
        return self.run

    def column(self, number: int, positions: NDArray[np.intp] | slice) -> Values:
        """The values of a field of the settled records at these positions."""
        table = self.settled()
        return values_of(table.fields[number][positions], self.kinds[number], self.keys[number])

    def key_values(self, number: int) -> Sequence[Key]:
        """The keys of a field, by their numbers."""
        keys = self.keys[number]
        return keys.values if keys else ()

    def picked(self, positions: NDArray[np.intp]) -> Self:
        """The settled records at these positions, ascending."""
        records = type(self)(self.kinds, self.settled().take(positions))
        records.keys = [None if keys is None else keys.twin() for keys in self.keys]
        return records

    def empty_twin(self) -> Self:
        """An empty set of the same kinds."""
        return type(self)(self.kinds)

    def twin(self) -> Self:
        """An independent copy of the set; the records are shared."""
        records = type(self)(self.kinds, self.run)
        records.keys = [None if keys is None else keys.twin() for keys in self.keys]
        records.waiting, records.n_waiting = [*self.waiting], self.n_waiting
        records.in_order = self.in_order
        return records

    def encode(self, out: Writer) -> None:
        """Write the number of records, the ids, the least time, the times less it, the fields."""
        table = self.settled()
        out.uint(len(table))
        if len(table):
            first = int(table.times.min())
            out.words(table.ids)
            out.raw(first.to_bytes(8, "little", signed=True))
            out.ints(table.times - first)
            for field, kind, keys in zip(table.fields, self.kinds, self.keys, strict=True):
                write_field(field, kind, keys, out)

    @classmethod
    def decode(cls, kinds: tuple[str, ...], data: Reader) -> Self:
        """The set that `encode` wrote; StateError for anything else."""
        n = data.uint(data.left // 8)
        if not n:
            return cls(kinds)
        ids = data.words(n)
        first = int.from_bytes(data.raw(8), "little", signed=True)
        after = data.ints(n)
        if not -MAX_TIME < first <= first + int(after.max()) < MAX_TIME or after.min():
            raise damaged("times out of range")
        read = [read_field(n, kind, data) for kind in kinds]
        records = cls(kinds, Table(ids, after + first, tuple(field for field, _ in read)))
        records.keys = [keys for _, keys in read]
        records.in_order = True
        if not records._is_in_order():
            raise damaged("records out of order or repeated")
        return records

    def _field(self, number: int, column: Values) -> Field:
        if not isinstance(column, DictionaryColumn):
            return codes_of_kind(column, self.kinds[number])
        keys = self.keys[number]
        assert keys is not None
        return keys.numbers(column.values)[column.codes]

    def _append(self, table: Table) -> None:
        self.in_order = False
        self.waiting.append(table)
        self.n_waiting += len(table)
        few = self.n_waiting <= max(_FEW, len(self.run)) and len(self.waiting) < _BATCHES
        if not few:
            self._settle()

    def _settle(self) -> None:
        if self.waiting:
            tables, self.waiting, self.n_waiting = [self.run, *self.waiting], [], 0
            for i, keys in enumerate(self.keys):
                if keys is not None:
                    self.keys[i], numbers = keys.ordered_by_bytes()
                    if numbers is not None:  # that keep the run in order
                        tables = [t.with_field(i, numbers[t.fields[i]]) for t in tables]
            self.run = self._united(tables)

    def _united(self, tables: Sequence[Table]) -> Table:
        """The records of the run and of other tables, in order; all are numbered alike."""
        return united(tables)

    def _is_in_order(self) -> bool:
        """Whether the records of the run are in order, each once."""
        return is_ascending(self.run)


class RecordsColumn(Column):
    """A set of records for each slot."""

    def __init__(
        self, kinds: tuple[str, ...], sets: Sequence[RecordSet], empty: type[RecordSet] = RecordSet
    ) -> None:
        self.kinds, self.sets, self.width, self._empty = kinds, [*sets], len(sets), empty

    @property
    def total_count(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return sum(records.nbytes for records in self.sets)

    def add(
        self,
        ids: Words,
        times: NDArray[np.int64],
        columns: Sequence[Values],
        slots: Slots | None = None,
    ) -> None:
        """Add records [n] to the sets of their slots, or all to that of slot 0."""
        if slots is None:
            self.sets[0].add(ids, times, columns)
            return
        for slot in sorted_distinct(slots).tolist():
            rows = np.flatnonzero(slots == slot)
            values = [
                DictionaryColumn(c.codes[rows], c.values)
                if isinstance(c, DictionaryColumn)
                else c[rows]
                for c in columns
            ]
            self.sets[slot].add(ids[rows], times[rows], values)

    def widen(self, width: int) -> None:
        self.sets.extend(self._empty(self.kinds) for _ in range(width - self.width))
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        for records, slot in zip(other.sets, to.tolist(), strict=True):
            self.sets[slot].unite(records)

    def take(self, slots: Slots) -> Self:
        twins = [self.sets[slot].twin() for slot in slots.tolist()]
        return type(self)(self.kinds, twins, self._empty)

    def encode(self, out: Writer) -> None:
        for records in self.sets:
            records.encode(out)


class Records(Part[RecordsColumn]):
    """A set of records (64-bit id, time, fields). fields: the property that names their kinds.
    records: the class of the sets."""

    def __init__(self, fields: str, records: type[RecordSet] = RecordSet) -> None:
        self.fields, self.records = fields, records

    def empty(self, owner: Declared, width: int) -> RecordsColumn:
        kinds = self._kinds(owner)
        return RecordsColumn(kinds, [self.records(kinds) for _ in range(width)], self.records)

    def idempotent(self, owner: Declared) -> bool:
        return True

    def decode(self, owner: Declared, width: int, data: Reader) -> RecordsColumn:
        kinds = self._kinds(owner)
        sets = [self.records.decode(kinds, data) for _ in range(width)]
        return RecordsColumn(kinds, sets, self.records)

    def _kinds(self, owner: Declared) -> tuple[str, ...]:
        kinds: tuple[str, ...] = getattr(owner, self.fields)
        return kinds
