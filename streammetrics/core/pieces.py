"""Copies of batches of one kind, as bytes: `tobytes` copies a hundred rows in a fifth of the time
of `copy`, and bytes are joined in a fraction of the time of arrays."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.batch import Batch, Column
from streammetrics.core.rows import DictionaryColumn, Key, Ragged, dictionary_nbytes, offsets_of

# The kinds of the columns of a batch, its arrays, and the values of its dictionaries: batches of
# equal kinds can be joined.
Parts: TypeAlias = tuple[list[object], Collection[NDArray[Any]], Collection[tuple[Key, ...]]]
_Lists: TypeAlias = tuple[list[object], list[NDArray[Any]], list[tuple[Key, ...]]]
# The name of a column, and the dtype and the shape of a row of an array; or Ragged and the dtype of
# its values; DictionaryColumn; Batch, whose columns follow until None; or int and the place of the
# same column before.
Kind: TypeAlias = tuple[str, object, object]
_ARRAY: Final = np.ndarray


def parts_of(batch: Batch) -> Parts:
    """A batch, taken apart."""
    columns = batch.columns
    kinds: list[object] = [*columns]  # less to compare than a Kind of each, if all are arrays
    for c in columns.values():
        if type(c) is not _ARRAY:
            parts: _Lists = [], [], []
            _take_apart(batch, parts, {})
            return parts
        kinds.append(c.dtype)
        if c.ndim > 1:
            kinds.append(c.shape[1:])
    return kinds, columns.values(), ()  # type: ignore[return-value]  # all are arrays


def _take_apart(batch: Batch, parts: _Lists, places: dict[int, int]) -> None:
    """Add the parts of a batch. places: of each column so far by its `id`, as the metrics of a
    panel may read the same ones."""
    kinds, arrays, values = parts
    for name, c in batch.columns.items():
        if type(c) is Batch:
            kinds.append((name, Batch, None))
            _take_apart(c, parts, places)
            kinds.append((name, None, None))
            continue
        place = len(places)
        if (before := places.setdefault(id(c), place)) != place:
            kinds.append((name, int, before))
        elif type(c) is _ARRAY:
            kinds.append((name, c.dtype, c.shape[1:]))
            arrays.append(c)
        elif type(c) is Ragged:
            kinds.append((name, Ragged, c.values.dtype))
            arrays += (c.values, c.offsets)
        elif isinstance(c, DictionaryColumn):
            kinds.append((name, DictionaryColumn, None))
            arrays.append(c.codes)
            values.append(c.values)


class Pieces:
    """The pieces of batches of one kind, in their order."""

    __slots__ = ("arrays", "columns", "count", "kinds", "values")

    def __init__(self, batch: Batch | None = None, parts: Parts = ([], (), ())) -> None:
        """batch: one of this kind, which is not added; parts: its parts."""
        self.kinds, arrays, values = parts
        self.columns = cast("list[Kind]", self.kinds)
        if batch is not None and type(self.kinds[0]) is str:  # all are arrays
            plain = zip(batch.columns, arrays, strict=True)
            self.columns = [(name, array.dtype, array.shape[1:]) for name, array in plain]
        self.count = [0]  # rows
        self.arrays: list[list[bytes]] = [[] for _ in arrays]
        self.values: list[list[tuple[Key, ...]]] = [[] for _ in values]

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        array_bytes = sum(len(piece) for pieces in self.arrays for piece in pieces)
        return array_bytes + sum(map(dictionary_nbytes, chain.from_iterable(self.values)))

    def add(self, n: int, parts: Parts) -> None:
        """Add a copy of `n` rows of this kind."""
        _, arrays, values = parts
        for i, array in enumerate(arrays):  # which takes half the time of a `zip`
            self.arrays[i].append(array.tobytes())
        for i, keys in enumerate(values):
            self.values[i].append(keys)
        self.count[0] += n

    def batch(self, total: int) -> Batch:
        """All rows as one batch of this total."""
        n, columns = self.count[0], list[Column]()
        arrays, values = iter(self.arrays), iter(self.values)
        nested = [Batch(n, {}, total)]
        for name, kind, detail in self.columns:
            column: Column
            if kind is None:
                nested.pop()
                continue
            if kind is Batch:
                column = Batch(n, {}, total)
            elif kind is int:
                column = columns[cast("int", detail)]
            else:
                pieces = next(arrays)
                if kind is Ragged:
                    lists = _joined(pieces, cast("np.dtype[Any]", detail))
                    column = Ragged(lists, _joined_offsets(next(arrays)))
                elif kind is DictionaryColumn:
                    column = _joined_codes(pieces, next(values))
                else:
                    rows = _joined(pieces, cast("np.dtype[Any]", kind))
                    column = rows.reshape(n, *cast("tuple[int, ...]", detail))
                columns.append(column)
            nested[-1].columns[name] = column
            if isinstance(column, Batch):
                nested.append(column)
        return nested[0]

    def clear(self) -> None:
        """Forget all rows."""
        for pieces in self.arrays:
            pieces.clear()
        for dictionaries in self.values:
            dictionaries.clear()
        self.count[0] = 0


def _joined(pieces: list[bytes], kind: np.dtype[Any]) -> NDArray[Any]:
    return np.frombuffer(b"".join(pieces), kind)


def _joined_offsets(pieces: list[bytes]) -> NDArray[np.int64]:
    """The offsets of all lists, from those of each batch."""
    offsets = _joined(pieces, np.dtype(np.int64))
    ends = np.cumsum(np.fromiter(map(len, pieces), np.intp, len(pieces))) // offsets.itemsize
    return offsets_of(np.delete(offsets[1:] - offsets[:-1], ends[:-1] - 1))


def _joined_codes(pieces: list[bytes], values: list[tuple[Key, ...]]) -> DictionaryColumn:
    """All rows of dictionary-encoded columns; a value in several of them is held once."""
    codes = _joined(pieces, np.dtype(np.intp))
    every = [*chain.from_iterable(values)]
    value_codes = {value: code for code, value in enumerate(dict.fromkeys(every))}
    new_codes = np.fromiter(map(value_codes.__getitem__, every), np.intp, len(every))
    sizes = np.fromiter(map(len, pieces), np.intp, len(pieces)) // codes.itemsize
    starts = offsets_of(np.fromiter(map(len, values), np.intp, len(values)))[:-1]
    return DictionaryColumn(new_codes[codes + np.repeat(starts, sizes)], tuple(value_codes))
