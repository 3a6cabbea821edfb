"""Records are read out of kafka-python's batches faster than it does, and are the same."""

from __future__ import annotations

import gzip
import tracemalloc
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("kafka", reason="needs the extra kafka")

from kafka import TopicPartition, codec
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecordsBuilder
from streammetrics_consumers.sources.kafka import record_batches
from streammetrics_consumers.sources.kafka.record_batches import (
    Batches,
    BatchLimits,
    DamagedBatch,
    OverLimit,
    PartitionRecords,
    RecordBatch,
    decompressed,
    is_known_layout,
)
from streammetrics_consumers.sources.kafka.record_runs import RecordRun, joined, runs_of

from tests.consumers.sources.kafka.kafka_reader import Library, Reader, read_to_end

texts = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=60, max_size=300))
records = st.tuples(
    st.one_of(st.integers(0, 10_000), st.integers(0, 1 << 40)),
    texts,
    st.one_of(texts, st.just(b"x" * 20_000)),
    st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=3)), max_size=1),
)
batches = st.lists(records, min_size=1, max_size=6)


BASE = (1 << 40) + 7
LAST_DELTA = slice(23, 27)  # of a batch: the last offset, after the first


def packed(
    entries: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]], base: int = BASE
) -> bytes:
    builder = MemoryRecordsBuilder(2, 0, 1 << 24)
    for time, key, value, headers in entries:
        builder.append(timestamp=time, key=key, value=value, headers=headers)
    builder.close()
    return base.to_bytes(8, "big") + bytes(builder.buffer())[8:]  # as a broker does


def read(data: bytes, kind: type[DefaultRecordBatch]) -> Iterator[tuple[object, ...]]:
    batch = MemoryRecords(data).next_batch()
    batch.__class__ = kind
    for record in batch:
        assert record.validate_crc()
        records = record.checksum if kind is RecordBatch else RecordRun.collected([record])
        for run in [records] if isinstance(records, RecordRun) else runs_of([records]):
            yield from rows(run)


def rows(run: RecordRun) -> Iterator[tuple[object, ...]]:
    headers = [list(run.headers.get(i, ())) for i in range(len(run))]
    yield from zip(run.offsets, run.timestamps_ms, run.keys, run.values, headers, strict=True)


def outcome(data: bytes, kind: type[DefaultRecordBatch]) -> tuple[list[object], str | None]:
    """What comes, and whether the end is an error."""
    entries: list[object] = []
    try:
        entries.extend(read(data, kind))
    except CorruptRecordError:
        return entries, "corrupt"
    return entries, None


@given(batches)
def test_records_are_those_of_the_client(batch: list[object]) -> None:
    data = packed(batch)  # type: ignore[arg-type]
    assert outcome(data, RecordBatch) == outcome(data, DefaultRecordBatch)
    assert len(outcome(data, RecordBatch)[0]) == len(batch)


@given(batches, st.data())
def test_what_is_broken_ends_as_in_the_client(batch: list[object], data: st.DataObject) -> None:
    good = bytearray(packed(batch))  # type: ignore[arg-type]
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(61, len(good) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(bytes(good), RecordBatch) == outcome(bytes(good), DefaultRecordBatch)


@given(batches)
def test_the_time_may_be_the_brokers(batch: list[object]) -> None:
    data = bytearray(packed(batch))  # type: ignore[arg-type]
    data[22] |= DefaultRecordBatch.TIMESTAMP_TYPE_MASK
    assert outcome(bytes(data), RecordBatch) == outcome(bytes(data), DefaultRecordBatch)


def test_a_number_of_five_bytes_is_not_taken_for_one_of_four_and_another() -> None:
    # Its fifth byte would be the offset, the offset a size, and the key another one.
    data = packed([(0, None, b"v", []), (1 << 28, b"\x08", b"abc", [])])
    assert outcome(data, RecordBatch) == outcome(data, DefaultRecordBatch)


def test_a_batch_of_many_records_is_read_in_short_blocks() -> None:
    data = packed([(1, None, b"v", [])] * 2500)
    batch = MemoryRecords(data).next_batch()
    batch.__class__ = RecordBatch
    assert [len(record.checksum) for record in batch] == [1000, 1000, 500]
    assert outcome(data, RecordBatch) == outcome(data, DefaultRecordBatch)


# Most fetches hold batches of plain records, which are read together.
plain = st.tuples(
    st.integers(0, 1 << 24), texts, st.one_of(texts, st.just(b"x" * 9_000)), st.just([])
)
several = st.lists(
    st.one_of(st.lists(plain, min_size=1, max_size=9), batches), min_size=1, max_size=6
)


@given(
    several,
    st.integers(0, 20),
    st.lists(st.one_of(st.integers(1, 3), st.integers(1, 99)), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(1, 255)), max_size=2),
    st.sampled_from([1, 1 << 20]),
)
@example([[(0, None, None, [])] * 4, [(0, None, None, [])]], 0, [9], [(24, 1)], 1)  # one goes back
@example(
    [[(0, None, None, [])] * 6, [(0, None, b"", [])]], 0, [1, 7], [(5, 2)], 1 << 20
)  # its value is longer
def test_a_fetch_gives_the_clients_records_and_positions_however_many_are_taken(
    record_groups: list[list[object]],
    first: int,
    sizes: list[int],
    broken: list[tuple[int, int]],
    together: int,
) -> None:
    start, whole = BASE, list[bytearray]()
    for batch in record_groups:
        whole.append(bytearray(packed(batch, start)))  # type: ignore[arg-type]
        whole[-1][LAST_DELTA] = len(batch).to_bytes(4, "big")  # as if one more was compacted
        start += len(batch) + 1
    for place, change in broken:
        data = whole[place % len(whole)]
        data[61 + place % (len(data) - 61)] ^= change
    data = bytearray(b"".join(whole))
    fetches = []
    patched = pytest.MonkeyPatch()
    patched.setattr(record_batches, "TOGETHER_BYTES", together)
    for kind in (PartitionRecords, Fetcher.PartitionRecords):
        batches, position = MemoryRecords(bytes(data)), BASE + first
        if kind is PartitionRecords:
            batches = Batches(batches, ("t", 0), position, BatchLimits(1 << 24), False)
        part = kind(position, TopicPartition("t", 0), batches, check_crcs=False)
        steps: list[object] = []
        for size in sizes:
            try:
                got: Any = part.take(size) if part else []
            except CorruptRecordError:
                steps.append("corrupt")
                continue
            runs = got if kind is PartitionRecords else [RecordRun.collected(got)]
            position = None if "corrupt" in steps else part.next_fetch_offset  # of no use then
            steps.append((len(got), position, bool(part)))
            steps += [row for run in runs for row in rows(run)]
        fetches.append(steps)
    patched.undo()
    assert fetches[0] == fetches[1]


fields = st.one_of(
    st.builds(lambda first, n: range(first, first + n), st.integers(-3, 9), st.integers(1, 3)),
    st.lists(st.integers(-3, 9), min_size=1, max_size=3),
    st.lists(st.integers(-3, 9), min_size=1, max_size=3).map(lambda times: array("q", times)),
)


@given(st.lists(fields, min_size=1, max_size=3))
def test_fields_of_runs_are_joined_in_order(parts: list[Sequence[int]]) -> None:
    whole = joined(parts)
    assert list(whole) == list(chain.from_iterable(parts))
    assert all(type(number) is int for number in whole)


@pytest.mark.parametrize("n", [1, 3])
def test_nothing_is_read_after_a_record_that_is_no_record(n: int) -> None:
    good = (1, None, b"v", list[tuple[str, bytes]]())
    whole = [bytearray(packed([good] * n, BASE + n * i)) for i in range(3)]
    whole[1][-3] = 4  # a value of two bytes, of which one is there
    fetches = []
    for kind in (PartitionRecords, Fetcher.PartitionRecords):
        batches = MemoryRecords(b"".join(whole))
        if kind is PartitionRecords:
            batches = Batches(batches, ("t", 0), BASE, BatchLimits(1 << 24), False)
        part, steps = kind(BASE, TopicPartition("t", 0), batches, check_crcs=False), []
        for _ in range(8):
            try:
                steps.append((len(part.take(1)), part.next_fetch_offset))
            except CorruptRecordError:
                steps.append(("corrupt", part.next_fetch_offset))
        fetches.append(steps)
    assert fetches[0] == fetches[1]
    end = BASE + 2 * n - 1
    last = [(1, end), ("corrupt", end), (0, end), (0, end)]
    assert fetches[0][2 * n - 2 : 2 * n + 2] == last


def test_headers_that_are_not_there_and_bytes_too_many_are_the_clients_errors() -> None:
    good = packed([(1, b"k", b"v", []), (2, None, b"w", [])])
    of_headers = bytearray(good)
    of_headers[-1] = 2  # one header, and the end
    too_many = bytearray(good)
    too_many[60] -= 1  # one record fewer
    for data in (bytes(of_headers), bytes(too_many)):
        entries, why = outcome(data, RecordBatch)
        assert why == "corrupt"
        assert (entries, why) == outcome(data, DefaultRecordBatch)


def test_a_client_without_a_part_that_is_used_or_with_another_one_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for part in ("_read_msg", "_maybe_uncompress", "compression_type"):
        with monkeypatch.context() as changed:
            changed.delattr(DefaultRecordBatch, part)
            assert not is_known_layout()
    with monkeypatch.context() as changed:
        changed.setattr(RecordBatch, "_runs", lambda self: iter(()))
        assert not is_known_layout()
    with monkeypatch.context() as changed:
        changed.setattr(Fetcher, "PartitionRecords", lambda position, records: records)
        assert not is_known_layout()
    assert is_known_layout()


def test_a_client_of_an_unknown_layout_reads_the_same_records_by_its_public_poll(
    kafka: str, topics: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def read_all() -> list[tuple[object, ...]]:
        with Library("kafka-python").opened(kafka, topics, names=(0, 1)) as source:
            source.assign(Reader())
            records_class = source._consumer._fetcher.PartitionRecords
            ways.append(records_class is Fetcher.PartitionRecords)
            return sorted(
                (str(c.partition), offset, value, time)
                for c in read_to_end(source)
                for offset, value, time in zip(
                    c.offsets, c.values, c.timestamps_ms or (), strict=True
                )
            )

    ways: list[bool] = []
    tuples = read_all()
    monkeypatch.setattr(
        "streammetrics_consumers.sources.kafka.kafka_client.is_known_layout", lambda: False
    )
    assert read_all() == tuples and len(tuples) == 30
    assert ways == [False, True]
    assert "max_batch_bytes has no effect" in caplog.text


# -- batches are decompressed as the client does it, up to a limit and no further

LIMIT = 1 << 20
ENCODED = {
    "gzip": (1, codec.gzip_encode),
    "two members of gzip": (1, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "snappy in blocks": (2, codec.snappy_encode),
    "snappy": (2, codec.snappy.compress),
    "lz4": (3, codec.lz4_encode),
    "zstd": (4, codec.zstd_encode),
    "two frames of zstd": (4, lambda d: codec.zstd_encode(d[:9]) + codec.zstd_encode(d[9:])),
}


@pytest.mark.parametrize("name", ENCODED)
def test_what_is_within_the_limit_comes_back(name: str) -> None:
    kind, encode = ENCODED[name]
    for size in (10, 70_000, LIMIT):
        data = (b"0123456789" * (size // 10 + 1))[:size]
        assert decompressed(kind, encode(data), LIMIT) == data


@pytest.mark.parametrize("name", ENCODED)
def test_a_byte_more_is_refused_and_a_bomb_takes_no_more_memory_than_the_limit(name: str) -> None:
    kind, encode = ENCODED[name]
    with pytest.raises(OverLimit):
        decompressed(kind, encode(b"\0" * (LIMIT + 1)), LIMIT)
    bomb = encode(b"\0" * (8 * LIMIT))
    tracemalloc.start()
    with pytest.raises(OverLimit):
        decompressed(kind, bomb, LIMIT)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * LIMIT


def test_what_ends_too_early_is_damaged() -> None:
    for name, (kind, encode) in ENCODED.items():
        if "zstd" in name:
            continue  # of Zstandard that is found where the records end
        whole = encode(b"0123456789" * 100)
        for data in (whole[:-1], whole[: len(whole) // 2], whole[1:]):
            with pytest.raises(DamagedBatch):
                decompressed(kind, data, LIMIT)


def test_a_size_that_snappy_claims_is_not_made() -> None:
    claimed = b"\xff\xff\xff\xff\x0f" + codec.snappy.compress(b"x")[1:]
    with pytest.raises(OverLimit):
        decompressed(2, claimed, LIMIT)
