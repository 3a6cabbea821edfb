"""The batches of kafka-python, whose records become blocks of bytes.

The client makes two objects for each record, and reads each of its fields with a call. Here a batch
becomes blocks: the bytes of its records, and where each begins. The client takes a block for one
record. A block is given whole or not at all, and no step allocates more than the size of a batch.
Source for the layout: https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.util import decode_varint

from streammetrics_consumers.model.chunk import Headers
from streammetrics_consumers.sources.kafka.batch_codecs import decompressed
from streammetrics_consumers.sources.kafka.record_runs import NO_HEADERS, RecordBlock, RecordRun

BLOCK_RECORDS: Final = 1000  # at most, since a batch may hold millions of small ones
MAX_BLOCK_BYTES: Final = 8 << 20  # a larger one is not copied: its records are read one by one
LATER: Final = 1 << 62  # in place of an offset
LegacyHeader: TypeAlias = tuple[tuple[int, ...], int]


class InvalidBatch(Exception):
    """A batch that cannot be read. `first` to `last` are its offsets; `last` is None if it is not
    known."""

    def __init__(self, first: int, last: int | None, got: str) -> None:
        self.first, self.last, self.got = first, last, got
        super().__init__(got)


class RecordHeaders:
    """The headers of a record, read from their bytes each time: a list of them can take fifty times
    as much memory."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __iter__(self) -> Iterator[tuple[str, bytes | None]]:
        data, pos = self._data, 0
        while pos < len(data):
            size, pos = decode_varint(data, pos)
            name = data[pos : pos + size].decode()
            size, pos = decode_varint(data, pos + size)
            yield name, None if size < 0 else data[pos : pos + size]
            pos += max(size, 0)


class BlockRecord:
    """A block or run with the interface of one record, which the client passes on: its `checksum`.

    offset: of its last record; of a block it is not known yet."""

    key = value = None
    headers = NO_HEADERS
    timestamp, timestamp_type = -1, 0

    def __init__(self, records: RecordBlock | RecordRun, size_in_bytes: int) -> None:
        self.checksum, self.size_in_bytes = records, size_in_bytes
        self.offset = records.offsets[-1] if isinstance(records, RecordRun) else LATER

    def validate_crc(self) -> bool:
        """Return True; part of the client's record interface."""
        return True


class RecordBatch(DefaultRecordBatch):  # type: ignore[misc]  # the client ships no types
    """The client's batch, read faster, as blocks of records."""

    __slots__ = ()
    _buffer: bytes | bytearray
    _pos: int
    _decompressed: bool

    def validate_crc(self) -> bool:
        """Return True: it was checked before decompression."""
        return True

    def decompress(self, limit: int) -> None:
        """Decompress the records. Raises OverLimit or DamagedBatch."""
        kind = self.compression_type
        if kind:
            self._assert_has_codec(kind)
            data = decompressed(kind, bytes(memoryview(self._buffer)[self._pos :]), limit)
            self._buffer, self._pos, self._decompressed = data, 0, True  # type: ignore[misc]

    def __iter__(self) -> Iterator[object]:
        """The records as blocks, or as runs; for a control batch the client's markers."""
        if self.is_control_batch or self._next_record_index:
            return iter(super().__iter__())
        self._maybe_uncompress()
        return self._runs()

    def _runs(self) -> Iterator[BlockRecord]:
        data, left, pos = bytes(self._buffer), self._num_records, self._pos
        if left <= 0 and pos != len(data):
            raise self._invalid(f"{len(data) - pos} bytes after its last record")
        while left > 0:
            count = min(left, BLOCK_RECORDS)
            left -= count
            starts = _starts(data, pos, count)
            if starts is None:
                run, end = self._run(data, pos, count, left)
                block = BlockRecord(run, 0)
            else:
                end = starts[-1]
                block = BlockRecord(self._block(data, starts, left), end - pos)
            if not left and end != len(data):
                raise self._invalid(f"{len(data) - end} bytes after its last record")
            yield block
            pos = end

    def _block(self, data: bytes, starts: list[int], left: int) -> RecordBlock:
        by_broker = self.timestamp_type == self.LOG_APPEND_TIME
        records, count = data[starts[0] : starts[-1]], len(starts) - 1
        return RecordBlock(
            records,
            starts,
            self.base_offset,
            self.last_offset - left,
            self.max_timestamp if by_broker else self.first_timestamp,
            by_broker,
            lambda: self._run(records, 0, count, left)[0],
        )

    def _run(self, data: bytes, pos: int, count: int, left: int) -> tuple[RecordRun, int]:
        """The `count` records from this position on, one by one, and the position after them.
        `left`: the number of records of the batch after them."""
        offsets, times_ms, run = list[int](), list[int](), RecordRun([], [])
        before = self.base_offset - 1
        try:
            for i in range(count):
                offset, time_ms, key, value, headers, pos = self._record(data, pos)
                if offset <= before:
                    raise self._invalid(f"offset {offset} after {before}")
                before = offset
                offsets.append(offset)
                times_ms.append(time_ms)
                run.keys.append(key)
                run.values.append(value)
                if headers != NO_HEADERS:
                    run.headers[i] = headers
        except (ValueError, IndexError) as damage:
            raise self._invalid(f"a record whose parts do not fit it: {damage}") from damage
        if before > self.last_offset - left:
            raise self._invalid(f"offset {before}, {left} records before its last one")
        run.offsets, run.timestamps_ms = offsets, times_ms
        return run, pos

    def _record(
        self, data: bytes, pos: int
    ) -> tuple[int, int, bytes | None, bytes | None, Headers, int]:
        """The fields of the record at this position, and the position after it."""
        size, pos = decode_varint(data, pos)
        end = pos + size
        _, pos = decode_varint(data, pos)  # attributes, of which none are in use
        later, pos = decode_varint(data, pos)
        by_broker = self.timestamp_type == self.LOG_APPEND_TIME
        time_ms = self.max_timestamp if by_broker else self.first_timestamp + later
        offset, pos = decode_varint(data, pos)
        key, pos = _text(data, pos)
        value, pos = _text(data, pos)
        headers, pos = _headers(data, pos)
        if pos != end or end > len(data):
            raise ValueError(f"{end - pos} bytes are left of {size}")
        return self.base_offset + offset, wrapped(time_ms), key, value, headers, pos

    def _invalid(self, got: str) -> InvalidBatch:
        return InvalidBatch(self.base_offset, self.last_offset, f"one with {got}")


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


def _text(data: bytes, pos: int) -> tuple[bytes | None, int]:
    """The key or value at this position, and the position after it."""
    size, pos = decode_varint(data, pos)
    return (None, pos) if size < 0 else (data[pos : pos + size], pos + size)


def _headers(data: bytes, pos: int) -> tuple[Headers, int]:
    """The headers at this position, None if a name is not UTF-8, and the position after them."""
    count, pos = decode_varint(data, pos)
    if count < 0:
        raise ValueError(f"{count} headers")
    first, are_named = pos, True
    for _ in range(count):
        size, pos = decode_varint(data, pos)
        try:
            data[pos : pos + size].decode()
        except UnicodeDecodeError:
            are_named = False
        size, pos = decode_varint(data, pos + size)
        pos += max(size, 0)
    if not count:
        return NO_HEADERS, pos
    return RecordHeaders(data[first:pos]) if are_named else None, pos


def wrapped(number: int) -> int:
    """The number as 64 bits hold it: a sum that does not fit is what other clients make of it.

    >>> wrapped(1 << 63)
    -9223372036854775808
    """
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class LegacyBatch(LegacyRecordBatch):  # type: ignore[misc]
    """A batch of format 0 or 1, decompressed in bounded memory."""

    __slots__ = ()
    _buffer: memoryview
    _decompressed: bool

    def validate_crc(self) -> bool:
        """Return True: it was checked before decompression."""
        return True

    def decompress(self, limit: int) -> None:
        """Decompress the records. Raises OverLimit or DamagedBatch."""
        kind = self.compression_type
        if kind:
            self._assert_has_codec(kind)
            _, value = self._read_key_value(
                self.KEY_OFFSET_V1 if self._magic else self.KEY_OFFSET_V0
            )
            data = decompressed(kind, value or b"", limit)
            self._buffer, self._decompressed = memoryview(data), True  # type: ignore[misc]

    def _read_all_headers(self) -> _LegacyHeaders:
        return _LegacyHeaders(self._headers)

    def _headers(self) -> Iterator[LegacyHeader]:
        pos, size = 0, len(self._buffer)
        while pos < size:
            fields = self._read_header(pos)
            end = pos + MemoryRecords.LOG_OVERHEAD + fields[1]
            if not pos + MemoryRecords.MIN_SLICE <= end <= size:
                raise CorruptRecordError(f"a record of {end - pos} bytes")
            yield fields, pos
            pos = end


class _LegacyHeaders:
    """The fields before the key of each record of a batch, and its position. They are read twice:
    a list of them can take ten times as much memory as the records."""

    def __init__(self, headers: Callable[[], Iterator[LegacyHeader]]) -> None:
        self._headers = headers

    def __getitem__(self, index: int) -> LegacyHeader:
        """The last one; the client asks for no other."""
        return deque(self, maxlen=1)[index]

    def __iter__(self) -> Iterator[LegacyHeader]:
        return self._headers()
