"""The scratch store of `verify`: what the ledger should have, counted again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from consumers.config.config import Config
from consumers.events.decoder import Decoder
from consumers.ledger.ledger import Ledger
from consumers.model.commit import Commit, Head
from consumers.model.generation import Generation
from consumers.model.partition import Partition


class Scratch:
    """A store that holds what should be in the ledger: a head for each log, and one for each
    retry of a log. `heads` says which is which: the ledger's head and the retry, if it is one.
    `seen` has the digests of the ids that each head of the ledger remembers."""

    def __init__(
        self,
        config: Config,
        of: Generation,
        ledger: Ledger,
        readings: Mapping[int, Config],
        seen: Mapping[int, Mapping[int, str]],
    ) -> None:
        self.config, self.generation, self.ledger, self.seen = config, of, ledger, seen
        self.retries = readings
        self.decoders = {number: Decoder(reading) for number, reading in readings.items()}
        begun = ledger.begin(config.fingerprints(), config.descriptions)
        self.own = begun.generation
        self.heads: dict[int, tuple[int, int | None]] = {}

    def head(self, of: Head, start: int, retry: int | None) -> Head:
        """The head under which a log, or a retry of it, is counted here."""
        log = of.partition
        number = -1 if retry is None else retry
        name = Partition(log.cluster, f"{of.id}", f"{number}:{log.topic_id}"[:500], number + 1)
        made = self.ledger.resolve(self.own, name, start)
        self.heads[made.id] = of.id, retry
        return made

    def write(self, commit: Commit) -> Head:
        """Count, and answer the head as it stands then."""
        return self.ledger.commit(self.own, replace(commit, refused=()))
