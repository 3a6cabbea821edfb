"""Kafka topics as they are being read, whichever library reads them.

`TopicReading` knows which partitions are ours and where reading stands in each, passes on what the
group says to the listener, and remembers what Kafka was told. A library may call `assigned` and
`released` from a thread of its own, so what the listener raises is kept until `raise_failure`.
`TopicSource` is the part of a source that is the same for both libraries.
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

from streammetrics_consumers.config.tables import SourceConfig
from streammetrics_consumers.model.chunk import Chunk, Cut, Lazy, SourceError
from streammetrics_consumers.model.partition import Name, Partition
from streammetrics_consumers.sources import Listener

log = logging.getLogger(__name__)

TOPIC_TRIES: Final = 4  # a broker that has just started may not name the topic at once
TOPIC_PAUSE_S: Final = 0.5
MAX_POLL_S: Final = 0.5  # signals are handled when a poll returns
R = TypeVar("R")
V = TypeVar("V")

Headers = Sequence[Sequence[tuple[str, bytes]]]
Place: TypeAlias = tuple[str, int]  # a topic and a number


def of_each(records: Sequence[R], ask: Callable[[R], V]) -> Lazy[V]:
    """Something of each record that few configs read."""
    return Lazy(len(records), lambda i: ask(records[i]))


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it was found. id: None where the broker has no such thing (before 2.8)."""

    name: str
    id: str | None
    numbers: tuple[int, ...]


def found_topics(names: Sequence[str], ask: Callable[[], Mapping[str, Topic]]) -> list[Topic]:
    """The topics of these names, as `ask` finds them. Raises SourceError where there is none."""
    found: Mapping[str, Topic] = {}
    for attempt in range(TOPIC_TRIES):
        time.sleep(TOPIC_PAUSE_S if attempt else 0)
        found = ask()
        if len(found) == len(names):
            return [found[name] for name in names]
    missing = next(name for name in names if name not in found)
    raise SourceError(f"kafka: there is no topic {missing!r}; create it, or correct the name")


class TopicReading:
    """See the module. Partitions are named by topic and number.

    `lock` guards the positions: hold it while they and the library's own are changed together.
    `given[place]` is how often a partition was given to us; where it has changed, records that
    were asked for before belong to an earlier assignment.
    """

    def __init__(self, cluster: str, topics: Iterable[Topic]):
        self.topics = {topic.name: topic for topic in topics}
        self.lock = RLock()
        self.positions: dict[Place, int] = {}
        self.given: Counter[Place] = Counter()
        self._cluster = cluster
        self._known: dict[Place, Partition] = {}
        for topic in self.topics.values():
            for number in topic.numbers:
                self.partition((topic.name, number))
        self._acknowledged: dict[Place, int] = {}
        self._listener: Listener | None = None
        self._failure: Exception | None = None

    def partitions(self) -> list[Partition]:
        """All partitions of the topics: topics in the config's order, numbers ascending."""
        order = list(self.topics)
        places = sorted(self._known, key=lambda place: (order.index(place[0]), place[1]))
        return [self._known[place] for place in places]

    def partition(self, place: Place) -> Partition:
        """A partition; it may be a new one."""
        name, number = place
        made = Partition(self._cluster, name, self.topics[name].id or name, number)
        return self._known.setdefault(place, made)

    def named(self, names: Collection[Name]) -> list[Place]:
        """The partitions that are meant by these names."""
        return [place_of(one) for one in self.partitions() if one.is_named(names)]

    # -- what the group says ------------------------------------------------------------------
    def listen(self, listener: Listener | None) -> None:
        """Who hears of assignments from now on; None: nobody."""
        self._listener = listener

    def assigned(self, places: Sequence[Place]) -> dict[Place, int]:
        """Where to start in each of these, now ours; empty if the listener failed or is gone."""
        if self._listener is None:
            return {}
        partitions = [self.partition(place) for place in places]
        try:
            heads = self._listener.on_assigned(partitions)
        except Exception as error:
            self._failure = error
            return {}
        return {place_of(partition): heads[partition] for partition in partitions}

    def start(self, heads: Mapping[Place, int]) -> None:
        """Reading stands at these places; the caller holds the lock and has sought them."""
        self.positions.update(heads)
        self.given.update(heads.keys())

    def released(self, places: Sequence[Place], *, lost: bool) -> None:
        """These are not ours any more; with `lost` somebody else has them already."""
        listener = self._listener
        if listener is None:
            return
        partitions = [self.partition(place) for place in places]
        try:
            listener.on_lost(partitions) if lost else listener.on_revoked(partitions)
        except Exception as error:
            self._failure = error
        with self.lock:
            for place in places:
                self.positions.pop(place, None)
                self._acknowledged.pop(place, None)

    def raise_failure(self) -> None:
        """Raise what the listener raised."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- records ------------------------------------------------------------------------------
    def chunk(
        self,
        place: Place,
        end: int,
        offsets: Sequence[int] = (),
        values: Sequence[bytes | None] = (),
        timestamps_ms: Sequence[int | None] = (),
        keys: Sequence[bytes | None] = (),
        headers: Headers = (),
        cut: Mapping[int, Cut] | None = None,
    ) -> Chunk:
        """Records from the position of a partition that is ours up to `end`, the new position.

        Offsets have holes where control records and aborted ones stood, so a chunk runs from
        position to position, and no hole is mistaken for a loss.
        """
        start = self.positions[place]
        self.positions[place] = end
        partition = self._known[place]
        start = min([start, *offsets[:1]])
        return Chunk(
            partition, start, end, offsets, values, timestamps_ms, keys, headers, cut or {}
        )

    # -- Kafka's own offsets ------------------------------------------------------------------
    def not_acknowledged(self, offsets: Mapping[Partition, int]) -> dict[Place, int]:
        """Which of these Kafka has not been told; from now on it has."""
        places = {place_of(partition): offset for partition, offset in offsets.items()}
        moved = {p: o for p, o in places.items() if self._acknowledged.get(p) != o}
        self._acknowledged.update(moved)
        return moved

    def acknowledged(self) -> dict[Place, int]:
        """What Kafka was told of the partitions that are ours."""
        return {p: o for p, o in self._acknowledged.items() if p in self.positions}


def place_of(partition: Partition) -> Place:
    """How a partition is named here."""
    return partition.topic, partition.number


class TopicSource(ABC):
    """The partitions of some topics, shared with the other members of the group.

    `names` assigns these partitions by hand, without the group and without a word to it. A source
    raises Disconnected where no broker answers, ConfigError for a client setting that is wrong,
    and SourceError where a topic does not exist.
    """

    replayable = True
    _reading: TopicReading

    def __init__(self, config: SourceConfig, names: Sequence[Name] | None) -> None:
        self.topics = config.topics
        self._names = names

    def partitions(self) -> list[Partition]:
        """All partitions of the topics, in order."""
        return self._reading.partitions()

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from there, if the partition is ours."""
        place = place_of(partition)
        with self._reading.lock:
            if place in self._reading.positions:
                self._reading.positions[place] = offset
                self._seek(place, offset)

    def known_ends(self) -> dict[Partition, int]:
        """The ends that the last fetches told. Asks nobody."""
        ends = {place: self._known_end(place) for place in list(self._reading.positions)}
        return {self._reading.partition(p): end for p, end in ends.items() if end is not None}

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Let Kafka's committed offsets follow, for the lag tools. Failure is no matter."""
        if self._names is not None:
            return
        moved = self._reading.not_acknowledged(offsets)
        try:
            if moved:
                self._commit(moved)
        except Exception as error:  # nothing that we count depends on it
            log.debug("kafka: offsets were not committed: %s", error)

    @abstractmethod
    def _seek(self, place: Place, offset: int) -> None:
        """Let the client read a partition that is ours from there."""

    @abstractmethod
    def _known_end(self, place: Place) -> int | None:
        """The end that the client's last fetch told, if it knows one."""

    @abstractmethod
    def _commit(self, offsets: Mapping[Place, int]) -> None:
        """Let the client commit these offsets, without waiting for it."""
