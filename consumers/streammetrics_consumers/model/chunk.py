"""Records of one log, as a source delivers them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.model.partition import Partition

V = TypeVar("V")
# The headers of a record; None if a name is no UTF-8 text, for which one client has no headers.
Headers: TypeAlias = "Iterable[tuple[str, bytes | None]] | None"


@dataclass(frozen=True, slots=True)
class Texts:
    """A text field of many events: text i is `data[offsets[i]:offsets[i + 1]]`, in UTF-8.
    `dictionary_column()` returns the texts as a dictionary-encoded column."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    dictionary_column: Callable[[], DictionaryColumn]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def end_to_end(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of texts in UTF-8, and their offsets, int64 [n + 1], as in `Texts`.

    Raises TypeError for a value that is no text."""
    ended = ("\n".join(texts) + "\n").encode("utf-8", "surrogatepass")
    ends = np.flatnonzero(np.frombuffer(ended, np.uint8) == ord("\n"))
    if len(ends) != len(texts):  # a text has a line end of its own
        sizes = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
        ends = np.cumsum(sizes, dtype=np.int64) + np.arange(len(texts))
    data = np.frombuffer("".join(texts).encode("utf-8", "surrogatepass"), np.uint8)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.subtract(ends, np.arange(len(texts)), out=offsets[1:])
    return data, offsets


class Lazy(Sequence[V]):
    """A sequence whose values are made on access: value i is `make(i)`."""

    def __init__(self, n: int, make: Callable[[int], V]) -> None:
        self._n, self._make = n, make

    @overload
    def __getitem__(self, index: int) -> V: ...
    @overload
    def __getitem__(self, index: slice) -> Lazy[V]: ...
    def __getitem__(self, index: int | slice) -> V | Lazy[V]:
        if isinstance(index, slice):
            chosen, make = range(self._n)[index], self._make
            return Lazy(len(chosen), lambda i: make(chosen[i]))
        if not 0 <= index < self._n:
            raise IndexError(index)
        return self._make(index)

    def __len__(self) -> int:
        return self._n


Integers: TypeAlias = "Sequence[int] | NDArray[np.int64]"

# One field of many events: plain values, numbers or times as stored, or texts, either
# dictionary-encoded or as raw bytes.
Values: TypeAlias = "list[object] | NDArray[np.generic] | DictionaryColumn | Texts"


class StoredColumns(Mapping[str, Values]):
    """Rows of a source that stores columns: their values by dotted path, converted on access, so a
    column that nothing reads may be of any type."""

    @abstractmethod
    def part(self, positions: slice) -> StoredColumns:
        """The rows at these positions. No value is converted."""

    @abstractmethod
    def present(self, path: str) -> NDArray[np.bool_]:
        """Which rows have a value of any type in a column; bool [n]."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The full size in bytes and the hash of a record of which a chunk holds only the beginning.

    unreadable: why a batch cannot be read, where the entry is a batch and not a record; None where
    a record is over the size limit.
    """

    size: int
    sha256: str
    unreadable: str | None = None


@runtime_checkable
class HasBytes(Protocol):
    """Values whose size is known without making them."""

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one partition, in offset order.

    `start` is the offset at which the read began and `end` the next one to read, so the chunks of
    a partition are contiguous even where offsets have holes. `values[i]` is the raw record at
    `offsets[i]`, None for a tombstone. `timestamps_ms`, `keys` and `headers` are None where a
    source does not have them; a record without a timestamp has None or a value below 0.

    `cut` holds the indices whose value is only the beginning, because the record is over the size
    limit or cannot be read. `indices[i]` is the position of an event in its record, in chunks
    whose records were opened into their events; None while a record is one event. `fields` is the
    header of a CSV file. `columns` holds the same rows by column, by dotted path, for sources that
    store columns (times as datetime64[ms]); `values` then makes the text of a row on demand.
    `longest`: no value has more bytes, and none is missing; None while they have not been measured.
    """

    partition: Partition
    start: int
    end: int
    offsets: Integers
    values: Sequence[bytes | None]
    timestamps_ms: Sequence[int | None] | NDArray[np.int64] | None = None
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers] | None = None
    cut: Mapping[int, Cut] = field(default_factory=dict)
    fields: tuple[str, ...] | None = None
    columns: StoredColumns | None = None
    indices: Integers | None = None
    longest: int | None = None

    def __len__(self) -> int:
        """The number of records."""
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        """Bytes of the records as read: of the values, or of the columns that hold them."""
        values = self.values
        if not isinstance(values, list) and isinstance(values, HasBytes):
            return values.nbytes
        try:
            return sum(map(len, values))
        except TypeError:  # None has no length
            return sum(map(len, filter(None, values)))

    def part(self, first: int, last: int, start: int, end: int) -> Chunk:
        """The records `first` to `last` (not included) as a chunk from `start` to `end`."""
        positions = slice(first, last)
        return replace(
            self,
            start=start,
            end=end,
            offsets=self.offsets[positions],
            values=self.values[positions],
            timestamps_ms=None if self.timestamps_ms is None else self.timestamps_ms[positions],
            keys=None if self.keys is None else self.keys[positions],
            headers=None if self.headers is None else self.headers[positions],
            cut={i - first: cut for i, cut in self.cut.items() if first <= i < last},
            columns=None if self.columns is None else self.columns.part(positions),
            indices=None if self.indices is None else self.indices[positions],
        )


class SourceError(Exception):
    """A source cannot continue: the file is gone, the broker refuses, or the format differs."""
