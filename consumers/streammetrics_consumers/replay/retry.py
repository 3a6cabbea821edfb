"""`quarantine retry` reads refused events again with the config as it is now.

An event whose payload the ledger holds whole is read from there. Where the payload was cut, or the
config reads more than it (a key, a header, a header of CSV, a row of columns), its record is read
from the log again, and must have the size and the hash of the entry. Events that are good now are
counted, a page of entries in one transaction; the others stay open. A message of many events that
was refused whole is counted whole.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import NotOpen, RetriedEntries, write_retry
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.commit import Head, QuarantineRow
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.replay.dry_run import (
    DryRun,
    DryRunOutcome,
    events_at,
    is_message,
    is_same,
)
from streammetrics_consumers.replay.event_reading import reading_of, require_same_states
from streammetrics_consumers.replay.replay import records_at
from streammetrics_consumers.sources import Skips, Source
from streammetrics_consumers.sources.open_source import open_source

PAGE: Final = 500  # entries of one transaction
TRIES: Final = 10  # of a page, while other retries run
SKIPPED: Final = (
    "skipped",
    "this config skips it ([event] where, [exposures] where or [join] others)",
)
ANOTHER: Final = "not_there", "this config reads no event here of the recorded size and hash"
# Reasons why a message of many events could not be divided.
_OF_MESSAGES: Final = frozenset(
    ["not_array", "not_arrow", "too_many_events", "bad_key", "bad_header"]
)
_TOO_LARGE_BATCH: Final = (
    "a new generation counts them, with a [source] max_batch_bytes that is large enough"
)
# Formats in which the payload of a refused event is JSON: a record is one event, or many.
_ONE: Final = ("jsonl", "json", "columns")
_MANY: Final = ("ndjson", "array")

Opener = Callable[[Config, Options], Source]


@dataclass(frozen=True, slots=True)
class Still:
    """An entry that stays open, and why."""

    entry: QuarantineRow
    reason: str
    field: str | None
    detail: str


@dataclass(slots=True)
class Page:
    """The outcome of some entries, in order of id. `retry` is the number of the retry, None where
    no entry was good."""

    counted: list[QuarantineRow] = field(default_factory=list)
    still: list[Still] = field(default_factory=list)
    retry: int | None = None


def retry(
    config: Config,
    ledger: Ledger,
    *,
    now_ms: Callable[[], int],
    opener: Opener = open_source,
    page: int = PAGE,
) -> Iterator[Page]:
    """Try every open entry of the current generation once; a page for each transaction.

    Raises SettingsChanged where events that `config` reads cannot be added to the counts.
    """
    after, tries = 0, 0
    while True:
        generation = ledger.generation()
        require_same_states(config, generation)
        entries = ledger.quarantine(generation=generation.id, after=after, limit=page)
        if not entries:
            return
        result_page, counted = _Attempt(config, ledger, generation, opener).outcome_of(entries)
        try:
            if counted:
                note = json.dumps(
                    {"reading": json.loads(reading_of(config)), "token": uuid.uuid4().hex},
                    sort_keys=True,
                )
                result_page.retry = write_retry(
                    ledger.store, generation, counted, created_ms=now_ms(), note=note
                )
        except NotOpen as error:
            tries += 1
            if tries >= TRIES:
                raise LedgerError(f"quarantine retry: {error}; run it again") from error
            continue  # the same page, without what another retry has counted
        yield result_page
        after, tries = entries[-1].id, 0


class _Attempt:
    """Reads the entries of one page."""

    def __init__(
        self, config: Config, ledger: Ledger, generation: Generation, opener: Opener
    ) -> None:
        self.config, self.generation, self.opener = config, generation, opener
        heads = ledger.snapshot(generation=generation.id).heads
        self.heads = {head.id: head for head in heads}
        self.closed_ms = next((h.next_offset for h in self.heads.values() if h.is_join), None)
        self.decoder = Decoder(config)
        # The payload of one event of a message is that event alone.
        source = replace(config.source, format="json" if config.source.kind == "kafka" else "jsonl")
        self.alone = Decoder(replace(config, source=source))
        self.page = Page()

    def outcome_of(self, entries: Sequence[QuarantineRow]) -> tuple[Page, list[RetriedEntries]]:
        """The outcome of these entries, and the deltas to write."""
        counted = []
        for head_id, group in groupby(sorted(entries, key=_head_place), key=lambda e: e.head):
            head = self.heads[head_id]
            floor_ms = self.generation.floor_ms
            run = DryRun(self.config, self.generation, head, floor_ms, self.closed_ms)
            good = self._good_entries(run, head, list(group))
            for era, commit in run.commits().items():
                entries_of_era = [entry for entry in good if run.era_of(entry.offset) == era]
                counted.append(RetriedEntries(entries_of_era, commit))
            self.page.counted += good
        self.page.counted.sort(key=lambda entry: entry.id)
        self.page.still.sort(key=lambda still: still.entry.id)
        return self.page, counted

    def _good_entries(
        self, run: DryRun, head: Head, entries: Sequence[QuarantineRow]
    ) -> list[QuarantineRow]:
        """The good ones of these entries."""
        good = []
        elsewhere = []
        for entry in entries:
            if entry.reason == "unreadable":  # it stands for events that were never read
                self._keep(entry, entry.reason, f"{entry.detail}; {_TOO_LARGE_BATCH}")
            elif self._is_whole(entry):
                good += self._took(entry, self._payload_outcome(run, entry))
            else:
                elsewhere.append(entry)
        return good + (self._from_the_log(run, head, elsewhere) if elsewhere else [])

    def _is_whole(self, entry: QuarantineRow) -> bool:
        """Whether the ledger has all of the event that the config reads."""
        return (
            len(entry.payload) == entry.size
            and hashlib.sha256(entry.payload).hexdigest() == entry.sha256
            and self.decoder.format in (*_ONE, *_MANY)
            and (self.decoder.format in _ONE or entry.reason not in _OF_MESSAGES)
            and not self.decoder.reads_beside
        )

    def _payload_outcome(self, run: DryRun, entry: QuarantineRow) -> DryRunOutcome:
        """The outcome of an entry that the ledger holds whole: an event, or all of a message."""
        position, chunk = (entry.offset, entry.index), _alone(entry)
        if self.decoder.format in _MANY and not entry.index:
            message = replace(chunk, indices=None)
            decoded = self.decoder.decode(message)
            if is_message(entry, events_at(decoded, {position}).get(position), message):
                return run.add_whole(decoded, entry.offset)
        return run.add(self.alone.decode(chunk), {position})

    def _from_the_log(
        self, run: DryRun, head: Head, entries: Sequence[QuarantineRow]
    ) -> list[QuarantineRow]:
        """The good ones of these entries, from their records in the log."""
        left = {(entry.offset, entry.index): entry for entry in entries}
        good: list[QuarantineRow] = []
        why = "its record is no longer in the log"
        if head.closed or self.config.source.kind in ("stdin", "spark"):
            why = "its log can no longer be read"
        else:
            try:
                for record in self._records(head, sorted({offset for offset, _ in left})):
                    record_entries = [
                        left.pop(position)
                        for position in sorted(left)
                        if position[0] == record.start
                    ]
                    for decoded in self.decoder.pieces(record):
                        good += self._record_entries(run, record, decoded, record_entries)
            except SourceError as error:
                why = f"its log cannot be read: {error}"
        for entry in left.values():
            self._keep(entry, "not_there", f"its stored payload is not enough, and {why}")
        return good

    def _records(self, head: Head, offsets: Sequence[int]) -> Iterator[Chunk]:
        options = Options(until_end=True, partitions=(str(head.partition),), skips=Skips(None))
        with closing(self.opener(self.config, options)) as source:
            if head.partition not in source.partitions():
                raise SourceError(f"{head.partition}: this is not the log that was counted")
            seeks = self.config.source.kind == "kafka"
            yield from records_at(source, head.partition, offsets, seeks=seeks)

    def _record_entries(
        self, run: DryRun, record: Chunk, decoded: Decoded, entries: Sequence[QuarantineRow]
    ) -> list[QuarantineRow]:
        """The good entries of one record: events with the size and the hash of their entry, or the
        whole message if it was refused whole."""
        by_position = {(entry.offset, entry.index): entry for entry in entries}
        events = events_at(decoded, by_position)
        same = {
            position for position, event in events.items() if is_same(by_position[position], event)
        }
        outcome = run.add(decoded, same)
        good = []
        for position, entry in by_position.items():
            if position in same:
                good += self._took(entry, outcome)
            elif is_message(entry, events.get(position), record):
                good += self._took(entry, run.add_whole(decoded, entry.offset))
            else:
                self._keep(entry, *(SKIPPED if decoded.left_out else ANOTHER))
        return good

    def _took(self, entry: QuarantineRow, outcome: DryRunOutcome) -> list[QuarantineRow]:
        """The entry, if it was good."""
        position = entry.offset, entry.index
        now = outcome.bad.get(position)
        if now is not None:
            self.page.still.append(Still(entry, now.reason, now.field, now.detail))
        elif position not in outcome.good:
            self._keep(entry, *SKIPPED)
        return [entry] if position in outcome.good else []

    def _keep(self, entry: QuarantineRow, reason: str, detail: str) -> None:
        self.page.still.append(Still(entry, reason, None, detail))


def _alone(entry: QuarantineRow) -> Chunk:
    """The event that an entry holds, as a record of its own."""
    return Chunk(
        entry.partition,
        entry.offset,
        entry.offset + 1,
        [entry.offset],
        [entry.payload],
        timestamps_ms=None if entry.record_ms is None else [entry.record_ms],
        indices=[entry.index],
    )


def _head_place(entry: QuarantineRow) -> tuple[int, int, int]:
    return entry.head, entry.offset, entry.index
