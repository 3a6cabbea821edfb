"""The client of kafka-python: connecting it, fixes for five of its bugs, and producers for
simulated streams and for forwarded refused events."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Final, TypeAlias

import kafka
import kafka.errors as errors
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.consumer.fetcher import Fetcher
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.coordinator.base import MemberState
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.record import MemoryRecords

from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources import Disconnected, NotLetIn
from streammetrics_consumers.sources.kafka import Topic
from streammetrics_consumers.sources.kafka.client_settings import require_reachable
from streammetrics_consumers.sources.kafka.record_batches import (
    BatchLimits,
    FetchedBytes,
    is_known_layout,
)

log = logging.getLogger(__name__)

Shipped: Final = KafkaConsumer  # the unmodified client
CONNECT_S: Final = 5.0  # for one attempt to reach a broker
TOPIC_MS: Final = 5000  # a new topic takes time to reach all brokers
FLUSH_S: Final = 30.0
DESCRIBE_TRIES: Final = 10  # a broker may be restarting
DESCRIBE_PAUSE_S: Final = 0.2
ANSWER_S: Final = 15.0
FETCH_TRIES: Final = 150
SPARE_BYTES: Final = 1 << 16  # of a fetch, after its first batch
Message: TypeAlias = tuple[bytes, bytes, list[tuple[str, bytes]]]  # key, value, headers
DEFAULTS: Final[dict[str, object]] = KafkaConsumer.DEFAULT_CONFIG
FATAL: Final = (  # a retry would fail in the same way
    errors.AuthorizationError,
    errors.CorruptRecordError,
    errors.InconsistentGroupProtocolError,
    errors.InvalidGroupIdError,
    errors.InvalidSessionTimeoutError,
    errors.InvalidTopicError,
    errors.KafkaConfigurationError,
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedCodecError,
    errors.UnsupportedVersionError,
)
REFUSALS: Final = (errors.AuthorizationError, errors.SaslAuthenticationFailedError)  # of FATAL
ASSIGNORS: Final[dict[str, type[AbstractPartitionAssignor]]] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Group(ConsumerCoordinator):  # type: ignore[misc]  # the client ships no types
    """A member of the group. The client's own class loses a join response between two polls.

    If the group requested the join, it joins again and again, with a rebalance each time. If it
    joined because the topic has more partitions, the next poll finds no reason to join: no
    assignment, no heartbeat, no exception. This class therefore uses a pending response.
    """

    state: MemberState
    _join_task: Future | None

    def poll(self, timeout_ms: float | None = None) -> bool:
        """The first step of each poll of the consumer."""
        if self.rejoining:
            self.request_rejoin()
            self._net.run(self._take_join)
        return bool(super().poll(timeout_ms=timeout_ms))

    def ensure_coordinator_ready(self, timeout_ms: float | None = None) -> bool:
        """Whether the coordinator was found in time. The client's own method raises if the
        connection is refused while it waits for metadata, and retries in all other cases."""
        try:
            return bool(super().ensure_coordinator_ready(timeout_ms=timeout_ms))
        except errors.KafkaConnectionError as error:
            log.debug("kafka: no group coordinator: %s", error)
            return False

    async def _take_join(self) -> None:
        """Handle a pending join response as the client does, in the client's thread."""
        with self._lock:
            answer = self._join_task
            # If it has left the group since, it is not a member and must join.
            if self.state is not MemberState.REBALANCING or not (answer and answer.succeeded()):
                return
            self._join_task = None
            self.rejoining = self.rejoin_needed = False
            self.state = MemberState.STABLE
            self._enable_heartbeat()
            joined = self._generation
        await self._on_join_complete_async(
            joined.generation_id, joined.member_id, joined.protocol, answer.value
        )


class Consumer(KafkaConsumer):  # type: ignore[misc]
    """The client, with the fixed group membership and the faster record reading."""

    def __init__(self, limits: BatchLimits, **settings: object) -> None:
        super().__init__(**settings)
        self._coordinator.__class__ = Group  # the client has no setting for this class
        if hasattr(self, "_fetcher") and is_known_layout():
            self._fetcher.PartitionRecords = limits.records
            return
        log.warning(
            "kafka: the batch layout of kafka-python %s is unknown; the library reads batches "
            "itself, which is slower, and decompresses batches of any size ([source] "
            "max_batch_bytes has no effect)",
            kafka.__version__,
        )


class _Whole:
    """Connections that read the last data. The client's own discards pending data if the end of the
    stream is pending too: on a busy machine, for example, the error for a wrong password."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        data, error = super()._sock_recv()  # type: ignore[misc]
        return data, None if data else error  # the next call reads the end again


class _Plain(_Whole, KafkaTCPTransport):  # type: ignore[misc]
    pass


class _Encrypted(_Whole, KafkaSSLTransport):  # type: ignore[misc]
    pass


class _Connections(KafkaConnectionManager):  # type: ignore[misc]
    async def _build_transport(self, *arguments: object, **keywords: object) -> KafkaTCPTransport:
        transport = await super()._build_transport(*arguments, **keywords)
        transport.__class__ = _Encrypted if self.ssl_enabled else _Plain
        return transport


class Client(KafkaNetClient):  # type: ignore[misc]
    """The connections of a consumer or a producer, all closed with it. The client's own leaves a
    connection open while a request waits to be written; it may request metadata at any time."""

    def __init__(self, **settings: object) -> None:
        net = NetworkSelector(**settings)
        super().__init__(net, _Connections(net, **settings))

    def close(self, node_id: int | None = None) -> None:
        """Close the connection to a node, or all connections."""
        if node_id is None:
            self._net.stop()  # its thread: no other thread writes from here on
            self._manager.close()
            for _ in range(2):  # one round queues a request, the next one writes it
                self._net.poll(timeout_ms=0)
        super().close(node_id)


class Direct(KafkaNetSocket):  # type: ignore[misc]
    """A socket without a proxy, closed immediately if the connection fails. The client's own waits
    for the garbage collector: an unreachable broker would cost a file descriptor per attempt."""

    SCHEMES = ("direct",)  # the scheme of `proxy_url` by which the client selects this class

    async def sock_connect(
        self, net: object, sock: socket.socket, *arguments: object, **keywords: object
    ) -> socket.socket:
        """Connect, or close the socket on failure."""
        try:
            connected: socket.socket = await super().sock_connect(net, sock, *arguments, **keywords)
        except BaseException:
            sock.close()
            raise
        return connected


class DescribedTopics:
    """The topics with their ids, described by a client of its own with a thread of its own: a
    rebalance listener cannot ask the consumer, in whose thread it runs."""

    def __init__(
        self, settings: dict[str, object], servers: Sequence[str], topics: Sequence[str]
    ) -> None:
        self._topics = list(topics)
        defaults = KafkaAdminClient.DEFAULT_CONFIG
        admin_settings = {name: value for name, value in settings.items() if name in defaults}
        client = connected({**settings, "request_timeout_ms": round(CONNECT_S * 1000)}, servers)
        try:
            self._admin = KafkaAdminClient(**admin_settings, kafka_client=lambda **_: client)
        except BaseException:
            client.close()
            raise

    def ask(self) -> dict[str, Topic]:
        """The topics that exist now, by name. Raises KafkaError."""
        for _ in range(DESCRIBE_TRIES - 1):
            try:
                return self._described()
            except (errors.KafkaConnectionError, errors.NodeNotReadyError):
                time.sleep(DESCRIBE_PAUSE_S)
        return self._described()

    def _described(self) -> dict[str, Topic]:
        topics = {}
        for described in self._admin.describe_topics(self._topics):
            error = errors.for_code(described["error_code"])
            if error is errors.UnknownTopicOrPartitionError:
                continue
            if error is not errors.NoError:
                raise error(described["name"])
            name, topic_id = described["name"], described.get("topic_id")
            numbers = sorted(partition["partition_index"] for partition in described["partitions"])
            topics[name] = Topic(name, None if topic_id is None else str(topic_id), tuple(numbers))
        return topics

    def cleanup_policies(self) -> dict[str, str]:
        """The cleanup policy of each topic. Raises KafkaError."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in self._topics]
        answers = self._admin.describe_configs(resources, config_filter="all")
        return {
            name: str(configs["cleanup.policy"]["value"])
            for of_type in answers.values()
            for name, configs in of_type.items()
        }

    def close(self) -> None:
        """Close the client and end its thread."""
        self._admin.close()


class Fetches(KafkaConsumer):  # type: ignore[misc]
    """Single fetches of a partition, by a client of its own, to find where batches begin."""

    def __init__(
        self, settings: dict[str, object], servers: Sequence[str], partition: TopicPartition
    ) -> None:
        client = connected(settings, servers)
        try:
            super().__init__(**{**settings, "group_id": None}, kafka_client=lambda **_: client)
        except BaseException:
            client.close()
            raise
        self._partition = partition
        self._bases: dict[int, tuple[int | None, int | None]] = {}
        self._size = 0  # of the last fetch, in bytes
        self._fetcher.PartitionRecords = self._noted
        self.assign([partition])

    def bases(self, offset: int) -> tuple[int | None, int | None]:
        """The first offset of the batch that the broker sends for this offset, and that of the next
        batch; None where no batch of the same file follows. Raises Disconnected."""
        bases = self._fetched(offset)
        if bases[1] is None:  # the next one may have had no room
            self._fetcher.config["max_partition_fetch_bytes"] = self._size + SPARE_BYTES
            bases = self._fetched(offset)
        return bases

    def _fetched(self, offset: int) -> tuple[int | None, int | None]:
        self._bases.clear()
        self.seek(self._partition, offset)
        for _ in range(FETCH_TRIES):
            with suppress(errors.KafkaError):
                self.poll(timeout_ms=100)
            if offset in self._bases:
                return self._bases[offset]
        raise Disconnected(f"kafka: the broker does not answer for {self._partition}")

    def _noted(
        self, offset: int, partition: TopicPartition, records: MemoryRecords, **settings: object
    ) -> object:
        """Note how a fetch begins, and give the client no record of it."""
        self._size = records.size_in_bytes()
        self._bases[offset] = FetchedBytes.adopted(records).bases()
        return Fetcher.PartitionRecords(offset, partition, MemoryRecords(b""), **settings)


def connected(settings: dict[str, object], servers: Sequence[str]) -> Client:
    """A client connected to its cluster. It has no thread yet, so a failure leaves none behind."""
    if not settings.get("proxy_url"):
        require_reachable(servers, CONNECT_S)
    full = {**KafkaConsumer.DEFAULT_CONFIG, **settings}
    full["proxy_url"] = full["proxy_url"] or "direct://"
    # As KafkaConsumer does for its own client: a whole fetch must fit into a frame.
    full["receive_message_max_bytes"] = max(
        full["receive_message_max_bytes"],
        full["fetch_max_bytes"] + full["max_partition_fetch_bytes"],
    )
    try:
        client = Client(**full)
    except (errors.KafkaError, OSError, ValueError) as error:
        raise SourceError(f"kafka: {error}") from error
    refusals = _Refusals()
    logging.getLogger("kafka").addHandler(refusals)
    try:
        client.check_version(timeout_ms=round(CONNECT_S * 1000))
    except Exception as error:
        client.close()
        why = error if isinstance(error, FATAL) else refusals.last
        if why is not None:
            kind = NotLetIn if isinstance(why, REFUSALS) else SourceError
            raise kind(f"kafka: {','.join(servers)}: {why!r}") from error
        raise Disconnected(f"kafka: no answer from {','.join(servers)}: {error}") from error
    finally:
        logging.getLogger("kafka").removeHandler(refusals)
    return client


class _Refusals(logging.Handler):
    """The refusal of a broker: the client only logs it, and retries until a timeout."""

    last: Exception | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error that a retry would not fix."""
        for argument in record.args if isinstance(record.args, tuple) else ():
            if isinstance(argument, (*FATAL, ssl.SSLCertVerificationError)):
                self.last = argument


@contextmanager
def producing(servers: str, topic: str) -> Iterator[Callable[[list[bytes]], None]]:
    """A function that sends a batch of values to a topic; all are delivered when the block ends.

    servers: `host:port`, several separated by commas. Values go to the partitions in turn, so the
    same stream fills the same partitions. Raises Disconnected if no broker responds, and
    SourceError if the topic does not exist or refuses a record.
    """
    addresses = [server if ":" in server else f"{server}:9092" for server in servers.split(",")]
    require_reachable(addresses, CONNECT_S)
    try:
        producer = KafkaProducer(
            bootstrap_servers=addresses,
            acks="all",
            linger_ms=20,
            max_block_ms=TOPIC_MS,
            kafka_client=Client,
        )
        try:
            partitions = sorted(producer.partitions_for(topic))
            turn = count()
            failures: list[Exception] = []

            def send(values: list[bytes]) -> None:
                for value in values:
                    number = partitions[next(turn) % len(partitions)]
                    producer.send(topic, value, partition=number).add_errback(failures.append)
                if failures:
                    raise failures[0]

            yield send
            producer.flush(timeout=FLUSH_S)
            if failures:
                raise failures[0]
        finally:
            producer.close(timeout=CONNECT_S)
    except errors.KafkaError as error:
        raise SourceError(
            f"kafka://{servers}/{topic}: {error!r}; create the topic first, or correct the name"
        ) from error


class Forwarding:
    """A producer for one topic, with the connection settings of the source."""

    def __init__(self, source: SourceConfig, topic: str) -> None:
        defaults: dict[str, object] = KafkaProducer.DEFAULT_CONFIG
        settings = {name.replace(".", "_"): value for name, value in source.client.items()}
        # Consumer-only settings are left out; those of TLS and SASL apply to both.
        producer_settings = {name: value for name, value in settings.items() if name in defaults}
        self.topic = topic
        self._producer = KafkaProducer(
            **producer_settings,
            bootstrap_servers=list(source.bootstrap_servers),
            acks="all",
            kafka_client=Client,
            max_block_ms=round(ANSWER_S * 1000),
        )

    def send(self, messages: Sequence[Message]) -> None:
        """Send messages, and return when all are acknowledged. Raises errors of the client."""
        sent = [
            self._producer.send(self.topic, value=value, key=key, headers=headers)
            for key, value, headers in messages
        ]
        self._producer.flush(timeout=ANSWER_S)
        for future in sent:
            future.get(timeout=ANSWER_S)

    def close(self) -> None:
        """Close the producer; unacknowledged messages are sent again later."""
        self._producer.close(timeout=1.0)
