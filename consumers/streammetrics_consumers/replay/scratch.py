"""The scratch store of `verify`: a copy of the ledger at one moment, and the log counted again.

Each is a generation of its own. The first is a copy of the ledger's, with the ids of its rows, so
later changes by workers and compactors are not seen. The second is counted again: a head for each
log, and one for each retry of a log.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.audit import copy_ledger
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.replay.event_reading import with_reading
from streammetrics_consumers.replay.period_readings import PeriodReadings

SHOWN: Final = 100  # differences that are kept as text


@dataclass(slots=True)
class Findings:
    """The result of `verify`: `count` differences, and notes on things that it could not compare.
    `rows`: the events read again. `logs`, `states`, `entries`: the numbers of those compared."""

    rows: int = 0
    logs: int = 0
    states: int = 0
    entries: int = 0
    count: int = 0
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_compared: int = 0

    def differs(self, where: str, difference: str) -> None:
        """Add a difference between the ledger and the log."""
        self.count += 1
        if len(self.differences) < SHOWN:
            self.differences.append(f"{where}: {difference}")

    def note(self, text: str) -> None:
        """Add a note: something was not compared, or needs attention."""
        if text not in self.notes and len(self.notes) < SHOWN:
            self.notes.append(text)

    def could_not(self, text: str) -> None:
        """Add a note on something that differs for a reason that the store does not hold, so that
        it could not be compared."""
        self.not_compared += 1
        self.note(text)

    @property
    def is_good(self) -> bool:
        """Whether something was compared, nothing differs, and nothing is in doubt."""
        return not self.count and self.logs > 0 and not self.not_compared


class Scratch:
    """`generation` and `heads` are the ledger's, `own` is the generation counted again. `periods`
    has the readings of its logs, `retries` the config that each retry was read with, and `seen` the
    digests of the ids that each head remembers. `of` maps each own head to the head of the ledger,
    and the retry or None."""

    def __init__(self, config: Config, ledger: Ledger, scratch: Ledger, findings: Findings) -> None:
        copied = copy_ledger(ledger.store, scratch.store)
        self.config, self.ledger, self.found = config, scratch, findings
        self.periods = PeriodReadings(config, copied.history)
        self.store = scratch.store
        self.generation, self.heads, self.seen = copied.generation, copied.heads, copied.seen
        for text in copied.inconsistencies:
            findings.differs("store", text)
        self.retries = {
            number: with_reading(config, text) for number, text in copied.retries.items()
        }
        self.decoders = {number: Decoder(reading) for number, reading in self.retries.items()}
        self.own = scratch.begin(config.fingerprints(), config.descriptions).generation
        self.of: dict[int, tuple[int, int | None]] = {}

    def head(self, log_head: Head, start: int, retry: int | None) -> Head:
        """The head under which a log, or a retry of it, is counted again."""
        log = log_head.partition
        number = -1 if retry is None else retry
        name = Partition(
            log.cluster, f"{log_head.id}", f"{number}:{log.topic_id}"[:500], number + 1
        )
        head = self.ledger.resolve(self.own, name, start)
        self.of[head.id] = log_head.id, retry
        return head

    def write(self, commit: Commit) -> Head:
        """Commit, without the refused events; returns the head after it."""
        return self.ledger.commit(self.own, replace(commit, refused=()))
