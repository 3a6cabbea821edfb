"""The interface between the shell and the sources of events.

A source returns records as raw bytes, in offset order for each partition.
It decodes nothing and stores nothing: the ledger determines where reading starts.
Every source (file, stdin, memory, Kafka) has this interface, and the service uses no other.

    source.assign(listener)          -> listener.on_assigned([...]) returns the start offsets
    while source.poll(0.5) ...       -> chunks, each of one partition
    source.acknowledge({p: end})     -> informs lag tools; counting does not depend on it
    source.close()
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from streammetrics_consumers.model.chunk import Chunk, Cut, SourceError
from streammetrics_consumers.model.partition import Partition


class Unsuitable(SourceError):
    """This source does not support the request: an error of usage, not of the source."""


class Disconnected(SourceError):
    """The source failed and must be opened again; records read before the failure are valid.

    `exit_code` applies to a source that was never reached: the same command may work later.
    """

    exit_code = 75


class NotLetIn(SourceError):
    """The broker refuses our user, password or rights; retries do not help."""


class GapError(SourceError):
    """The next offset to read is no longer in the log, or not yet: rows would be lost."""

    def __init__(self, partition: Partition, head: int, beginning: int, end: int) -> None:
        self.partition = partition
        self.head = head
        self.beginning = beginning
        self.end = end
        super().__init__(
            f"{partition}: the next offset is {head}, but the log holds {beginning} to {end} "
            "(end not included)"
        )


class Listener(Protocol):
    """Callbacks for changes of a source's partitions. A thread of the source may call them."""

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        """These partitions were assigned to us. Returns the start offset of each."""
        ...

    def on_revoked(self, partitions: list[Partition]) -> None:
        """These partitions move to another consumer; there is still time to commit."""
        ...

    def on_lost(self, partitions: list[Partition]) -> None:
        """These partitions already belong to another consumer; uncommitted work is dropped."""
        ...


class Source(Protocol):
    """A source of events."""

    @property
    def replayable(self) -> bool:
        """Whether the same offsets can be read again after a restart."""
        ...

    def partitions(self) -> list[Partition]:
        """All partitions of the log, including those assigned to others."""
        ...

    def beginning(self, partition: Partition) -> int:
        """The first offset that can still be read."""
        ...

    def ends(self) -> dict[Partition, int]:
        """The offset after the last record, by partition. A partition without an entry has no
        known end yet (stdin before it closes)."""
        ...

    def assign(self, listener: Listener) -> None:
        """Start reading. Calls `listener.on_assigned`, now or during a later poll, for the start
        offsets. Raises GapError if one is outside of the log."""
        ...

    def poll(self, timeout_s: float) -> list[Chunk]:
        """The records that arrived, after waiting at most `timeout_s`; an empty list if none did.
        Raises SourceError, and GapError if the log has lost the next records."""
        ...

    def seek(self, partition: Partition, offset: int) -> None:
        """Read this assigned partition from `offset` on. Raises GapError as `assign` does."""
        ...

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Report the stored offsets to the log. A failure must not affect the caller."""
        ...

    def close(self) -> None:
        """Release all resources. A second call has no effect."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A source reached over a network: its records have timestamps, its silence may mean a lost
    connection, and it may detect only later that the log was replaced."""

    def offset_at(self, partition: Partition, time_ms: int) -> int:
        """The first offset whose record is not older than `time_ms`; the end if there is none."""
        ...

    def confirm(self) -> None:
        """Raise SourceError unless all returned records belong to the log that they name."""
        ...

    def known_ends(self) -> dict[Partition, int]:
        """The last known ends of our partitions, without a request to the broker."""
        ...

    def is_connected(self) -> bool:
        """Whether the brokers of our partitions respond. Takes at most half a second."""
        ...


@runtime_checkable
class Compacting(Protocol):
    """A source whose log may delete events before they are read, if a later one has their key."""

    def compacted(self) -> Sequence[str]:
        """The topics that are compacted. Empty if that is not known."""
        ...


def compaction_warning(source: Source) -> str | None:
    """A warning if the log of a source is compacted."""
    topics = source.compacted() if isinstance(source, Compacting) else ()
    if not topics:
        return None
    subject = f"topic {topics[0]} is" if len(topics) == 1 else f"topics {', '.join(topics)} are"
    return (
        f"{subject} compacted (cleanup.policy): Kafka deletes an event when another one with its "
        "key comes, so events are missing that were not read before, and `verify` cannot read "
        'again what was counted; set cleanup.policy = "delete"'
    )


BatchPosition = tuple[str, int, int]  # topic, partition, offset
NO_BYTES: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Skips:
    """The batches that may be skipped, each by its first offset read; None: all of them, for
    replays that compare."""

    positions: Collection[BatchPosition] | None = ()

    def __contains__(self, position: BatchPosition) -> bool:
        return self.positions is None or position in self.positions


NO_SKIPS: Final = Skips()


class UnreadableBatch(SourceError):
    """A batch that no retry can read. `first` to `last` are its offsets from the read position on;
    `last` is None if only `first` is known."""

    def __init__(self, topic: str, partition: int, first: int, last: int | None, got: str) -> None:
        self.topic, self.partition, self.first, self.last = topic, partition, first, last
        span = "" if last is None else f" (offsets {first} to {last})"
        super().__init__(
            f"kafka: {topic}/{partition} offset {first}: expected a readable batch, got "
            f"{got}{span}; skip it with --skip {topic}/{partition}:{first}"
        )


def limit_text(limit: int) -> str:
    """The "got" text of an error for a batch over `[source] max_batch_bytes`."""
    return (
        f"one of more than {limit} bytes after decompression ([source] max_batch_bytes; raise it "
        "if there is enough memory)"
    )


def left_out(first: int, last: int) -> Cut:
    """The quarantine entry of a skipped batch. It depends on the log alone, so a replay produces
    the same entry."""
    return Cut(0, NO_BYTES, f"offsets {first} to {last} cannot be read, and were left out (--skip)")
