"""Records read out of the client's batches, in half of the time that the client takes for them.

The client reads each field of a record with a call, and asks the batch for its settings at each
record. Here a batch is asked once, and numbers of one or two bytes, as nearly all are, are read in
place. What a batch is, whether it counts (checksums, transactions, markers) and what follows it
stays the client's, and so does a record with headers. Source for the layout: the Kafka protocol,
https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import decode_varint

NO_HEADERS: Final[tuple[tuple[str, bytes], ...]] = ()


class PlainRecord:
    """A record without headers, of the shape that the client takes."""

    __slots__ = ("key", "offset", "size_in_bytes", "timestamp", "timestamp_type", "value")

    headers = NO_HEADERS
    checksum = None  # it is the batch that has one

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


class Batch(DefaultRecordBatch):  # type: ignore[misc]  # the client ships no types
    """The client's batch, read faster. It raises what the client's raises."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        """The records; a control batch has markers instead, which are the client's."""
        if self.is_control_batch or self._next_record_index:
            return iter(super().__iter__())
        self._maybe_uncompress()
        return self._plainly()

    def _plainly(self) -> Iterator[object]:
        data = bytes(self._buffer)
        pos: int = self._pos  # type: ignore[has-type]
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


class _Batches:
    """The batches of a fetch."""

    def __init__(self, found: MemoryRecords) -> None:
        self._found = found

    def next_batch(self) -> object:
        """The next one, None at the end."""
        batch = self._found.next_batch()
        if type(batch) is DefaultRecordBatch:
            batch.__class__ = Batch  # the client has no word for another kind of batch
        return batch


class Records(Fetcher.PartitionRecords):  # type: ignore[misc]
    """What a fetch brought of a partition, read faster."""

    def __init__(
        self, fetch_offset: int, partition: object, records: MemoryRecords, **settings: object
    ) -> None:
        super().__init__(fetch_offset, partition, _Batches(records), **settings)
