"""A batch of checked rows, as columns, on its way into a state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from sys import getsizeof
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V", bound=np.generic)
Scalar: TypeAlias = str | int | None
Key: TypeAlias = Scalar | tuple[Scalar, ...]
_SAMPLE: Final = 16  # keys from whose size that of all is estimated


def keys_nbytes(keys: Collection[Key]) -> int:
    """Bytes of these keys themselves, from the size of the first ones."""
    some = list(islice(keys, _SAMPLE))
    return int(sum(map(_size, some)) / len(some) * len(keys)) if some else 0


def _size(key: Key) -> int:
    return getsizeof(key) + (sum(map(getsizeof, key)) if isinstance(key, tuple) else 0)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Coded:
    """A column of `n` keys that names each distinct key once: row i has `values[codes[i]]`.

    codes: intp [n], each below `len(values)`. Taken wherever keys or ids are.
    """

    codes: NDArray[np.intp]
    values: tuple[Key, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds, about."""
        return self.codes.nbytes + getsizeof(self.values) + keys_nbytes(self.values)


@dataclass(slots=True, eq=False)  # frozen, it would take three times as long to make
class Ragged(Generic[V]):
    """A column whose rows are lists: row i is `values[offsets[i]:offsets[i + 1]]`.

    values: [m], of any type; offsets: int64 [n + 1], from 0 to m.
    """

    values: NDArray[V]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many values each row has; [n]."""
        return self.offsets[1:] - self.offsets[:-1]  # a quarter of the time of `diff`

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds."""
        return self.values.nbytes + self.offsets.nbytes

    def take(self, at: NDArray[np.intp]) -> Ragged[V]:
        """The rows at these places."""
        sizes = self.sizes[at]
        offsets = _offsets(sizes)
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return Ragged(self.values[np.repeat(self.offsets[:-1][at], sizes) + inside], offsets)

    def copy(self) -> Ragged[V]:
        """The same in arrays of their own."""
        return Ragged(self.values.copy(), self.offsets.copy())

    @staticmethod
    def join(columns: Sequence[Ragged[V]]) -> Ragged[V]:
        """All rows, one column after the other."""
        values = np.concatenate([column.values for column in columns])
        return Ragged(values, _offsets(np.concatenate([column.sizes for column in columns])))


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


Column: TypeAlias = "NDArray[Any] | Coded | Ragged[Any] | Rows | None"


class Rows:
    """`n` checked rows: each column has `n` entries, or is None where it was not given.

    `mass` is the most that these rows can add to any one count (n, or the sum of weights).
    Made for every batch, so a plain class: a frozen dataclass takes four times as long.
    """

    __slots__ = ("columns", "mass", "n")

    def __init__(self, n: int, columns: tuple[Column, ...], mass: int | None = None) -> None:
        self.n, self.columns = n, columns
        self.mass = n if mass is None else mass

    def shape(self) -> tuple[object, ...]:
        """Which columns are there: batches of equal shape can be joined."""
        return _shape(self, {})

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the columns hold; what several metrics read is there once."""
        known: dict[int, int] = {}
        _measure(self, known)
        return sum(known.values())

    def copy(self) -> Rows:
        """The same rows in arrays of their own; what several metrics read is copied once."""
        return _copied(self, {})

    def take(self, at: NDArray[np.intp]) -> Rows:
        """The rows at these places; `mass` stays an upper bound."""
        return Rows(len(at), tuple(_taken(c, at) for c in self.columns), self.mass)

    @staticmethod
    def join(batches: Sequence[Rows]) -> Rows:
        """All rows of batches of one shape."""
        if len(batches) == 1:
            return batches[0]
        return _joined_rows(batches, {})


# A column that several metrics of a panel read is one object in the rows of each, and what is
# `known` of it by its `id` holds while these rows do.
def _shape(rows: Rows, known: dict[int, tuple[object, ...]]) -> tuple[object, ...]:
    found = known.get(id(rows))
    if found is None:
        found = tuple(
            _shape(c, known)
            if type(c) is Rows
            else c.shape[1:]  # labels may be a class a row in one batch, and a table in the next
            if isinstance(c, np.ndarray)
            else None
            if c is None
            else type(c)
            for c in rows.columns
        )
        known[id(rows)] = found
    return found


def _measure(rows: Rows, known: dict[int, int]) -> None:
    for c in rows.columns:
        if isinstance(c, Rows):
            _measure(c, known)
        elif c is not None:
            known[id(c)] = c.nbytes


def _copied(rows: Rows, known: dict[int, Any]) -> Rows:
    columns = []
    for c in rows.columns:
        found = None if c is None else known.get(id(c))
        if found is None and c is not None:
            if isinstance(c, Rows):
                found = _copied(c, known)
            else:
                found = Coded(c.codes.copy(), c.values) if isinstance(c, Coded) else c.copy()
            known[id(c)] = found
        columns.append(found)
    return Rows(rows.n, tuple(columns), rows.mass)


def _taken(column: Column, at: NDArray[np.intp]) -> Column:
    if column is None:
        return None
    if isinstance(column, Coded):
        return Coded(column.codes[at], column.values)
    return column.take(at) if isinstance(column, (Ragged, Rows)) else column[at]


def _joined_rows(batches: Sequence[Rows], known: dict[tuple[int, ...], Column]) -> Rows:
    columns = []
    for i in range(len(batches[0].columns)):
        pieces = [b.columns[i] for b in batches]
        which = tuple(map(id, pieces))
        if which not in known:
            known[which] = _joined(pieces, known)
        columns.append(known[which])
    return Rows(sum(b.n for b in batches), tuple(columns), sum(b.mass for b in batches))


def _joined(columns: list[Column], known: dict[tuple[int, ...], Column]) -> Column:
    first = columns[0]
    if first is None:
        return None
    if isinstance(first, Rows):
        return _joined_rows([c for c in columns if isinstance(c, Rows)], known)
    if isinstance(first, Ragged):
        return Ragged.join([c for c in columns if isinstance(c, Ragged)])
    if isinstance(first, Coded):
        return _joined_codes([c for c in columns if isinstance(c, Coded)])
    return np.concatenate([c for c in columns if isinstance(c, np.ndarray)])


def _joined_codes(columns: list[Coded]) -> Coded:
    known: dict[Key, int] = {}
    codes = []
    for column in columns:
        mine = [known.setdefault(value, len(known)) for value in column.values]
        codes.append(np.array(mine, np.intp)[column.codes] if mine else column.codes)
    return Coded(np.concatenate(codes), tuple(known))
