"""Reads a Kafka source in tests: who listens, how it is opened, and polling until enough came."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from streammetrics_consumers.config.source import KafkaLibrary, SourceConfig
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.partition import Name, Partition
from streammetrics_consumers.sources.kafka import id_of
from streammetrics_consumers.sources.kafka.confluent_source import ConfluentSource
from streammetrics_consumers.sources.kafka.kafka_source import KafkaSource

from tests.kafka_broker import Record, create_topic, produce, unique_topic
from tests.patience import LIMIT_S

FIRST_MS = 10**12  # the timestamp of the first record of a partition


def make_topics(kafka: str, *, partitions: tuple[int, int] = (2, 1), count: int = 10) -> str:
    """Topics `views` and `clicks`, with a comma between; each record says where it stands."""
    names = []
    for stem, numbers in zip(("views", "clicks"), partitions, strict=True):
        names.append(create_topic(kafka, numbers, name=unique_topic(stem)))
        fill(kafka, names[-1], numbers, count)
    return ",".join(names)


def fill(kafka: str, name: str, partitions: int, count: int) -> None:
    """Records for each partition of a topic."""
    stem = name.partition("-")[0]
    records = [
        Record(f"{stem}/{number} {i}".encode(), number, timestamp_ms=FIRST_MS + i)
        for number in range(partitions)
        for i in range(count)
    ]
    produce(kafka, name, records)


def partition_values(partition_id: str, first: int = 0, end: int = 10) -> list[bytes]:
    """The values of a partition, such as `views/0`, from one offset to another."""
    return [f"{partition_id} {i}".encode() for i in range(first, end)]


class Reader:
    """A listener that starts where it is told, and remembers what it heard. heads: by the number
    of a partition, or by the beginning of its topic's name."""

    def __init__(self, heads: Mapping[int | str, int] | None = None) -> None:
        self.heads = dict(heads or {})
        self.owned: set[Partition] = set()
        self.heard: list[tuple[str, tuple[int, ...]]] = []
        self.error: Exception | None = None
        self.before_revoked: Callable[[], None] = lambda: None

    @property
    def numbers(self) -> set[int]:
        return {partition.number for partition in self.owned}

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        self._hear("assigned", partitions)
        if self.error is not None:
            raise self.error
        self.owned |= {*partitions}
        return {p: self._head(p) for p in partitions}

    def on_revoked(self, partitions: list[Partition]) -> None:
        self.before_revoked()
        self._hear("revoked", partitions)
        self.owned -= {*partitions}

    def on_lost(self, partitions: list[Partition]) -> None:
        self._hear("lost", partitions)
        self.owned -= {*partitions}

    def _head(self, partition: Partition) -> int:
        stem = partition.topic.partition("-")[0]
        return self.heads.get(partition.number, self.heads.get(stem, 0))

    def _hear(self, event: str, partitions: list[Partition]) -> None:
        self.heard.append((event, tuple(p.number for p in partitions)))


# What kafka-python calls a setting, and what librdkafka does.
OTHER_NAMES = {
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    "metadata_max_age_ms": "topic.metadata.refresh.interval.ms",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
}


@dataclass(frozen=True)
class Library:
    """One of the two libraries that read Kafka; settings have kafka-python's names for both.

    by_broker: whether the broker shares out the partitions and has the times of a session
    (KIP-848), which only librdkafka can.
    """

    name: KafkaLibrary
    by_broker: bool = False

    def config(
        self, bootstrap: str, topic: str, group: str | None = None, **client: Any
    ) -> SourceConfig:
        group_settings: dict[str, Any] = {
            "session_timeout_ms": 10_000,  # a loaded machine may stall a member for seconds
            "heartbeat_interval_ms": 200,
        }
        if self.by_broker:
            group_settings = {"group_protocol": "consumer"}
        client = {**group_settings, "fetch_max_wait_ms": 50, **client}
        return SourceConfig(
            "kafka",
            "json",
            bootstrap_servers=tuple(bootstrap.split(",")),
            topics=tuple(topic.split(",")),
            group=group or unique_topic("group"),
            client=self.settings(client),
            library=self.name,
        )

    def settings(self, client: Mapping[str, Any]) -> dict[str, Any]:
        if self.name == "kafka-python":
            return dict(client)
        return {OTHER_NAMES.get(name, name): value for name, value in client.items()}

    def source(self, config: SourceConfig, names: tuple[Name, ...] | None = None) -> KafkaSource:
        """A source of this library; both have the same type for the tests."""
        kind: Any = KafkaSource if self.name == "kafka-python" else ConfluentSource
        source: KafkaSource = kind(config, names)
        return source

    @contextmanager
    def opened(
        self, *args: Any, names: tuple[Name, ...] | None = None, **client: Any
    ) -> Iterator[KafkaSource]:
        with closing(self.source(self.config(*args, **client), names)) as source:
            yield source


def read(source: KafkaSource, is_complete: Callable[[list[Chunk]], bool]) -> list[Chunk]:
    """Poll until enough has come. A group may rebalance at any time: what was read of a partition
    before it was given anew is forgotten, as by whoever counts, since it is read again."""
    chunks: list[Chunk] = []
    limit = time.monotonic() + LIMIT_S
    while not is_complete(chunks):
        assert time.monotonic() < limit, f"after {LIMIT_S} s: {chunks}"
        before = source._reading.given.copy()
        come = source.poll(0.1)
        full = [chunk.partition for chunk in come if len(chunk)]
        assert len(full) == len(set(full)), "each chunk costs as much as many records"
        anew = source._reading.given - before
        chunks = [chunk for chunk in chunks if id_of(chunk.partition) not in anew] + come
    return chunks


@contextmanager
def polled(source: KafkaSource) -> Iterator[None]:
    """Poll in a thread until the block ends. Who polls no more holds up every later rebalance, and
    on a loaded machine there may be several until each member has what it keeps."""
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(read, source, lambda chunks: ended.is_set())
        try:
            yield
        finally:
            ended.set()
    polling.result()


def read_to_end(source: KafkaSource) -> list[Chunk]:
    ends = source.ends()
    return read(source, lambda chunks: {c.partition: c.end for c in chunks} == ends)


def values(chunks: list[Chunk]) -> dict[str, list[bytes | None]]:
    """The values that came, by partition, such as `views/0`."""
    values_by_id: dict[str, list[bytes | None]] = {}
    for chunk in chunks:
        partition_id = f"{chunk.partition.topic.partition('-')[0]}/{chunk.partition.number}"
        values_by_id.setdefault(partition_id, []).extend(chunk.values)
    return values_by_id


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    """How many threads there are; those of librdkafka are unknown to Python."""
    return len(os.listdir("/proc/self/task"))
