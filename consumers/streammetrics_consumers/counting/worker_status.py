"""The status of a worker: counts since it started, and times.

The worker and its ledger notify a `StatusRecorder`. A server in the same process takes a
`snapshot`; one worker of several sends its own to the process that started it (see supervise.py).
No count depends on any of this.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final

import msgspec

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources import Remote, Source

log = logging.getLogger(__name__)

COMMIT_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SEND_S: Final = 1.0  # between two snapshots that are sent
REFUSALS: Final = ("fenced", "locked")
ASK_S: Final = 10.0  # between two probes of a source that sends nothing


class PartitionStatus(msgspec.Struct):
    """The read position in a partition. `end` is the last known end of the log, and `record_ms`
    the timestamp of the last record received. `counted` and `digest` are the next offset and the
    digest of the head, as the worker knows it."""

    topic: str
    number: int
    position: int
    end: int | None = None
    record_ms: int | None = None
    counted: int | None = None
    digest: str = ""


class WorkerStatus(msgspec.Struct):
    """The status of a worker at one moment. Times are of the monotonic clock, in seconds."""

    pid: int
    polled_s: float  # when a poll last returned, or a source was opened
    fetched_s: float  # when its source last got data or an answer
    joined: bool = False  # it knows its partitions
    rows: int = 0
    late: int = 0
    future: int = 0
    expired: int = 0
    tombstones: int = 0
    skipped: int = 0
    duplicates: int = 0
    read_bytes: int = 0
    quarantined: dict[str, int] = msgspec.field(default_factory=dict)
    commits: list[int] = msgspec.field(  # by duration
        default_factory=lambda: [0] * (len(COMMIT_BOUNDS_S) + 1)
    )
    commit_s: float = 0.0
    committed_s: float | None = None  # when the last one succeeded
    commit_bytes: int = 0
    delta_bytes: int = 0
    refusals: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(REFUSALS, 0))
    rebuilds: int = 0
    rebalances: int = 0
    partitions: list[PartitionStatus] = msgspec.field(default_factory=list)


class StatusRecorder:
    """Keeps the status of a worker. Any thread may call it.

    send: called with the bytes of a snapshot about every second.
    """

    def __init__(
        self, monotonic: Callable[[], float], send: Callable[[bytes], None] | None = None
    ) -> None:
        now_s = monotonic()
        self._status = WorkerStatus(os.getpid(), now_s, now_s)
        self._partitions: dict[Partition, PartitionStatus] = {}
        self._monotonic, self._send = monotonic, send
        self._sent_s = self._asked_s = now_s
        self._is_connected = True
        self._remote: tuple[Source, Remote | None] | None = None  # the source of the last poll
        self._lock = Lock()

    def snapshot(self) -> WorkerStatus:
        """The present status."""
        return decode(self._encoded())

    # -- the source ---------------------------------------------------------------------------
    def opening(self) -> None:
        """A source is being opened: the process lives, and has no partitions."""
        with self._lock:
            self._status.polled_s = self._monotonic()
            self._status.joined = False
            self._partitions = {}
        if self._send is not None:
            self._send(self._encoded())

    def failed(self) -> None:
        """The source failed, and is opened again."""
        with self._lock:
            self._status.rebuilds += 1
        self.opening()

    def polled(self, source: Source, chunks: Sequence[Chunk]) -> None:
        """A poll has returned these chunks."""
        now_s = self._monotonic()
        if self._remote is None or self._remote[0] is not source:  # asking costs microseconds
            self._remote = source, source if isinstance(source, Remote) else None
        remote = self._remote[1]
        with self._lock:
            for chunk in chunks:
                self._status.read_bytes += chunk.nbytes
                partition_status = self._partitions.get(chunk.partition)
                if partition_status is not None:
                    partition_status.position = chunk.end
                    if chunk.timestamps_ms and chunk.timestamps_ms[-1] is not None:
                        partition_status.record_ms = chunk.timestamps_ms[-1]
            self._status.polled_s = now_s
            if chunks or remote is None:
                self._status.fetched_s = self._asked_s = now_s
            if remote is None:
                # A local source reports at once that there is no more.
                for partition_status in self._partitions.values():
                    partition_status.end = None if chunks else partition_status.position
        if now_s - self._sent_s >= SEND_S:
            self._sent_s = now_s
            if remote is not None:
                self._ask(remote, now_s)
            if self._send is not None:
                self._send(self._encoded())

    def _ask(self, source: Remote, now_s: float) -> None:
        ends = source.known_ends()
        asks = now_s - self._asked_s >= ASK_S
        is_connected = asks and source.is_connected()
        if asks and is_connected is not self._is_connected:
            self._is_connected = is_connected
            text = "answers again" if is_connected else "does not answer; waiting"
            log.warning("the log %s", text)
        with self._lock:
            if asks:
                self._asked_s = now_s
            if is_connected:
                self._status.fetched_s = now_s
            for partition, partition_status in self._partitions.items():
                partition_status.end = ends.get(partition, partition_status.end)

    def assigned(self, heads: Mapping[Partition, int]) -> None:
        """These partitions were assigned, and are read from these offsets on."""
        with self._lock:
            self._status.joined = True
            self._status.rebalances += 1
            for partition, head in heads.items():
                self._partitions[partition] = PartitionStatus(
                    partition.topic, partition.number, head
                )

    def head_moved(self, head: Head) -> None:
        """The head of one of our partitions, after a commit or when reading goes on at it."""
        with self._lock:
            partition_status = self._partitions.get(head.partition)
            if partition_status is not None:
                partition_status.counted, partition_status.digest = head.next_offset, head.digest

    def released(self, partitions: Sequence[Partition]) -> None:
        """These partitions were revoked or lost."""
        with self._lock:
            for partition in partitions:
                self._partitions.pop(partition, None)

    # -- the ledger ---------------------------------------------------------------------------
    def counted(self, duplicates: int, delta_bytes: int) -> None:
        """The number of duplicate records, and the memory of the uncommitted deltas in bytes."""
        with self._lock:
            self._status.duplicates, self._status.delta_bytes = duplicates, delta_bytes

    def committed(self, commit: Commit, seconds: float) -> None:
        """A commit succeeded."""
        status = self._status
        with self._lock:
            status.commits[bisect_left(COMMIT_BOUNDS_S, seconds)] += 1
            status.commit_s += seconds
            status.committed_s = self._monotonic()
            status.commit_bytes += sum(len(shard.stored) for shard in commit.shards)
            status.rows += commit.counters.rows
            status.late += commit.counters.late
            status.future += commit.counters.future
            status.expired += commit.counters.expired
            status.tombstones += commit.counters.tombstones
            status.skipped += commit.counters.skipped
            for refused in commit.refused:
                status.quarantined[refused.reason] = status.quarantined.get(refused.reason, 0) + 1

    def refused(self, why: str, times: int = 1) -> None:
        """The ledger did not accept a commit: `fenced` or `locked`."""
        with self._lock:
            self._status.refusals[why] += times

    def _encoded(self) -> bytes:
        with self._lock:
            self._status.partitions = list(self._partitions.values())
            return msgspec.json.encode(self._status)


def decode(data: bytes) -> WorkerStatus:
    """The status in the bytes of a snapshot."""
    return msgspec.json.decode(data, type=WorkerStatus)


class RecordingLedger(Ledger):
    """A ledger that reports its commits to a `StatusRecorder`."""

    def __init__(
        self,
        store: Store,
        status: StatusRecorder,
        monotonic: Callable[[], float],
        moved: Callable[[Head], None] = lambda head: None,
    ) -> None:
        """moved: called with each head after its commit."""
        super().__init__(store)
        self._moved = moved
        self._recorder, self._monotonic = status, monotonic

    def commit(self, generation: Generation, commit: Commit) -> Head:
        """See Ledger.commit."""
        began_s, tries = self._monotonic(), self.store.tried_again
        try:
            moved = super().commit(generation, commit)
        except Fenced:
            self._recorder.refused("fenced")
            raise
        finally:
            self._recorder.refused("locked", self.store.tried_again - tries)
        self._recorder.committed(commit, self._monotonic() - began_s)
        self._moved(moved)
        return moved
