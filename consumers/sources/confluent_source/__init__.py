"""Kafka topics as a source, over confluent-kafka (librdkafka): many times as fast a transport.

It promises what `kafka_source` promises, by other means:

* A partition is assigned together with the ledger's head, so no other offset is ever read.
* The library calls its listener within our calls of `consume`, in our thread.
* One call of `consume` drops what belongs to an earlier assignment by itself. Two calls make a
  poll (the first waits for one record, the second takes what else is there), so what the first
  has brought is dropped here where the second brought a new assignment.
* The position that the library reports does not pass control records and aborted ones at the end
  of a log; the event "end of partition" carries the offset behind them.
* It asks for records by the topic's name, so those of a topic made anew come without a word, where
  the other library asks by the topic's id. `confirm` asks for the id before they are committed.
* Records of a damaged batch would be skipped with an event; here that ends the source.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from consumers.config.tables import SourceConfig
from consumers.sources.confluent_client import client_settings
from consumers.sources.confluent_source.client import (
    ASK_S,
    FATAL,
    TopicIds,
    ask,
    explained,
    made,
)
from consumers.sources.kafka_client import masked, require_reachable
from consumers.sources.source import Chunk, GapError, Listener, Name, Partition, SourceError
from consumers.sources.topic_reading import Asked, Place, TopicReading, place_of
from consumers.worker.reconnect import Disconnected

log = logging.getLogger(__name__)

CONNECT_S: Final = 5.0  # for one try to reach a broker
TOPIC_TRIES: Final = 4  # a broker that has just started may not name the topic at once
TOPIC_PAUSE_S: Final = 0.5
HEARS_S: Final = 0.5
MAX_POLL_S: Final = 0.5  # signals are handled when a poll returns


class ConfluentSource:
    """The partitions of some topics, shared with the other members of the group.

    `names` assigns these partitions by hand, without the group and without a word to it.
    Raises Disconnected where no broker answers, ConfigError for a client setting that is wrong,
    and SourceError where a topic does not exist.
    """

    replayable = True

    def __init__(self, config: SourceConfig, names: Sequence[Name] | None = None) -> None:
        self.topics = config.topics
        self._names = names
        settings, self._records = client_settings(config)
        self._cooperative = settings["partition.assignment.strategy"] == "cooperative-sticky"
        self._wrong: KafkaError | None = None  # what the client says beside its records
        self._consumer = made(settings, self._heard)
        self._topic_ids = TopicIds(settings, self.topics)
        self._is_closed = False
        try:
            require_reachable(config.bootstrap_servers, CONNECT_S)
            self._reading = self._begin_reading()
        except BaseException:
            self._topic_ids.close()
            self._consumer.close()
            raise
        log.info("kafka: connected with %s", masked(settings))

    # -- what there is ------------------------------------------------------------------------
    def partitions(self) -> list[Partition]:
        """All partitions of the topics, in order."""
        return self._reading.partitions()

    def beginning(self, partition: Partition) -> int:
        """The first offset that the broker still has."""
        return self._range(partition)[0]

    def ends(self) -> dict[Partition, int]:
        """The offset after the last committed record of each partition."""
        return {partition: self._range(partition)[1] for partition in self.partitions()}

    def offset_at(self, partition: Partition, time_ms: int) -> int:
        """The first offset whose record's timestamp is not before `time_ms`, else the end."""
        asked = [TopicPartition(*place_of(partition), time_ms)]
        (found,) = ask(lambda: self._consumer.offsets_for_times(asked, timeout=ASK_S))
        if found.error is not None:
            raise explained(found.error)
        return int(found.offset) if found.offset >= 0 else self._range(partition)[1]

    def _range(self, partition: Partition) -> tuple[int, int]:
        place = TopicPartition(*place_of(partition))
        return ask(lambda: self._consumer.get_watermark_offsets(place, timeout=ASK_S))

    # -- reading ------------------------------------------------------------------------------
    def assign(self, listener: Listener) -> None:
        """Join the group, or take the partitions given by hand."""
        self._reading.listen(listener)
        if self._names is None:
            self._consumer.subscribe(
                list(self.topics),
                on_assign=self._assigned,
                on_revoke=lambda _, places: self._released(places, lost=False),
                on_lost=lambda _, places: self._released(places, lost=True),
            )
            return
        heads = self._reading.assigned(self._reading.named(self._names))
        self._reading.raise_failure()
        self._reading.start(heads)
        self._consumer.assign(self._places(heads))

    def poll(self, timeout_s: float) -> list[Chunk]:
        """What has arrived, by partition. After an exception, close this source."""
        given = self._reading.given
        chunks = self._consume(1, min(timeout_s, MAX_POLL_S))
        before = given.copy()
        if chunks:
            chunks += self._consume(self._records - 1, 0)
        if given == before:
            return chunks
        # What came before the new assignment is read again, from the new head.
        places = [place_of(chunk.partition) for chunk in chunks]
        kept = zip(places, chunks, strict=True)
        return [chunk for place, chunk in kept if given[place] == before[place]]

    def _consume(self, limit: int, timeout_s: float) -> list[Chunk]:
        if limit < 1:
            return []
        messages = ask(lambda: self._consumer.consume(limit, timeout_s))
        self._reading.raise_failure()
        ends: dict[Place, int] = {}
        told = [message for message in messages if message.error() is not None]
        for message in told:
            error, offset = message.error(), message.offset()
            assert error is not None
            if error.name() == "_PARTITION_EOF":
                assert offset is not None
                ends[_place(message)] = offset
            else:
                self._heed(error, message)
        self._raise_wrong()
        if told:
            messages = [message for message in messages if message.error() is None]
        chunks = [
            self._chunk(place, found)
            for place, found in _by_place(messages, self.topics).items()
            if place in self._reading.positions
        ]
        for place, end in ends.items():
            # Control and aborted records at the end, with nothing to show.
            if end > self._reading.positions.get(place, end):
                chunks.append(self._reading.chunk(place, end))
        return chunks

    def _chunk(self, place: Place, messages: list[Message]) -> Chunk:
        offsets = [message.offset() or 0 for message in messages]
        return self._reading.chunk(
            place,
            offsets[-1] + 1,
            offsets,
            [message.value() for message in messages],
            [message.timestamp()[1] for message in messages],
            Asked(messages, lambda message: message.key()),
            Asked(messages, _headers),
        )

    def confirm(self) -> None:
        """Raise Disconnected unless all that was read is of the topics that were there at first."""
        self._topic_ids.require_same()

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from there, if the partition is ours."""
        place = place_of(partition)
        if place not in self._reading.positions:
            return
        self._reading.positions[place] = offset
        ask(lambda: self._consumer.seek(TopicPartition(*place, offset)))

    # -- for those who watch ------------------------------------------------------------------
    def known_ends(self) -> dict[Partition, int]:
        """The ends that the last fetches told. Asks nobody."""
        found = {}
        for place in list(self._reading.positions):
            with suppress(KafkaException):
                asked = TopicPartition(*place)
                _, end = self._consumer.get_watermark_offsets(asked, cached=True)
                if end >= 0:
                    found[self._reading.partition(place)] = int(end)
        return found

    def hears(self) -> bool:
        """Whether a broker answers."""
        try:
            self._consumer.list_topics(self.topics[0], timeout=HEARS_S)
        except KafkaException:
            return False
        return True

    # -- Kafka's own offsets ------------------------------------------------------------------
    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Let Kafka's committed offsets follow, for the lag tools. Failure is no matter."""
        if self._names is not None:
            return
        moved = self._reading.not_acknowledged(offsets)
        try:
            if moved:
                self._consumer.commit(offsets=self._places(moved), asynchronous=True)
        except Exception as error:  # nothing that we count depends on it
            log.debug("kafka: offsets were not committed: %s", error)

    def close(self) -> None:
        """Leave the group, after the commits that are on their way. The listener hears nothing."""
        self._reading.listen(None)
        if not self._is_closed:
            self._is_closed = True
            self._topic_ids.close()
            with suppress(KafkaException):
                self._consumer.close()

    # -- rebalances ---------------------------------------------------------------------------
    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        heads = self._reading.assigned(_sorted(places))
        self._reading.start(heads)
        if self._cooperative:
            consumer.incremental_assign(self._places(heads))
        else:
            consumer.assign(self._places(heads))

    def _released(self, places: list[TopicPartition], *, lost: bool) -> None:
        self._reading.released(_sorted(places), lost=lost)
        if self._cooperative:
            self._consumer.incremental_unassign(places)
        else:
            self._consumer.unassign()

    def _places(self, offsets: Mapping[Place, int]) -> list[TopicPartition]:
        return [TopicPartition(*place, offset) for place, offset in offsets.items()]

    # -- the topics, and what goes wrong ------------------------------------------------------
    def _begin_reading(self) -> TopicReading:
        try:
            cluster = ask(lambda: self._consumer.cluster_id(timeout=CONNECT_S))
        except SourceError:
            self._consumer.poll(0)  # in which the client says what was wrong, if it knows
            self._raise_wrong()
            raise
        if not cluster:
            raise Disconnected("kafka: the broker does not answer")
        for attempt in range(TOPIC_TRIES):
            time.sleep(TOPIC_PAUSE_S if attempt else 0)
            found = self._topic_ids.ask()
            if len(found) == len(self.topics):
                return TopicReading(cluster, [found[name] for name in self.topics])
        missing = next(name for name in self.topics if name not in found)
        raise SourceError(f"kafka: there is no topic {missing!r}; create it, or correct the name")

    def _heard(self, error: KafkaError) -> None:
        """A connection mends itself; what another try will not mend ends the source."""
        if error.fatal() or error.name() in FATAL:
            self._wrong = error
        log.debug("kafka: %s", error)

    def _raise_wrong(self) -> None:
        if self._wrong is not None:
            raise explained(self._wrong)

    def _heed(self, error: KafkaError, message: Message) -> None:
        name = error.name()
        if name == "_MAX_POLL_EXCEEDED":
            # The group has given our partitions away; the next call says so and joins again.
            log.warning("kafka: %s", error.str())
            return
        if name in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            self.confirm()
            place = _place(message)
            partition = self._reading.partition(place)
            first, end = self._range(partition)
            raise GapError(partition, self._reading.positions.get(place, first), first, end)
        raise explained(
            error, f"{message.topic()}/{message.partition()} at offset {message.offset()}: "
        )


def _by_place(messages: list[Message], topics: Sequence[str]) -> dict[Place, list[Message]]:
    """Messages by their partition. Asking each for something takes a while, so what all messages
    are asked for is little, and most polls bring messages of one partition."""
    numbers = [message.partition() or 0 for message in messages]
    if len(topics) == 1:
        if len(set(numbers)) == 1:
            return {(topics[0], numbers[0]): messages}
        places = [(topics[0], number) for number in numbers]
    else:
        names = [message.topic() or "" for message in messages]
        places = list(zip(names, numbers, strict=True))
    found: dict[Place, list[Message]] = {place: [] for place in places}
    for place, message in zip(places, messages, strict=True):
        found[place].append(message)
    return found


def _place(message: Message) -> Place:
    return message.topic() or "", message.partition() or 0


def _sorted(places: Sequence[TopicPartition]) -> list[Place]:
    return sorted((place.topic, place.partition) for place in places)


def _headers(message: Message) -> list[tuple[str, bytes]]:
    found = message.headers()
    if not isinstance(found, list):
        return []
    return [(name, value) for name, value in found if isinstance(value, bytes)]
