"""Rows that wait as they were given, until they are checked and counted together.

Each of their columns passed its intake, so that `check` accepts them together as it would one by
one. A call then costs its columns, not what the metric makes of them: the split by key, the
dictionary of ids, the units of weights, the rows of each metric of a panel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count, repeat
from math import prod
from typing import Any, Final

import numpy as np

from streammetrics.core.buffer import BUFFER_BATCHES, BUFFER_LISTS, BUFFER_ROWS, Placed
from streammetrics.core.ids.keys import most_bytes_of
from streammetrics.core.intakes import MOST_ROWS, Intake, Plans
from streammetrics.core.rows import DictionaryColumn, Key, keys_nbytes

_ARRAY: Final = np.ndarray
_FLOAT64: Final = np.dtype(np.float64)
_KEY_BYTES: Final = 1024  # of an encoded key that waits
_MOST_TOTAL: Final = 1 << 40  # the most that a waiting row can add to any one count


class Dictionary:
    """The keys that wait, each once, with its code."""

    __slots__ = ("codes",)

    def __init__(self) -> None:
        self.codes: dict[Key, int] = {}

    def piece(self, keys: list[Any]) -> bytes | None:
        """The codes of these keys, of which each is a scalar or a tuple of scalars; None if a new
        one is long, or numpy might read it as another."""
        codes = self.codes
        n = len(keys)
        column = np.fromiter(map(codes.get, keys, repeat(-1)), np.intp, n)
        if column.item(column.argmin()) < 0:
            new = dict.fromkeys(keys[i] for i in np.flatnonzero(column < 0).tolist())
            kinds = set(map(type, new))
            strings = "".join(new if kinds == {str} else _texts(new))
            if "\0" in strings or most_bytes_of([*new], kinds) >= _KEY_BYTES:
                return None
            codes.update(zip(new, count(len(codes)), strict=False))
            column = np.fromiter(map(codes.__getitem__, keys), np.intp, n)
        return column.tobytes()


def _texts(keys: Iterable[Key]) -> Iterator[str]:
    """The strings among keys."""
    for key in keys:
        if type(key) is str:
            yield key
        elif type(key) is tuple:
            yield from _texts(key)


class GivenRows:
    """Columns of the same names and kinds: of each batch, the bytes of an array, or of codes."""

    __slots__ = ("_batches", "_kinds", "_limit", "_names", "_pieces", "_plan", "_shapes", "n")

    def __init__(self) -> None:
        self.n = 0
        self._batches = self._limit = 0
        self._names: tuple[str, ...] = ()
        self._plan: tuple[Intake, ...] = ()
        self._kinds: list[np.dtype[Any] | Dictionary | None] = []  # None: of lists
        self._shapes: list[tuple[int, ...]] = []  # of a row
        self._pieces: list[list[Any]] = []

    @property
    def total(self) -> int:
        """The most that these rows can add to any one count."""
        return self.n * _MOST_TOTAL

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        columns = zip(self._kinds, self._pieces, strict=True)
        return sum(
            sum(map(len, pieces)) + (keys_nbytes(kind.codes) if type(kind) is Dictionary else 0)
            for kind, pieces in columns
        )

    def put(self, given: Mapping[str, object], plans: Plans) -> Placed:
        """Keep a copy of these columns; TOO_LARGE if `check` must read them, FULL if the rows that
        wait must be counted first."""
        names = (*given,)
        if not self.n and not self._begin(names, given, plans):
            return Placed.TOO_LARGE
        if names != self._names:
            return Placed.FULL if plans[names] else Placed.TOO_LARGE
        n, pieces, full, list_sizes = 0, [], False, None
        forms = zip(given.values(), self._plan, self._kinds, self._shapes, strict=False)
        for values, intake, kind, shape in forms:
            column = intake(values)
            if column is None:
                return Placed.TOO_LARGE
            if len(column) != n:
                if n:
                    return Placed.TOO_LARGE
                n = len(column)
            if type(column) is _ARRAY:
                full |= column.ndim != len(shape) + 1
                if column.dtype is not kind:
                    full |= kind is not _FLOAT64 or column.dtype.kind == "f"
                    column = column.astype(_FLOAT64)  # integers
                pieces.append(column.tobytes())
            elif type(column) is list and type(kind) is Dictionary:
                piece = kind.piece(column)
                if piece is None:
                    return Placed.TOO_LARGE
                full |= len(kind.codes) > BUFFER_LISTS
                pieces.append(piece)
            elif type(column) is tuple:
                sizes = [*map(len, column)]
                if list_sizes is not None and sizes != list_sizes:
                    return Placed.TOO_LARGE
                list_sizes = sizes
                full |= kind is not None
                pieces.append(column)
            else:
                full = True
        if n > MOST_ROWS:
            return Placed.TOO_LARGE
        rows = self.n + n
        if full or rows > self._limit or self._batches >= BUFFER_BATCHES:
            return Placed.FULL
        for column_pieces, piece in zip(self._pieces, pieces, strict=False):
            column_pieces.append(piece)
        self.n = rows
        self._batches += 1
        return Placed.PENDING

    def take_all(self) -> dict[str, object]:
        """All columns by name; no row waits afterwards."""
        columns: dict[str, object] = {}
        parts = zip(self._names, self._kinds, self._shapes, self._pieces, strict=True)
        for name, kind, shape, pieces in parts:
            if type(kind) is Dictionary:
                codes = np.frombuffer(b"".join(pieces), np.intp)
                columns[name] = DictionaryColumn(codes, tuple(kind.codes))
                continue
            if kind is None:
                columns[name] = [*chain.from_iterable(pieces)]
                continue
            rows = np.frombuffer(b"".join(pieces), kind)
            columns[name] = rows.reshape(self.n, *shape) if shape else rows
        self.n = self._batches = 0
        self._pieces = self._kinds = []
        return columns

    def _begin(self, names: tuple[str, ...], given: Mapping[str, object], plans: Plans) -> bool:
        """Take the kinds of these columns for those of all that follow; False if `check` must read
        them."""
        plan = plans[names]
        columns = [intake(values) for intake, values in zip(plan, given.values(), strict=False)]
        if not plan or any(column is None for column in columns):
            return False
        self._names, self._plan = names, plan
        self._kinds, self._shapes, self._pieces = [], [], [[] for _ in columns]
        for column in columns:
            if isinstance(column, np.ndarray):
                self._kinds.append(column.dtype)
                self._shapes.append(column.shape[1:])
                continue
            self._kinds.append(Dictionary() if type(column) is list else None)
            self._shapes.append(())
        lists = set(map(type, columns)) != {_ARRAY}
        self._limit = BUFFER_LISTS if lists else BUFFER_ROWS
        self._limit //= max(1, *map(prod, self._shapes), 1)
        return True
