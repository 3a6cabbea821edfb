"""The state of reading Kafka topics, independent of the client library.

`TopicReading` holds our partitions and their read positions, forwards group events to the
listener, and records the offsets committed to Kafka. A library may call `assigned` and `released`
from its own thread, so an exception of the listener is kept until `raise_failure`.
`TopicSource` is the part of a source that both libraries share.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Final, TypeAlias, TypeVar

from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.model.chunk import Chunk, Cut, Headers, Lazy, SourceError
from streammetrics_consumers.model.partition import Name, Partition
from streammetrics_consumers.sources import Disconnected, Listener, left_out

log = logging.getLogger(__name__)

TOPIC_TRIES: Final = 4  # a broker that has just started may not list the topic at first
TOPIC_PAUSE_S: Final = 0.5
MAX_POLL_S: Final = 0.5  # signals are handled when a poll returns
R = TypeVar("R")
V = TypeVar("V")

PartitionId: TypeAlias = tuple[str, int]  # a partition: topic and number


def lazy_property(records: Sequence[R], ask: Callable[[R], V]) -> Lazy[V]:
    """A property of each record, read lazily because few configs need it."""
    return Lazy(len(records), lambda i: ask(records[i]))


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker describes it. id: None for brokers without topic ids (before 2.8)."""

    name: str
    id: str | None
    numbers: tuple[int, ...]


def found_topics(names: Sequence[str], ask: Callable[[], Mapping[str, Topic]]) -> list[Topic]:
    """The topics of these names, as `ask` finds them. Raises SourceError if one is missing."""
    topics: Mapping[str, Topic] = {}
    for attempt in range(TOPIC_TRIES):
        time.sleep(TOPIC_PAUSE_S if attempt else 0)
        topics = ask()
        if len(topics) == len(names):
            return [topics[name] for name in names]
    missing = next(name for name in names if name not in topics)
    raise SourceError(f"kafka: topic {missing!r} does not exist; create it, or correct the name")


def last_inside(is_inside: Callable[[int], bool], first: int, end: int) -> int:
    """The last offset below `end` that is inside of a batch, of which `first` is one.

    >>> last_inside(lambda offset: offset < 8, 3, 100)
    7
    """
    inside, step = first, 1
    while inside + step < end and is_inside(inside + step):
        inside, step = inside + step, 2 * step
    outside = max(min(inside + step, end), inside + 1)
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if is_inside(middle):
            inside = middle
        else:
            outside = middle
    return inside


class TopicReading:
    """See the module. Partitions are identified by topic and number.

    `lock` guards the positions: hold it while changing them together with those of the library.
    `given[partition_id]` counts the assignments of a partition to us; after a change, records
    requested before belong to an earlier assignment.
    """

    def __init__(self, cluster: str, topics: Iterable[Topic]):
        self.topics = {topic.name: topic for topic in topics}
        self.lock = RLock()
        self.positions: dict[PartitionId, int] = {}
        self.given: Counter[PartitionId] = Counter()
        self._cluster = cluster
        self._known: dict[PartitionId, Partition] = {}
        for topic in self.topics.values():
            for number in topic.numbers:
                self.partition((topic.name, number))
        self._acknowledged: dict[PartitionId, int] = {}
        self._listener: Listener | None = None
        self._failure: Exception | None = None

    def partitions(self) -> list[Partition]:
        """All partitions of the topics: topics in the config's order, numbers ascending."""
        order = list(self.topics)
        partition_ids = sorted(
            self._known, key=lambda partition_id: (order.index(partition_id[0]), partition_id[1])
        )
        return [self._known[partition_id] for partition_id in partition_ids]

    def partition(self, partition_id: PartitionId) -> Partition:
        """The partition at `partition_id`, which may be new."""
        name, number = partition_id
        partition = Partition(self._cluster, name, self.topics[name].id or name, number)
        return self._known.setdefault(partition_id, partition)

    def named(self, names: Collection[Name]) -> list[PartitionId]:
        """The partitions that match these names."""
        return [id_of(partition) for partition in self.partitions() if partition.is_named(names)]

    # -- group events -------------------------------------------------------------------------
    def listen(self, listener: Listener | None) -> None:
        """Set the listener for assignments; None removes it."""
        self._listener = listener

    def assigned(self, partition_ids: Sequence[PartitionId]) -> dict[PartitionId, int]:
        """The start offsets of new partitions, by the listener; empty if it failed or is gone."""
        if self._listener is None:
            return {}
        partitions = [self.partition(partition_id) for partition_id in partition_ids]
        try:
            heads = self._listener.on_assigned(partitions)
        except Exception as error:
            self._failure = error
            return {}
        return {id_of(partition): heads[partition] for partition in partitions}

    def start(self, heads: Mapping[PartitionId, int]) -> None:
        """Set the positions of these partitions. The caller holds the lock and seeks the client."""
        self.positions.update(heads)
        self.given.update(heads.keys())

    def released(self, partition_ids: Sequence[PartitionId], *, lost: bool) -> None:
        """Notify the listener and drop these partitions; with `lost`, others already own them."""
        listener = self._listener
        if listener is None:
            return
        partitions = [self.partition(partition_id) for partition_id in partition_ids]
        try:
            listener.on_lost(partitions) if lost else listener.on_revoked(partitions)
        except Exception as error:
            self._failure = error
        with self.lock:
            for partition_id in partition_ids:
                self.positions.pop(partition_id, None)
                self._acknowledged.pop(partition_id, None)

    def raise_failure(self) -> None:
        """Raise the stored exception of the listener, if any."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- records ------------------------------------------------------------------------------
    def chunk(
        self,
        partition_id: PartitionId,
        end: int,
        offsets: Sequence[int] = (),
        values: Sequence[bytes | None] = (),
        timestamps_ms: Sequence[int | None] = (),
        keys: Sequence[bytes | None] = (),
        headers: Sequence[Headers] = (),
        cut: Mapping[int, Cut] | None = None,
        longest: int | None = None,
    ) -> Chunk:
        """The records from the position of one of our partitions up to `end`, the new position.

        Control records and aborted records leave holes in the offsets, so a chunk spans position to
        position, and no hole is mistaken for a loss.
        """
        start = self.positions[partition_id]
        self.positions[partition_id] = end
        partition = self._known[partition_id]
        start = min([start, *offsets[:1]])
        return Chunk(
            partition,
            start,
            end,
            offsets,
            values,
            timestamps_ms,
            keys,
            headers,
            cut or {},
            longest=longest,
        )

    def left_out(self, partition_id: PartitionId, first: int, last: int) -> Chunk:
        """The chunk that replaces an unreadable batch with these offsets."""
        cut = {0: left_out(first, last)}
        return self.chunk(partition_id, last + 1, [first], [b""], [-1], [None], [()], cut)

    # -- Kafka's own offsets ------------------------------------------------------------------
    def not_acknowledged(self, offsets: Mapping[Partition, int]) -> dict[PartitionId, int]:
        """The offsets among these that are new to Kafka; records all of them as committed."""
        partition_ids = {id_of(partition): offset for partition, offset in offsets.items()}
        moved = {p: o for p, o in partition_ids.items() if self._acknowledged.get(p) != o}
        self._acknowledged.update(moved)
        return moved

    def acknowledged(self) -> dict[PartitionId, int]:
        """The offsets committed to Kafka for our partitions."""
        return {p: o for p, o in self._acknowledged.items() if p in self.positions}


def id_of(partition: Partition) -> PartitionId:
    """The topic and number of a partition."""
    return partition.topic, partition.number


class TopicSource(ABC):
    """The partitions of some topics, shared with the other members of the group.

    `names` assigns these partitions manually: the source neither joins nor informs the group. It
    raises Disconnected if no broker responds, ConfigError for an invalid client setting, and
    SourceError if a topic does not exist.
    """

    replayable = True
    _reading: TopicReading

    def __init__(self, config: SourceConfig, names: Sequence[Name] | None) -> None:
        self.topics = config.topics
        self._names = names
        self._lost: SourceError | None = None

    def partitions(self) -> list[Partition]:
        """All partitions of the topics, in order."""
        return self._reading.partitions()

    def seek(self, partition: Partition, offset: int) -> None:
        """Continue reading at `offset`, if the partition is ours."""
        partition_id = id_of(partition)
        with self._reading.lock:
            if partition_id in self._reading.positions:
                self._reading.positions[partition_id] = offset
                self._seek(partition_id, offset)

    def confirm(self) -> None:
        """Raise Disconnected if a topic was deleted or replaced since the start, and SourceError if
        its id cannot be read. Later calls raise the same error immediately."""
        if self._lost is not None:
            raise self._lost
        try:
            topics = self._described()
            for name, topic in self._reading.topics.items():
                if name not in topics or topics[name].id != topic.id:
                    raise Disconnected(f"kafka: topic {name!r} was deleted or replaced")
        except SourceError as error:
            self._lost = error
            raise

    def compacted(self) -> Sequence[str]:
        """The topics that are compacted. Empty if the broker does not tell: that is another right
        than reading."""
        try:
            policies = self._cleanup_policies()
        except Exception as error:  # only the warning depends on it
            log.debug("kafka: the cleanup policies are not known: %s", error)
            return ()
        return [name for name in self.topics if "compact" in policies.get(name, "").split(",")]

    def known_ends(self) -> dict[Partition, int]:
        """The ends reported by the last fetches, without a request to the broker."""
        ends = {
            partition_id: self._known_end(partition_id)
            for partition_id in list(self._reading.positions)
        }
        return {self._reading.partition(p): end for p, end in ends.items() if end is not None}

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Update Kafka's committed offsets, for lag tools. Failures are ignored."""
        if self._names is not None:
            return
        moved = self._reading.not_acknowledged(offsets)
        try:
            if moved:
                self._commit(moved)
        except Exception as error:  # counting does not depend on it
            log.debug("kafka: offsets were not committed: %s", error)

    @abstractmethod
    def _described(self) -> Mapping[str, Topic]:
        """The topics that exist now, by name. A client of its own asks for them, so that the
        listener can confirm during a rebalance in the consumer's thread. Raises SourceError."""

    @abstractmethod
    def _cleanup_policies(self) -> Mapping[str, str]:
        """The cleanup policy of each topic."""

    @abstractmethod
    def _seek(self, partition_id: PartitionId, offset: int) -> None:
        """Make the client continue one of our partitions at `offset`."""

    @abstractmethod
    def _known_end(self, partition_id: PartitionId) -> int | None:
        """The end reported by the client's last fetch, None if unknown."""

    @abstractmethod
    def _commit(self, offsets: Mapping[PartitionId, int]) -> None:
        """Make the client commit these offsets asynchronously."""
