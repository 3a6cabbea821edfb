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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streammetrics import Coded

Integers: TypeAlias = "Sequence[int] | NDArray[np.int64]"

# A partition as a person names it: its number, of every topic that is read, or `clicks/0`.
Name: TypeAlias = int | str

# One field of many events: plain values, numbers or times as they are stored, texts named once or
# as they lie.
Values: TypeAlias = "list[object] | NDArray[np.generic] | Coded | Texts"

# The cluster of logs that a streaming query of Spark feeds: an offset is the number of one of its
# batches, and no source of ours can read it again.
SPARK: Final = "spark"
Place = tuple[str, int, int]  # topic, partition, offset
NO_BYTES: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Texts:
    """A field of many events, all of them texts: text i is `data[offsets[i]:offsets[i + 1]]`, in
    UTF-8. `named` gives the texts from one place to another, each different one named once."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    named: Callable[[int, int], Coded]
    first: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, here: slice) -> Texts:
        """The texts from one place to another."""
        start, end, _ = here.indices(len(self))
        return Texts(self.data, self.offsets[start : end + 1], self.named, self.first + start)

    def coded(self) -> Coded:
        """Each different text named once."""
        return self.named(self.first, self.first + len(self))


@dataclass(frozen=True, order=True, slots=True)
class Partition:
    """One ordered log. Equal partitions are the same log with the same offsets.

    `topic_id` tells a log from another one that was later made under the same name: Kafka's topic
    id, or a digest of the beginning of a file. A ledger that knows this cluster, topic and number
    under another `topic_id` stands before a log made anew, and must stop rather than go on.
    """

    cluster: str
    topic: str
    topic_id: str
    number: int

    def __str__(self) -> str:
        """The name that results use as the key of `offsets`, such as `clicks.jsonl/0`."""
        return f"{self.topic}/{self.number}"

    def is_named(self, names: Collection[Name]) -> bool:
        """Whether one of these names means it.

        >>> Partition("c", "clicks", "1", 0).is_named(["views/0"])
        False
        """
        return self.number in names or str(self) in names


@dataclass(frozen=True, slots=True)
class Cut:
    """The full size in bytes and the hash of a record of which a chunk holds only the beginning.

    unreadable: what stands here is no record, but a batch that cannot be read, and why; None where
    the record is over the size limit.
    """

    size: int
    sha256: str
    unreadable: str | None = None


@runtime_checkable
class HasBytes(Protocol):
    """Values that know their size without being made."""

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one partition, in offset order.

    `start` is the offset that reading stood at and `end` the next one to read, so chunks of a
    partition follow each other without a seam even where offsets have holes. `values[i]` is the
    raw record at `offsets[i]`, None for a tombstone. `timestamps_ms`, `keys` and `headers` are
    None where a source has no such thing; so is the timestamp of a record, or it is below 0.

    `cut` names the indices whose value is only the beginning, because the record is over the size
    limit or cannot be read. `indices[i]` is the place of an event in its record, in chunks whose
    records were opened into the events that they carry; None while a record is one event. `fields`
    is the header of a CSV file. `columns` holds the same rows by column, by dotted path, for
    sources that store columns (times as datetime64[ms]); `values` then makes the text of a row on
    demand.
    """

    partition: Partition
    start: int
    end: int
    offsets: Integers
    values: Sequence[bytes | None]
    timestamps_ms: Sequence[int | None] | NDArray[np.int64] | None = None
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Sequence[tuple[str, bytes | None]]] | None = None
    cut: Mapping[int, Cut] = field(default_factory=dict)
    fields: tuple[str, ...] | None = None
    columns: Mapping[str, Values] | None = None
    indices: Integers | None = None

    def __len__(self) -> int:
        """How many records it holds."""
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        """Bytes of the records as they were read: of values, or of the columns that hold them."""
        if isinstance(self.values, HasBytes):
            return self.values.nbytes
        return sum(map(len, filter(None, self.values)))

    def part(self, first: int, last: int, start: int, end: int) -> Chunk:
        """The records `first` to `last` (not included) as a chunk from `start` to `end`."""
        columns = self.columns
        here = slice(first, last)
        return replace(
            self,
            start=start,
            end=end,
            offsets=self.offsets[here],
            values=self.values[here],
            timestamps_ms=None if self.timestamps_ms is None else self.timestamps_ms[here],
            keys=None if self.keys is None else self.keys[here],
            headers=None if self.headers is None else self.headers[here],
            cut={i - first: cut for i, cut in self.cut.items() if first <= i < last},
            columns=None if columns is None else {n: _part(c, here) for n, c in columns.items()},
            indices=None if self.indices is None else self.indices[here],
        )


def _part(values: Values, here: slice) -> Values:
    if isinstance(values, Texts):
        return values.part(here)
    return Coded(values.codes[here], values.values) if isinstance(values, Coded) else values[here]


class SourceError(Exception):
    """A source cannot go on: the file is gone, the broker refuses, the format is another one."""


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
class SeeksByTime(Protocol):
    """A source that knows when its records were written."""

    def offset_at(self, partition: Partition, time_ms: int) -> int:
        """The first offset whose record is not older; the end if there is none."""
        ...


@runtime_checkable
class Confirms(Protocol):
    """A source that hands records over before it knows that they are of the log that it names."""

    def confirm(self) -> None:
        """Raise SourceError unless all that was handed over is of that log."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A source at the other end of a network, whose silence may mean that nobody is there."""

    def known_ends(self) -> dict[Partition, int]:
        """The ends of our partitions as they were last told. Asks nobody."""
        ...

    def hears(self) -> bool:
        """Whether those who hold our partitions answer. Takes half a second at most."""
        ...


def name_of(word: str) -> Name | None:
    """What a word of a flag means; None where it means nothing.

    >>> name_of("3"), name_of(" clicks/0"), name_of("clicks")
    (3, 'clicks/0', None)
    """
    topic, slash, number = word.strip().rpartition("/")
    if not number.isascii() or not number.isdecimal() or len(number) > 9 or (slash and not topic):
        return None
    return f"{topic}/{int(number)}" if slash else int(number)


def names_without(names: Collection[Name], there: Collection[Partition]) -> list[Name]:
    """The names that mean none of these partitions, numbers first."""
    missing = [name for name in set(names) if not any(one.is_named([name]) for one in there)]
    return sorted(missing, key=lambda name: (isinstance(name, str), name))


def names_of(partitions: Collection[Partition]) -> str:
    """The shortest names that tell these partitions apart, to read."""
    one_topic = len({partition.topic for partition in partitions}) < 2
    return ", ".join(str(one.number) if one_topic else str(one) for one in _ordered(partitions))


def _ordered(partitions: Collection[Partition]) -> Sequence[Partition]:
    return sorted(partitions, key=lambda one: (one.topic, one.number))


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
