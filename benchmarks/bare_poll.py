"""The cost of a Kafka client's own poll, as shipped, without any code of ours around it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sized
from contextlib import closing
from typing import Final, TypeVar

from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.sources.kafka.client_settings import (
    kafka_python_settings,
    librdkafka_settings,
)
from streammetrics_consumers.sources.kafka.confluent_client import made
from streammetrics_consumers.sources.kafka.kafka_client import DEFAULTS, Shipped

PATIENCE_S: Final = 60.0
T = TypeVar("T", bound=Sized)


class Patience:
    """Ends a benchmark that receives no more records, instead of waiting for ever."""

    def __init__(self) -> None:
        self._last_s = time.monotonic()

    def polled(self, records: T) -> T:
        """Return `records`; exit if nothing was polled for PATIENCE_S seconds."""
        if len(records):
            self._last_s = time.monotonic()
        elif time.monotonic() - self._last_s > PATIENCE_S:
            raise SystemExit(f"no record in {PATIENCE_S:g} s, before the expected number was read")
        return records


def bare_poll(source: SourceConfig, records: int) -> int:
    """Poll until this number of records is read, with the settings of our source."""
    group, count, patience = uuid.uuid4().hex, 0, Patience()
    if source.library == "kafka-python":
        settings = kafka_python_settings(source, DEFAULTS)
        options = {**settings, "group_id": group, "auto_offset_reset": "earliest"}
        with closing(Shipped(**options)) as consumer:
            consumer.subscribe(list(source.topics))
            while count < records:
                batches = patience.polled(consumer.poll(timeout_ms=500))
                count += sum(map(len, batches.values()))
        return count
    texts, limit = librdkafka_settings(source)
    texts |= {"group.id": group, "auto.offset.reset": "earliest", "enable.partition.eof": "false"}
    with closing(made(texts, lambda error: None)) as client:
        client.subscribe(list(source.topics))
        while count < records:
            count += len(patience.polled(client.consume(limit, 0.05)))
    return count
