"""Whatever is damaged in a batch, no good record is lost without a word, and no batch stops the
stream for ever or takes more memory than is stated."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from array import array
from itertools import product

import pytest

pytest.importorskip("kafka", reason="needs the extra kafka")

from kafka.record.memory_records import MemoryRecordsBuilder
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources import UnreadableBatch
from streammetrics_consumers.sources.kafka import last_inside

from tests.consumers.sources.kafka.raw_batches import (
    CHECKSUM,
    FORMAT,
    LAST_DELTA,
    LENGTH,
    batch,
    changed,
    fetched,
    five,
    number,
    offsets,
    read_all,
    record,
)

FOUR = {4: five(0, b"a"), 9: five(5, b"b"), 14: five(10, b"c"), 19: five(15, b"d")}
AFTER_SECOND = [*range(5), 5, *range(10, 20)]


def second(data: bytes) -> dict[int, bytes]:
    """The four batches with another one for the second."""
    return {**FOUR, 9: data}


def unreadable(data: bytes, offset: int = 0, *, n: int = 500) -> tuple[list[int], UnreadableBatch]:
    """The offsets that a fetch gives before its error, and the error."""
    part, numbers = fetched(data, offset), list[int]()
    with pytest.raises(UnreadableBatch) as caught:
        while got := part.take(n):
            numbers += offsets(got)
    return numbers, caught.value


def span(error: UnreadableBatch) -> tuple[int, int | None]:
    return error.first, error.last


# -- the end of a batch that is skipped
@pytest.mark.parametrize(
    ("damage", "size"),
    [
        *product(["a value", "a smaller end"], [1, 300, 1 << 20]),
        ("a greater end", 1 << 20),
        ("an end before", 1 << 20),  # alone, a broker does not send it
    ],
)
def test_a_skipped_batch_takes_no_good_record_with_it(damage: str, size: int) -> None:
    data = bytearray(five(5, b"b"))
    if damage == "a value":
        data[-3] ^= 1
    else:
        ends = {"a greater end": 1 << 24, "a smaller end": 2, "an end before": -9}
        data[LAST_DELTA : LAST_DELTA + 4] = ends[damage].to_bytes(4, "big", signed=True)
    end = 5 + int.from_bytes(data[LAST_DELTA : LAST_DELTA + 4], "big", signed=True)
    last = min(max(end, 5), 9)
    log = {4: FOUR[4], end: bytes(data), 14: FOUR[14], 19: FOUR[19]}  # as a broker sends them
    chunks = read_all(log, 20, 5, size=size)
    assert [offset for chunk in chunks for offset in chunk.offsets] == AFTER_SECOND
    assert chunks[-1].end == 20
    (cut,) = [cut for chunk in chunks for cut in chunk.cut.values()]
    assert cut.unreadable is not None
    assert cut.unreadable.startswith(f"offsets 5 to {last} cannot be read")


def test_the_end_of_the_last_batch_of_a_log_is_found_by_asking() -> None:
    damaged = changed(five(5), -3, 1)
    assert unreadable(FOUR[4] + damaged)[1].last is None
    chunks = read_all({4: FOUR[4], 9: damaged}, 10, 5)
    assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, 5), (5, 10)]


def test_a_damaged_batch_that_alone_fills_a_fetch_takes_no_good_record_with_it() -> None:
    damaged = bytearray(five(5))
    struct.pack_into(">i", damaged, LAST_DELTA, 1 << 24)
    log = {4: FOUR[4], 1 << 25: bytes(damaged), 14: FOUR[14]}
    with pytest.raises(UnreadableBatch, match="offset 10"):  # for which it is sent too
        read_all(log, 15, 5, size=1)
    with pytest.raises(SourceError, match="raise max_partition_fetch_bytes"):
        read_all(log, 15, 5, 10, size=1)


def test_the_last_offset_inside_is_found_for_each_end() -> None:
    for last, end in product(range(3, 30), range(4, 30)):
        assert last_inside(range(last + 1).__contains__, 3, end) == min(last, end - 1)


# -- what the checksum does not cover
@pytest.mark.parametrize("n", [500, 10, 5])
def test_a_changed_bit_before_the_checksum_loses_no_record_in_silence(n: int) -> None:
    for place, bit in product(range(FORMAT + 1), range(8)):
        data = FOUR[4] + changed(FOUR[9], place, 1 << bit) + FOUR[14] + FOUR[19]
        part, numbers, error = fetched(data), list[int](), None
        while error is None and part:
            try:
                numbers += offsets(part.take(n))
            except UnreadableBatch as unread:
                error = unread
        if place in range(LENGTH + 4, FORMAT):  # the epoch of the leader, which is not used
            assert (numbers, error) == ([*range(20)], None)
            continue
        assert numbers == [*range(5)]
        if error is None:  # longer than the fetch, of which it seems to be the cut end
            assert part.next_fetch_offset == 5
            with pytest.raises(UnreadableBatch) as caught:
                fetched(data[len(FOUR[4]) :], 5)
            error = caught.value
        assert error.first == 5 and error.last in (None, *range(5, 10))


def test_a_greater_first_offset_is_seen_before_its_records_come() -> None:
    greater = changed(FOUR[9], 5, 1)  # 65541
    numbers, error = unreadable(FOUR[4] + greater + FOUR[14])
    assert numbers == [*range(5)]
    assert span(error) == (5, 9)
    assert "ends at offset 65545, before offset 10" in str(error)
    numbers, error = unreadable(FOUR[4] + greater + FOUR[14][:20])  # where a fetch is cut off
    assert (numbers, span(error)) == ([*range(5)], (5, 9))
    chunks = read_all({4: FOUR[4], 65545: greater, 14: FOUR[14], 19: FOUR[19]}, 20, 5)
    assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, 5), (5, 10), (10, 20)]
    assert [*chunks[-1].offsets] == [*range(10, 20)]


def test_a_smaller_first_offset_is_no_repetition() -> None:
    numbers, error = unreadable(FOUR[4] + FOUR[9] + changed(FOUR[14], 7, 9) + FOUR[19])
    assert numbers == [*range(10)]
    assert span(error) == (10, 14)


def test_holes_between_batches_and_a_batch_that_begins_before_the_read_are_good() -> None:
    sparse = five(0) + batch(20, [record(2), record(7)], last_delta=9) + five(40)
    part = fetched(sparse, 3)
    assert offsets(part.take(500)) == [3, 4, 22, 27, *range(40, 45)]
    assert part.next_fetch_offset == 45


def test_a_batch_that_ends_before_the_read_is_not_read() -> None:
    bomb = batch(0, [record(0)], attributes=1, packed=gzip.compress(bytes(1 << 20)))
    assert offsets(fetched(bomb + five(1), 1, limit=1 << 10).take(500)) == [*range(1, 6)]


@pytest.mark.parametrize("deltas", [[4, 0, 1, 2, 3], [0, 1, 1, 2, 3], [0, 1, 2, 3, 5], [-1, 0]])
def test_offsets_that_do_not_ascend_within_a_batch_are_damage(deltas: list[int]) -> None:
    data = FOUR[4] + batch(5, [record(delta) for delta in deltas], last_delta=4) + FOUR[14]
    for n in (500, 5, 3):
        numbers, error = unreadable(data, n=n)
        assert (numbers, span(error)) == ([*range(5)], (5, 9))


def test_offsets_that_do_not_ascend_from_block_to_block_are_damage() -> None:
    deltas = [*range(1000), 999, *range(1001, 1500)]
    data = batch(0, [record(delta) for delta in deltas], last_delta=1999)
    for n in (500, 5000):
        numbers, error = unreadable(data, n=n)
        assert (numbers, error.first) == ([*range(1000)], 1000)


# -- batches with a good checksum that are not built as batches are
@pytest.mark.parametrize(
    "data",
    [
        batch(5, [record(0), record(1)], count=1, last_delta=4),
        batch(5, [record(0), record(1)], count=3, last_delta=4),
        batch(5, [record(0), record(1)], count=-1, last_delta=4),
        batch(5, [], count=0, last_delta=4, packed=b"\0"),
        batch(5, [record(0)[:-1], b"\4"], count=1, last_delta=4),
        batch(5, [number(4) + b"\0\0"], count=1, last_delta=4),
        batch(5, [record(0)], last_delta=4, attributes=1, packed=gzip.compress(record(0))[:-5]),
        batch(5, [record(0)], last_delta=4, attributes=1, packed=gzip.compress(record(0)[:-1])),
    ],
    ids=["a record too many", "one too few", "count below 0", "bytes, no record", "other headers",
         "a short record", "a cut batch", "a cut record"],
)  # fmt: skip
def test_a_batch_with_other_contents_than_it_says_names_its_place(data: bytes) -> None:
    numbers, error = unreadable(FOUR[4] + data + FOUR[14])
    assert (numbers, span(error)) == ([*range(5)], (5, 9))
    assert "t/0 offset 5: expected a readable batch" in str(error)
    chunks = read_all(second(data), 20, 5)
    assert [offset for chunk in chunks for offset in chunk.offsets] == AFTER_SECOND


def test_of_a_large_batch_the_blocks_before_the_damage_are_given() -> None:
    records = [record(i) for i in range(2500)]
    records[2300] = record(2300)[:-1] + b"\2"  # a header that is not there
    numbers, error = unreadable(batch(0, records) + five(2500), n=700)
    assert (numbers, span(error)) == ([*range(2000)], (2000, 2499))


@pytest.mark.parametrize("format", [-1, 3, 66])
def test_a_format_that_does_not_exist_is_damage(format: int) -> None:
    damaged = bytearray(five(5))
    struct.pack_into("b", damaged, FORMAT, format)
    numbers, error = unreadable(FOUR[4] + bytes(damaged) + FOUR[14])
    assert numbers == [*range(5)] and error.first == 5


def test_a_batch_that_is_longer_than_its_fetch_is_damage_only_as_the_first_one() -> None:
    longer = changed(FOUR[9], LENGTH, 1)
    part = fetched(FOUR[4] + longer)
    assert offsets(part.take(500)) == [*range(5)]
    assert offsets(part.take(500)) == [] and part.next_fetch_offset == 5
    for data in (longer, longer[:30], longer[:5]):
        with pytest.raises(UnreadableBatch, match=r"offset 5: .*its length is damaged"):
            fetched(data, 5)
    assert offsets(fetched(b"", 5).take(500)) == []


# -- batches and records that are good
def test_a_control_batch_without_a_record_is_passed() -> None:
    emptied = batch(2, [], last_delta=0, attributes=0x30, producer=7)
    part = fetched(batch(0, [record(0), record(1)]) + emptied + five(3))
    assert offsets(part.take(500)) == [0, 1, *range(3, 8)]


@pytest.mark.parametrize(
    ("first", "later", "time_ms"),
    [
        ((1 << 63) - 1, 0, (1 << 63) - 1),
        ((1 << 63) - 1, 1, -(1 << 63)),
        (-(1 << 63), -1, (1 << 63) - 1),
        (1000, (1 << 63) - 1, 999 - (1 << 63)),
    ],
)
def test_a_time_beyond_64_bits_is_that_of_other_clients(
    first: int, later: int, time_ms: int
) -> None:
    (run,) = fetched(batch(0, [record(0, later=later)], time_ms=first)).take(9)
    assert array("q", run.timestamps_ms).tolist() == [time_ms]


def test_a_header_name_that_is_not_utf8_affects_only_its_record() -> None:
    records = [
        record(0, headers=[(b"arm", b"a")]),
        record(1, headers=[(b"arm", b"a"), (b"\xff", b"b")]),
        record(2, headers=[(b"arm", None), ("\u00e9".encode(), b"")]),
        record(3),
    ]
    (run,) = fetched(batch(0, records)).take(9)
    headers = [run.headers.get(i, ()) for i in range(4)]
    assert [None if pairs is None else list(pairs) for pairs in headers] == [
        [("arm", b"a")], None, [("arm", None), ("\u00e9", b"")], [],
    ]  # fmt: skip


# -- memory
def most_bytes(data: bytes, limit: int) -> int:
    tracemalloc.start()
    try:
        part = fetched(data, limit=limit)
        del data
        try:
            for run in part.take(500):
                for headers in run.headers.values():
                    for _ in headers or ():
                        pass
        except UnreadableBatch:
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_many_headers_of_a_record_take_no_more_memory_than_their_bytes() -> None:
    count = 100_000
    data = b"\0\0\0" + number(-1) + number(-1) + number(count) + b"\0\0" * count
    packed = gzip.compress(number(len(data)) + data)
    assert most_bytes(batch(0, [b""], attributes=1, packed=packed), len(data) + 9) < 5 * len(data)


@pytest.mark.parametrize("format", [0, 1])
def test_a_batch_of_an_old_format_is_decompressed_up_to_the_limit(format: int) -> None:
    limit = 1 << 20
    builder = MemoryRecordsBuilder(format, 1, 1 << 30)
    builder.append(timestamp=1, key=None, value=bytes(8 * limit))
    builder.close()
    bomb = bytes(builder.buffer())
    assert most_bytes(bomb, limit) < 5 * limit
    with pytest.raises(UnreadableBatch, match="more than 1048576 bytes after decompression"):
        fetched(bomb, limit=limit).take(500)
    assert offsets(fetched(bomb, limit=16 * limit).take(500)) == [0]


@pytest.mark.parametrize("format", [0, 1])
def test_many_records_of_an_old_format_are_read_one_by_one(format: int) -> None:
    builder = MemoryRecordsBuilder(format, 1, 1 << 30)
    for i in range(5000):
        builder.append(timestamp=i, key=None, value=b"")
    builder.close()
    data = (4999).to_bytes(8, "big") + bytes(builder.buffer())[8:]  # the last offset, as a broker
    size = 5000 * (26 if format == 0 else 34)
    part = fetched(data, limit=size)
    assert most_bytes(data, size) < 5 * size
    assert [offset for _ in range(10) for offset in offsets(part.take(500))] == [*range(5000)]


def test_a_size_below_0_within_a_batch_of_an_old_format_is_damage() -> None:
    builder = MemoryRecordsBuilder(1, 1, 1 << 20)
    builder.append(timestamp=1, key=None, value=b"v")
    builder.close()
    data = bytearray(builder.buffer())
    inner = bytearray(gzip.decompress(bytes(data[34:])))
    struct.pack_into(">i", inner, 8, -12)  # the client would read it again and again
    packed = gzip.compress(bytes(inner))
    whole = data[:30] + struct.pack(">i", len(packed)) + packed
    struct.pack_into(">i", whole, 8, len(whole) - 12)
    part = fetched(bytes(whole), check_crcs=False)
    with pytest.raises(UnreadableBatch, match="t/0 offset 0"):
        part.take(500)


def test_a_wrong_checksum_is_found_in_each_format() -> None:
    builder = MemoryRecordsBuilder(1, 0, 1 << 20)
    builder.append(timestamp=1, key=None, value=b"v")
    builder.close()
    for data in (bytes(builder.buffer()), five(0)):
        assert span(unreadable(changed(data, -1, 1))[1]) == (0, None)
        assert span(unreadable(changed(data, CHECKSUM, 1) + five(9))[1])[0] == 0
