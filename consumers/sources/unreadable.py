"""Batches of records that cannot be read, and how a run leaves one out.

Kafka stores records in compressed batches. One that is damaged, or that a few kilobytes describe
and that would need gigabytes, cannot be read record by record. It ends the run with the name of
its place; `--skip TOPIC/PARTITION:OFFSET` leaves it out, as one entry of the quarantine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from consumers.model.chunk import Cut
from consumers.sources.source import SourceError

Place = tuple[str, int, int]  # topic, partition, offset
NO_BYTES: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Skips:
    """Which batches may be left out, by the first offset that is read of each; None: every one,
    for those who read a log again and compare."""

    places: Collection[Place] | None = ()

    def __contains__(self, place: Place) -> bool:
        return self.places is None or place in self.places


NO_SKIPS: Final = Skips()


class UnreadableBatch(SourceError):
    """A batch that no other try will read. `first` to `last` are its offsets, from where reading
    stands; `last` is None where only `first` is known."""

    def __init__(self, topic: str, partition: int, first: int, last: int | None, came: str) -> None:
        self.topic, self.partition, self.first, self.last = topic, partition, first, last
        which = "" if last is None else f" (offsets {first} to {last})"
        super().__init__(
            f"kafka: {topic}/{partition} offset {first}: expected a batch that can be read, came "
            f"{came}{which}; leave it out with --skip {topic}/{partition}:{first}"
        )


def over_limit(limit: int) -> str:
    """What came, where it would be more than `[source] max_batch_bytes`."""
    return (
        f"one of more than {limit} bytes once it is decompressed ([source] max_batch_bytes, which "
        "may be raised where the memory is there)"
    )


def left_out(first: int, last: int) -> Cut:
    """What stands in quarantine for a batch. It follows from the log alone, so whoever reads the
    log again finds the same."""
    return Cut(0, NO_BYTES, f"offsets {first} to {last} cannot be read, and were left out (--skip)")
