"""`quarantine retry`: refused events are read again with the config as it is now.

An event whose payload the ledger holds whole is read from there. Where the payload was cut, or is
not all that the config reads (a key, a header, a header of CSV, a row of columns), its record is
read from the log again, and must have the size and the hash that were noted. What is good now is
counted, a page of entries in one transaction; what is not stays open.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from consumers.config.config import Config
from consumers.counting.options import Options
from consumers.events.decoder import Decoded, Decoder
from consumers.events.refusals import Refused
from consumers.ledger.ledger import Ledger, LedgerError
from consumers.ledger.retry import Counted, NotOpen, write_retry
from consumers.ledger.rows import Generation, Head, QuarantineRow
from consumers.sources.open_source import open_source
from consumers.sources.records_at import records_at
from consumers.sources.source import Chunk, Skips, Source, SourceError
from consumers.worker.reading import reading_of, require_same_states
from consumers.worker.trial import Place, Trial, described, places_of

PAGE: Final = 500  # entries of one transaction
TRIES: Final = 10  # of a page, where other retries are at it too
SKIPPED: Final = "skipped", "[event] where does not mean it, as the config reads it now"
ANOTHER: Final = "not_there", "this config reads no event here with the size and hash it had"
# Of messages that carry many events: these say that one could not be divided.
_OF_MESSAGES: Final = frozenset(
    ["not_array", "not_arrow", "too_many_events", "bad_key", "bad_header"]
)
_READ_ANEW: Final = (
    "a new generation counts them, with a [source] max_batch_bytes that lets them in"
)
# Formats of which the payload of a refused event is JSON: a record is one event, or many.
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
    """What came of some entries, in order of id. `retry` is the number of the retry, None where
    nothing was good."""

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

    Raises SettingsChanged where events that `config` reads cannot be added to what is counted.
    """
    after, tries = 0, 0
    while True:
        generation = ledger.generation()
        require_same_states(config, generation)
        entries = ledger.quarantine(after=after, limit=page)
        if not entries:
            return
        found, counted = _Attempt(config, ledger, generation, opener).of(entries)
        try:
            if counted:
                note = json.dumps(
                    {"reading": json.loads(reading_of(config)), "token": uuid.uuid4().hex},
                    sort_keys=True,
                )
                found.retry = write_retry(
                    ledger.store, generation, counted, created_ms=now_ms(), note=note
                )
        except NotOpen as error:
            tries += 1
            if tries >= TRIES:
                raise LedgerError(f"quarantine retry: {error}; start it again") from error
            continue  # the same page, without what another retry has counted
        yield found
        after, tries = entries[-1].id, 0


class _Attempt:
    """Reads the entries of one page."""

    def __init__(
        self, config: Config, ledger: Ledger, generation: Generation, opener: Opener
    ) -> None:
        self.config, self.generation, self.opener = config, generation, opener
        self.heads = {head.id: head for head in ledger.snapshot().heads}
        self.closed_ms = next((h.next_offset for h in self.heads.values() if h.is_join), None)
        self.decoder = Decoder(config)
        # The payload of an event that came with others is that event alone.
        one = replace(config.source, format="json" if config.source.kind == "kafka" else "jsonl")
        self.alone = Decoder(replace(config, source=one))
        self.page = Page()

    def of(self, entries: Sequence[QuarantineRow]) -> tuple[Page, list[Counted]]:
        """What came of them, and what to write."""
        counted = []
        for head_id, group in groupby(sorted(entries, key=_by_head), key=lambda e: e.head):
            head, some = self.heads[head_id], list(group)
            good, trial = self._of_head(head, some)
            if good:
                counted.append(Counted(good, trial.commit()))
                self.page.counted += good
        self.page.counted.sort(key=lambda entry: entry.id)
        self.page.still.sort(key=lambda still: still.entry.id)
        return self.page, counted

    def _of_head(
        self, head: Head, entries: Sequence[QuarantineRow]
    ) -> tuple[list[QuarantineRow], Trial]:
        trial = Trial(self.config, self.generation, head, self.generation.floor_ms, self.closed_ms)
        good = []
        elsewhere = []
        for entry in entries:
            if entry.reason == "unreadable":  # it stands for events that nobody has seen
                self._keep(entry, entry.reason, f"{entry.detail}; {_READ_ANEW}")
                continue
            if not self._is_whole(entry):
                elsewhere.append(entry)
                continue
            decoded = self.alone.decode(self._chunk(entry))
            good += self._take(trial, decoded, [entry])
        if elsewhere:
            good += self._from_the_log(trial, head, elsewhere)
        return good, trial

    def _is_whole(self, entry: QuarantineRow) -> bool:
        """Whether the ledger has all of the event that the config reads."""
        return (
            len(entry.payload) == entry.size
            and hashlib.sha256(entry.payload).hexdigest() == entry.sha256
            and self.decoder.format in (*_ONE, *_MANY)
            and (self.decoder.format in _ONE or entry.reason not in _OF_MESSAGES)
            and not self.decoder.reads_beside
        )

    def _chunk(self, entry: QuarantineRow) -> Chunk:
        return Chunk(
            entry.partition,
            entry.offset,
            entry.offset + 1,
            [entry.offset],
            [entry.payload],
            timestamps_ms=None if entry.record_ms is None else [entry.record_ms],
            indices=[entry.index],
        )

    def _from_the_log(
        self, trial: Trial, head: Head, entries: Sequence[QuarantineRow]
    ) -> list[QuarantineRow]:
        """Those of these entries that are good, from their records in the log."""
        left = {(entry.offset, entry.index): entry for entry in entries}
        good: list[QuarantineRow] = []
        why = "its record is not in the log any more"
        if head.closed or self.config.source.kind in ("stdin", "spark"):
            why = "its log cannot be read any more"
        else:
            try:
                for decoded in self._records(head, sorted({offset for offset, _ in left})):
                    start, end = decoded.chunk.start, decoded.chunk.end
                    some = [entry for place, entry in left.items() if start <= place[0] < end]
                    same = self._same(decoded, some)
                    good += self._take(trial, decoded, same)
                    for entry in some:
                        if entry not in same and decoded.left_out:
                            self._keep(entry, *SKIPPED)
                        elif entry not in same:
                            self._keep(entry, *ANOTHER)
                        del left[entry.offset, entry.index]
            except SourceError as error:
                why = f"its log cannot be read: {error}"
        for entry in left.values():
            self._keep(entry, "not_there", f"its payload was cut or needs more, and {why}")
        return good

    def _records(self, head: Head, offsets: Sequence[int]) -> Iterator[Decoded]:
        options = Options(until_end=True, partitions=(str(head.partition),), skips=Skips(None))
        with closing(self.opener(self.config, options)) as source:
            if head.partition not in source.partitions():
                raise SourceError(f"{head.partition}: this is another log than the one counted")
            seeks = self.config.source.kind == "kafka"
            for chunk in records_at(source, head.partition, offsets, seeks=seeks):
                yield from self.decoder.pieces(chunk)

    def _same(self, decoded: Decoded, entries: Sequence[QuarantineRow]) -> list[QuarantineRow]:
        """The entries whose event has the size and the hash that were noted."""
        wanted = {(entry.offset, entry.index) for entry in entries}
        found: dict[Place, Refused] = {
            (entry.offset, entry.index): entry for entry in decoded.refused
        }
        for i, place in enumerate(places_of(decoded)):
            if place in wanted:
                found[place] = described(decoded, i)
        return [
            entry
            for entry in entries
            if (seen := found.get((entry.offset, entry.index))) is not None
            and (seen.size, seen.sha256) == (entry.size, entry.sha256)
        ]

    def _take(
        self, trial: Trial, decoded: Decoded, entries: Sequence[QuarantineRow]
    ) -> list[QuarantineRow]:
        by_place: Mapping[Place, QuarantineRow] = {(e.offset, e.index): e for e in entries}
        tried = trial.add(decoded, by_place.keys())
        for place, now in tried.bad.items():
            self.page.still.append(Still(by_place[place], now.reason, now.field, now.detail))
        for place in sorted(by_place.keys() - tried.good - tried.bad.keys()):
            self._keep(by_place[place], *SKIPPED)
        return [by_place[place] for place in sorted(tried.good)]

    def _keep(self, entry: QuarantineRow, reason: str, detail: str) -> None:
        self.page.still.append(Still(entry, reason, None, detail))


def _by_head(entry: QuarantineRow) -> tuple[int, int, int]:
    return entry.head, entry.offset, entry.index
