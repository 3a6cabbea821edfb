"""Reading the records of the client's batches in a fifth of the time of the client, in bounded
memory.

A batch is checked and decompressed when it is reached, up to a limit, and `batch_records` makes
blocks of its records. `record_runs` reads the blocks of many batches together. The client still
handles the batch framing, transactions and control batches. What cannot be read ends the reading
after the blocks before it, with an UnreadableBatch.

The checksum of a batch does not cover its first offset, its length and its format. So offsets must
ascend, from batch to batch and within a batch; and a batch after a hole must end before the next
one begins, as far as the fetch holds it.

This uses private parts of the client. If their layout is not the known one, the source uses the
records of the client's public `poll` instead: see `is_known_layout`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final, cast

from kafka import TopicPartition
from kafka.consumer.fetcher import ConsumerRecord, Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch

from streammetrics_consumers.sources import UnreadableBatch, limit_text
from streammetrics_consumers.sources.kafka.batch_codecs import DamagedBatch, OverLimit
from streammetrics_consumers.sources.kafka.batch_records import (
    LATER,
    InvalidBatch,
    LegacyBatch,
    RecordBatch,
)
from streammetrics_consumers.sources.kafka.record_runs import RecordBlock, RecordRun, Runs, runs_of

# Two records as encoded by a producer, with gzip: one with a key, and one with a header.
PROBE: Final = bytes.fromhex(
    "00000000000000000000005e0000000002d4bbaa790001000000010000018bcfe568000000018bcfe56801ffffffff"
    "ffffffffffffffffffff000000021f8b0800c76b036b02ff5bc0ccc0c0c0943d81b96c9800063106262646a67226a6"
    "0ca60a00a1451aeede000000"
)
FETCHED: Final = ("fetch_offset", "tp", "records", "check_crcs")  # arguments from a fetcher
TOGETHER_BYTES: Final = 1 << 20  # of blocks, to read them together
_OFFSETS: Final = 1 << 63  # no offset is as large
_START: Final = struct.Struct(">q8xb")  # of a batch: its first offset, and its format
# What the client raises for bytes that are no batch.
_DAMAGE: Final = (
    AssertionError,
    CorruptRecordError,
    IndexError,
    TypeError,
    ValueError,
    struct.error,
)


class FetchedBytes(MemoryRecords):  # type: ignore[misc]  # the client ships no types
    """The bytes of a fetch of one partition, which the client divides into batches."""

    __slots__ = ()

    @classmethod
    def adopted(cls, records: MemoryRecords) -> FetchedBytes:
        """The same object with this class."""
        records.__class__ = cls
        return cast("FetchedBytes", records)

    def base(self) -> int | None:
        """The first offset of the next batch, if the fetch holds it. A batch of an old format
        begins with its last offset, so it tells none."""
        size = 0
        if self.has_next():
            size = len(self._next_slice)
            if size < self.MIN_SLICE:
                return None
        start = self._pos - size
        if start + _START.size > len(self._buffer):
            return None
        base, magic = _START.unpack_from(self._buffer, start)
        return int(base) if magic == 2 else None

    def bases(self) -> tuple[int | None, int | None]:
        """The first offset of the first batch, whatever its format, and that of the next one."""
        first = int.from_bytes(self._buffer[:8], "big", signed=True)
        if self.has_next():
            self._cache_next()
            return first, self.base()
        return first if self.size_in_bytes() else None, None


class Batches:
    """The batches of one fetch of a partition, from offset `fetched` on."""

    def __init__(
        self, records: MemoryRecords, fetched: int, max_bytes: int, check_crcs: bool
    ) -> None:
        self._records, self._fetched = FetchedBytes.adopted(records), fetched
        self._max_bytes, self._check_crcs = max_bytes, check_crcs
        self._before = -1  # the last offset of the batch before

    def next_batch(self) -> RecordBatch | LegacyBatch | None:
        """The next batch with an offset from `fetched` on, None at the end. Raises InvalidBatch."""
        while True:
            try:
                batch = self._records.next_batch()
            except _DAMAGE as damage:
                got = f"one that is damaged: {damage}"
                raise InvalidBatch(self._position, None, got) from damage
            if batch is None:
                return None
            self._before = self._checked_last(batch)
            if self._before >= self._fetched:
                return self._decompressed(batch)

    @property
    def _position(self) -> int:
        """The offset from which the next batch is expected on."""
        return max(self._fetched, self._before + 1)

    def _checked_last(self, batch: DefaultRecordBatch | LegacyRecordBatch) -> int:
        """The last offset of a batch whose checksum and offsets are as they must be."""
        position, after = self._position, self._records.base()
        first, last = batch.base_offset, batch.base_offset
        if not 0 <= batch.magic <= 2:
            raise InvalidBatch(position, None, f"one of the unknown format {batch.magic}")
        if batch.magic == 2:
            last = batch.last_offset
        if first <= self._before:
            got = f"one that begins at offset {first}, after offset {self._before}"
            raise InvalidBatch(position, self._end(position, _OFFSETS), got)
        is_good = not self._check_crcs or batch.validate_crc()
        is_behind_hole = first > position and after is not None
        is_passed = self._before < 0 and after is not None and after <= self._fetched
        if is_passed and (is_behind_hole or not is_good):
            return self._before  # it was left out, and the broker takes it for a later one
        if not is_good:
            start = position if is_behind_hole and after <= first else max(first, position)
            raise InvalidBatch(start, self._end(start, last), "one with a wrong checksum")
        if is_behind_hole and after <= last:
            got = f"one that ends at offset {last}, before offset {after}"
            raise InvalidBatch(position, self._end(position, _OFFSETS), got)
        if not first <= last < _OFFSETS:
            start, got = max(first, position), f"one from offset {first} to {last}"
            raise InvalidBatch(start, self._end(start, _OFFSETS), got)
        return int(last)

    def _decompressed(
        self, batch: DefaultRecordBatch | LegacyRecordBatch
    ) -> RecordBatch | LegacyBatch:
        # The client has no setting for other classes of batches.
        batch.__class__ = RecordBatch if batch.magic == 2 else LegacyBatch
        first = max(batch.base_offset, self._fetched)
        try:
            batch.decompress(self._max_bytes)
        except OverLimit:
            raise InvalidBatch(first, self._before, limit_text(self._max_bytes)) from None
        except DamagedBatch as damage:
            raise InvalidBatch(first, self._before, "one that cannot be decompressed") from damage
        return cast("RecordBatch | LegacyBatch", batch)

    def _end(self, first: int, claimed: int) -> int | None:
        """The last offset of a batch from `first` on that may be damaged, and says that it is
        `claimed`; None if the fetch does not tell where the next one begins."""
        after = self._records.base()
        return None if after is None or after <= first else max(first, min(claimed, after - 1))


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
        except Exception as cause:
            error = self._unreadable(cause) if isinstance(cause, InvalidBatch) else cause
            self._next_inline_exception = error
            self.record_iterator = iter(())  # it is not drained before the error is raised
            if not runs:
                self._maybe_raise_next_inline_exception()
        return runs

    def _maybe_raise_next_inline_exception(self) -> None:
        """Raise the error after what was taken, if there is one. What follows it is not read: the
        client asks for more of a fetch until it is drained."""
        error = self._next_inline_exception
        if error is not None:
            self.drain()
            raise error

    def _unreadable(self, fault: InvalidBatch) -> UnreadableBatch:
        topic, partition = self.topic_partition
        first = max(fault.first, self.next_fetch_offset)
        return UnreadableBatch(topic, partition, first, fault.last, fault.got)

    def _next_runs(self, n: int) -> Iterator[RecordRun]:
        """The runs of the next blocks, with `n` records if they are small. What the client raises
        meanwhile comes after them."""
        before, run = self.next_fetch_offset, None
        error: Exception | None = None
        blocks: list[RecordBlock] = []
        count = nbytes = 0
        while count < n and nbytes < TOGETHER_BYTES and self.record_iterator is not None:
            try:
                record = next(self.record_iterator, None)
            except _DAMAGE as damage:  # of a record of an old format, or a control record
                error = InvalidBatch(0, None, f"one that is damaged: {damage}")
                break
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
        yield from runs_of(blocks)
        if run is not None:
            yield run
        elif after <= LATER:  # something came after the last block
            self.next_fetch_offset = after
        if error is not None:
            raise error

    def _add(self, runs: Runs, run: RecordRun, n: int) -> None:
        if run.offsets[0] < self.next_fetch_offset:
            raise InvalidBatch(0, None, f"one whose offsets do not ascend: {run.offsets[0]}")
        left = n - len(runs)
        if len(run) > left:
            run, self._rest = run.part(0, left), run.part(left, len(run))
        runs.append(run)
        self.next_fetch_offset = run.offsets[-1] + 1

    def _contains_abort_marker(self, batch: RecordBatch) -> bool:
        """Whether a batch ends an aborted transaction. Compaction leaves control batches without
        a record, at which the client's own method fails."""
        return batch.records_count > 0 and bool(super()._contains_abort_marker(batch))


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The maximum decompressed size of a batch in bytes."""

    max_bytes: int

    def records(
        self,
        fetch_offset: int,
        partition: TopicPartition,
        records: MemoryRecords,
        check_crcs: bool = True,
        **settings: object,
    ) -> object:
        """The records of a fetch of one partition, as the client's fetcher creates them. Raises
        UnreadableBatch if the fetch ends within its first batch, which a broker sends whole: no
        other fetch would get further."""
        if records.size_in_bytes() and not records.has_next():
            got = (
                "one that is longer than what was fetched: its length is damaged or, with a broker "
                "before 0.10.1, above max_partition_fetch_bytes"
            )
            raise UnreadableBatch(partition.topic, partition.partition, fetch_offset, None, got)
        batches = Batches(records, fetch_offset, self.max_bytes, check_crcs)
        return PartitionRecords(fetch_offset, partition, batches, check_crcs=check_crcs, **settings)


def is_known_layout() -> bool:
    """Whether the private parts of the client that this module uses have the known layout: the
    stored batch PROBE gives the same records as with the client itself."""
    try:
        client_batch = MemoryRecords(PROBE).next_batch()
        own_batch = Batches(MemoryRecords(PROBE), 0, 1 << 20, True).next_batch()
        if not isinstance(own_batch, RecordBatch):
            return False
        expected = RecordRun.collected(list(client_batch))
        (record,) = cast("Iterable[Any]", own_batch)
        (run,) = runs_of([record.checksum])
        names = set(signature(Fetcher.PartitionRecords).parameters)
        run.offsets, run.timestamps_ms = list(run.offsets), list(run.timestamps_ms)
        run.headers = {i: list(headers or ()) for i, headers in run.headers.items()}
        return len(expected) == 2 and run == expected and names.issuperset(FETCHED)
    except Exception:  # missing parts may raise anything
        return False
