"""Records into a Kafka topic, for simulated streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

import kafka.errors as errors
from kafka import KafkaProducer

from consumers.sources.kafka_client import require_reachable
from consumers.sources.kafka_source.client import Client
from consumers.sources.source import SourceError

CONNECT_S: Final = 5.0
TOPIC_MS: Final = 5000  # a topic that was just made is not known everywhere at once
FLUSH_S: Final = 30.0


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
