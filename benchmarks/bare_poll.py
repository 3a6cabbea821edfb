"""What a Kafka client's own poll takes, with nothing of ours around it."""

from __future__ import annotations

import uuid

from consumers.config.tables import SourceConfig
from consumers.sources import confluent_client, kafka_client
from consumers.sources.confluent_source.client import made
from consumers.sources.kafka_source.client import DEFAULTS, Consumer


def bare_poll(source: SourceConfig, records: int) -> int:
    """Poll until so many records have come, with the settings of our source."""
    assert source.topic is not None
    group, done = uuid.uuid4().hex, 0
    if source.library == "kafka-python":
        settings = kafka_client.client_settings(source, DEFAULTS)
        consumer = Consumer(**{**settings, "group_id": group, "auto_offset_reset": "earliest"})
        consumer.subscribe([source.topic])
        while done < records:
            done += sum(map(len, consumer.poll(timeout_ms=500).values()))
        consumer.close()
        return done
    named, limit = confluent_client.client_settings(source)
    named |= {"group.id": group, "auto.offset.reset": "earliest", "enable.partition.eof": "false"}
    client = made(named, lambda error: None)
    client.subscribe([source.topic])
    while done < records:
        done += len(client.consume(limit, 0.05))
    client.close()
    return done
