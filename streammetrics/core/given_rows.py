"""Rows that wait as they were given, until they are checked and counted together.

Each of their columns passed its intake, so that `check` accepts them together as it would one by
one. A call then costs its columns, not what the metric makes of them: the split by key, the
dictionary of ids, the units of weights, the rows of each metric of a panel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, repeat
from math import prod
from struct import Struct
from sys import getsizeof
from typing import Any, Final, TypeAlias, cast

import numpy as np

from streammetrics.core.buffer import BUFFER_BATCHES, BUFFER_LISTS, BUFFER_ROWS, Placed
from streammetrics.core.ids.keys import most_bytes_of
from streammetrics.core.intakes import MOST_ROWS, Intake, Plans
from streammetrics.core.rows import DictionaryColumn, Key, keys_nbytes

_ARRAY: Final = np.ndarray
_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
_CODE, _FLOAT, _INTEGER = Struct("n"), Struct("d"), Struct("q")  # an intp, float64, int64
_EXACT: Final = 1 << 53  # integers up to this one are exact in float64
_SPARE: Final = 4  # rows for each key of a dictionary that is kept
_KEY_BYTES: Final = 1024  # of an encoded key that waits
_MOST_TOTAL: Final = 1 << 40  # the most that a waiting row can add to any one count


class Dictionary:
    """The keys that wait, each once, with its code."""

    __slots__ = ("codes",)

    def __init__(self) -> None:
        self.codes: dict[Key, int] = {}

    def piece(self, keys: Sequence[Key]) -> bytes | None:
        """The codes of these keys, of which each is a scalar or a tuple of scalars; None if a new
        one is long, or numpy might read it as another."""
        codes = self.codes
        n = len(keys)
        if n == 1 and (code := codes.get(keys[0])) is not None:
            return _CODE.pack(code)
        column = np.fromiter(map(codes.get, keys, repeat(-1)), np.intp, n)
        if column.item(column.argmin()) < 0:
            new = dict.fromkeys(keys[i] for i in np.flatnonzero(column < 0).tolist())
            kinds = set(map(type, new))
            strings = "".join(cast("Iterable[str]", new) if kinds == {str} else _texts(new))
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


# The intake of a column; the dtype of its array, the codes of its keys, or None for lists; and the
# shape of a row.
Form: TypeAlias = tuple[Intake, "np.dtype[Any] | Dictionary | None", tuple[int, ...]]


class GivenRows:
    """Columns of the same names and kinds: of each batch, the bytes of an array or of codes, or its
    lists."""

    __slots__ = ("_batches", "_forms", "_items", "_limit", "_names", "_spare", "n")

    def __init__(self) -> None:
        self.n = 0
        self._names: tuple[str, ...] = ()
        self._forms: list[Form] = []
        self._batches: list[list[Any]] = []  # of each one, its columns
        self._limit = self._items = 0  # items of lists
        self._spare: dict[str, Dictionary] = {}

    @property
    def total(self) -> int:
        """The most that these rows can add to any one count."""
        return self.n * _MOST_TOTAL

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        total = 0
        columns = zip(*self._batches, strict=True)
        for (_, kind, _), pieces in zip(self._forms, columns, strict=False):
            lists = chain.from_iterable(pieces) if kind is None else ()
            total += sum(map(getsizeof, lists) if kind is None else map(len, pieces))
            total += keys_nbytes(kind.codes) if type(kind) is Dictionary else 0
        return total

    def put(self, columns: Mapping[str, object], plans: Plans) -> Placed:
        """Keep a copy of these columns; TOO_LARGE if `check` must read them, FULL if the rows that
        wait must be counted first."""
        names = (*columns,)
        first = next(iter(columns.values()), None)  # as long as all others, or `check` refuses them
        if type(first) is _ARRAY and first.ndim and len(first) > MOST_ROWS:
            return Placed.TOO_LARGE  # before an intake reads it, in vain
        if not self.n and not self._begin(names, columns, plans):
            return Placed.TOO_LARGE
        if names != self._names:
            return Placed.FULL if plans[names] else Placed.TOO_LARGE
        n, full = 0, len(self._batches) >= BUFFER_BATCHES
        pieces: list[Any] = []
        sizes: list[int] | None = None  # of lists
        for values, (intake, kind, shape) in zip(columns.values(), self._forms, strict=False):
            column = intake(values)
            size = 1
            if type(column) is _ARRAY:
                size = len(column)
                if column.dtype is not kind or column.ndim != len(shape) + 1:
                    full |= kind is not _FLOAT64 or column.dtype.kind == "f"
                    full |= column.ndim != len(shape) + 1
                    column = column.astype(_FLOAT64)  # integers
                pieces.append(column.tobytes())
            elif type(column) is tuple:
                size, lengths = len(column), [*map(len, column)]
                if sizes is not None and sizes != lengths:
                    return Placed.TOO_LARGE
                sizes = lengths
                full |= kind is not None
                pieces.append(column)
            elif column is None:
                return Placed.TOO_LARGE
            elif type(column) is float or type(column) is int:
                if (kind is _FLOAT64 and -_EXACT <= column <= _EXACT) or (
                    kind is _FLOAT64 and type(column) is float
                ):
                    pieces.append(_FLOAT.pack(column))
                elif kind is _INT64 and type(column) is int:
                    pieces.append(_INTEGER.pack(column))
                else:
                    full = True
            elif type(column) is list and type(kind) is Dictionary:
                codes = kind.piece(column)
                if codes is None:
                    return Placed.TOO_LARGE
                full |= len(kind.codes) > BUFFER_LISTS
                pieces.append(codes)
                size = len(column)
            else:
                size, full = len(cast("list[Any]", column)), True
            if size != n:
                if n:
                    return Placed.TOO_LARGE
                n = size
        if n > MOST_ROWS:
            return Placed.TOO_LARGE
        if full or self.n + n > self._limit:
            return Placed.FULL
        if sizes is not None:
            self._items += sum(sizes)
            if self.n and self._items > BUFFER_ROWS:
                return Placed.FULL
        self._batches.append(pieces)
        self.n += n
        return Placed.PENDING

    def columns(self) -> dict[str, object]:
        """All columns by name."""
        columns: dict[str, object] = {}
        parts = zip(self._names, self._forms, zip(*self._batches, strict=True), strict=True)
        for name, (_, kind, shape), pieces in parts:
            if kind is None:
                columns[name] = [*chain.from_iterable(pieces)]
            elif type(kind) is Dictionary:
                codes = np.frombuffer(b"".join(pieces), np.intp)
                columns[name] = DictionaryColumn(codes, tuple(kind.codes))
            else:
                rows = np.frombuffer(b"".join(pieces), cast("np.dtype[Any]", kind))
                columns[name] = rows.reshape(self.n, *shape) if shape else rows
        return columns

    def clear(self) -> None:
        """Forget all rows."""
        # A dictionary much shorter than its rows is worth keeping for those that follow.
        self._spare = {
            name: kind
            for name, (_, kind, _) in zip(self._names, self._forms, strict=True)
            if type(kind) is Dictionary and _SPARE * len(kind.codes) <= self.n
        }
        self.n, self._items, self._forms, self._batches = 0, 0, [], []

    def _begin(self, names: tuple[str, ...], columns: Mapping[str, object], plans: Plans) -> bool:
        """Take the kinds of these columns for those of all that follow; False if `check` must read
        them."""
        forms: list[Form] = []
        for name, intake, values in zip(names, plans[names], columns.values(), strict=False):
            column = intake(values)
            if isinstance(column, np.ndarray):
                forms.append((intake, column.dtype, column.shape[1:]))
            elif column is None:
                return False
            elif isinstance(column, (float, int)):
                forms.append((intake, _FLOAT64 if type(column) is float else _INT64, ()))
            else:
                keys = self._spare.get(name, Dictionary()) if type(column) is list else None
                forms.append((intake, keys, ()))
        only_arrays = all(isinstance(kind, np.dtype) for _, kind, _ in forms)
        self._names, self._forms = names, forms
        self._limit = BUFFER_ROWS if only_arrays else BUFFER_LISTS
        self._limit //= max(1, *[prod(shape) for _, _, shape in forms], 1)
        return bool(forms)
