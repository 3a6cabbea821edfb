"""Records of fixed width, by column, sorted and each once; and their fields, which hold values of
each kind as unsigned integers in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.checks import booleans, integers, scores
from streammetrics.core.codec import Reader, Writer, damaged
from streammetrics.core.errors import InputError
from streammetrics.core.ids.id_hashes import HashedIds
from streammetrics.core.ids.keys import (
    MAX_KEY_BYTES,
    decode_key,
    dictionary_column,
    encode_key,
    group_ids,
)
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.score_bits import (
    are_codes,
    codes_of,
    integers_of,
    scores_of,
    typed_values,
)
from streammetrics.core.rows import DictionaryColumn, Key

Field = NDArray[np.unsignedinteger]
MAX_TIME: Final = 1 << 62  # times lie between this and its negative, so that sums have room


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`n` records: a 64-bit id, a time in milliseconds, and fields, unsigned integers in the order
    of the values that they encode. The arrays never change.

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

    def take(self, positions: NDArray[np.intp] | slice) -> Table:
        """The records at these positions."""
        return Table(
            self.ids[positions],
            self.times[positions],
            tuple(field[positions] for field in self.fields),
        )

    def with_field(self, number: int, field: Field) -> Table:
        """The same records with one field replaced."""
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
    # The stable sort merges sorted tables; for ids in any order the default is faster.
    order = np.argsort(ids, kind="stable" if len(full) == 2 else None)
    ids = ids[order]
    tied = ids[1:] == ids[:-1]
    if tied.any():
        order, positions = _without_repeats(full, ids, order, tied)
        ids = ids[positions] if len(positions) < len(ids) else ids
    return Table(ids, _joined_times(full)[order], _fields(full, order))


def is_ascending(table: Table) -> bool:
    """Whether the records are in canonical order, each once."""
    above = np.zeros(max(len(table) - 1, 0), np.bool_)
    for field in (*table.fields[::-1], table.times, table.ids):
        above = (field[1:] > field[:-1]) | ((field[1:] == field[:-1]) & above)
    return bool(above.all())


def _without_repeats(
    tables: Sequence[Table], ids: Words, order: NDArray[np.intp], tied: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order with records of one id sorted and each once, and the positions kept of it."""
    places, groups = _members(tied)
    rows = order[places]
    times = _joined_times(tables)[rows]
    inner = _sorted_within(groups, times)
    rows, times = rows[inner], times[inner]
    order[places] = rows
    every = np.arange(len(ids))
    # Few records have the id and the time of another: only these are compared by their fields.
    equal, runs = _members((groups[1:] == groups[:-1]) & (times[1:] == times[:-1]))
    if not len(equal):
        return order, every
    columns = _fields(tables, rows[equal])
    inner = np.lexsort((*columns[::-1], runs))
    order[places[equal]] = rows[equal][inner]
    same = runs[1:] == runs[:-1]
    for column in columns:
        ordered = column[inner]
        same &= ordered[1:] == ordered[:-1]
    if not same.any():
        return order, every
    positions = np.delete(every, places[equal[1:][same]])
    return order[positions], positions


def _members(tied: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of values that equal a neighbour, ascending, and the number of the group of each.

    tied: [n - 1], whether each value but the first equals the one before it.
    """
    is_member = np.zeros(len(tied) + 1, np.bool_)
    is_member[1:] = tied
    is_member[:-1] |= tied
    places = np.flatnonzero(is_member)
    new = np.ones(len(tied) + 1, np.bool_)
    np.logical_not(tied, out=new[1:])
    return places, np.cumsum(new[places])


def _sorted_within(groups: NDArray[np.intp], times: NDArray[np.int64]) -> NDArray[np.intp]:
    """The order by group, which is ascending, and then by time."""
    first = int(times.min())
    span = int(times.max()) - first + 1
    if (int(groups[-1]) + 1) * span >= 1 << 63:
        return np.lexsort((times, groups))
    return np.argsort(groups * span + (times - first), kind="stable")  # it merges sorted groups


def _joined_times(tables: Sequence[Table]) -> NDArray[np.int64]:
    return np.concatenate([table.times for table in tables])


def _fields(tables: Sequence[Table], order: NDArray[np.intp]) -> tuple[Field, ...]:
    """Each field, joined and put in order one after the other, which saves memory."""
    n = len(tables[0].fields)
    return tuple(np.concatenate([table.fields[i] for table in tables])[order] for i in range(n))


# -- fields: from values of each kind to integers, and back ---------------------------------------
Values: TypeAlias = "NDArray[np.generic] | DictionaryColumn"
_DTYPES: Final[dict[str, type[np.unsignedinteger]]] = {
    "float32": np.uint32,
    "float64": np.uint64,
    "int64": np.uint64,
    "hashed": np.uint64,
    "word": np.uint64,  # 64 bits, kept as they are
    "bool": np.uint8,
    "byte": np.uint8,
}
KINDS: Final = ("float32", "float64", "int64", "bool", "key", "hashed")  # of columns


def _hashes(values: ArrayLike | DictionaryColumn, name: str) -> NDArray[np.generic]:
    try:
        hashes = group_ids(values, "hashed", name)
    except InputError as error:
        raise error.but(hint='pass strings, or declare the column as "int64"') from None
    return cast("NDArray[np.int64]", hashes)


_CHECKS: Final[dict[str, Callable[..., Values]]] = {
    "float32": lambda values, name: typed_values(scores(values, name), "float32"),
    "float64": lambda values, name: typed_values(scores(values, name), "float64"),
    "int64": integers,
    "bool": booleans,
    "key": dictionary_column,
    "hashed": _hashes,
}


def checked(values: ArrayLike | DictionaryColumn, kind: str, name: str) -> Values:
    """A column [n] of this kind in its canonical type, or InputError."""
    return _CHECKS[kind](values, name)


def codes_of_kind(values: NDArray[np.generic], kind: str) -> Field:
    """The field [n] of checked values of any kind but keys, in new memory."""
    if kind in ("bool", "byte", "word"):
        return values.astype(_DTYPES[kind])
    return codes_of(values)  # type: ignore[arg-type]


def values_of(field: Field, kind: str, keys: KeyTable | None) -> Values:
    """The values that a field encodes."""
    if kind == "key":
        assert keys is not None
        return DictionaryColumn(field.astype(np.intp), tuple(keys.values))
    if kind in ("float32", "float64"):
        return scores_of(field)
    if kind == "bool":
        return field.astype(np.bool_)
    if kind in ("byte", "word"):
        return field
    numbers = integers_of(field)
    return numbers.view(HashedIds) if kind == "hashed" else numbers


class KeyTable:
    """The different keys of a field, numbered in the order of arrival."""

    __slots__ = ("positions", "values")

    def __init__(self, values: Iterable[Key] = ()) -> None:
        self.values = list(values)
        self.positions = {key: i for i, key in enumerate(self.values)}

    def numbers(self, keys: Sequence[Key]) -> Field:
        """The number of each key, in the narrowest type; new keys get the next numbers."""
        for key in keys:
            if key not in self.positions:
                self.positions[key] = len(self.values)
                self.values.append(key)
        return self.narrowed(np.array([self.positions[key] for key in keys], np.int64))

    def narrowed(self, numbers: NDArray[np.integer]) -> Field:
        """Numbers of this table in the narrowest type that holds all of them."""
        return numbers.astype(np.min_scalar_type(max(len(self.values) - 1, 0)), copy=False)

    def ordered_by_bytes(self) -> tuple[KeyTable, Field | None]:
        """A table of these keys in the order of their bytes, and the number there of each of this
        table, None if it is the same."""
        order = sorted(range(len(self.values)), key=lambda i: encode_key(self.values[i]))
        same = order == list(range(len(order)))
        return (self, None) if same else self._subset(order)

    def ordered_by(self, field: Field) -> tuple[KeyTable, Field]:
        """A table of the used keys, in the order of this one, and the field numbered by it."""
        is_used = np.zeros(len(self.values), np.bool_)
        is_used[field] = True
        used = np.flatnonzero(is_used).tolist()
        if len(used) == len(self.values):
            return self, self.narrowed(field)
        table, numbers = self._subset(used)
        return table, numbers[field]

    def _subset(self, chosen: list[int]) -> tuple[KeyTable, Field]:
        """A table of the keys with these numbers, and the number there of each of this table."""
        table = KeyTable(self.values[number] for number in chosen)
        numbers = np.zeros(len(self.values), np.int64)
        numbers[chosen] = np.arange(len(chosen))
        return table, table.narrowed(numbers)

    def twin(self) -> KeyTable:
        """An independent copy."""
        return KeyTable(self.values)


def write_field(field: Field, kind: str, keys: KeyTable | None, out: Writer) -> None:
    """Write a field of records in canonical order; keys as `in_order` returns them."""
    if kind == "key":
        assert keys is not None
        out.uint(len(keys.values))
        for key in keys.values:
            out.text(encode_key(key))
        out.ints(field.astype(np.int64))
    else:
        out.raw(field.astype(np.dtype(_DTYPES[kind]).newbyteorder("<"), copy=False).tobytes())


def read_field(n: int, kind: str, data: Reader) -> tuple[Field, KeyTable | None]:
    """The field of n records that `write_field` wrote; StateError for anything else."""
    if kind == "key":
        return _read_keys(n, data)
    dtype = np.dtype(_DTYPES[kind])
    raw = np.frombuffer(data.raw(n * dtype.itemsize), dtype.newbyteorder("<"))
    field = raw.astype(dtype)
    if kind in ("float32", "float64") and not are_codes(field.astype(np.uint64), kind):
        raise damaged("codes that represent no number")
    if kind == "bool" and n and field.max() > 1:
        raise damaged("a bool above 1")
    return field, None


def _read_keys(n: int, data: Reader) -> tuple[Field, KeyTable]:
    size = data.uint(min(n, data.left))
    names = [data.text(MAX_KEY_BYTES) for _ in range(size)]
    if any(a >= b for a, b in pairwise(names)):
        raise damaged("keys out of order")
    table = KeyTable(map(decode_key, names))
    numbers, top = data.narrow(n)
    has_record = np.zeros(size, np.bool_)
    if top < size:
        has_record[numbers] = True
    if not has_record.all() or top >= size:
        raise damaged("keys without a record, or records without a key")
    return table.narrowed(numbers.copy()), table
