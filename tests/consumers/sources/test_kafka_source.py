"""The Kafka source against a real broker: seeks, holes, gaps, rebalances, failures."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import pytest

pytest.importorskip("kafka")

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from consumers.config.tables import SourceConfig
from consumers.sources import kafka_source
from consumers.sources.kafka_source import KafkaSource
from consumers.sources.source import Chunk, GapError, Partition, SourceError
from consumers.worker.reconnect import Disconnected
from tests.kafka_broker import (
    Record,
    add_partitions,
    create_topic,
    delete_topic,
    free_ports,
    produce,
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
        "session_timeout_ms": 1500,
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


@pytest.fixture(scope="module")
def topic(kafka: str) -> str:
    """Two partitions of 20 and 10 records."""
    name = create_topic(kafka, 2)
    records = [Record(f"a{i}".encode(), 0, timestamp_ms=10**12 + i) for i in range(20)]
    records += [Record(f"b{i}".encode(), 1) for i in range(10)]
    produce(kafka, name, records)
    return name


# -- reading


def test_records_come_as_bytes_in_offset_order_and_without_a_seam(kafka: str, topic: str) -> None:
    with opened(kafka, topic, max_poll_records=7) as source:
        source.assign(Reader())
        chunks = read_to_end(source)
    assert values(chunks, 0) == [f"a{i}".encode() for i in range(20)]
    assert values(chunks, 1) == [f"b{i}".encode() for i in range(10)]
    for number, count in ((0, 20), (1, 10)):
        own = [chunk for chunk in chunks if chunk.partition.number == number]
        assert [chunk.start for chunk in own] == [0, *(chunk.end for chunk in own[:-1])]
        assert [offset for chunk in own for offset in chunk.offsets] == list(range(count))


def test_the_log_is_named_by_the_ids_of_cluster_and_topic(kafka: str, topic: str) -> None:
    with (
        opened(kafka, topic) as source,
        closing(KafkaAdminClient(bootstrap_servers=kafka)) as admin,
    ):
        one, two = source.partitions()
        (described,) = admin.describe_topics([topic])
        assert (one.topic, one.number, two.number) == (topic, 0, 1)
        assert one.topic_id == str(described["topic_id"])
        assert one.cluster == admin.describe_cluster()["cluster_id"]
        assert source.beginning(one) == 0
        assert source.ends() == {one: 20, two: 10}


def test_reading_starts_at_the_listeners_heads_and_not_at_kafkas_offsets(
    kafka: str, topic: str
) -> None:
    group = unique_topic("group")
    with closing(KafkaConsumer(bootstrap_servers=kafka, group_id=group)) as other:
        committed = {TopicPartition(topic, 0): OffsetAndMetadata(15, "", -1)}
        other.commit(committed)
    with opened(kafka, topic, group) as source:
        source.assign(Reader({0: 3, 1: 4}))
        chunks = read_to_end(source)
    first = {chunk.partition.number: chunk.start for chunk in reversed(chunks)}
    assert first == {0: 3, 1: 4}
    assert values(chunks, 0) == [f"a{i}".encode() for i in range(3, 20)]


def test_a_seek_reads_again_from_there(kafka: str, topic: str) -> None:
    with opened(kafka, topic) as source:
        source.assign(Reader())
        read_to_end(source)
        source.seek(source.partitions()[0], 18)
        again = read(source, lambda chunks: any(chunk.end == 20 for chunk in chunks))
        source.seek(Partition("c", topic, "i", 99), 5)  # not ours, so nothing happens
    assert (again[0].start, values(again, 0)) == (18, [b"a18", b"a19"])


def test_partitions_given_by_hand_need_no_group(kafka: str, topic: str) -> None:
    with opened(kafka, topic, numbers=(1,)) as source:
        reader = Reader({1: 8})
        source.assign(reader)
        assert reader.heard == [("assigned", (1,))]
        chunks = read(source, lambda chunks: any(chunk.end == 10 for chunk in chunks))
        assert (values(chunks, 0), values(chunks, 1)) == ([], [b"b8", b"b9"])


def test_a_time_is_the_offset_of_the_first_record_that_is_not_older(kafka: str, topic: str) -> None:
    with opened(kafka, topic) as source:
        partition = source.partitions()[0]
        assert source.offset_at(partition, 10**12 + 5) == 5
        assert source.offset_at(partition, 0) == 0
        assert source.offset_at(partition, 10**13) == 20


def test_aborted_records_are_holes_and_the_end_is_reached_behind_them(kafka: str) -> None:
    name = create_topic(kafka)
    producer = KafkaProducer(bootstrap_servers=kafka, transactional_id=unique_topic("tx"))
    with closing(producer):
        producer.init_transactions()
        for ends in (True, False, True, False):
            producer.begin_transaction()
            for _ in range(3):
                producer.send(name, b"kept" if ends else b"aborted", partition=0)
            producer.flush()
            producer.commit_transaction() if ends else producer.abort_transaction()
    with opened(kafka, name) as source:
        (end,) = source.ends().values()
        source.assign(Reader())
        chunks = read_to_end(source)
    assert values(chunks, 0) == [b"kept"] * 6
    assert [chunk.start for chunk in chunks] == [0, *(chunk.end for chunk in chunks[:-1])]
    assert chunks[-1].end == end == 16  # four markers and six aborted records among them


# -- gaps and other logs


def test_a_head_before_the_beginning_of_the_log_is_a_gap(kafka: str) -> None:
    name = create_topic(kafka)
    produce(kafka, name, [Record(b"x")] * 10)
    with closing(KafkaAdminClient(bootstrap_servers=kafka)) as admin:
        admin.delete_records({TopicPartition(name, 0): 6})
    with opened(kafka, name) as source:
        assert source.beginning(source.partitions()[0]) == 6
        source.assign(Reader({0: 4}))
        with pytest.raises(GapError) as caught:
            read(source, lambda chunks: False)
    gap = caught.value
    assert (gap.head, gap.beginning, gap.end, str(gap.partition)) == (4, 6, 10, f"{name}/0")


def test_a_head_behind_the_end_of_the_log_is_a_gap(kafka: str, topic: str) -> None:
    with opened(kafka, topic) as source:
        source.assign(Reader({0: 25}))
        with pytest.raises(GapError) as caught:
            read(source, lambda chunks: False)
    assert (caught.value.head, caught.value.beginning, caught.value.end) == (25, 0, 20)


def test_a_topic_made_anew_has_another_id_and_a_running_source_sees_it(kafka: str) -> None:
    name = create_topic(kafka)
    with opened(kafka, name, metadata_max_age_ms=200) as source:
        (before,) = source.partitions()
        source.assign(Reader())
        read(source, lambda chunks: True)
        delete_topic(kafka, name)
        limit = time.monotonic() + LIMIT_S
        while True:  # the name is free only a moment later
            assert time.monotonic() < limit
            with suppress(Exception):
                create_topic(kafka, name=name)
                break
        with pytest.raises(Disconnected, match="made anew"):
            read(source, lambda chunks: False)
    with opened(kafka, name) as source:
        (after,) = source.partitions()
    assert (before.topic, before.cluster) == (after.topic, after.cluster)
    assert before.topic_id != after.topic_id


def test_a_partition_that_is_added_is_given_to_the_group(kafka: str) -> None:
    name = create_topic(kafka)
    with opened(kafka, name, metadata_max_age_ms=200) as source:
        reader = Reader()
        source.assign(reader)
        read(source, lambda chunks: reader.owned == {0})
        add_partitions(kafka, name, 2)
        produce(kafka, name, [Record(b"new", 1)])
        chunks = read(source, lambda chunks: bool(values(chunks, 1)))
        assert (chunks[-1].partition.number, chunks[-1].start) == (1, 0)
        assert len(source.partitions()) == 2


# -- the group


def test_members_share_the_partitions_and_hand_them_over(kafka: str, topic: str) -> None:
    group = unique_topic("group")
    with ExitStack() as stack:
        one = stack.enter_context(opened(kafka, topic, group))
        first, second = Reader(), Reader()
        one.assign(first)
        read(one, lambda chunks: first.owned == {0, 1})
        with opened(kafka, topic, group) as two:
            two.assign(second)
            thread = threading.Thread(
                target=read, args=(two, lambda chunks: len(second.owned) == 1)
            )
            thread.start()
            read(one, lambda chunks: len(first.owned) == 1)
            thread.join()
            assert first.owned | second.owned == {0, 1}
        read(one, lambda chunks: first.owned == {0, 1})
    assert ("revoked", (0, 1)) in first.heard


def test_what_the_listener_raises_comes_out_of_the_poll(kafka: str, topic: str) -> None:
    with opened(kafka, topic) as source:
        reader = Reader()
        reader.error = RuntimeError("the ledger is away")
        source.assign(reader)
        with pytest.raises(RuntimeError, match="the ledger is away"):
            read(source, lambda chunks: False)


def test_the_listener_hears_nothing_of_the_end(kafka: str, topic: str) -> None:
    reader = Reader()
    with opened(kafka, topic) as source:
        source.assign(reader)
        read(source, lambda chunks: bool(reader.owned))
        heard = list(reader.heard)
    assert reader.heard == heard


# -- Kafka's own offsets


def test_kafkas_offsets_follow(kafka: str, topic: str) -> None:
    group = unique_topic("group")
    with opened(kafka, topic, group) as source:
        one, two = source.partitions()
        reader = Reader()
        source.assign(reader)
        read(source, lambda chunks: len(reader.owned) == 2)
        source.acknowledge({one: 7, two: 5})
        source.acknowledge({one: 8, two: 5})
    with closing(KafkaConsumer(bootstrap_servers=kafka, group_id=group)) as other:
        found = [other.committed(TopicPartition(topic, number)) for number in (0, 1)]
    assert found == [8, 5]


def test_that_kafka_does_not_take_them_is_no_matter(
    kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(KafkaConsumer, "commit_async", refuse)
    monkeypatch.setattr(KafkaConsumer, "commit", refuse)
    with opened(kafka, topic) as source:
        source.assign(Reader())
        chunks = read_to_end(source)
        source.acknowledge(dict.fromkeys(source.partitions(), 1))
        assert len(values(chunks, 0)) == 20


# -- failures


def test_a_topic_that_is_not_there_is_named(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "TOPIC_PAUSE_S", 0.01)
    with pytest.raises(SourceError, match="there is no topic 'nowhere'"):
        KafkaSource(config_for(kafka, "nowhere"))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_tries_to_reach_no_broker_leave_no_threads_and_no_files() -> None:
    (port,) = free_ports(1)
    threads, files = threading.active_count(), descriptors()
    for _ in range(3):
        with pytest.raises(Disconnected, match="no broker answers"):
            KafkaSource(config_for(f"127.0.0.1:{port}", "clicks"))
    assert (threading.active_count(), descriptors()) == (threads, files)


def test_a_source_that_is_closed_leaves_no_threads_and_no_files(kafka: str, topic: str) -> None:
    threads, files = threading.active_count(), descriptors()
    for _ in range(2):
        with opened(kafka, topic) as source:
            source.assign(Reader())
            read_to_end(source)
    assert (threading.active_count(), descriptors()) == (threads, files)


def test_a_failed_poll_says_whether_another_try_may_help(kafka: str, topic: str) -> None:
    from kafka import errors

    with opened(kafka, topic) as source:
        source.assign(Reader())
        for error, kind in (
            (errors.KafkaConnectionError("away"), Disconnected),
            (errors.TopicAuthorizationFailedError({topic}), SourceError),
            (errors.CorruptRecordError("topic t partition 0 offset 5"), SourceError),
            (RuntimeError("the client's thread is gone"), Disconnected),
        ):
            source._consumer.poll = raising(error)
            with pytest.raises(SourceError) as caught:
                source.poll(0.0)
            assert type(caught.value) is kind


def raising(error: Exception) -> Callable[..., object]:
    def poll(**_: object) -> object:
        raise error

    return poll
