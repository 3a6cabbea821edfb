"""Refused events into a Kafka topic by librdkafka, each acknowledged by all replicas before it
counts as sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from consumers.config.tables import SourceConfig
from consumers.sources.confluent_client import client_settings, connection_settings
from consumers.sources.confluent_source.client import RDKAFKA, explained
from consumers.sources.source import SourceError

ANSWER_S: Final = 15.0
Event: TypeAlias = tuple[bytes, bytes, list[tuple[str, bytes]]]  # key, value, headers


class Forwarding:
    """A producer for one topic, reached as the source is."""

    def __init__(self, source: SourceConfig, topic: str) -> None:
        settings = connection_settings(client_settings(source)[0])
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
        """Send them, and return when all are acknowledged. Raises SourceError where they are not;
        some may have arrived."""
        waiting = len(messages)
        failures: list[KafkaError] = []

        def told(error: KafkaError | None, _message: Message) -> None:
            nonlocal waiting
            waiting -= 1
            if error is not None:
                failures.append(error)

        try:
            for key, value, headers in messages:
                self._producer.produce(
                    self.topic, value=value, key=key, headers=[*headers], on_delivery=told
                )
        except (BufferError, KafkaException) as error:
            raise SourceError(f"kafka: topic {self.topic!r}: {error}") from error
        # It returns when all have an answer, which each has after ANSWER_S at the latest.
        self._producer.flush(ANSWER_S + 1)
        if failures:
            raise explained(failures[0], f"topic {self.topic!r}: ")
        if waiting:
            raise SourceError(f"kafka: topic {self.topic!r}: {waiting} messages have no answer")

    def close(self) -> None:
        """Let go; what is not acknowledged is sent again another time."""
        self._producer.purge(in_flight=False)
        self._producer.flush(1.0)
