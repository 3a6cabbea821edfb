"""Reads a Kafka source in tests: who listens, how it is opened, and polling until enough came."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from consumers.config.tables import SourceConfig
from consumers.sources.kafka_source import KafkaSource
from consumers.sources.source import Chunk, Partition
from tests.kafka_broker import (
    unique_topic,
)

LIMIT_S = 20.0


class Reader:
    """A listener that starts where it is told, and remembers what it heard."""

    def __init__(self, heads: Mapping[int, int] | None = None) -> None:
        self.heads = dict(heads or {})
        self.owned: set[int] = set()
        self.heard: list[tuple[str, tuple[int, ...]]] = []
        self.error: Exception | None = None

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        self._hear("assigned", partitions)
        if self.error is not None:
            raise self.error
        self.owned |= {p.number for p in partitions}
        return {p: self.heads.get(p.number, 0) for p in partitions}

    def on_revoked(self, partitions: list[Partition]) -> None:
        self._hear("revoked", partitions)
        self.owned -= {p.number for p in partitions}

    def on_lost(self, partitions: list[Partition]) -> None:
        self._hear("lost", partitions)
        self.owned -= {p.number for p in partitions}

    def _hear(self, what: str, partitions: list[Partition]) -> None:
        self.heard.append((what, tuple(p.number for p in partitions)))


def config_for(bootstrap: str, topic: str, group: str | None = None, **client: Any) -> SourceConfig:
    client = {
        "session_timeout_ms": 10_000,  # a loaded machine may stall a member for seconds
        "heartbeat_interval_ms": 200,
        "fetch_max_wait_ms": 50,
        **client,
    }
    return SourceConfig(
        "kafka",
        "json",
        bootstrap_servers=(bootstrap,),
        topic=topic,
        group=group or unique_topic("group"),
        client=client,
    )


@contextmanager
def opened(
    *args: Any, numbers: tuple[int, ...] | None = None, **client: Any
) -> Iterator[KafkaSource]:
    with closing(KafkaSource(config_for(*args, **client), numbers)) as source:
        yield source


def read(source: KafkaSource, done: Callable[[list[Chunk]], bool]) -> list[Chunk]:
    """Poll until enough has come."""
    chunks: list[Chunk] = []
    limit = time.monotonic() + LIMIT_S
    while not done(chunks):
        assert time.monotonic() < limit, f"after {LIMIT_S} s: {chunks}"
        chunks += source.poll(0.1)
    return chunks


def read_to_end(source: KafkaSource) -> list[Chunk]:
    ends = source.ends()
    return read(source, lambda chunks: {c.partition: c.end for c in chunks} == ends)


def values(chunks: list[Chunk], number: int) -> list[bytes | None]:
    return [v for chunk in chunks if chunk.partition.number == number for v in chunk.values]
