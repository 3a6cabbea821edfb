"""Records are read out of kafka-python's batches faster than it does, and are the same."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("kafka", reason="needs the extra kafka")

from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecordsBuilder
from streammetrics_consumers.sources import UnreadableBatch
from streammetrics_consumers.sources.kafka import record_batches
from streammetrics_consumers.sources.kafka.batch_records import InvalidBatch, RecordBatch
from streammetrics_consumers.sources.kafka.record_batches import (
    Batches,
    PartitionRecords,
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
    header_pairs = [run.headers.get(i, ()) for i in range(len(run))]
    headers = [None if pairs is None else list(pairs) for pairs in header_pairs]
    yield from zip(run.offsets, run.timestamps_ms, run.keys, run.values, headers, strict=True)


def outcome(data: bytes, kind: type[DefaultRecordBatch]) -> tuple[list[object], str | None]:
    """What comes, and whether the end is an error."""
    entries: list[object] = []
    try:
        entries.extend(read(data, kind))
    except (CorruptRecordError, InvalidBatch):
        return entries, "corrupt"
    return entries, None


def check_outcome(data: bytes) -> None:
    """Of a batch that the client cannot read, no block is given that has a record of the error. A
    batch whose offsets are not those of its header is damaged too; one with a header whose name is
    not UTF-8 is not."""
    own, own_error = outcome(data, RecordBatch)
    entries, error = outcome(data, DefaultRecordBatch)
    numbers: list[Any] = [entry[0] for entry in entries]  # type: ignore[index]
    batch = MemoryRecords(data).next_batch()
    ends = [batch.base_offset - 1, *numbers, batch.last_offset + 1]
    are_ordered = all(a < b for a, b in pairwise(ends))
    if error is None and are_ordered:
        assert (own, own_error) == (entries, None)
    elif own_error is not None or error is None:
        assert own_error == "corrupt" and own == entries[: len(own)]
    else:
        assert None in [entry[4] for entry in own]  # type: ignore[index]


@given(batches)
def test_records_are_those_of_the_client(batch: list[object]) -> None:
    data = packed(batch)  # type: ignore[arg-type]
    assert outcome(data, RecordBatch) == outcome(data, DefaultRecordBatch)
    assert len(outcome(data, RecordBatch)[0]) == len(batch)


@given(batches, st.data())
def test_what_is_broken_ends_where_the_client_does_or_before(
    batch: list[object], data: st.DataObject
) -> None:
    good = bytearray(packed(batch))  # type: ignore[arg-type]
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(61, len(good) - 1))] = data.draw(st.integers(0, 255))
    check_outcome(bytes(good))


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
    """Up to an error, of which the client finds fewer."""
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
    position_of_end = start
    patched = pytest.MonkeyPatch()
    patched.setattr(record_batches, "TOGETHER_BYTES", together)
    for kind in (PartitionRecords, Fetcher.PartitionRecords):
        batches, position = MemoryRecords(bytes(data)), min(BASE + first, position_of_end - 1)
        if kind is PartitionRecords:
            batches = Batches(batches, position, 1 << 24, False)
        part = kind(position, TopicPartition("t", 0), batches, check_crcs=False)
        steps: list[object] = []
        for size in sizes:
            try:
                got: Any = part.take(size) if part else []
            except (CorruptRecordError, UnreadableBatch):
                steps.append("corrupt")
                break
            runs = got if kind is PartitionRecords else [RecordRun.collected(got)]
            steps.append((len(got), part.next_fetch_offset, bool(part)))
            steps += [row for run in runs for row in rows(run)]
        fetches.append(steps)
    patched.undo()
    own, clients = fetches
    if own[-1:] == ["corrupt"]:
        own = [step for step in own[:-1] if isinstance(step, tuple) and len(step) == 5]
        clients = [step for step in clients if isinstance(step, tuple) and len(step) == 5]
        assert broken and own == clients[: len(own)]
    elif clients[-1:] != ["corrupt"]:
        assert own == clients


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
