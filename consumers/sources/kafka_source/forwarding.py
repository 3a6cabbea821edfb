"""Refused events into a Kafka topic, each acknowledged by all replicas before it counts as sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from kafka import KafkaProducer

from consumers.config.tables import SourceConfig
from consumers.sources.kafka_source.client import Client

ANSWER_S: Final = 15.0
Message: TypeAlias = tuple[bytes, bytes, list[tuple[str, bytes]]]  # key, value, headers


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
