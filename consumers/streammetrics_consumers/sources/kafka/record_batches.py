"""Reading the records of the client's batches in half the time of the client, in bounded memory.

The client reads each field of a record with a call, and reads the settings of the batch at each
record. Here the settings are read once per batch, and numbers of one or two bytes, as nearly all
are, are decoded inline. The client still handles the batch framing, transactions, control batches,
and records with headers. Source for the layout: the Kafka protocol,
https://kafka.apache.org/documentation/#recordbatch

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from types import MappingProxyType
from typing import Any, Final

from kafka import TopicPartition, codec
from kafka.consumer.fetcher import Fetcher
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
NO_HEADERS: Final[tuple[tuple[str, bytes], ...]] = ()


class PlainRecord:
    """A record without headers, with the interface that the client expects."""

    __slots__ = ("key", "offset", "size_in_bytes", "timestamp", "timestamp_type", "value")

    headers = NO_HEADERS
    checksum: object = None  # only batches have one

    def __init__(
        self,
        size_in_bytes: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
    ) -> None:
        self.size_in_bytes, self.offset = size_in_bytes, offset
        self.timestamp, self.timestamp_type = timestamp, timestamp_type
        self.key, self.value = key, value

    def validate_crc(self) -> bool:
        """Return True; part of the client's record interface."""
        return True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The checksum of a record that replaces a batch up to offset `last`."""

    last: int


class _StandIn(PlainRecord):
    """A record that replaces a batch. It has no timestamp."""

    __slots__ = ("checksum",)

    def __init__(self, first: int, last: int) -> None:
        super().__init__(0, first, -1, 0, None, b"")
        self.checksum = LeftOut(last)


class RecordBatch(DefaultRecordBatch):  # type: ignore[misc]  # the client ships no types
    """The client's batch, read faster. It raises the same errors."""

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
        """The records; for a control batch the client's markers."""
        if self.is_control_batch or self._next_record_index:
            return iter(super().__iter__())
        self._maybe_uncompress()
        return self._plainly()

    def _plainly(self) -> Iterator[object]:
        data = bytes(self._buffer)
        pos: int = self._pos
        base, kind = self.base_offset, self.timestamp_type
        first, appended = self.first_timestamp, self.max_timestamp
        by_broker = kind == self.LOG_APPEND_TIME
        try:
            for _ in range(self._num_records):
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
                length, pos = decode_varint(data, pos) if data[pos] != 1 else (-1, pos + 1)
                key = None
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
                    yield self._read_msg()
                    pos = self._pos
                    continue
                pos = end
                time = appended if by_broker else first + later
                yield PlainRecord(size, base + offset, time, kind, key, value)
        except (ValueError, IndexError) as error:
            raise CorruptRecordError(f"Found invalid record structure: {error!r}") from error
        if pos != len(data):
            raise CorruptRecordError(
                f"{len(data) - pos} unconsumed bytes after all records consumed"
            )


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
        """The one record."""
        yield _StandIn(self.base_offset, self.last_offset)


class _Batches:
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
        batches = _Batches(records, partition_id, fetch_offset, self, check_crcs)
        return Fetcher.PartitionRecords(
            fetch_offset, partition, batches, check_crcs=check_crcs, **settings
        )


def is_known_layout() -> bool:
    """Whether the private parts of the client that this module uses have the known layout: the
    stored batch PROBE gives the same records as with the client itself."""
    try:
        client_batch = MemoryRecords(PROBE).next_batch()
        own_batch = _Batches(
            MemoryRecords(PROBE), ("", 0), 0, BatchLimits(1 << 20), True
        ).next_batch()
        if not isinstance(own_batch, RecordBatch):
            return False
        batches: tuple[Iterable[Any], ...] = client_batch, own_batch
        expected, records = (
            [
                (record.offset, record.timestamp, record.key, record.value, list(record.headers))
                for record in batch
            ]
            for batch in batches
        )
        names = set(signature(Fetcher.PartitionRecords).parameters)
        return len(records) == 2 and records == expected and names.issuperset(FETCHED)
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
