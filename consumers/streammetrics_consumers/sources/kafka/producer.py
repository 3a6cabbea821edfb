"""Records into a Kafka topic: simulated streams, and refused events that are forwarded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final, TypeAlias

import kafka.errors as errors
from kafka import KafkaProducer

from streammetrics_consumers.config.tables import SourceConfig
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources.kafka.client_settings import require_reachable
from streammetrics_consumers.sources.kafka.kafka_client import Client

CONNECT_S: Final = 5.0
TOPIC_MS: Final = 5000  # a topic that was just made is not known everywhere at once
FLUSH_S: Final = 30.0
ANSWER_S: Final = 15.0
Message: TypeAlias = tuple[bytes, bytes, list[tuple[str, bytes]]]  # key, value, headers


@contextmanager
def producing(servers: str, topic: str) -> Iterator[Callable[[list[bytes]], None]]:
    """A function that sends a batch of values to a topic; all are there when the block ends.

    servers: `host:port`, several with commas. Values go to the partitions in turn, so that the
    same stream fills the same partitions. Raises Disconnected where no broker answers, and
    SourceError where the topic does not exist or refuses a record.
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
    """A producer for one topic, reached as the source is."""

    def __init__(self, source: SourceConfig, topic: str) -> None:
        known: dict[str, object] = KafkaProducer.DEFAULT_CONFIG
        given = {name.replace(".", "_"): value for name, value in source.client.items()}
        # Settings of the consumer alone are left out; those of TLS and SASL are for both.
        both = {name: value for name, value in given.items() if name in known}
        self.topic = topic
        self._producer = KafkaProducer(
            **both,
            bootstrap_servers=list(source.bootstrap_servers),
            acks="all",
            kafka_client=Client,
            max_block_ms=round(ANSWER_S * 1000),
        )

    def send(self, messages: Sequence[Message]) -> None:
        """Send them, and return when all are acknowledged. Raises what the client raises."""
        sent = [
            self._producer.send(self.topic, value=value, key=key, headers=headers)
            for key, value, headers in messages
        ]
        self._producer.flush(timeout=ANSWER_S)
        for future in sent:
            future.get(timeout=ANSWER_S)

    def close(self) -> None:
        """Let go; what is not acknowledged is sent again another time."""
        self._producer.close(timeout=1.0)
