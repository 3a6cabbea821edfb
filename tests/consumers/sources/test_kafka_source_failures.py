"""The Kafka source against a real broker: gaps, topics made anew, failures."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

import pytest
from kafka import KafkaAdminClient, TopicPartition

from consumers.sources import kafka_source
from consumers.sources.kafka_source import KafkaSource
from consumers.sources.source import GapError, SourceError
from consumers.worker.reconnect import Disconnected
from tests.consumers.sources.kafka_reader import (
    LIMIT_S,
    Reader,
    config_for,
    opened,
    read,
    read_to_end,
    values,
)
from tests.kafka_broker import (
    Record,
    add_partitions,
    create_topic,
    delete_topic,
    free_ports,
    produce,
)

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
