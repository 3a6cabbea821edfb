"""Batches of Kafka written byte by byte, good and damaged, and a topic of them without a broker."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.protocol.consumer import IsolationLevel
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import calc_crc32c, encode_varint
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.sources import NO_SKIPS, Skips
from streammetrics_consumers.sources.kafka import Topic, TopicReading, kafka_source
from streammetrics_consumers.sources.kafka.kafka_source import KafkaSource
from streammetrics_consumers.sources.kafka.record_batches import BatchLimits
from streammetrics_consumers.sources.kafka.record_runs import RecordRun

PLACE = TopicPartition("t", 0)
# Where a batch has these fields. The checksum covers what follows it.
LENGTH, FORMAT, CHECKSUM, LAST_DELTA = 8, 16, 17, 23
LIMIT = 1 << 24


def number(value: int) -> bytes:
    data = bytearray()
    encode_varint(value, data.append)
    return bytes(data)


def text(value: bytes | None) -> bytes:
    return number(-1) if value is None else number(len(value)) + value


def record(
    delta: int,
    value: bytes | None = b"v",
    *,
    key: bytes | None = None,
    later: int = 0,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
) -> bytes:
    data = b"\0" + number(later) + number(delta) + text(key) + text(value) + number(len(headers))
    data += b"".join(text(name) + text(content) for name, content in headers)
    return number(len(data)) + data


def batch(
    base: int,
    records: Sequence[bytes],
    *,
    count: int | None = None,
    last_delta: int | None = None,
    attributes: int = 0,
    time_ms: int = 1000,
    producer: int = -1,
    packed: bytes | None = None,
) -> bytes:
    """A batch with a good checksum. packed: its records as they are compressed."""
    count = len(records) if count is None else count
    data = b"".join(records) if packed is None else packed
    header = DefaultRecordBatch.HEADER_STRUCT.pack(
        base, len(data) + 49, 0, 2, 0, attributes,
        count - 1 if last_delta is None else last_delta,
        time_ms, time_ms, producer, 0 if producer >= 0 else -1, -1, count,
    )  # fmt: skip
    whole = bytearray(header + data)
    struct.pack_into(">I", whole, CHECKSUM, calc_crc32c(memoryview(whole)[21:]))
    return bytes(whole)


def five(base: int, value: bytes = b"v") -> bytes:
    """A batch of five records."""
    return batch(base, [record(i, value) for i in range(5)])


def changed(data: bytes, place: int, by: int) -> bytes:
    """The same with a byte that has other bits."""
    damaged = bytearray(data)
    damaged[place] ^= by
    return bytes(damaged)


def fetched(data: bytes, offset: int = 0, *, limit: int = LIMIT, **settings: Any) -> Any:
    """The records of a fetch from `offset` on, from which runs are taken."""
    settings = {"isolation_level": IsolationLevel.READ_COMMITTED, **settings}
    return BatchLimits(limit).records(offset, PLACE, MemoryRecords(data), **settings)


def offsets(runs: Iterable[RecordRun]) -> list[int]:
    return [offset for run in runs for offset in run.offsets]


class ATopic:
    """One partition that a broker would hold as these bytes, with the interface of the client's
    consumer. batches: the bytes of each batch with the last offset at which a broker sends it."""

    def __init__(self, batches: Mapping[int, bytes], end: int, size: int) -> None:
        self.batches, self.end, self.size = batches, end, size
        self.next, self.limit = 0, BatchLimits(LIMIT)
        self.part: Any = None

    def fetch(self, offset: int) -> bytes:
        batches = self._from(offset)
        return b"".join(batches)[: max(self.size, *map(len, batches[:1]), 0)]

    def _from(self, offset: int) -> list[bytes]:
        lasts = list(self.batches)
        first = next((i for i, last in enumerate(lasts) if last >= offset), len(lasts))
        return list(self.batches.values())[first:]

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[RecordRun]]:
        if self.part is None or self.part.next_fetch_offset != self.next or not self.part:
            data = MemoryRecords(self.fetch(self.next))
            self.part = self.limit.records(self.next, PLACE, data)
        runs = list(self.part.take(500))
        self.next = self.part.next_fetch_offset
        return {PLACE: runs} if runs else {}

    def bases(self, offset: int) -> list[int | None]:
        """The first offsets of the batch at an offset and of the next one."""
        bases = [int.from_bytes(data[:8], "big") for data in self._from(offset)[:2]]
        return [*bases, None, None][:2]

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.next = offset

    def position(self, partition: TopicPartition, timeout_ms: int) -> int:
        return self.next

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.end)


def read_all(
    batches: Mapping[int, bytes], end: int, *skipped: int, size: int = 1 << 20
) -> list[Chunk]:
    """All chunks of such a topic that a source returns. skipped: the offsets to skip.

    Raises UnreadableBatch."""
    source, topic = KafkaSource.__new__(KafkaSource), ATopic(batches, end, size)
    places: Any = frozenset(("t", 0, offset) for offset in skipped)
    source._skips = Skips(places) if skipped else NO_SKIPS
    source._reading = TopicReading("cluster", [Topic("t", "id", (0,))])
    source._reading.start({("t", 0): 0})
    source._consumer, source._settings, source._servers = topic, {}, ()  # type: ignore[assignment]
    fetches = SimpleNamespace(bases=topic.bases, close=lambda: None)
    chunks: list[Chunk] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kafka_source, "Fetches", lambda *_: fetches)
        while not chunks or chunks[-1].end < end:
            chunks += source.poll(0)
    return chunks
