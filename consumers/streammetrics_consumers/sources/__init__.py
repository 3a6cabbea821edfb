"""The seam between the shell and the places that events come from.

A source hands over records as raw bytes, in offset order for each partition.
It decodes nothing and remembers nothing: where reading starts is what the ledger says.
Every source (file, stdin, memory, Kafka) has this shape, and the service knows only this file.

    source.assign(listener)          -> listener.on_assigned([...]) answers the offsets to start at
    while source.poll(0.5) ...       -> chunks, each of one partition
    source.acknowledge({p: end})     -> a courtesy to lag tools; decides nothing
    source.close()
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from streammetrics_consumers.model.chunk import Chunk, Cut, SourceError
from streammetrics_consumers.model.partition import Partition


class Unsuitable(SourceError):
    """This source cannot do what was asked for: a mistake in the words, not in the source."""


class Disconnected(SourceError):
    """The source failed and has to be opened anew; what was read before the failure is good.

    `exit_code` is for a source that could not be reached at all: the same command may work later.
    """

    exit_code = 75


class NotLetIn(SourceError):
    """The broker refuses our user, password or rights: nothing helps but a person."""


class GapError(SourceError):
    """The offset to read next is not in the log any more, or not yet: rows would be lost."""

    def __init__(self, partition: Partition, head: int, beginning: int, end: int) -> None:
        self.partition = partition
        self.head = head
        self.beginning = beginning
        self.end = end
        super().__init__(
            f"{partition}: reading stands at offset {head}, but the log holds "
            f"{beginning} to {end} (end not included)"
        )


class Listener(Protocol):
    """What a source tells about its partitions. It may be called from a thread of the source."""

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        """These partitions are ours now. The answer is the offset to read each of them from."""
        ...

    def on_revoked(self, partitions: list[Partition]) -> None:
        """These partitions go to someone else; there is still time to commit."""
        ...

    def on_lost(self, partitions: list[Partition]) -> None:
        """These partitions already belong to someone else; what is not committed is dropped."""
        ...


class Source(Protocol):
    """Where events come from."""

    @property
    def replayable(self) -> bool:
        """Whether the same offsets can be read again after a restart."""
        ...

    def partitions(self) -> list[Partition]:
        """All partitions of the log, also those that are assigned to others."""
        ...

    def beginning(self, partition: Partition) -> int:
        """The first offset that can still be read."""
        ...

    def ends(self) -> dict[Partition, int]:
        """The offset after the last record, by partition. Without an entry the end is not known
        yet (stdin before it closes)."""
        ...

    def assign(self, listener: Listener) -> None:
        """Start: `listener.on_assigned` is called, now or during a later poll, and answers where
        to start. Raises GapError if an answer is outside of the log."""
        ...

    def poll(self, timeout_s: float) -> list[Chunk]:
        """What has arrived, after waiting at most `timeout_s`. An empty list means nothing yet.
        Raises SourceError, and GapError where the log has lost what is next."""
        ...

    def seek(self, partition: Partition, offset: int) -> None:
        """Read this assigned partition from `offset` on. Raises GapError as `assign` does."""
        ...

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Tell the log what is safely stored. Failure must not matter to the caller."""
        ...

    def close(self) -> None:
        """Let go of everything. Calling it twice does nothing more."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A source at the other end of a network: its records have times, its silence may mean that
    nobody is there, and it may learn only later that the log is another one."""

    def offset_at(self, partition: Partition, time_ms: int) -> int:
        """The first offset whose record is not older; the end if there is none."""
        ...

    def confirm(self) -> None:
        """Raise SourceError unless all that was handed over is of the log that it names."""
        ...

    def known_ends(self) -> dict[Partition, int]:
        """The ends of our partitions as they were last told. Asks nobody."""
        ...

    def hears(self) -> bool:
        """Whether those who hold our partitions answer. Takes half a second at most."""
        ...


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

    def __init__(self, topic: str, partition: int, first: int, last: int | None, got: str) -> None:
        self.topic, self.partition, self.first, self.last = topic, partition, first, last
        which = "" if last is None else f" (offsets {first} to {last})"
        super().__init__(
            f"kafka: {topic}/{partition} offset {first}: expected a batch that can be read, got "
            f"{got}{which}; leave it out with --skip {topic}/{partition}:{first}"
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
