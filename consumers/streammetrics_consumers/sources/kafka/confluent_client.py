"""A client of librdkafka: its construction, errors, messages, and topic ids.

Unreadable batches: for a batch that it cannot decompress or whose checksum is wrong, the library
reports the first offset and nothing else. A broker that is asked for any offset of a batch sends
the whole batch, so the batch ends before the first offset at which the library reports no error or
another one. Zstandard is decompressed up to `receive.message.max.bytes`, the other codecs without
a limit, so a gzip, LZ4 or Snappy record over the limit is refused here, after decompression.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Final, TypeAlias, TypeVar, cast

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._topic import TopicDescription

from streammetrics_consumers.config.section import ConfigError, Problem
from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.model.chunk import Headers, SourceError
from streammetrics_consumers.sources import Disconnected, NotLetIn, limit_text
from streammetrics_consumers.sources.kafka import PartitionId, Topic, last_inside
from streammetrics_consumers.sources.kafka.client_settings import (
    connection_settings,
    librdkafka_settings,
)

T = TypeVar("T")
RDKAFKA: Final = logging.getLogger("librdkafka")
ASK_S: Final = 10.0
TRY_S: Final = 2.0
SILENT: Final = frozenset(["_ALL_BROKERS_DOWN", "_TIMED_OUT", "_TRANSPORT", "REQUEST_TIMED_OUT"])
FATAL: Final = frozenset(  # names of errors that a retry would repeat
    [
        "_AUTHENTICATION", "_BAD_COMPRESSION", "_BAD_MSG",
        "_NOT_IMPLEMENTED", "_SSL", "_UNSUPPORTED_FEATURE",
        "CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED",
        "INCONSISTENT_GROUP_PROTOCOL", "INVALID_GROUP_ID",
        "INVALID_MSG", "INVALID_SESSION_TIMEOUT",
        "SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION", "UNSUPPORTED_VERSION",
    ]
)  # fmt: skip
REFUSALS: Final = frozenset(  # the subset about authentication and authorization
    [
        "_AUTHENTICATION", "CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED",
        "SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED",
    ]
)  # fmt: skip
UNREADABLE: Final = frozenset(["_BAD_COMPRESSION", "_BAD_MSG", "INVALID_MSG", "_NOT_IMPLEMENTED"])
PROBE_S: Final = 0.5
PROBES: Final = 30
ANSWER_S: Final = 15.0
CLOSE_S: Final = 30.0
Event: TypeAlias = tuple[bytes, bytes, list[tuple[str, bytes]]]  # key, value, headers


class ConfluentTopics:
    """The topics with their ids. The consumer does not report ids, so a separate client asks.

    After the broker that it asks has restarted, that client may never get an answer. A new client
    then replaces it.
    """

    def __init__(self, settings: Mapping[str, str], topics: Sequence[str]) -> None:
        self._topics = list(topics)
        self._settings = connection_settings(settings)
        self._admin: AdminClient | None = self._made()

    def _made(self) -> AdminClient:
        return AdminClient({**self._settings}, logger=RDKAFKA)

    def ask(self) -> dict[str, Topic]:
        """The topics that exist now, by name. Raises SourceError."""
        answers = self._answers(TRY_S)
        if answers is None:
            self._admin = self._made()
            answers = self._answers(ASK_S)
        if answers is None:
            raise Disconnected("kafka: the broker does not answer")
        topics = {}
        for name, answer in answers.items():
            try:
                described: TopicDescription = answer.result(0)
            except KafkaException as error:
                if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                    continue
                raise explained(error.args[0]) from error
            numbers = tuple(sorted(partition.id for partition in described.partitions))
            topics[name] = Topic(name, _name_of(described.topic_id), numbers)
        return topics

    def _answers(self, limit_s: float) -> dict[str, Future[TopicDescription]] | None:
        """The broker's answers, which may be errors; None if it does not respond."""
        assert self._admin is not None, "it is not closed"
        answers: dict[str, Future[TopicDescription]] = self._admin.describe_topics(
            TopicCollection(self._topics), request_timeout=limit_s
        )
        for answer in answers.values():
            try:
                error = answer.exception(limit_s + 1)
            except TimeoutError:
                return None
            if isinstance(error, KafkaException) and error.args[0].name() in SILENT:
                return None
        return answers

    def cleanup_policies(self) -> dict[str, str]:
        """The cleanup policy of each topic. Raises KafkaException or TimeoutError."""
        assert self._admin is not None, "it is not closed"
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in self._topics]
        answers = self._admin.describe_configs(resources, request_timeout=TRY_S)
        return {
            resource.name: str(answer.result(TRY_S + 1)["cleanup.policy"].value)
            for resource, answer in answers.items()
        }

    def close(self) -> None:
        """End the client. It has no close method, so drop the reference."""
        self._admin = None


def made(settings: Mapping[str, str], on_error: Callable[[KafkaError], None]) -> Consumer:
    """A client; its polls call `on_error` with errors of its connections."""
    try:
        return Consumer({**settings, "error_cb": on_error}, logger=RDKAFKA)
    except (KafkaException, ValueError, TypeError) as error:
        why = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        problem = Problem("[source.client]", "settings that librdkafka knows", why, "correct them")
        raise ConfigError("the Kafka client", [problem]) from None


def close(consumer: Consumer) -> None:
    """Leave the group after pending commits, and end the client, within CLOSE_S.

    librdkafka can wait for ever for a lock of its own while it closes, if a batch was damaged: its
    thread then stays behind, and the group forgets the member when the session ends.
    """
    failures: list[Exception] = []

    def ending() -> None:
        try:
            consumer.close()
        except Exception as error:  # raised again below, in the thread that closes
            failures.append(error)

    thread = Thread(target=ending, name="kafka-close", daemon=True)
    thread.start()
    thread.join(CLOSE_S)
    if thread.is_alive():
        RDKAFKA.warning("the client did not close within %g s, and is abandoned", CLOSE_S)
    for error in failures:
        raise error


def _name_of(topic_id: Uuid) -> str | None:
    """The topic id in the form of kafka-python; None for brokers without topic ids. (The library's
    type stubs lack the two methods.)"""
    high = topic_id.get_most_significant_bits() % 2**64  # type: ignore[attr-defined]
    low = topic_id.get_least_significant_bits() % 2**64  # type: ignore[attr-defined]
    return str(uuid.UUID(int=high << 64 | low)) if high or low else None


def ask(call: Callable[[], T]) -> T:
    """The result of a client call. Raises SourceError."""
    try:
        return call()
    except KafkaException as error:
        raise explained(error.args[0]) from error


def explained(error: KafkaError, where: str = "") -> SourceError:
    """An error of the client; its type says whether a retry may help."""
    kind: type[SourceError] = SourceError if error.name() in FATAL else Disconnected
    if error.name() in REFUSALS:
        kind = NotLetIn
    return kind(f"kafka: {where}{error.name()}: {error.str()}")


def partition_records(
    messages: list[Message], topics: Sequence[str]
) -> dict[PartitionId, list[Message]]:
    """Messages by partition. Method calls on each message are slow, so this makes few of them;
    most polls return messages of one partition."""
    numbers = cast("list[int]", list(map(Message.partition, messages)))
    if len(topics) == 1:
        if len(set(numbers)) == 1:
            return {(topics[0], numbers[0]): messages}
        partition_ids = [(topics[0], number) for number in numbers]
    else:
        names = [message.topic() or "" for message in messages]
        partition_ids = list(zip(names, numbers, strict=True))
    messages_of: dict[PartitionId, list[Message]] = {
        partition_id: [] for partition_id in partition_ids
    }
    for partition_id, message in zip(partition_ids, messages, strict=True):
        messages_of[partition_id].append(message)
    return messages_of


def id_of_message(message: Message) -> PartitionId:
    """The topic and the partition number of a message."""
    return message.topic() or "", message.partition() or 0


def sorted_ids(partition_ids: Sequence[TopicPartition]) -> list[PartitionId]:
    """The topics and numbers of these partitions, sorted."""
    return sorted((partition_id.topic, partition_id.partition) for partition_id in partition_ids)


def headers_of(message: Message) -> Headers:
    """The headers of a message; None if a name is not UTF-8, with which the library fails."""
    try:
        headers = message.headers()
    except (SystemError, UnicodeDecodeError):
        return None
    return cast("list[tuple[str, bytes | None]]", headers) if isinstance(headers, list) else []


@dataclass(frozen=True, slots=True)
class Fault:
    """An unreadable batch that begins at offset `base`. last: its last offset, if known."""

    base: int
    got: str
    last: int | None = None


def fault_of(error: KafkaError, offset: int, limit: int) -> Fault:
    """The fault described by an error among the records."""
    got = "one that cannot be decompressed or read: it is damaged, or "
    return Fault(offset, f"{got}{limit_text(limit)}; librdkafka says {error.name()}: {error.str()}")


def longest_of(values: Sequence[bytes | None]) -> int | None:
    """The bytes of the longest value; None if one is missing."""
    try:
        return max(map(len, cast("Sequence[bytes]", values)), default=0)
    except TypeError:  # None has no length
        return None


def first_too_large(values: Sequence[bytes | None], limit: int) -> int | None:
    """The index of the first value that alone exceeds the limit."""
    return next((i for i, value in enumerate(values) if value and len(value) > limit), None)


def last_of(
    settings: Mapping[str, str], partition_id: PartitionId, base: int, first: int, end: int
) -> int:
    """The last offset of the unreadable batch that begins at `base`, in a log that ends at `end`.
    `first` is one of its offsets. Raises SourceError."""
    return last_inside(partial(_is_faulty, settings, partition_id, base), first, end)


def _is_faulty(
    settings: Mapping[str, str], partition_id: PartitionId, base: int, offset: int
) -> bool:
    """Whether the broker sends that batch for this offset. After a checksum error a client may
    continue at any offset, so each offset is requested with a new client."""
    # It fetches once: a fetch at an invalid offset while it closes can block librdkafka for ever.
    once = {"queued.min.messages": "1", "fetch.error.backoff.ms": "5000"}
    consumer = made({**settings, **once}, lambda error: None)
    try:
        consumer.assign([TopicPartition(*partition_id, offset)])
        for _ in range(PROBES):
            for message in ask(lambda: consumer.consume(1, PROBE_S)):
                error = message.error()
                if error is None or error.name() == "_PARTITION_EOF":
                    return False
                if error.name() in UNREADABLE:
                    return message.offset() == base
                raise explained(error)
    finally:
        close(consumer)
    raise Disconnected(f"kafka: the broker does not answer for {partition_id[0]}/{partition_id[1]}")


class ConfluentForwarding:
    """A producer for one topic, with the connection settings of the source."""

    def __init__(self, source: SourceConfig, topic: str) -> None:
        settings = connection_settings(librdkafka_settings(source)[0])
        self.topic = topic
        self._producer = Producer(
            {
                **settings,
                "acks": "all",
                "allow.auto.create.topics": "false",
                "message.timeout.ms": str(round(ANSWER_S * 1000)),
            },
            logger=RDKAFKA,
        )

    def send(self, messages: Sequence[Event]) -> None:
        """Send messages, and return when all are acknowledged. Raises SourceError if one is not;
        some may have arrived."""
        waiting = len(messages)
        failures: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            nonlocal waiting
            waiting -= 1
            if error is not None:
                failures.append(error)

        try:
            for key, value, headers in messages:
                self._producer.produce(
                    self.topic, value=value, key=key, headers=[*headers], on_delivery=on_delivery
                )
        except (BufferError, KafkaException) as error:
            raise SourceError(f"kafka: topic {self.topic!r}: {error}") from error
        # It returns when all are answered, each after at most ANSWER_S.
        self._producer.flush(ANSWER_S + 1)
        if failures:
            raise explained(failures[0], f"topic {self.topic!r}: ")
        if waiting:
            raise SourceError(
                f"kafka: topic {self.topic!r}: {waiting} messages were not acknowledged"
            )

    def close(self) -> None:
        """Close the producer; unacknowledged messages are sent again later."""
        self._producer.purge(in_flight=False)
        self._producer.flush(1.0)
