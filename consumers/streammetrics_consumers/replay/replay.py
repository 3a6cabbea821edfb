"""Counts one log again, into a scratch store, and compares its events with the ledger.

Events in quarantine are left out of the count, and must be refused again for the same reason.
The events of a retry are read with that retry's settings, which the ledger keeps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.counted_events import own_rows
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.counting.seen_ids import SeenIds, without_repeats
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.ledger.audit import covers, entries_between, row_ends
from streammetrics_consumers.ledger.write import storable
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import (
    LATE,
    LATE_OUTCOMES,
    Counters,
    Head,
    QuarantineRow,
    Refused,
)
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.replay.coverage import Coverage
from streammetrics_consumers.replay.dry_run import (
    DryRun,
    DryRunOutcome,
    EventPosition,
    as_refused,
    events_at,
    is_message,
    offsets_of,
    places_of,
    record_at,
    refused_in,
)
from streammetrics_consumers.replay.scratch import Scratch
from streammetrics_consumers.sources import Remote, Source

POLL_S: Final = 0.5
FAR: Final = 50_000  # offsets; a longer gap is passed by a seek, not by reading
NEAR: Final = 20_000  # offsets; rows of fewer are merged, since a row costs more than its events
MAX_ROWS: Final = 200_000  # of a delta, before it is written to the scratch store
MAX_BYTES: Final = 64 << 20


class ReadAgain:
    """A listener that reads logs from given offsets on, and those without one from 0. It commits
    nothing."""

    def __init__(self, starts: Mapping[Partition, int]) -> None:
        self.starts = starts

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        """The offset from which each is read."""
        return {partition: self.starts.get(partition, 0) for partition in partitions}

    def on_revoked(self, partitions: list[Partition]) -> None:
        """Do nothing: there is nothing to commit."""

    def on_lost(self, partitions: list[Partition]) -> None:
        """Do nothing: there is nothing to drop."""


class Replay:
    """Takes the records [start, end) of one log, in order, and compares as it goes. `at` is the
    next offset. `retries` are those whose events of this log all lie in that range."""

    def __init__(
        self, scratch: Scratch, head: Head, span: tuple[int, int], retries: Collection[int]
    ) -> None:
        self.scratch, self.found, self.head = scratch, scratch.found, head
        self.start, self.end = span
        self.retries = frozenset(retries) & scratch.retries.keys()
        self.at = self.start
        metrics = {metric.name: metric for metric in scratch.generation.metrics}
        edges = {
            edge
            for metric in metrics.values()
            for hole in metric.holes.get(head.id, ())
            for edge in hole
        }
        edges |= {metric.start_offsets.get(head.id, self.start) for metric in metrics.values()}
        edges |= {start for start in scratch.periods.starts(head.id) if start > self.start}
        # Rows with the offsets of the ledger's have its bytes, and need not be merged.
        self._flushes = frozenset({*edges, *_apart(row_ends(scratch.store, head))})
        self._cuts = sorted(self._flushes)
        config = scratch.config
        self._totals = [
            (
                metric_set,
                [(m.name, i) for m in metric_set.metrics for i in range(len(metric_set.slices.by))],
            )
            for metric_set in (config.metric_sets if config.closing is None else ())
        ]
        self.coverage = Coverage(covers(scratch.store, head), metrics, head.id)
        dedup = config.dedup
        self._seen = None if dedup is None else SeenIds(dedup.retention_ms, dedup.pane_ms)
        reading = scratch.periods.reading(head.id, self.start)
        self._decoder = reading.decoder
        self._own = scratch.head(head, self.start, None)
        self._delta = Delta(reading.config, head.partition, self.start)
        self._counters = Counters()
        # Open entries whose reason this config lifts, by reason: their number, the first offset.
        self._lifted: dict[str, tuple[int, int]] = {}
        self._open: list[int] = [0, 0]  # open entries, and those of them with reason `future`
        # Late entries (a fact of the log) that a retry has counted: all, and the outcomes.
        self._retried: list[int] = [0, 0]
        self._dry_runs: dict[int, tuple[Head, DryRun]] = {}

    @property
    def is_whole(self) -> bool:
        """Whether the range is all that was counted of the log."""
        return (self.start, self.end) == (self.head.start_offset, self.head.next_offset)

    # -- the log's own ------------------------------------------------------------------------
    def take(self, chunk: Chunk) -> None:
        """Take the next records of the log; those outside of the range are ignored."""
        start, end = max(chunk.start, self.at), min(chunk.end, self.end)
        for part in _divided(chunk, start, self._cuts, end):
            if self.at in self._flushes:
                self._flush()
            self._decoder = self.scratch.periods.reading(self.head.id, part.start).decoder
            entries = entries_between(self.scratch.store, self.head, part.start, part.end)
            for decoded in self._decoder.pieces(part):
                self._take_messages(part, decoded, entries)
            self._take_retries(part, entries)

    def _take_messages(
        self, records: Chunk, decoded: Decoded, rows: Sequence[QuarantineRow]
    ) -> None:
        """Take decoded messages of these records."""
        start, end = decoded.chunk.start, decoded.chunk.end
        entries = {(row.offset, row.index): row for row in rows if start <= row.offset < end}
        events = events_at(decoded, entries)
        messages = {
            offset: entry
            for (offset, index), entry in entries.items()
            if not self._is_late(entry)
            and is_message(entry, events.get((offset, index)), record_at(records, offset))
        }
        if not messages:
            self._take(decoded, entries, events)
            return
        cuts = sorted({cut for offset in messages for cut in (offset, offset + 1)})
        for part in _divided(records, start, cuts, end):
            decoded_part = self._decoder.decode(part)
            if part.start in messages:
                self._take_message(part, decoded_part, messages[part.start])
            else:
                self._take_messages(part, decoded_part, rows)

    def _take_message(self, record: Chunk, decoded: Decoded, entry: QuarantineRow) -> None:
        """Take a message that was refused as one event, and is one here, whatever it holds."""
        outcome, now = self._dry_run().add_whole(decoded, entry.offset), as_refused(record)
        bad = {
            position: replace(now, reason=why.reason, field=why.field, detail=why.detail)
            for position, why in outcome.bad.items()
        }
        self._compare_entry(entry, DryRunOutcome(outcome.good, bad), now)
        nothing = decoded.take(np.zeros(0, np.intp))
        message = replace(nothing, chunk=record, refused=(), rows=1, left_out=0, of_no_kind=0)
        self._count(message, {})

    def _take(
        self,
        decoded: Decoded,
        entries: Mapping[EventPosition, QuarantineRow],
        events: Mapping[EventPosition, Refused],
    ) -> None:
        """Count the events that the ledger does not have in quarantine; compare those that it has
        with their present outcome."""
        if self._seen is not None:
            decoded = without_repeats(decoded, self._seen)
            events = events_at(decoded, entries)
        late = {position: entry for position, entry in entries.items() if self._is_late(entry)}
        if entries:
            judged = entries.keys() - late.keys()
            outcome = self._dry_run().add(decoded, judged)
            refused = refused_in(decoded)
            bad = {
                **outcome.bad,
                **{position: refused[position] for position in refused.keys() & late},
            }
            for position, entry in entries.items():
                self._compare_entry(entry, DryRunOutcome(outcome.good, bad), events.get(position))
            left = tuple(
                refusal for position, refusal in refused.items() if position not in entries
            )
            keep = np.ones(len(decoded.at), np.bool_)
            keep[[*places_of(decoded, judged).values()]] = False
            decoded = replace(decoded.take(np.flatnonzero(keep)), refused=left)
        self._count(decoded, late)

    def _count(self, decoded: Decoded, late: dict[EventPosition, QuarantineRow]) -> None:
        """late: the entries of events that are late because of the events before them."""
        if self._delta.counters.rows >= MAX_ROWS or self._delta.nbytes >= MAX_BYTES:
            self._flush()
        before = len(self._delta.quarantine)
        self._delta.add(decoded)
        refused = self._delta.quarantine[before:]
        del self._delta.quarantine[before:]
        for now in refused:
            entry = late.pop((now.offset, now.index), None)
            if entry is not None:
                self._compare_refusal(entry, now)
                continue
            self._differs((now.offset, now.index), f"refused ({now.reason}), but not in quarantine")
        for position, entry in late.items():
            self._differs(position, f"in quarantine as {entry.reason}, but not late in its log")
        left_out = [refusal.offset for refusal in refused]
        for metric_set, totals in self._totals:
            positions, offsets = own_rows(metric_set, decoded), offsets_of(decoded)
            own_offsets = offsets if positions is None else offsets[positions]
            self.coverage.look(
                totals, own_offsets[~np.isin(own_offsets, left_out)] if left_out else own_offsets
            )
        self.found.rows += decoded.rows
        self.at = decoded.chunk.end

    def _dry_run(self) -> DryRun:
        return DryRun(self.scratch.config, self.scratch.generation, self.head, None)

    def _is_late(self, entry: QuarantineRow) -> bool:
        """Whether it is late because of the events before it, and all of these are read again."""
        return entry.reason in LATE and self.start == self.head.start_offset

    def _compare_entry(
        self, entry: QuarantineRow, outcome: DryRunOutcome, now: Refused | None
    ) -> None:
        """outcome: that of a dry run; now: the event in the log, None where there is none."""
        position = entry.offset, entry.index
        self.found.entries += 1
        is_open = not entry.done or (entry.retry or 0) not in self.scratch.retries
        self._open[0] += is_open
        self._open[1] += is_open and entry.reason == "future"
        self._retried[0] += not is_open and entry.reason in LATE
        self._retried[1] += not is_open and entry.reason in LATE_OUTCOMES
        # Only the retry that counts an entry marks it.
        if entry.done and entry.retry is None:
            self._differs(position, "marked as counted, but by no retry")
        elif entry.done and is_open:
            self._differs(
                position, f"marked as counted by retry {entry.retry}, which does not exist"
            )
        elif not entry.done and entry.retry is not None:
            self._differs(position, f"open, but marked as counted by retry {entry.retry}")
        if position in outcome.bad:
            self._compare_refusal(entry, outcome.bad[position])
            limit = self.scratch.config.source.max_event_bytes
            if is_open and entry.reason == "too_large" and entry.size <= limit:
                self._note_lifted(entry)
        elif now is None:
            self._differs(position, "in quarantine, but not in the log")
        else:
            self._compare_payload(entry, now)
            # Whether windows were closed depends on the time of reading, and it may be late only
            # because of events that were not read again.
            if not is_open or entry.reason in ("closed", *LATE):
                return
            # Reasons that a later config may lift without a change of the counts.
            if entry.reason in ("too_large", "unknown_variant"):
                self._note_lifted(entry)
            else:
                self._differs(
                    position, f"open in quarantine as {entry.reason}, but good with this config"
                )

    def _note_lifted(self, entry: QuarantineRow) -> None:
        count, first = self._lifted.get(entry.reason, (0, entry.offset))
        self._lifted[entry.reason] = count + 1, first

    def _compare_refusal(self, entry: QuarantineRow, now: Refused) -> None:
        # Not their details: these are sentences, which another version may put in other words.
        name = None if now.field is None else storable(now.field)
        if (entry.reason, entry.field) != (now.reason, name):
            self._differs(
                (entry.offset, entry.index),
                f"in quarantine as {entry.reason} ({entry.detail}), but refused now as "
                f"{now.reason} ({now.detail})",
            )
        self._compare_payload(entry, now)

    def _compare_payload(self, entry: QuarantineRow, now: Refused) -> None:
        stored = entry.payload, entry.size, entry.sha256, entry.record_ms
        if stored != (now.payload, now.size, now.sha256, now.record_ms):
            self._differs(
                (entry.offset, entry.index),
                "its payload, size, hash or time in quarantine differs from that of the record",
            )

    def _differs(self, position: EventPosition, text: str) -> None:
        offset, index = position
        event = f" event {index}" if index else ""
        self.found.differs(f"{self.head.partition} offset {offset}{event}", text)

    # -- retries ------------------------------------------------------------------------------
    def _take_retries(self, chunk: Chunk, entries: Sequence[QuarantineRow]) -> None:
        """Take the events of these records that a retry has counted, read with its settings."""
        by_retry: dict[tuple[int, int], dict[EventPosition, QuarantineRow]] = defaultdict(dict)
        for entry in entries:
            if entry.done and entry.retry is not None and entry.retry in self.retries:
                by_retry[entry.offset, entry.retry][entry.offset, entry.index] = entry
        for (offset, retry), retry_entries in by_retry.items():
            record = record_at(chunk, offset)
            if record is None:
                continue  # reported already: it is not in the log
            good: set[EventPosition] = set()
            for decoded in self.scratch.decoders[retry].pieces(record):
                run = self._dry_run_of(retry)
                first = retry_entries.get((offset, 0))
                events = events_at(decoded, retry_entries)
                if first is not None and is_message(first, events.get((offset, 0)), record):
                    good |= run.add_whole(decoded, offset).good
                else:
                    good |= run.add(decoded, retry_entries).good
            for position in sorted(retry_entries.keys() - good):
                self._differs(position, f"counted by retry {retry}, but refused")

    def _dry_run_of(self, retry: int) -> DryRun:
        pair = self._dry_runs.get(retry)
        if pair is not None and pair[1].nbytes < MAX_BYTES:
            return pair[1]
        if pair is None:
            head = self.scratch.head(self.head, 0, retry)
        else:
            head = self._write_dry_run(*pair)
        run = DryRun(self.scratch.retries[retry], self.scratch.generation, self.head, None)
        self._dry_runs[retry] = head, run
        return run

    def _write_dry_run(self, head: Head, run: DryRun) -> Head:
        for commit in run.commits().values():
            start = head.next_offset
            head = self.scratch.write(replace(commit, head=head, start=start, end=start + 1))
        return head

    # -- the end ------------------------------------------------------------------------------
    def _flush(self) -> None:
        delta = self._delta
        if delta.end == delta.start:
            return
        self._own = self.scratch.write(commit_of(self._own, delta))
        self._counters += delta.counters
        config = self.scratch.periods.reading(self.head.id, delta.end).config
        self._delta = Delta(config, self.head.partition, delta.end, delta.greatest_event_ms)

    def finish(self) -> None:
        """Write the rest, compare the counters, and report the records that a retry may count."""
        self._flush()
        for pair in self._dry_runs.values():
            self._write_dry_run(*pair)
        for reason, (count, first) in self._lifted.items():
            self.found.note(
                f"{self.head.partition}: {count} events are open in quarantine as {reason}, but "
                f"not with this config, the first at offset {first}; `quarantine retry` tries them "
                "again"
            )
        if not self.is_whole:
            return
        where = f"{self.head.partition}: head"
        stored, now = self.head.counters, self._counters
        for name, ledger, log in (
            ("rows", stored.rows, now.rows),
            ("tombstones", stored.tombstones, now.tombstones),
            ("repeated", stored.repeated, now.repeated),
            ("skipped", stored.skipped, now.skipped),
            ("late outcomes", stored.late_outcomes, now.late_outcomes - self._retried[1]),
            ("closed", stored.closed, now.closed),
            ("conflicts", stored.conflicts, now.conflicts),
            ("quarantined", stored.quarantined, self._open[0]),
            ("future", stored.future, self._open[1]),
            ("greatest event time", self.head.greatest_event_ms, self._delta.greatest_event_ms),
        ):
            if ledger != log:
                self.found.differs(where, f"{name}: {ledger} in the ledger, {log} from the log")
        self._compare_late(where, stored.late, now.late - self._retried[0])
        # The remembered ids, by which later repeats will be recognized.
        ids = self.scratch.seen[self.head.id]
        read = {} if self._seen is None else self._seen.digests()
        for start_ms in sorted({*ids, *read}):
            if ids.get(start_ms) != read.get(start_ms):
                self.found.differs(
                    f"{self.head.partition}: ids of events from {start_ms} ms on",
                    f"{ids.get(start_ms, 'none')} in the ledger, "
                    f"{read.get(start_ms, 'none')} from the log",
                )

    def _compare_late(self, where: str, ledger: int, log: int) -> None:
        """Late events depend on the lateness at the time of counting, which older versions of the
        schema do not keep."""
        if ledger == log:
            return
        waits = self.scratch.config.closing is not None  # then the allowed lateness cannot change
        if waits or self.scratch.periods.has(self.head.id, "lateness_s"):
            self.found.differs(where, f"late: {ledger} in the ledger, {log} from the log")
            return
        self.found.could_not(
            f"{where}: late: {ledger} in the ledger, {log} from the log with this lateness_s; not "
            "compared, since a part of it was counted before the store kept lateness_s"
        )


def read_again(
    source: Source, replays: Mapping[Partition, Replay], report: Callable[[int], None]
) -> None:
    """Read each log up to the end of its replay. report: called with the number of offsets left."""
    source.assign(ReadAgain({log: replay.at for log, replay in replays.items()}))
    while True:
        left = sum(replay.end - replay.at for replay in replays.values())
        report(left)
        if not left:
            break
        for chunk in source.poll(POLL_S):
            replay = replays.get(chunk.partition)
            if replay is not None and chunk.start <= replay.at < min(chunk.end, replay.end):
                replay.take(chunk)
    if isinstance(source, Remote):
        source.confirm()  # no log was replaced meanwhile


def records_at(
    source: Source, partition: Partition, offsets: Sequence[int], *, seeks: bool
) -> Iterator[Chunk]:
    """A chunk of one record for each of these offsets (ascending) that the log still has.

    seeks: whether the source finds an offset without reading up to it. It was opened for this
    partition alone, and is not assigned yet. Raises SourceError.
    """
    beginning, end = source.beginning(partition), source.ends().get(partition, 0)
    wanted_offsets = [offset for offset in offsets if beginning <= offset < end]
    if not wanted_offsets:
        return
    source.assign(ReadAgain({partition: wanted_offsets[0]}))
    index, next_ = 0, wanted_offsets[0]
    while index < len(wanted_offsets):
        if seeks and wanted_offsets[index] > next_ + FAR:
            source.seek(partition, wanted_offsets[index])
            next_ = wanted_offsets[index]
        for chunk in source.poll(POLL_S):
            if chunk.partition != partition or chunk.end <= next_:
                continue
            next_ = chunk.end
            while index < len(wanted_offsets) and wanted_offsets[index] < chunk.end:
                record = record_at(chunk, wanted_offsets[index])
                index += 1
                if record is not None:
                    yield record
        if next_ >= end:
            return


def _apart(ends: Iterable[int]) -> Iterator[int]:
    """Those of these ascending offsets that are not too near to one another."""
    last = 0
    for end in ends:
        if end - last >= NEAR:
            last = end
            yield end


def _divided(chunk: Chunk, start: int, cuts: Sequence[int], end: int) -> Iterator[Chunk]:
    """The records [start, end) of a chunk, in parts that end at the cuts, which ascend."""
    edges = [start, *cuts[bisect_right(cuts, start) : bisect_left(cuts, end)], end]
    for a, b in pairwise(edges):
        first, last = bisect_left(chunk.offsets, a), bisect_left(chunk.offsets, b)
        yield chunk.part(first, last, a, b)
