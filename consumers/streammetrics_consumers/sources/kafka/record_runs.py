"""Records of Kafka as lists of their fields, read from blocks of bytes of many batches at once.

A record is plain if it has no headers, and its numbers take four bytes at most, as nearly all do.
All fields of plain records are found in a few passes over arrays; a block with any other record is
read record by record.

    record    its size, attributes (1), time and offset after those of the batch, size of the key,
              key, size of the value, value, number of headers, headers
    number    7 bits a byte, the lowest first, while the high bit is set; its lowest bit is the sign
    size      below 0 for a key or value that is missing
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from typing import Final, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.model.chunk import Headers

V = TypeVar("V")
NO_HEADERS: Final[Headers] = ()


class Record(Protocol):
    """The interface of the client's ConsumerRecord."""

    offset: int
    value: bytes | None
    timestamp: int
    key: bytes | None
    headers: Headers


@dataclass(slots=True)
class RecordRun:
    """Consecutive records of a partition, one sequence a field.

    offsets: a range where there are no holes between those of plain records. timestamps_ms: below 0
    for a record without one; an array of 64-bit integers for plain records. headers: those of the
    records that have some, by position.
    """

    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: dict[int, Headers] = field(default_factory=dict)

    @classmethod
    def collected(cls, records: Sequence[Record]) -> RecordRun:
        """The run of these records of the client."""
        return cls(
            [record.offset for record in records],
            [record.timestamp for record in records],  # of old formats, which have 64 bits or none
            [record.key for record in records],
            [record.value for record in records],
            {i: record.headers for i, record in enumerate(records) if record.headers},
        )

    def __len__(self) -> int:
        """The number of records."""
        return len(self.offsets)

    def since(self, offset: int) -> RecordRun:
        """The records from the first one with this offset or a later one on: a broker sends whole
        batches."""
        places = (i for i, record_offset in enumerate(self.offsets) if record_offset >= offset)
        first = next(places, len(self))
        return self.part(first, len(self)) if first else self

    def part(self, first: int, last: int) -> RecordRun:
        """The records `first` to `last` (not included)."""
        records = slice(first, last)
        return RecordRun(
            self.offsets[records],
            self.timestamps_ms[records],
            self.keys[records],
            self.values[records],
            {i - first: pairs for i, pairs in self.headers.items() if first <= i < last},
        )


def joined(parts: Sequence[Sequence[V]]) -> Sequence[V]:
    """The fields of several runs, one after another; ranges and arrays stay such if all are.

    >>> joined([range(3, 5), range(5, 9)]), joined([range(3, 5), [7]])
    (range(3, 9), [3, 4, 7])
    """
    if len(parts) == 1:
        return parts[0]
    ranges = [part for part in parts if isinstance(part, range)]
    if len(ranges) == len(parts) and all(a.stop == b.start for a, b in pairwise(ranges)):
        return range(ranges[0].start, ranges[-1].stop)  # type: ignore[return-value]
    arrays = [part for part in parts if isinstance(part, array)]
    if len(arrays) == len(parts):
        return array("q", b"".join(map(array.tobytes, arrays)))  # type: ignore[return-value]
    return list(chain.from_iterable(parts))


class Runs:
    """Runs of records, whose length is the number of records."""

    def __init__(self) -> None:
        self._runs: list[RecordRun] = []
        self._count = 0

    def append(self, run: RecordRun) -> None:
        """Add a run."""
        self._runs.append(run)
        self._count += len(run)

    def __iter__(self) -> Iterator[RecordRun]:
        return iter(self._runs)

    def __len__(self) -> int:
        return self._count


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Consecutive records of a batch. starts: the position of each in the batch, and the end of the
    last; `data` begins at the first. last_offset: no offset is greater. time_ms: of all records, or
    that to which each adds its own. read: reads the records one by one, and raises an error if they
    are damaged."""

    data: bytes
    starts: list[int]
    base_offset: int
    last_offset: int
    time_ms: int
    is_time_of_all: bool
    read: Callable[[], RecordRun]

    def __len__(self) -> int:
        """The number of records."""
        return len(self.starts) - 1


def runs_of(blocks: Sequence[RecordBlock]) -> Iterator[RecordRun]:
    """The records of consecutive blocks, in as few runs as possible; raises the error of a damaged
    block after the blocks before it."""
    if not blocks:
        return
    plain = _PlainRecords(blocks)
    for (is_plain, _), group in groupby(range(len(blocks)), plain.kind):
        places = list(group)
        if is_plain:
            yield plain.run(places[0], places[-1] + 1)
        else:
            for i in places:
                yield blocks[i].read()


_PADDING: Final = 32  # zeros: the fields before the key of a record end before these do
_MOST_BYTES: Final = 4  # of a number; so no sum of positions overflows
_FAR: Final = 1 << 62
Integers: TypeAlias = "NDArray[np.int64]"


class _PlainRecords:
    """The fields of all records of some blocks as arrays, as if each was plain.

    Positions are bounded, so records that are not plain have any values.
    """

    def __init__(self, blocks: Sequence[RecordBlock]) -> None:
        counts = np.array([len(block) for block in blocks])
        sizes = np.array([len(block.data) for block in blocks])
        self._edges = np.concatenate([[0], np.cumsum(counts)])
        self._data = b"".join([*(block.data for block in blocks), bytes(_PADDING)])
        self._bytes = np.frombuffer(self._data, np.uint8)
        self._fits = np.ones(int(self._edges[-1]), np.bool_)
        # Where each record begins, and each block ends.
        marks = np.fromiter(
            chain.from_iterable(block.starts for block in blocks), np.int64, int((counts + 1).sum())
        )
        marks += np.repeat(
            np.cumsum(sizes) - sizes - [block.starts[0] for block in blocks], counts + 1
        )
        is_end = np.zeros(len(marks), np.bool_)
        is_end[np.cumsum(counts + 1) - 1] = True
        size, position = self._numbers(marks[~is_end])
        self._fits &= (size >= 0) & (self._bytes[position] < 0x80)
        later, position = self._numbers(position + 1)
        offset, position = self._numbers(position)
        self._key, self._key_start = self._numbers(position)
        self._value, self._value_start = self._numbers(self._after(self._key_start, self._key))
        self._end = self._after(self._value_start, self._value)
        self._fits &= self._bytes[self._end] == 0
        self._fits &= self._end + 1 == marks[1:][~is_end[:-1]]
        self._fits &= np.repeat([_is_near(block) for block in blocks], counts)
        has_time = np.repeat([not block.is_time_of_all for block in blocks], counts)
        self._offsets = _repeated([block.base_offset for block in blocks], counts) + offset
        self._times_ms = _repeated([block.time_ms for block in blocks], counts) + later * has_time
        self._fits &= offset >= 0
        self._fits &= self._offsets <= _repeated([block.last_offset for block in blocks], counts)
        ascend = self._offsets[1:] > self._offsets[:-1]
        self._ascend = bool(ascend.all())
        if not self._ascend:
            ascend[self._edges[1:-1] - 1] = True  # from one block to the next, which may be bad
            self._fits[1:] &= ascend
        self._is_plain = np.logical_and.reduceat(self._fits, self._edges[:-1]).tolist()

    def kind(self, i: int) -> tuple[bool, int]:
        """Whether the records of a block are plain; neighbours with equal kinds may be one run."""
        return self._is_plain[i], 0 if self._ascend else i

    def run(self, first: int, last: int) -> RecordRun:
        """The records of the blocks `first` to `last` (not included), which are plain."""
        records = slice(int(self._edges[first]), int(self._edges[last]))
        offsets = self._offsets[records]
        span = range(int(offsets[0]), int(offsets[-1]) + 1)
        keys, starts = self._key[records], self._key_start[records]
        has_keys = bool((keys >= 0).any())
        return RecordRun(
            span if self._ascend and len(span) == len(offsets) else offsets.tolist(),
            array("q", self._times_ms[records].tobytes()),
            self._texts(starts, starts + keys, keys) if has_keys else [None] * len(keys),
            self._texts(self._value_start[records], self._end[records], self._value[records]),
        )

    def _texts(self, starts: Integers, ends: Integers, sizes: Integers) -> list[bytes | None]:
        data = self._data
        texts: list[bytes | None] = [
            data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        for i in np.flatnonzero(sizes < 0).tolist():
            texts[i] = None
        return texts

    def _numbers(self, positions: Integers) -> tuple[Integers, Integers]:
        """The numbers at these positions, and the positions after them."""
        byte = self._bytes[positions]
        values, ends = (byte & 0x7F).astype(np.int64), positions + 1
        longer = np.flatnonzero(byte >= 0x80)
        for i in range(1, _MOST_BYTES):
            if not len(longer):
                break
            byte = self._bytes[positions[longer] + i]
            values[longer] |= (byte & 0x7F).astype(np.int64) << 7 * i
            ends[longer] += 1
            longer = longer[byte >= 0x80]
        self._fits[longer] = False
        return (values >> 1) ^ -(values & 1), ends

    def _after(self, starts: Integers, sizes: Integers) -> Integers:
        """The positions after texts; none is far after the data."""
        return np.minimum(starts + np.maximum(sizes, 0), len(self._bytes) - 2 * _MOST_BYTES)


def _is_near(block: RecordBlock) -> bool:
    """Whether offsets and times of a block surely fit 64 bits."""
    return abs(block.base_offset) < _FAR and abs(block.time_ms) < _FAR


def _repeated(values: Sequence[int], counts: NDArray[np.intp]) -> Integers:
    return np.repeat(np.array(values, np.int64), counts)
