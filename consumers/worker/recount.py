"""One log counted again, into a scratch store, beside what the ledger says of its events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from consumers.counting.commits import commit_of
from consumers.counting.delta import Delta
from consumers.counting.seen_ids import SeenIds
from consumers.events.decoder import Decoded
from consumers.events.refusals import LATE, Refused
from consumers.ledger.audit import covers, cut_after, entries_between, has_retry
from consumers.ledger.store import Store
from consumers.ledger.write import storable
from consumers.model.chunk import Chunk
from consumers.model.commit import Counters, Head, QuarantineRow
from consumers.worker.coverage import Coverage, starts_of
from consumers.worker.repeats import without_repeats
from consumers.worker.scratch import Scratch
from consumers.worker.trial import Place, Trial, described, places_of
from consumers.worker.verified import Verified

MAX_ROWS: Final = 200_000  # of a delta, before it goes to the scratch store
MAX_BYTES: Final = 64 << 20


class Recount:
    """Takes the records [start, end) of one log, in order, and compares as it goes. `at` is what
    comes next. `retries` are those whose events of this log all lie in that range."""

    def __init__(
        self,
        store: Store,
        head: Head,
        span: tuple[int, int],
        retries: Collection[int],
        scratch: Scratch,
        found: Verified,
    ) -> None:
        self.store, self.head = store, head
        self.start, self.end = span
        self.scratch, self.found = scratch, found
        self.retries = frozenset(retries) & scratch.retries.keys()
        self.at = self.start
        metrics = scratch.generation.metrics
        left_out = {one.name: one.holes.get(head.id, ()) for one in metrics}
        edges = {edge for some in left_out.values() for hole in some for edge in hole}
        edges |= {one.start_offsets[head.id] for one in metrics if head.id in one.start_offsets}
        self.cuts = sorted(edges)
        config = scratch.config
        self.coverage = Coverage(
            covers(store, head),
            [
                (one.name, i)
                for family in (config.families if config.join is None else ())
                for one in family.metrics
                for i in range(len(family.slices.by))
            ],
            starts_of(metrics, head.id),
            left_out,
        )
        dedup = config.dedup
        self._seen = None if dedup is None else SeenIds(dedup.retention_ms, dedup.pane_ms)
        self._own = scratch.head(head, self.start, None)
        self._delta = Delta(scratch.config, head.partition, self.start)
        self._counters = Counters()
        self._ripe: dict[str, tuple[int, Place]] = {}  # by reason: how many, and the first
        self._open: list[int] = [0, 0]  # entries that are open, and those of them in the future
        # Of the late, which are a fact of the log, how many a retry has counted: all, and outcomes.
        self._retried: list[int] = [0, 0]
        self._trials: dict[int, tuple[Head, Trial]] = {}

    @property
    def is_whole(self) -> bool:
        """Whether it is all that was counted of the log."""
        return (self.start, self.end) == (self.head.start_offset, self.head.next_offset)

    def extend(self) -> None:
        """Take as many records more as rows count that lie across the end: they were merged with
        what came after it."""
        self.end = cut_after(self.store, self.head, self.end)
        self.coverage.covers = covers(self.store, self.head)

    # -- the log's own ------------------------------------------------------------------------
    def take(self, decoded: Decoded) -> None:
        """The next whole messages."""
        if self._seen is not None:
            decoded = without_repeats(decoded, self._seen)
        chunk = decoded.chunk
        if self._is_full() or self.at in self.cuts:
            self._flush()
        entries = {
            (e.offset, e.index): e
            for e in entries_between(self.store, self.head, chunk.start, chunk.end)
        }
        rest = self._compare_entries(decoded, entries)
        before = len(self._delta.quarantine)
        self._delta.add(rest)
        late = {place: e for place, e in entries.items() if self._is_late(e)}
        for missing in self._delta.quarantine[before:]:
            entry = late.pop((missing.offset, missing.index), None)
            if entry is not None:
                self._compare_entry(entry, missing)
                continue
            self.found.differs(
                self._named((missing.offset, missing.index)),
                f"it is refused ({missing.reason}), and is not in quarantine",
            )
        for place, entry in late.items():
            self.found.differs(
                self._named(place), f"in quarantine as {entry.reason}, and not late by its log"
            )
        refused = {one.offset for one in self._delta.quarantine[before:]}
        del self._delta.quarantine[before:]
        offsets = np.array([offset for offset, _ in places_of(rest)], np.int64)
        self.coverage.look(offsets[~np.isin(offsets, list(refused))] if refused else offsets)
        self.found.rows += decoded.rows
        self.at = chunk.end

    def _compare_entries(self, decoded: Decoded, entries: Mapping[Place, QuarantineRow]) -> Decoded:
        """The events that the ledger does not have in quarantine; those that it has are compared
        with what becomes of them now."""
        places = places_of(decoded)
        at = {place: i for i, place in enumerate(places)} if entries else {}
        probe = Trial(self.scratch.config, self.scratch.generation, self.head, None)
        good = {place for place, e in entries.items() if place in at and not self._is_late(e)}
        tried = probe.add(decoded, good) if good else None
        refused = {
            (e.offset, e.index): e for e in decoded.refused if (e.offset, e.index) in entries
        }
        if tried is not None:
            refused.update(tried.bad)
        for place, entry in entries.items():
            self.found.entries += 1
            self._compare_marks(place, entry)
            is_open = not entry.done or (entry.retry or 0) not in self.scratch.retries
            self._open[0] += is_open
            self._open[1] += is_open and entry.reason == "future"
            self._retried[0] += not is_open and entry.reason in LATE
            self._retried[1] += not is_open and entry.reason == "late_outcome"
            if place in refused:
                self._compare_entry(entry, refused[place])
            elif place not in at:
                self.found.differs(self._named(place), "in quarantine, and not in the log")
            else:
                self._compare_place(entry, described(decoded, at[place]))
                # Whether it was closed is a fact of when, and it may be late only by what was not
                # read again.
                if is_open and entry.reason not in ("closed", *LATE):
                    self._good_now(entry)
        if not entries:
            return decoded
        keep = [
            i
            for i, place in enumerate(places)
            if place not in entries or self._is_late(entries[place])
        ]
        rest = decoded.take(np.array(keep, np.intp))
        left = tuple(e for e in decoded.refused if (e.offset, e.index) not in entries)
        return replace(rest, refused=left)

    def _is_late(self, entry: QuarantineRow) -> bool:
        """Whether the events before it say that it is late, and all of these are read again."""
        return entry.reason in LATE and self.start == self.head.start_offset

    def _compare_entry(self, entry: QuarantineRow, now: Refused) -> None:
        field = None if now.field is None else storable(now.field)
        was = (entry.reason, entry.field, entry.detail)
        if was != (now.reason, field, storable(now.detail)):
            self.found.differs(
                self._named((entry.offset, entry.index)),
                f"in quarantine as {entry.reason} ({entry.detail}), and refused now as "
                f"{now.reason} ({now.detail})",
            )
        self._compare_place(entry, now)

    def _compare_marks(self, place: Place, entry: QuarantineRow) -> None:
        """A retry that counts an entry says so in it, and nobody else marks one."""
        if entry.done and entry.retry is None:
            self.found.differs(self._named(place), "marked as counted, and by no retry")
        elif (
            entry.done
            and entry.retry not in self.scratch.retries
            and not has_retry(self.store, self.head, entry.retry)  # it may have come since
        ):
            self.found.differs(
                self._named(place),
                f"marked as counted by retry {entry.retry}, and there is no such retry",
            )
        elif not entry.done and entry.retry is not None:
            self.found.differs(
                self._named(place), f"open, and marked as counted by retry {entry.retry}"
            )

    def _compare_place(self, entry: QuarantineRow, now: Refused) -> None:
        was = entry.payload, entry.size, entry.sha256, entry.record_ms
        if was != (now.payload, now.size, now.sha256, now.record_ms):
            self.found.differs(
                self._named((entry.offset, entry.index)),
                "its payload, size, hash or time in quarantine is not that of the record",
            )

    def _good_now(self, entry: QuarantineRow) -> None:
        place = entry.offset, entry.index
        # What the config may come to allow without changing what is counted.
        if entry.reason in ("too_large", "unknown_variant"):
            count, first = self._ripe.get(entry.reason, (0, place))
            self._ripe[entry.reason] = count + 1, first
        else:
            self.found.differs(
                self._named(place),
                f"open in quarantine as {entry.reason}, and good with this config",
            )

    # -- retries ------------------------------------------------------------------------------
    def take_retries(self, chunk: Chunk) -> None:
        """The events among these records that a retry has counted, read as it has read them."""
        if not self.retries:
            return
        done: dict[tuple[int, int], set[Place]] = {}
        for entry in entries_between(self.store, self.head, chunk.start, chunk.end):
            retry = entry.retry if entry.done else None
            if retry is not None and retry in self.retries:
                done.setdefault((entry.offset, retry), set()).add((entry.offset, entry.index))
        for (offset, retry), wanted in done.items():
            i = bisect_left(chunk.offsets, offset)
            if i == len(chunk) or chunk.offsets[i] != offset:
                continue  # said already: it is not in the log
            record = chunk.part(i, i + 1, offset, offset + 1)
            good: set[Place] = set()
            for decoded in self.scratch.decoders[retry].pieces(record):
                good |= self._trial(retry).add(decoded, wanted).good
            for place in sorted(wanted - good):
                self.found.differs(
                    self._named(place), f"retry {retry} has counted it, and it is refused"
                )

    def _trial(self, retry: int) -> Trial:
        known = self._trials.get(retry)
        if known is not None and known[1].nbytes < MAX_BYTES:
            return known[1]
        if known is None:
            head = self.scratch.head(self.head, 0, retry)
        else:
            head = self._write_trial(*known)
        trial = Trial(self.scratch.retries[retry], self.scratch.generation, self.head, None)
        self._trials[retry] = head, trial
        return trial

    def _write_trial(self, head: Head, trial: Trial) -> Head:
        at = head.next_offset
        return self.scratch.write(replace(trial.commit(), head=head, start=at, end=at + 1))

    # -- the end ------------------------------------------------------------------------------
    def _is_full(self) -> bool:
        return self._delta.counters.rows >= MAX_ROWS or self._delta.nbytes >= MAX_BYTES

    def _flush(self) -> None:
        delta = self._delta
        if delta.end == delta.start:
            return
        self._own = self.scratch.write(commit_of(self._own, delta))
        self._counters += delta.counters
        self._delta = Delta(
            self.scratch.config, self.head.partition, delta.end, delta.greatest_event_ms
        )

    def flush(self) -> None:
        """Write what is left to the scratch store."""
        self._flush()
        for retry, (head, trial) in self._trials.items():
            left = Trial(trial.config, trial.generation, self.head, None)
            self._trials[retry] = self._write_trial(head, trial), left

    def finish(self) -> None:
        """Write the rest, compare the counters, and say what waits for a retry."""
        self.flush()
        for reason, (count, first) in self._ripe.items():
            self.found.note(
                f"{self.head.partition}: {count} events are open in quarantine as {reason}, and "
                f"good with this config, the first at offset {first[0]}; `quarantine retry` counts "
                "them"
            )
        if not self.is_whole:
            return
        self._compare_seen()
        was, now = self.head.counters, self._counters
        for name, ledger, log in (
            ("rows", was.rows, now.rows),
            ("tombstones", was.tombstones, now.tombstones),
            ("repeated", was.repeated, now.repeated),
            ("skipped", was.skipped, now.skipped),
            ("late (with this lateness_s)", was.late, now.late - self._retried[0]),
            ("late outcomes", was.late_outcomes, now.late_outcomes - self._retried[1]),
            ("closed", was.closed, now.closed),
            ("conflicts", was.conflicts, now.conflicts),
            ("quarantined", was.quarantined, self._open[0]),
            ("future", was.future, self._open[1]),
            ("greatest event time", self.head.greatest_event_ms, self._delta.greatest_event_ms),
        ):
            if ledger != log:
                self.found.differs(
                    f"{self.head.partition}: head",
                    f"{name}: {ledger} in the ledger, {log} from the log",
                )

    def _compare_seen(self) -> None:
        """The ids that are remembered, by which later repeats will be known."""
        was = self.scratch.seen[self.head.id]
        now = {} if self._seen is None else self._seen.digests()
        for start_ms in sorted({*was, *now}):
            if was.get(start_ms) != now.get(start_ms):
                self.found.differs(
                    f"{self.head.partition}: ids of events from {start_ms} ms on",
                    f"{was.get(start_ms, 'none')} in the ledger, "
                    f"{now.get(start_ms, 'none')} from the log",
                )

    def _named(self, place: Place) -> str:
        offset, index = place
        return f"{self.head.partition} offset {offset}" + (f" event {index}" if index else "")
