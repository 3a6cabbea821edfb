"""Records read out of the client's batches, in half of the time that the client takes for them,
and within a limit of memory.

The client reads each field of a record with a call, and asks the batch for its settings at each
record. Here a batch is asked once, and numbers of one or two bytes, as nearly all are, are read in
place. What a batch is, whether it counts (transactions, markers) and what follows it stays the
client's, and so does a record with headers. Source for the layout: the Kafka protocol,
https://kafka.apache.org/documentation/#recordbatch

A batch is checked and decompressed when it is its turn, up to a limit: the client's own
decompresses without one, and 10 kB can ask for a gigabyte. No step here makes more than the limit
and one block. A batch that fails ends the reading there, after the records before it, or is left
out where that is allowed: then one record stands for it.

This uses private parts of the client. Where they are not laid out as they are known here, the
source reads what the client's public `poll` gives instead: see `is_known_layout`.
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

from streammetrics_consumers.sources import NO_SKIPS, Skips, UnreadableBatch, over_limit

# Two records as a producer packs them, with gzip: one with a key, and one with a header.
PROBE: Final = bytes.fromhex(
    "00000000000000000000005e0000000002d4bbaa790001000000010000018bcfe568000000018bcfe56801ffffffff"
    "ffffffffffffffffffff000000021f8b0800c76b036b02ff5bc0ccc0c0c0943d81b96c9800063106262646a67226a6"
    "0ca60a00a1451aeede000000"
)
FETCHED: Final = ("fetch_offset", "tp", "records", "check_crcs")  # what a fetcher hands over
NO_HEADERS: Final[tuple[tuple[str, bytes], ...]] = ()


class PlainRecord:
    """A record without headers, of the shape that the client takes."""

    __slots__ = ("key", "offset", "size_in_bytes", "timestamp", "timestamp_type", "value")

    headers = NO_HEADERS
    checksum: object = None  # it is the batch that has one

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
        """As of the client's record."""
        return True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """In place of the checksum of a record: this one stands for a batch up to offset `last`."""

    last: int


class _StandIn(PlainRecord):
    """A record that stands for a batch. It has no time."""

    __slots__ = ("checksum",)

    def __init__(self, first: int, last: int) -> None:
        super().__init__(0, first, -1, 0, None, b"")
        self.checksum = LeftOut(last)


class RecordBatch(DefaultRecordBatch):  # type: ignore[misc]  # the client ships no types
    """The client's batch, read faster. It raises what the client's raises."""

    __slots__ = ()
    _buffer: bytes | bytearray
    _pos: int
    _decompressed: bool

    def validate_crc(self) -> bool:
        """It was, before it was decompressed: see `fault`."""
        return True

    def fault(self, fetched: int, limit: int, *, check_crcs: bool) -> str | None:
        """What is wrong with it, in words; one that is good is decompressed, where it has offsets
        from `fetched` on."""
        if check_crcs and not super().validate_crc():
            return "one with another checksum"
        kind = self.compression_type
        if not kind or self.last_offset < fetched:
            return None
        self._assert_has_codec(kind)
        try:
            data = decompressed(kind, bytes(memoryview(self._buffer)[self._pos :]), limit)
        except OverLimit:
            return over_limit(limit)
        except Damaged:
            return "one that cannot be decompressed"
        self._buffer, self._pos, self._decompressed = data, 0, True  # type: ignore[misc]
        return None

    def __iter__(self) -> Iterator[object]:
        """The records; a control batch has markers instead, which are the client's."""
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
                # Four times the same: a number of one byte, of two, or whatever it is.
                # The lowest bit is the sign, and the highest of a byte says that more follow.
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
                if data[pos] or pos + 1 != end:  # it has headers, or is broken
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
    """What the client asks of a batch, where one record stands for it."""

    magic = 2
    is_control_batch = False
    leader_epoch = -1

    def __init__(self, first: int, last: int) -> None:
        self.base_offset, self.last_offset, self.next_offset = first, last, last + 1

    def has_producer_id(self) -> bool:
        """Whether it may be of a transaction that was aborted."""
        return False

    def validate_crc(self) -> bool:
        """As of a batch."""
        return True

    def __iter__(self) -> Iterator[object]:
        """The one record."""
        yield _StandIn(self.base_offset, self.last_offset)


class _Batches:
    """The batches of a fetch that began at an offset of a partition."""

    def __init__(
        self,
        found: MemoryRecords,
        place: tuple[str, int],
        fetched: int,
        limits: BatchLimits,
        check_crcs: bool,
    ) -> None:
        self._found, self._place, self._fetched = found, place, fetched
        self._limits, self._check_crcs = limits, check_crcs

    def next_batch(self) -> object:
        """The next one, None at the end. Raises UnreadableBatch."""
        batch = self._found.next_batch()
        if type(batch) is not DefaultRecordBatch:
            return batch
        batch.__class__ = RecordBatch  # the client has no word for another kind of batch
        got = batch.fault(self._fetched, self._limits.max_bytes, check_crcs=self._check_crcs)
        if got is None:
            return batch
        first = max(batch.base_offset, self._fetched)
        last = max(batch.last_offset, first)
        if (*self._place, first) in self._limits.skips:
            return _NoBatch(first, last)
        raise UnreadableBatch(*self._place, first, last, got)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How many bytes a batch may have when it is decompressed, and which may be left out."""

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
        """What a fetch brought of a partition, as the client's fetcher makes it."""
        place = partition.topic, partition.partition
        batches = _Batches(records, place, fetch_offset, self, check_crcs)
        return Fetcher.PartitionRecords(
            fetch_offset, partition, batches, check_crcs=check_crcs, **settings
        )


def is_known_layout() -> bool:
    """Whether the private parts of the client that are used here are as they were when this was
    written: a batch that is kept here reads as the client itself reads it."""
    try:
        theirs = MemoryRecords(PROBE).next_batch()
        ours = _Batches(MemoryRecords(PROBE), ("", 0), 0, BatchLimits(1 << 20), True).next_batch()
        if not isinstance(ours, RecordBatch):
            return False
        batches: tuple[Iterable[Any], ...] = theirs, ours
        expected, found = (
            [(one.offset, one.timestamp, one.key, one.value, list(one.headers)) for one in batch]
            for batch in batches
        )
        names = set(signature(Fetcher.PartitionRecords).parameters)
        return len(found) == 2 and found == expected and names.issuperset(FETCHED)
    except Exception:  # whatever parts that are not there raise
        return False


# -- codecs. The framings are those of the client: gzip with any number of members, one frame of
# LZ4, frames of Zstandard, and Snappy as one block or in the blocks of xerial's library.

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16
_GZIP: Final = 16 + zlib.MAX_WBITS
_STEP: Final = 1 << 16


class OverLimit(Exception):
    """There is more than the limit."""


class Damaged(Exception):
    """It cannot be decompressed."""


def decompressed(kind: int, data: bytes, limit: int) -> bytes:
    """The bytes of a batch in codec `kind` (1 to 4, whose library is installed), `limit` at most.

    Raises OverLimit or Damaged.
    """
    try:
        return CODECS[kind](data, limit)
    except (OverLimit, Damaged, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own
        raise Damaged(str(error)) from error


def _gzip(data: bytes, limit: int) -> bytes:
    found, left = bytearray(), data
    while left:
        member = zlib.decompressobj(_GZIP)
        found += member.decompress(left, limit + 1 - len(found))
        _check(found, limit)
        if not member.eof:
            raise Damaged("it ends within a member of gzip")
        left = member.unused_data.lstrip(b"\0")
    return bytes(found)


def _lz4(data: bytes, limit: int) -> bytes:
    frame = codec.lz4.LZ4FrameDecompressor()
    found: bytes = frame.decompress(data, max_length=limit + 1)
    _check(found, limit)
    if not frame.eof or frame.unused_data:
        raise Damaged("it is not one frame of LZ4")
    return found


def _zstd(data: bytes, limit: int) -> bytes:
    found, step = bytearray(), max(4 * len(data), _STEP)  # bytes that are asked for are allocated
    with codec.zstd.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        while some := reader.read(min(step, limit + 1 - len(found))):
            found += some
            _check(found, limit)
    return bytes(found)


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    found, at = bytearray(), _XERIAL_HEADER
    while at < len(data):
        (size,) = struct.unpack_from("!i", data, at)
        at += 4
        if not 0 < size <= len(data) - at:
            raise Damaged("it ends within a block of Snappy")
        found += _snappy_block(data[at : at + size], limit - len(found))
        at += size
    return bytes(found)


def _snappy_block(data: bytes, limit: int) -> bytes:
    """Snappy says the size first, as a number of 7 bits a byte, the lowest first."""
    size = 0
    for i, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            break
    if size > limit:
        raise OverLimit
    found: bytes = codec.snappy.decompress(data)
    return found


def _check(found: bytes | bytearray, limit: int) -> None:
    if len(found) > limit:
        raise OverLimit


CODECS: Final[Mapping[int, Callable[[bytes, int], bytes]]] = MappingProxyType(
    {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
)
