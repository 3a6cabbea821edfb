"""One worker: records in, commits out.

It holds a delta for each assigned partition, and nothing else. It may be killed between any two
of its lines: uncommitted records are read again, by it or by another worker.

A source may call `on_assigned`, `on_revoked` and `on_lost` from a thread of its own (Kafka's
client does), so one lock guards the deltas. It is never held while the source is polled.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Final, Protocol

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.tables import require_keyed
from streammetrics_consumers.counting.closer import Closer
from streammetrics_consumers.counting.commits import CommitLimits, ErrorBudget, commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.counting.housekeeping import IdleCompactor, KnownHeads, floor_after
from streammetrics_consumers.counting.options import (
    Options,
    chosen,
    require_no_loss,
    require_within,
    start_of,
)
from streammetrics_consumers.counting.refusal_watch import RefusalWatch
from streammetrics_consumers.counting.seen_ids import Repeats
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged, count_from
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.sources import Remote, Source, compaction_warning

log = logging.getLogger(__name__)

POLL_S: Final = 0.5  # a request to end takes effect when a poll returns
OTHERS_S: Final = 0.5  # between two checks of the heads of other workers' partitions


class StopSignal(Protocol):
    """A request to stop, which a worker checks between two steps."""

    @property
    def requested(self) -> bool: ...


@dataclass(slots=True)
class _Work:
    """An assigned partition: its head in the ledger, and the delta since then, which began at
    `since_s` of the worker's clock."""

    head: Head
    delta: Delta
    since_s: float


class Worker:
    """Reads a source into a ledger, until it is stopped or reaches the end."""

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        generation: Generation,
        source: Source,
        options: Options,
        *,
        stop: StopSignal,
        monotonic: Callable[[], float],
        status: StatusRecorder | None = None,
    ) -> None:
        self.config, self.ledger, self.generation = config, ledger, generation
        self.source, self.options = source, options
        self.rows = 0  # events read, refused ones included, each once
        self.duplicates = 0  # records received although already counted
        self.has_committed = False
        self._stop, self._monotonic = stop, monotonic
        self._status = status or StatusRecorder(monotonic)
        self.decoder = Decoder(config)
        self._lock = RLock()
        self._work: dict[Partition, _Work] = {}
        self._wanted: list[Partition] = []
        self._ends: dict[Partition, int] = {}
        self._starts: dict[Partition, int] = {}  # of heads, in case a store loses one
        self._needs_ends = False
        self._limits = CommitLimits(config.store)
        self._repeats = None if config.dedup is None else Repeats(config.dedup, ledger.store)
        self._error_budget = ErrorBudget(config.store.max_bad_share)
        description = next(iter(config.descriptions.values()), {})
        self._refusals = RefusalWatch(description, monotonic)
        self._compactor = IdleCompactor(ledger.store, monotonic)
        self._closer = (
            None
            if config.closing is None
            else Closer(config, ledger, generation, monotonic=monotonic)
        )
        self._known_heads = KnownHeads(ledger.store, monotonic)
        self._started_s = self._committed_s = self._checked_s = monotonic()

    # -- before the first record --------------------------------------------------------------
    def prepare(self) -> None:
        """Record the start of each partition before anything is read from it.

        Raises NewSource, LogChanged, LedgerError or SourceError.
        """
        partitions, heads = self.source.partitions(), self.ledger.heads(self.generation)
        warning = compaction_warning(self.source)
        if warning is not None:
            log.warning("%s", warning)
        self._wanted = chosen(partitions, self.options.partitions)
        require_keyed(self.config.dedup, partitions)
        if not self._wanted and self.options.on_gap == "stop":
            require_no_loss(self.config, heads)
        counted = {(head.partition.topic, head.partition.number) for head in heads}
        needs_ends = self.options.until_end or not self.source.replayable
        ends = self.source.ends() if needs_ends or self.options.start == "latest" else {}
        count_from(self.ledger.store, self.generation, partitions, new=self.options.new_source)
        # Closing must know the logs of other workers too, since it waits for their events.
        for partition in self._wanted if self.config.closing is None else partitions:
            new = (partition.topic, partition.number) not in counted
            start = start_of(self.options, self.source, partition, ends) if new else 0
            head = self._resolve(partition, start)
            self._starts[partition] = head.start_offset
            require_within(head, self.source, ends)
        self._needs_ends = needs_ends
        self._ends = {p: e for p, e in ends.items() if p in self._wanted} if needs_ends else {}

    def _resolve(self, partition: Partition, start: int, first: int | None = None) -> Head:
        """The head to read a log from, created at `start` if there is none; `first` is the
        beginning of a log that replaces another one.

        Raises LogChanged where another log was counted under this name, unless the options accept
        the new one.
        """
        try:
            return self.ledger.resolve(self.generation, partition, start)
        except LogChanged as changed:
            if not self.options.takes(changed.known.partition, partition):
                raise
            log.warning("%s; continuing with the new log", changed)
            first = self.source.beginning(partition) if first is None else first
            return self.ledger.follow(self.generation, changed.known, partition, first)

    # -- the loop -----------------------------------------------------------------------------
    def run(self) -> Iterator[Progress]:
        """Read until the end or a stop, and commit; yields the progress after each step.

        Raises SourceError (what was read before is committed), LedgerError and ErrorBudgetExceeded.
        """
        try:
            self.source.assign(self)
            is_done = False
            while not is_done and not self._stop.requested:
                is_finished = self.step()
                yield self.progress()
                is_done = is_finished and self._is_done()
        except SourceError:
            self.commit()
            raise
        self.commit(last=True)
        self._refusals.ended()
        if self._needs_ends:
            self._close(to_end=True)
        yield self.progress()

    def step(self) -> bool:
        """Poll once, count the records, and commit if due; returns whether the end is reached."""
        chunks = self.source.poll(POLL_S)
        self._status.polled(self.source, chunks)
        for chunk in chunks:
            self.take(chunk)
        with self._lock:
            for known_head, now in self._known_heads.lost(self.generation):
                self._resume_at(known_head, now)
            size = sum(work.delta.nbytes for work in self._work.values())
            deltas = [work.delta for work in self._work.values()]
            self._refusals.look((delta.counters, delta.quarantine) for delta in deltas)
        self._status.counted(self.duplicates, size)
        due = self._monotonic() - self._committed_s >= self.config.store.commit_interval_s
        if due or size >= self.config.store.commit_bytes:
            self.commit()
        if self._closer is not None and self._closer.is_closing:
            self._close()  # which needs the pending rows as it has read them
        else:
            self._compactor.step(idle=not chunks)
        return self._needs_ends and self._is_finished(idle=not chunks)

    def take(self, chunk: Chunk) -> None:
        """Add records to the delta of their partition, if they are the next ones in it."""
        with self._lock:
            work = self._work.get(chunk.partition)
            if work is None:
                return  # it was revoked while these records were in flight
            delta = work.delta
            if chunk.start > delta.end:
                # Records of an earlier assignment. Those in between would be lost.
                self.source.seek(chunk.partition, delta.end)
                return
            before = bisect_left(chunk.offsets, delta.end)
            self.duplicates += before
            if chunk.end <= delta.end:
                return
            if chunk.start < delta.end:
                chunk = chunk.part(before, len(chunk), delta.end, chunk.end)
            for part in self._limits.parts(chunk):
                for decoded in self.decoder.pieces(part):
                    if not self._count(decoded):
                        return

    def _count(self, decoded: Decoded) -> bool:
        """Add whole messages to their delta, which is committed before it holds too much; returns
        whether the messages after them are still the next ones to count."""
        partition, rows = decoded.chunk.partition, decoded.rows
        delta = self._work[partition].delta
        if self._limits.are_passed(delta, rows - decoded.left_out, decoded.chunk.end):
            self._commit([partition])
            delta = self._work[partition].delta
            if delta.end != decoded.chunk.start:
                return False  # the delta was dropped; reading resumes at the head
        delta.add(decoded if self._repeats is None else self._repeats.without(decoded))
        self.rows += rows
        # After an outage one poll may hold minutes of events.
        since_s = max(self._work[partition].since_s, self._committed_s)
        is_due = self._monotonic() - since_s >= self.config.store.commit_interval_s
        if is_due or delta.counters.rows >= self.config.store.commit_events:
            self._commit([partition])
        return self._work[partition].delta.end == decoded.chunk.end

    def commit(self, *, last: bool = False) -> None:
        """Commit the deltas of all partitions."""
        with self._lock:
            self._commit(list(self._work), last=last)
            self._committed_s = self._monotonic()
            self.source.acknowledge({p: w.head.next_offset for p, w in self._work.items()})
        self.has_committed = True
        self._close()
        self._raise_floor()

    def _close(self, *, to_end: bool = False) -> None:
        """Close the events that can be closed, for a while, unless a stop is requested. to_end:
        all of them, and all pending ones too if the options ask for it."""
        if self._closer is None or self._stop.requested:
            return
        if self._closer.close(to_end=to_end, everything=to_end and self.options.close):
            self._compactor.committed(self._closer.head)

    def progress(self) -> Progress:
        """The progress of this worker."""
        with self._lock:
            left = [self._ends.get(p, 0) - work.delta.end for p, work in self._work.items()]
        remaining = sum(max(gap, 0) for gap in left) if self._ends else None
        return Progress(self.rows, self._monotonic() - self._started_s, remaining)

    # -- notifications of a source ------------------------------------------------------------
    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        """Start a delta at the head of each partition. See source.Listener."""
        with self._lock:
            for partition in partitions:
                # A partition that was added to the topic meanwhile begins at 0, and so does a
                # file that got its first record. This may be the source's thread: do not query it.
                head = self._resolve(partition, self._starts.get(partition, 0), first=0)
                self._error_budget.began(self.ledger.store, head)
                self._begin(head)
            log.info("assigned: %s", ", ".join(map(str, partitions)) or "nothing")
            heads = {p: self._work[p].head.next_offset for p in partitions}
            self._status.assigned(heads)
            for partition in partitions:
                self._status.head_moved(self._work[partition].head)
            return heads

    def on_revoked(self, partitions: list[Partition]) -> None:
        """Commit and release them. (Without the commit the new owner would read more again.)"""
        with self._lock:
            try:
                self._commit(partitions)
            finally:
                self.on_lost(partitions)

    def on_lost(self, partitions: list[Partition]) -> None:
        """Drop uncommitted records: the new owner reads them again."""
        with self._lock:
            for partition in partitions:
                work = self._work.pop(partition, None)
                self.rows -= work.delta.counters.rows if work else 0
            if self._repeats is not None:
                self._repeats.drop(partitions)
            self._status.released(partitions)

    # -- commits ------------------------------------------------------------------------------
    def _begin(self, head: Head) -> None:
        delta = Delta(
            self.config,
            head.partition,
            head.next_offset,
            head.greatest_event_ms,
            self.generation.floor_ms,
            closed_ms=None if self._closer is None else self._closer.closed_ms,
        )
        if self._repeats is not None:
            self._repeats.begin(head)
        self._known_heads.saw(head)
        self._status.head_moved(head)
        self._work[head.partition] = _Work(head, delta, self._monotonic())

    def _commit(self, partitions: Sequence[Partition], *, last: bool = False) -> None:
        owned = [self._work[partition] for partition in partitions if partition in self._work]
        moved = [work for work in owned if work.delta.end != work.delta.start]
        if moved and isinstance(self.source, Remote):
            self.source.confirm()
        counted = [
            (delta.partition, delta.counters, delta.quarantine)
            for delta in (w.delta for w in moved)
        ]
        self._error_budget.check(counted, last=last)
        for work in moved:
            commit = commit_of(work.head, work.delta)
            if self.source.replayable and self._limits.is_too_large(commit):
                self._resume(work, "one slice's state is too large for a row of the store")
                continue
            if self._repeats is not None:
                commit = self._repeats.with_ids(commit)
            try:
                head = self.ledger.commit(self.generation, commit)
            except Fenced as fenced:
                self._resume(work, str(fenced))
            else:
                self._error_budget.count(work.delta.counters)
                self._refusals.count(work.delta.counters, work.delta.quarantine)
                self._compactor.committed(head)
                self._begin(head)

    def _resume_at(self, known_head: Head, now: Head | None) -> None:
        """Read on from a head of the store that differs from the known one."""
        work = self._work.get(known_head.partition)
        if work is None:
            self._known_heads.moved(self.generation, known_head, now)
        else:
            self._resume(
                work, "the head in the store is not the one that this worker knows", known_head
            )

    def _resume(self, work: _Work, why: str, known_head: Head | None = None) -> None:
        """Drop a delta and read on from the head: another worker has counted its records, the
        floor rose, a state is too large, or the store went back."""
        partition, lost = work.head.partition, work.delta.counters.rows
        if not self.source.replayable:
            raise SourceError(f"{why}; {lost} records of {partition} cannot be read again")
        if self._closer is not None:
            self._closer.look()
        now = self.ledger.generation(self.generation.id)
        self.generation = replace(self.generation, floor_ms=now.floor_ms)
        head = self.ledger.resolve(self.generation, partition, work.head.start_offset)
        head = self._known_heads.moved(self.generation, known_head or work.head, head) or head
        log.warning("%s; %d records are dropped, continuing at %d", why, lost, head.next_offset)
        self.rows -= lost
        self._begin(head)
        self.source.seek(partition, head.next_offset)

    def _raise_floor(self) -> None:
        """Drop windows that every partition has passed by more than the retention."""
        config, generation = self.config, self.generation
        with self._lock:
            heads = [work.head for work in self._work.values()]
            # Rows of windows that end later are not counted yet.
            closed_ms = None if self._closer is None else self._closer.head.next_offset
            # The heads of other workers are read only where our own allow it.
            if not heads or floor_after(config, heads, generation.floor_ms, closed_ms) is None:
                return
            floor_ms = floor_after(
                config, self.ledger.heads(generation), generation.floor_ms, closed_ms
            )
            if floor_ms is None:
                return
            self.generation = self.ledger.raise_floor(generation, floor_ms)
            for work in list(self._work.values()):
                if work.delta.end == work.delta.start:
                    self._begin(work.head)

    # -- the end ------------------------------------------------------------------------------
    def _is_finished(self, *, idle: bool) -> bool:
        """Whether every partition, those of other workers too, has reached its end."""
        if len(self._ends) < len(self._wanted):  # stdin: known when it closes
            if idle:
                self._ends = {**self.source.ends(), **self._ends}
            return False
        if self._is_behind():
            return False
        with self._lock:
            if self._work.keys() >= set(self._wanted):
                return True
        now_s = self._monotonic()
        if now_s - self._checked_s < OTHERS_S:
            return False
        self._checked_s = now_s
        self.commit()  # other workers wait for our heads
        heads = {head.partition: head.next_offset for head in self.ledger.heads(self.generation)}
        return all(heads.get(p, -1) >= self._ends[p] for p in self._wanted)

    def _is_done(self) -> bool:
        """Commit at the end; returns whether it is one, since dropped records are read again."""
        self.commit(last=True)
        return not self._is_behind()

    def _is_behind(self) -> bool:
        """Whether an assigned partition has not reached its end."""
        with self._lock:
            return any(work.delta.end < self._ends.get(p, 0) for p, work in self._work.items())
