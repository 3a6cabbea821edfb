"""Reading the records of the client's batches in a fifth of the time of the client, in bounded
memory.

The client makes two objects for each record, and reads each of its fields with a call. Here a batch
becomes blocks: the bytes of its records, and where each begins. `record_runs` reads those of many
batches together. The client takes a block for one record, and still handles the batch framing,
transactions, control batches, and records that are not plain. Source for the layout: the Kafka
protocol, https://kafka.apache.org/documentation/#recordbatch

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
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import Any, Final, cast

from kafka import TopicPartition, codec
from kafka.consumer.fetcher import ConsumerRecord, Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import decode_varint

from streammetrics_consumers.sources import NO_SKIPS, Skips, UnreadableBatch, limit_text
from streammetrics_consumers.sources.kafka.record_runs import (
    NO_HEADERS,
    Record,
    RecordBlock,
    RecordRun,
    Runs,
    runs_of,
)

# Two records as encoded by a producer, with gzip: one with a key, and one with a header.
PROBE: Final = bytes.fromhex(
    "00000000000000000000005e0000000002d4bbaa790001000000010000018bcfe568000000018bcfe56801ffffffff"
    "ffffffffffffffffffff000000021f8b0800c76b036b02ff5bc0ccc0c0c0943d81b96c9800063106262646a67226a6"
    "0ca60a00a1451aeede000000"
)
FETCHED: Final = ("fetch_offset", "tp", "records", "check_crcs")  # arguments from a fetcher
BLOCK_RECORDS: Final = 1000  # at most, since a batch may hold millions of small ones
MAX_BLOCK_BYTES: Final = 8 << 20  # a larger one is not copied: the client reads it
TOGETHER_BYTES: Final = 1 << 20  # of blocks, to read them together
_LATER: Final = 1 << 62  # in place of an offset


class _BlockRecord:
    """A block or run with the interface of one record, which the client passes on: its `checksum`.

    offset: of its last record; of a block it is not known yet."""

    key = value = None
    headers = NO_HEADERS
    timestamp, timestamp_type = -1, 0

    def __init__(self, records: RecordBlock | RecordRun, size_in_bytes: int) -> None:
        self.checksum, self.size_in_bytes = records, size_in_bytes
        self.offset = records.offsets[-1] if isinstance(records, RecordRun) else _LATER

    def validate_crc(self) -> bool:
        """Return True; part of the client's record interface."""
        return True


class RecordBatch(DefaultRecordBatch):  # type: ignore[misc]  # the client ships no types
    """The client's batch, read faster, as blocks of records. It raises the same errors, after the
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
        """The records as blocks, or as runs; for a control batch the client's markers."""
        if self.is_control_batch or self._next_record_index:
            return iter(super().__iter__())
        self._maybe_uncompress()
        return self._runs()

    def _runs(self) -> Iterator[_BlockRecord]:
        data, left, pos = bytes(self._buffer), self._num_records, self._pos
        while left > 0:
            count = min(left, BLOCK_RECORDS)
            starts = _starts(data, pos, count)
            if starts is None:
                yield from (_BlockRecord(run, 0) for run in self._records(pos, count))
                end = self._pos
            else:
                end = starts[-1]
                yield _BlockRecord(self._block(data, starts), end - pos)
            left, pos = left - count, end
        if pos != len(data):
            raise CorruptRecordError(
                f"{len(data) - pos} unconsumed bytes after all records consumed"
            )

    def _block(self, data: bytes, starts: list[int]) -> RecordBlock:
        by_broker = self.timestamp_type == self.LOG_APPEND_TIME
        return RecordBlock(
            data[starts[0] : starts[-1]],
            starts,
            self.base_offset,
            self.max_timestamp if by_broker else self.first_timestamp,
            by_broker,
            partial(self._records, starts[0], len(starts) - 1),
        )

    def _records(self, pos: int, count: int) -> Iterator[RecordRun]:
        """`count` records from this position on as the client reads them, in one run."""
        self._pos = pos  # type: ignore[misc]  # a slot of the client's
        records: list[Record] = []
        error = None
        try:
            for _ in range(count):
                records.append(self._read_msg())
        except (ValueError, IndexError) as invalid:
            error = CorruptRecordError(f"Found invalid record structure: {invalid!r}")
        except CorruptRecordError as corrupt:
            error = corrupt
        if records:
            yield RecordRun.collected(records)
        if error is not None:
            raise error


def _starts(data: bytes, pos: int, count: int) -> list[int] | None:
    """Where each of the next records begins, and where the last one ends; None if they are not
    within the data, or too large to be copied. The sign of a small size is not looked at: `runs_of`
    leaves such a record to the client."""
    starts = [pos]
    add = starts.append
    try:
        for _ in range(count):
            size = data[pos]
            if size < 0x80:
                pos += 1 + (size >> 1)
            elif (high := data[pos + 1]) < 0x80:
                pos += (size >> 1) + (high << 6) - 62  # 2 + (size - 0x80 + (high << 7)) // 2
            else:
                size, pos = decode_varint(data, pos)
                if size < 0:
                    return None
                pos += size
            add(pos)
    except (IndexError, ValueError):
        return None
    return starts if pos <= min(len(data), starts[0] + MAX_BLOCK_BYTES) else None


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
        yield _BlockRecord(RecordRun([first], [-1], [None], [b""], left_out=last), 0)


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


class PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a fetch of one partition, from which runs are taken in place of records."""

    fetch_offset: int
    next_fetch_offset: int
    record_iterator: Iterator[ConsumerRecord] | None
    _next_inline_exception: Exception | None
    _has_begun = False  # whether a record with `fetch_offset` or a later one was read
    _rest: RecordRun | None = None  # of the last run
    _ahead: Iterator[RecordRun] = iter(())  # the runs after it, and the error after them

    def take(self, n: int) -> Runs:
        """The next runs, of `n` records at most. An error is raised after the records before it."""
        self._maybe_raise_next_inline_exception()
        runs, remaining_run = Runs(), self._rest
        self._rest = None
        try:
            if remaining_run is not None:
                self._add(runs, remaining_run, n)
            while len(runs) < n:
                run = next(self._ahead, None)
                if run is None:
                    self._ahead = self._next_runs(n - len(runs))
                    run = next(self._ahead, None)
                if run is None:
                    break
                if not self._has_begun:
                    run = run.since(self.fetch_offset)
                    self._has_begun = len(run) > 0
                if self._has_begun:
                    self._add(runs, run, n)
        except Exception as error:
            if not runs:
                raise
            self._next_inline_exception = error
        return runs

    def _next_runs(self, n: int) -> Iterator[RecordRun]:
        """The runs of the next blocks, with `n` records if they are small. What the client raises
        meanwhile comes after them."""
        before, error, run = self.next_fetch_offset, None, None
        blocks: list[RecordBlock] = []
        count = nbytes = 0
        while count < n and nbytes < TOGETHER_BYTES and self.record_iterator is not None:
            try:
                record = next(self.record_iterator, None)
            except Exception as later:
                error = later
                break
            if record is None:
                break
            records = record.checksum
            if not isinstance(records, RecordBlock):
                run = records if isinstance(records, RecordRun) else RecordRun.collected([record])
                break
            blocks.append(records)
            count, nbytes = count + len(records), nbytes + len(records.data)
        after, self.next_fetch_offset = self.next_fetch_offset, before
        try:
            yield from runs_of(blocks)
        except Exception:
            self.record_iterator = iter(())  # what follows the error is not read
            raise
        if run is not None:
            yield run
        elif after <= _LATER:  # something came after the last block
            self.next_fetch_offset = after
        if error is not None:
            raise error

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
        (run,) = runs_of([record.checksum])
        names = set(signature(Fetcher.PartitionRecords).parameters)
        run.offsets, run.timestamps_ms = list(run.offsets), list(run.timestamps_ms)
        return len(expected) == 2 and run == expected and names.issuperset(FETCHED)
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
