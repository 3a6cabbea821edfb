"""A Kafka topic as a source, over kafka-python, which no module outside of this package knows.

What the ledger's promise needs of it, and where the client would do otherwise:

* Reading starts at the ledger's head: after every assignment we seek, and Kafka's own committed
  offsets decide nothing. `auto_offset_reset` is "none", so a lost offset is an error (GapError).
* Values stay bytes. A deserializer that raises would make the third poll hang.
* After any exception from a poll this source is done; the service opens another one.
* The client calls its listener from its IO thread, within our call of `poll`. There only the
  ledger and `seek` are used.
* `read_committed`: offsets have holes where control records and aborted ones stood. A chunk runs
  from the position before to the position after, so that no hole is mistaken for a loss.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import Final, Protocol, TypeVar

import kafka.errors as errors
from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.net.compat import KafkaNetClient

from consumers.config.tables import SourceConfig
from consumers.sources.kafka_client import client_settings, masked, require_reachable
from consumers.sources.source import Chunk, GapError, Listener, Partition, SourceError
from consumers.worker.reconnect import Disconnected

T = TypeVar("T")

log = logging.getLogger(__name__)

CONNECT_S: Final = 5.0  # for one try to reach a broker
CLOSE_MS: Final = 3000
TOPIC_TRIES: Final = 4  # a broker that has just started may not name the topic at once
TOPIC_PAUSE_S: Final = 0.5
MAX_POLL_S: Final = 0.5  # signals are handled when a poll returns

FATAL: Final = (  # another try would end as this one did
    errors.AuthorizationError, errors.CorruptRecordError, errors.InconsistentGroupProtocolError,
    errors.InvalidGroupIdError, errors.InvalidSessionTimeoutError, errors.InvalidTopicError,
    errors.KafkaConfigurationError, errors.SaslAuthenticationFailedError,
    errors.UnsupportedCodecError, errors.UnsupportedVersionError,
)  # fmt: skip


class KafkaSource:
    """The partitions of one topic, shared with the other members of the group.

    `numbers` assigns these partitions by hand, without the group and without a word to it.
    Raises Disconnected where no broker answers, ConfigError for a client setting that is wrong,
    and SourceError where the topic does not exist.
    """

    replayable = True

    def __init__(self, config: SourceConfig, numbers: Sequence[int] | None = None) -> None:
        assert config.topic is not None, "load_config demands it"
        self.topic = config.topic
        self._numbers = numbers
        self._settings = client_settings(config, KafkaConsumer.DEFAULT_CONFIG)
        if numbers is not None:
            self._settings["group_id"] = None
        self._lock = RLock()  # guards the four below; nothing is called while it is held
        self._positions: dict[TopicPartition, int] = {}
        self._assignments: dict[TopicPartition, int] = {}  # how often it was given to us
        self._failure: Exception | None = None  # of the listener, in the client's thread
        self._acknowledged: dict[TopicPartition, OffsetAndMetadata] = {}
        self._listener: Listener | None = None
        self._client = _connected(self._settings, config.bootstrap_servers)
        try:
            self._consumer = KafkaConsumer(**self._settings, kafka_client=lambda **_: self._client)
            self._known = self._read_partitions()
        except BaseException:
            self._client.close()
            raise
        log.info("kafka: connected with %s", masked(self._settings))

    # -- what there is ------------------------------------------------------------------------
    def partitions(self) -> list[Partition]:
        """All partitions of the topic, in order."""
        return [self._known[place] for place in sorted(self._known)]

    def beginning(self, partition: Partition) -> int:
        """The first offset that the broker still has."""
        place = _place(partition)
        return int(self._ask(lambda: self._consumer.beginning_offsets([place]))[place])

    def ends(self) -> dict[Partition, int]:
        """The offset after the last committed record of each partition."""
        found = self._ask(lambda: self._consumer.end_offsets(list(self._known)))
        return {self._known[place]: int(end) for place, end in found.items()}

    def offset_at(self, partition: Partition, time_ms: int) -> int:
        """The first offset whose record's timestamp is not before `time_ms`, else the end."""
        place = _place(partition)
        found = self._ask(lambda: self._consumer.offsets_for_times({place: time_ms}))[place]
        return self.ends()[partition] if found is None else int(found.offset)

    # -- reading ------------------------------------------------------------------------------
    def assign(self, listener: Listener) -> None:
        """Join the group, or take the partitions given by hand."""
        self._listener = listener
        if self._numbers is None:
            told = _Rebalance(self._assigned, self._released)
            self._consumer.subscribe([self.topic], listener=told)
            return
        places = [TopicPartition(self.topic, number) for number in self._numbers]
        self._consumer.assign(places)
        self._assigned(places)
        self._raise_failure()

    def poll(self, timeout_s: float) -> list[Chunk]:
        """What has arrived, by partition. After an exception, close this source."""
        before = dict(self._assignments)
        try:
            batches = self._consumer.poll(timeout_ms=round(min(timeout_s, MAX_POLL_S) * 1000))
        except Exception as error:
            self._raise_failure()
            raise self._explained(error) from error
        self._raise_failure()
        self._require_same_topic()
        if not batches:
            return self._moved(before)
        chunks = []
        with self._lock:
            self._seek_anew(before)
            for place, records in batches.items():
                if place in self._positions and self._is_kept(place, before):
                    end = records[-1].offset + 1
                    chunks.append(self._chunk(place, records, end))
        return chunks

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from there, if the partition is ours."""
        place = _place(partition)
        with self._lock:
            if place in self._positions:
                self._positions[place] = offset
                self._consumer.seek(place, offset)

    def _moved(self, before: Mapping[TopicPartition, int]) -> list[Chunk]:
        """Positions that have moved over control and aborted records, with nothing to show."""
        chunks = []
        for place in list(self._positions):
            try:
                position = self._consumer.position(place, timeout_ms=0)
            except Exception as error:
                raise self._explained(error) from error
            with self._lock:
                kept = place in self._positions and self._is_kept(place, before)
                if kept and position is not None and position > self._positions[place]:
                    chunks.append(self._chunk(place, [], position))
        with self._lock:
            self._seek_anew(before)
        return chunks

    def _chunk(self, place: TopicPartition, records: list[_Record], end: int) -> Chunk:
        start = self._positions[place]
        self._positions[place] = end
        offsets = [record.offset for record in records]
        return Chunk(
            self._known[place],
            min([start, *offsets[:1]]),
            end,
            offsets,
            [record.value for record in records],
            [record.timestamp for record in records],
        )

    def _is_kept(self, place: TopicPartition, before: Mapping[TopicPartition, int]) -> bool:
        return self._assignments.get(place) == before.get(place)

    def _seek_anew(self, before: Mapping[TopicPartition, int]) -> None:
        """Where a partition was given to us during the poll, the client may have set its position
        after we sought: what it returned belongs to an earlier assignment."""
        for place, position in self._positions.items():
            if not self._is_kept(place, before):
                self._consumer.seek(place, position)

    # -- Kafka's own offsets ------------------------------------------------------------------
    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Let Kafka's committed offsets follow, for the lag tools. Failure is no matter."""
        moved = {
            place: OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
            if self._acknowledged.get(place := _place(partition)) is None
            or self._acknowledged[place].offset != offset
        }
        if not moved or self._numbers is not None:
            return
        self._acknowledged.update(moved)
        try:
            self._consumer.commit_async(moved)
        except Exception as error:  # nothing that we count depends on it
            log.debug("kafka: offsets were not committed: %s", error)

    def close(self) -> None:
        """Leave the group. The listener hears nothing more."""
        self._listener = None
        held = {p: o for p, o in self._acknowledged.items() if p in self._positions}
        self._acknowledged.clear()
        with suppress(Exception):  # see acknowledge
            if held:
                self._consumer.commit(held, timeout_ms=CLOSE_MS)
        try:
            self._consumer.close(autocommit=False, timeout_ms=CLOSE_MS)
        except Exception as error:
            log.debug("kafka: closing: %s", error)
            self._client.close()

    # -- rebalances, in the client's thread ---------------------------------------------------
    def _assigned(self, places: Sequence[TopicPartition]) -> None:
        if self._listener is None:
            return
        partitions = [self._partition(place) for place in places]
        self._known.update(zip(places, partitions, strict=True))  # some may be new
        try:
            heads = self._listener.on_assigned(partitions)
        except Exception as error:
            self._failure = error
            return
        with self._lock:
            for place, partition in zip(places, partitions, strict=True):
                self._positions[place] = heads[partition]
                self._assignments[place] = self._assignments.get(place, 0) + 1
                self._consumer.seek(place, heads[partition])

    def _released(self, places: Sequence[TopicPartition], lost: bool) -> None:
        if self._listener is None:
            return
        tell = self._listener.on_lost if lost else self._listener.on_revoked
        try:
            tell([self._partition(place) for place in places])
        except Exception as error:
            self._failure = error
        with self._lock:
            for place in places:
                self._positions.pop(place, None)
                self._acknowledged.pop(place, None)

    # -- the topic ----------------------------------------------------------------------------
    def _read_partitions(self) -> dict[TopicPartition, Partition]:
        for attempt in range(TOPIC_TRIES):
            time.sleep(TOPIC_PAUSE_S if attempt else 0)
            numbers = self._ask(lambda: self._consumer.partitions_for_topic(self.topic))
            if numbers:
                self._topic_id = self._client.cluster.topic_id(self.topic)
                places = [TopicPartition(self.topic, number) for number in numbers]
                return {place: self._partition(place) for place in places}
        raise SourceError(
            f"kafka: there is no topic {self.topic!r}; create it, or correct the name"
        )

    def _partition(self, place: TopicPartition) -> Partition:
        # Brokers before 2.8 have no topic ids.
        topic_id = str(self._topic_id) if self._topic_id else self.topic
        cluster = self._client.cluster.cluster_id or "kafka"
        return Partition(cluster, place.topic, topic_id, place.partition)

    def _require_same_topic(self) -> None:
        found = self._client.cluster.topic_id(self.topic)
        if found is not None and self._topic_id is not None and found != self._topic_id:
            raise Disconnected(f"kafka: topic {self.topic!r} was deleted and made anew")

    def _ask(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except errors.KafkaError as error:
            raise self._explained(error) from error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _explained(self, error: Exception) -> SourceError:
        if isinstance(error, errors.OffsetOutOfRangeError):
            for place, offset in error.args[0].items():
                return self._gap(place, offset, None)
        if isinstance(error, errors.LogTruncationError):
            for place, found in error.divergent_offsets.items():
                end = None if found is None else found.offset
                return self._gap(place, self._positions.get(place, 0), end)
        if isinstance(error, FATAL):
            return SourceError(f"kafka: {error!r}")
        return Disconnected(f"kafka: {error!r}")

    def _gap(self, place: TopicPartition, head: int, end: int | None) -> GapError:
        partition = self._known[place]
        first = self.beginning(partition)
        return GapError(partition, head, first, self.ends()[partition] if end is None else end)


class _Record(Protocol):
    """What the client calls a ConsumerRecord."""

    offset: int
    value: bytes | None
    timestamp: int


@dataclass
class _Rebalance(ConsumerRebalanceListener):  # type: ignore[misc]  # the client ships no types
    """Passes on what the client says, in the client's thread."""

    assigned: Callable[[Sequence[TopicPartition]], None]
    released: Callable[[Sequence[TopicPartition], bool], None]

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.assigned(sorted(assigned))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.released(sorted(revoked), False)

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.released(sorted(lost), True)


def _connected(settings: dict[str, object], servers: Sequence[str]) -> KafkaNetClient:
    """A client that knows its cluster. It has no thread yet, so a failure leaves none behind."""
    if not settings.get("proxy_url"):
        require_reachable(servers, CONNECT_S)
    full = {**KafkaConsumer.DEFAULT_CONFIG, **settings}
    # As KafkaConsumer does for a client of its own: a whole fetch must fit into a frame.
    full["receive_message_max_bytes"] = max(
        full["receive_message_max_bytes"],
        full["fetch_max_bytes"] + full["max_partition_fetch_bytes"],
    )
    try:
        client = KafkaNetClient(**full)
    except (errors.KafkaError, OSError, ValueError) as error:
        raise SourceError(f"kafka: {error}") from error
    try:
        client.check_version(timeout_ms=round(CONNECT_S * 1000))
    except Exception as error:
        client.close()
        if isinstance(error, FATAL):
            raise SourceError(f"kafka: {','.join(servers)}: {error!r}") from error
        raise Disconnected(f"kafka: no answer from {','.join(servers)}: {error}") from error
    return client


def _place(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.number)
