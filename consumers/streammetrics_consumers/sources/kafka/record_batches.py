"""Reading the records of the client's batches in a third of the time of the client, in bounded
memory.

The client makes two objects for each record, and reads each of its fields with a call. Here a batch
becomes runs: lists of its offsets, timestamps, keys and values. Numbers of one or two bytes, as
nearly all are, are decoded inline. The client takes a run for one record, and still handles the
batch framing, transactions, control batches, and records with headers. Source for the layout: the
Kafka protocol, https://kafka.apache.org/documentation/#recordbatch

A batch is checked and decompressed when it is reached, up to a limit: the client itself has no
limit, and 10 kB can expand to a gigabyte. No step here allocates more than the limit and one block.
An unreadable batch ends the reading after the records before it, or is skipped if that is allowed:
then one record replaces it.

This uses private parts of the client. If their layout is not the known one, the source uses the
records of the client's public `poll` instead: see `is_known_layout`.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, cast

from kafka import TopicPartition, codec
from kafka.consumer.fetcher import ConsumerRecord, Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import decode_varint

from streammetrics_consumers.sources import NO_SKIPS, Skips, UnreadableBatch, limit_text

# Two records as encoded by a producer, with gzip: one with a key, and one with a header.
PROBE: Final = bytes.fromhex(
    "00000000000000000000005e0000000002d4bbaa790001000000010000018bcfe568000000018bcfe56801ffffffff"
    "ffffffffffffffffffff000000021f8b0800c76b036b02ff5bc0ccc0c0c0943d81b96c9800063106262646a67226a6"
    "0ca60a00a1451aeede000000"
)
FETCHED: Final = ("fetch_offset", "tp", "records", "check_crcs")  # arguments from a fetcher
RUN_RECORDS: Final = 1000  # at most, since a batch may hold millions of small ones
Headers: TypeAlias = "Sequence[tuple[str, bytes | None]]"
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
    """Consecutive records of a partition, one list a field.

    timestamps_ms: below 0 for a record without one. headers: those of the records that have some,
    by position. left_out: the last offset of the unreadable batch that the one record replaces.
    """

    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: dict[int, Headers] = field(default_factory=dict)
    left_out: int | None = None

    @classmethod
    def collected(cls, records: Sequence[Record]) -> RecordRun:
        """The run of these records of the client."""
        return cls(
            [record.offset for record in records],
            [record.timestamp for record in records],
            [record.key for record in records],
            [record.value for record in records],
            {i: record.headers for i, record in enumerate(records) if record.headers},
        )

    def __len__(self) -> int:
        """The number of records."""
        return len(self.offsets)

    def part(self, first: int, last: int) -> RecordRun:
        """The records `first` to `last` (not included)."""
        here = slice(first, last)
        return RecordRun(
            self.offsets[here],
            self.timestamps_ms[here],
            self.keys[here],
            self.values[here],
            {i - first: pairs for i, pairs in self.headers.items() if first <= i < last},
            self.left_out,
        )


class _RunRecord:
    """A run with the interface of one record, which the client passes on: its `checksum`."""

    key = value = None
    headers = NO_HEADERS
    timestamp, timestamp_type = -1, 0

    def __init__(self, run: RecordRun, size_in_bytes: int) -> None:
        self.checksum, self.offset, self.size_in_bytes = run, run.offsets[-1], size_in_bytes

    def validate_crc(self) -> bool:
        """Return True; part of the client's record interface."""
        return True


class RecordBatch(DefaultRecordBatch):  # type: ignore[misc]  # the client ships no types
    """The client's batch, read faster, as runs of records. It raises the same errors, after the
    records before the error."""

    __slots__ = ()
    _buffer: bytes | bytearray
    _pos: int
    _decompressed: bool

    def validate_crc(self) -> bool:
        """Return True: `fault` checked it before decompression."""
        return True

    def fault(self, fetched: int, limit: int, *, check_crcs: bool) -> str | None:
        """The error of the batch as text, None if it is good. A good batch with offsets from
        `fetched` on is decompressed."""
        if check_crcs and not super().validate_crc():
            return "one with a wrong checksum"
        kind = self.compression_type
        if not kind or self.last_offset < fetched:
            return None
        self._assert_has_codec(kind)
        try:
            data = decompressed(kind, bytes(memoryview(self._buffer)[self._pos :]), limit)
        except OverLimit:
            return limit_text(limit)
        except DamagedBatch:
            return "one that cannot be decompressed"
        self._buffer, self._pos, self._decompressed = data, 0, True  # type: ignore[misc]
        return None

    def __iter__(self) -> Iterator[object]:
        """The records as runs; for a control batch the client's markers."""
        if self.is_control_batch or self._next_record_index:
            return iter(super().__iter__())
        self._maybe_uncompress()
        return self._runs()

    def _runs(self) -> Iterator[_RunRecord]:
        data, left, error = bytes(self._buffer), self._num_records, None
        while left > 0 and error is None:
            run, began = RecordRun(), self._pos
            try:
                self._read_into(run, data, min(left, RUN_RECORDS))
            except (ValueError, IndexError) as invalid:
                error = CorruptRecordError(f"Found invalid record structure: {invalid!r}")
            except CorruptRecordError as corrupt:
                error = corrupt
            left -= len(run)
            if run.offsets:
                yield _RunRecord(run, self._pos - began)
        if error is not None:
            raise error
        if self._pos != len(data):
            raise CorruptRecordError(
                f"{len(data) - self._pos} unconsumed bytes after all records consumed"
            )

    def _read_into(self, run: RecordRun, data: bytes, count: int) -> None:
        """Append the next `count` records to a run."""
        pos, base = self._pos, self.base_offset
        first, appended = self.first_timestamp, self.max_timestamp
        by_broker = self.timestamp_type == self.LOG_APPEND_TIME
        add_offset, add_time = run.offsets.append, run.timestamps_ms.append
        add_key, add_value = run.keys.append, run.values.append
        for _ in range(count):
            began = pos
            # The same code four times: a varint of one byte, of two, or of any length.
            # The lowest bit is the sign, and the high bit of a byte says that more follow.
            size = data[pos]
            if not size & 0x81:
                size, pos = size >> 1, pos + 1
            elif not size & 1 and data[pos + 1] < 0x80:
                size, pos = (size & 0x7E | data[pos + 1] << 7) >> 1, pos + 2
            else:
                size, pos = decode_varint(data, pos)
            end = pos + size
            if data[pos] & 0x80:
                _, pos = decode_varint(data, pos)  # attributes, none so far
            else:
                pos += 1
            later = data[pos]
            if not later & 0x81:
                later, pos = later >> 1, pos + 1
            elif not later & 1 and data[pos + 1] < 0x80:
                later, pos = (later & 0x7E | data[pos + 1] << 7) >> 1, pos + 2
            else:
                later, pos = decode_varint(data, pos)
            offset = data[pos]
            if not offset & 0x81:
                offset, pos = offset >> 1, pos + 1
            elif not offset & 1 and data[pos + 1] < 0x80:
                offset, pos = (offset & 0x7E | data[pos + 1] << 7) >> 1, pos + 2
            else:
                offset, pos = decode_varint(data, pos)
            key = None
            if data[pos] == 1:  # no key
                pos += 1
            else:
                length, pos = decode_varint(data, pos)
                if length >= 0:
                    key = data[pos : pos + length]
                    pos += length
            length = data[pos]
            if not length & 0x81:
                length, pos = length >> 1, pos + 1
            elif not length & 1 and data[pos + 1] < 0x80:
                length, pos = (length & 0x7E | data[pos + 1] << 7) >> 1, pos + 2
            else:
                length, pos = decode_varint(data, pos)
            value = None
            if length >= 0:
                value = data[pos : pos + length]
                pos += length
            if data[pos] or pos + 1 != end:  # it has headers, or is invalid
                self._pos = began  # type: ignore[misc]  # a slot of the client's
                record = self._read_msg()
                if record.headers:
                    run.headers[len(run)] = record.headers
                offset, later = record.offset - base, record.timestamp - first
                key, value, end = record.key, record.value, self._pos
            pos = end
            add_offset(base + offset)
            add_time(appended if by_broker else first + later)
            add_key(key)
            add_value(value)
        self._pos = pos  # type: ignore[misc]  # a slot of the client's


class _NoBatch:
    """A batch, with the interface that the client uses, that is replaced by one record."""

    magic = 2
    is_control_batch = False
    leader_epoch = -1

    def __init__(self, first: int, last: int) -> None:
        self.base_offset, self.last_offset, self.next_offset = first, last, last + 1

    def has_producer_id(self) -> bool:
        """Whether it may belong to an aborted transaction."""
        return False

    def validate_crc(self) -> bool:
        """Return True; part of the client's batch interface."""
        return True

    def __iter__(self) -> Iterator[object]:
        """The one record, without a timestamp."""
        first, last = self.base_offset, self.last_offset
        yield _RunRecord(RecordRun([first], [-1], [None], [b""], left_out=last), 0)


class Batches:
    """The batches of one fetch of a partition, from offset `fetched` on."""

    def __init__(
        self,
        records: MemoryRecords,
        partition_id: tuple[str, int],
        fetched: int,
        limits: BatchLimits,
        check_crcs: bool,
    ) -> None:
        self._found, self._topic_partition, self._fetched = records, partition_id, fetched
        self._limits, self._check_crcs = limits, check_crcs

    def next_batch(self) -> object:
        """The next batch, None at the end. Raises UnreadableBatch."""
        batch = self._found.next_batch()
        if type(batch) is not DefaultRecordBatch:
            return batch
        batch.__class__ = RecordBatch  # the client has no setting for another batch class
        got = batch.fault(self._fetched, self._limits.max_bytes, check_crcs=self._check_crcs)
        if got is None:
            return batch
        first = max(batch.base_offset, self._fetched)
        last = max(batch.last_offset, first)
        if (*self._topic_partition, first) in self._limits.skips:
            return _NoBatch(first, last)
        raise UnreadableBatch(*self._topic_partition, first, last, got)


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


class PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a fetch of one partition, from which runs are taken in place of records."""

    fetch_offset: int
    next_fetch_offset: int
    record_iterator: Iterator[ConsumerRecord] | None
    _next_inline_exception: Exception | None
    _rest: RecordRun | None = None  # of the last run

    def take(self, n: int) -> Runs:
        """The next runs, of `n` records at most. An error is raised after the records before it."""
        self._maybe_raise_next_inline_exception()
        runs, rest = Runs(), self._rest
        self._rest = None
        try:
            if rest is not None:
                self._add(runs, rest, n)
            while len(runs) < n and self.record_iterator is not None:
                record = next(self.record_iterator, None)
                if record is not None:
                    is_run = isinstance(record.checksum, RecordRun)
                    run = record.checksum if is_run else RecordRun.collected([record])
                    early = bisect_left(run.offsets, self.fetch_offset)
                    self._add(runs, run.part(early, len(run)) if early else run, n)
        except Exception as error:
            if not runs:
                raise
            self._next_inline_exception = error
        return runs

    def _add(self, runs: Runs, run: RecordRun, n: int) -> None:
        left = n - len(runs)
        if len(run) > left:
            run, self._rest = run.part(0, left), run.part(left, len(run))
        runs.append(run)
        self.next_fetch_offset = run.offsets[-1] + 1


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The maximum decompressed size of a batch in bytes, and the batches that may be skipped."""

    max_bytes: int
    skips: Skips = NO_SKIPS

    def records(
        self,
        fetch_offset: int,
        partition: TopicPartition,
        records: MemoryRecords,
        check_crcs: bool = True,
        **settings: object,
    ) -> object:
        """The records of a fetch of one partition, as the client's fetcher creates them."""
        partition_id = partition.topic, partition.partition
        batches = Batches(records, partition_id, fetch_offset, self, check_crcs)
        return PartitionRecords(fetch_offset, partition, batches, check_crcs=check_crcs, **settings)


def is_known_layout() -> bool:
    """Whether the private parts of the client that this module uses have the known layout: the
    stored batch PROBE gives the same records as with the client itself."""
    try:
        client_batch = MemoryRecords(PROBE).next_batch()
        own_batch = Batches(
            MemoryRecords(PROBE), ("", 0), 0, BatchLimits(1 << 20), True
        ).next_batch()
        if not isinstance(own_batch, RecordBatch):
            return False
        expected = RecordRun.collected(list(client_batch))
        (record,) = cast("Iterable[Any]", own_batch)
        names = set(signature(Fetcher.PartitionRecords).parameters)
        return len(expected) == 2 and record.checksum == expected and names.issuperset(FETCHED)
    except Exception:  # missing parts may raise anything
        return False


# -- codecs. The framings are those of the client: gzip with any number of members, one LZ4 frame,
# Zstandard frames, and Snappy as one block or in the blocks of the xerial library.

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16
_GZIP: Final = 16 + zlib.MAX_WBITS
_STEP: Final = 1 << 16


class OverLimit(Exception):
    """The decompressed data exceeds the limit."""


class DamagedBatch(Exception):
    """The data cannot be decompressed."""


def decompressed(kind: int, data: bytes, limit: int) -> bytes:
    """The decompressed bytes of a batch, at most `limit`. kind: codec 1 to 4, whose library is
    installed.

    Raises OverLimit or Damaged.
    """
    try:
        return CODECS[kind](data, limit)
    except (OverLimit, DamagedBatch, MemoryError):
        raise
    except Exception as error:  # each library has its own errors
        raise DamagedBatch(str(error)) from error


def _gzip(data: bytes, limit: int) -> bytes:
    output, left = bytearray(), data
    while left:
        member = zlib.decompressobj(_GZIP)
        output += member.decompress(left, limit + 1 - len(output))
        _check(output, limit)
        if not member.eof:
            raise DamagedBatch("it ends within a member of gzip")
        left = member.unused_data.lstrip(b"\0")
    return bytes(output)


def _lz4(data: bytes, limit: int) -> bytes:
    frame = codec.lz4.LZ4FrameDecompressor()
    output: bytes = frame.decompress(data, max_length=limit + 1)
    _check(output, limit)
    if not frame.eof or frame.unused_data:
        raise DamagedBatch("it is not one frame of LZ4")
    return output


def _zstd(data: bytes, limit: int) -> bytes:
    output, step = bytearray(), max(4 * len(data), _STEP)  # each read allocates its full size
    with codec.zstd.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        while block := reader.read(min(step, limit + 1 - len(output))):
            output += block
            _check(output, limit)
    return bytes(output)


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    output, position = bytearray(), _XERIAL_HEADER
    while position < len(data):
        (size,) = struct.unpack_from("!i", data, position)
        position += 4
        if not 0 < size <= len(data) - position:
            raise DamagedBatch("it ends within a block of Snappy")
        output += _snappy_block(data[position : position + size], limit - len(output))
        position += size
    return bytes(output)


def _snappy_block(data: bytes, limit: int) -> bytes:
    """Decompress a Snappy block, which starts with its size as a little-endian base-128 varint."""
    size = 0
    for i, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            break
    if size > limit:
        raise OverLimit
    output: bytes = codec.snappy.decompress(data)
    return output


def _check(output: bytes | bytearray, limit: int) -> None:
    if len(output) > limit:
        raise OverLimit


CODECS: Final[Mapping[int, Callable[[bytes, int], bytes]]] = MappingProxyType(
    {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
)
