"""Records of fixed width, column by column: sorted, and each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.ids.unit_hashes import Words

Field = NDArray[np.unsignedinteger]
MAX_TIME: Final = 1 << 62  # times lie between this and its negative, so that sums have room


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`n` records: a 64-bit id, a time in milliseconds, and fields, unsigned integers that order
    as what they stand for. The arrays are never changed once they are here.

    ids: uint64 [n]; times: int64 [n]; fields: unsigned [n] each.
    """

    ids: Words
    times: NDArray[np.int64]
    fields: tuple[Field, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.ids.nbytes + self.times.nbytes + sum(field.nbytes for field in self.fields)

    def take(self, at: NDArray[np.intp] | slice) -> Table:
        """The records at these places."""
        return Table(self.ids[at], self.times[at], tuple(field[at] for field in self.fields))

    def with_field(self, number: int, field: Field) -> Table:
        """The same with another field in this place."""
        fields = (*self.fields[:number], field, *self.fields[number + 1 :])
        return Table(self.ids, self.times, fields)

    @staticmethod
    def empty(n_fields: int) -> Table:
        """No records."""
        no_field = np.empty(0, np.uint8)
        return Table(np.empty(0, np.uint64), np.empty(0, np.int64), (no_field,) * n_fields)


def united(tables: Sequence[Table]) -> Table:
    """All records of the tables, ascending by id, time and then the fields, each once."""
    full = [table for table in tables if len(table)] or [tables[0]]
    ids = np.concatenate([table.ids for table in full])
    # The stable sort merges what is sorted; of ids in any order the other is quicker.
    order = np.argsort(ids, kind="stable" if len(full) == 2 else None)
    ids = ids[order]
    tied = ids[1:] == ids[:-1]
    if tied.any():
        order, kept = _without_repeats(full, ids, order, tied)
        ids = ids[kept] if len(kept) < len(ids) else ids
    return Table(ids, _joined_times(full)[order], _fields(full, order))


def is_ascending(table: Table) -> bool:
    """Whether the records are in the one order, each once."""
    above = np.zeros(max(len(table) - 1, 0), np.bool_)
    for field in (*table.fields[::-1], table.times, table.ids):
        above = (field[1:] > field[:-1]) | ((field[1:] == field[:-1]) & above)
    return bool(above.all())


def _without_repeats(
    tables: Sequence[Table], ids: Words, order: NDArray[np.intp], tied: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order with records of one id in theirs and each once, and which places these had."""
    members = np.zeros(len(ids), np.bool_)
    members[1:] = tied
    members[:-1] |= tied
    at = np.flatnonzero(members)
    some = order[at]
    columns = [_joined_times(tables)[some], *_fields(tables, some)]
    inner = np.lexsort((*columns[::-1], ids[at]))
    order[at] = some[inner]
    same = ids[at][1:] == ids[at][:-1]  # `at` has whole groups, so `inner` leaves ids in place
    for column in columns:
        there = column[inner]
        same &= there[1:] == there[:-1]
    kept = np.delete(np.arange(len(ids)), at[1:][same]) if same.any() else np.arange(len(ids))
    return order[kept], kept


def _joined_times(tables: Sequence[Table]) -> NDArray[np.int64]:
    return np.concatenate([table.times for table in tables])


def _fields(tables: Sequence[Table], order: NDArray[np.intp]) -> tuple[Field, ...]:
    """Each field, joined and put into order one after the other, so that little waits in memory."""
    n = len(tables[0].fields)
    return tuple(np.concatenate([table.fields[i] for table in tables])[order] for i in range(n))
