"""A batch of checked rows, as columns, on its way into a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V", bound=np.generic)
Scalar: TypeAlias = str | int | None
Key: TypeAlias = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Coded:
    """A column of `n` keys that names each distinct key once: row i has `values[codes[i]]`.

    codes: intp [n], each below `len(values)`. Taken wherever keys or ids are.
    """

    codes: NDArray[np.intp]
    values: tuple[Key, ...]

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, slots=True, eq=False)
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
        sizes: NDArray[np.int64] = np.diff(self.offsets)
        return sizes

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
        return tuple(map(_shape, self.columns))

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the columns hold."""
        return sum(
            0 if c is None else c.codes.nbytes if isinstance(c, Coded) else c.nbytes
            for c in self.columns
        )

    def copy(self) -> Rows:
        """The same rows in arrays of their own."""
        return Rows(self.n, tuple(_copied(c) for c in self.columns), self.mass)

    def take(self, at: NDArray[np.intp]) -> Rows:
        """The rows at these places; `mass` stays an upper bound."""
        return Rows(len(at), tuple(_taken(c, at) for c in self.columns), self.mass)

    @staticmethod
    def join(batches: Sequence[Rows]) -> Rows:
        """All rows of batches of one shape."""
        if len(batches) == 1:
            return batches[0]
        columns = tuple(
            _joined([b.columns[i] for b in batches]) for i in range(len(batches[0].columns))
        )
        return Rows(sum(b.n for b in batches), columns, sum(b.mass for b in batches))


def _shape(column: Column) -> object:
    if isinstance(column, Rows):
        return column.shape()
    if isinstance(column, np.ndarray):
        return column.shape[1:]  # labels may be a class a row in one batch, and a table in the next
    return None if column is None else type(column)


def _copied(column: Column) -> Column:
    if column is None:
        return None
    if isinstance(column, Coded):
        return Coded(column.codes.copy(), column.values)
    return column.copy()


def _taken(column: Column, at: NDArray[np.intp]) -> Column:
    if column is None:
        return None
    if isinstance(column, Coded):
        return Coded(column.codes[at], column.values)
    return column.take(at) if isinstance(column, (Ragged, Rows)) else column[at]


def _joined(columns: list[Column]) -> Column:
    first = columns[0]
    if first is None:
        return None
    if isinstance(first, Rows):
        return Rows.join([c for c in columns if isinstance(c, Rows)])
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
