"""The Kafka source against a real broker: seeks, holes, rebalances, Kafka's own offsets."""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources import confluent_source, kafka_source

from tests.consumers.sources.kafka_reader import (
    Library,
    Reader,
    read,
    read_to_end,
    values,
)
from tests.kafka_broker import (
    create_topic,
    unique_topic,
)

# -- reading


def test_records_come_as_bytes_in_offset_order_and_without_a_seam(
    library: Library, kafka: str, topic: str
) -> None:
    with library.opened(kafka, topic, max_poll_records=7) as source:
        source.assign(Reader())
        chunks = read_to_end(source)
    assert values(chunks, 0) == [f"a{i}".encode() for i in range(20)]
    assert values(chunks, 1) == [f"b{i}".encode() for i in range(10)]
    for number, count in ((0, 20), (1, 10)):
        own = [chunk for chunk in chunks if chunk.partition.number == number]
        assert [chunk.start for chunk in own] == [0, *(chunk.end for chunk in own[:-1])]
        assert [offset for chunk in own for offset in chunk.offsets] == list(range(count))


def test_the_log_is_named_by_the_ids_of_cluster_and_topic(
    library: Library, kafka: str, topic: str
) -> None:
    with (
        library.opened(kafka, topic) as source,
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
    library: Library, kafka: str, topic: str
) -> None:
    group = unique_topic("group")
    with closing(KafkaConsumer(bootstrap_servers=kafka, group_id=group)) as other:
        committed = {TopicPartition(topic, 0): OffsetAndMetadata(15, "", -1)}
        other.commit(committed)
    with library.opened(kafka, topic, group) as source:
        source.assign(Reader({0: 3, 1: 4}))
        chunks = read_to_end(source)
    first = {chunk.partition.number: chunk.start for chunk in reversed(chunks)}
    assert first == {0: 3, 1: 4}
    assert values(chunks, 0) == [f"a{i}".encode() for i in range(3, 20)]


def test_a_seek_reads_again_from_there(library: Library, kafka: str, topic: str) -> None:
    with library.opened(kafka, topic) as source:
        source.assign(Reader())
        read_to_end(source)
        source.seek(source.partitions()[0], 18)
        again = read(source, lambda chunks: any(chunk.end == 20 for chunk in chunks))
        source.seek(Partition("c", topic, "i", 99), 5)  # not ours, so nothing happens
    assert (again[0].start, values(again, 0)) == (18, [b"a18", b"a19"])


def test_partitions_given_by_hand_need_no_group(library: Library, kafka: str, topic: str) -> None:
    with library.opened(kafka, topic, names=(1,)) as source:
        reader = Reader({1: 8})
        source.assign(reader)
        assert reader.heard == [("assigned", (1,))]
        chunks = read(source, lambda chunks: any(chunk.end == 10 for chunk in chunks))
        assert (values(chunks, 0), values(chunks, 1)) == ([], [b"b8", b"b9"])


def test_a_time_is_the_offset_of_the_first_record_that_is_not_older(
    library: Library, kafka: str, topic: str
) -> None:
    with library.opened(kafka, topic) as source:
        partition = source.partitions()[0]
        assert source.offset_at(partition, 10**12 + 5) == 5
        assert source.offset_at(partition, 0) == 0
        assert source.offset_at(partition, 10**13) == 20


def test_aborted_records_are_holes_and_the_end_is_reached_behind_them(
    library: Library, kafka: str
) -> None:
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
    with library.opened(kafka, name) as source:
        (end,) = source.ends().values()
        source.assign(Reader())
        chunks = read_to_end(source)
    assert values(chunks, 0) == [b"kept"] * 6
    assert [chunk.start for chunk in chunks] == [0, *(chunk.end for chunk in chunks[:-1])]
    assert chunks[-1].end == end == 16  # four markers and six aborted records among them


# -- the group


def test_members_share_the_partitions_and_hand_them_over(
    library: Library, kafka: str, topic: str
) -> None:
    group = unique_topic("group")
    with ExitStack() as stack:
        one = stack.enter_context(library.opened(kafka, topic, group))
        first, second = Reader(), Reader()
        one.assign(first)
        read(one, lambda chunks: first.owned == {0, 1})
        with library.opened(kafka, topic, group) as two:
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


def test_what_the_listener_raises_comes_out_of_the_poll(
    library: Library, kafka: str, topic: str
) -> None:
    with library.opened(kafka, topic) as source:
        reader = Reader()
        reader.error = RuntimeError("the ledger is away")
        source.assign(reader)
        with pytest.raises(RuntimeError, match="the ledger is away"):
            read(source, lambda chunks: False)


def test_the_listener_hears_nothing_of_the_end(library: Library, kafka: str, topic: str) -> None:
    reader = Reader()
    with library.opened(kafka, topic) as source:
        source.assign(reader)
        read(source, lambda chunks: bool(reader.owned))
        heard = list(reader.heard)
    assert reader.heard == heard


# -- Kafka's own offsets


def test_kafkas_offsets_follow(library: Library, kafka: str, topic: str) -> None:
    group = unique_topic("group")
    with library.opened(kafka, topic, group) as source:
        one, two = source.partitions()
        reader = Reader()
        source.assign(reader)
        read(source, lambda chunks: len(reader.owned) == 2)
        source.acknowledge({one: 7, two: 5})
        source.acknowledge({one: 8, two: 5})
    with closing(KafkaConsumer(bootstrap_servers=kafka, group_id=group)) as other:
        found = [other.committed(TopicPartition(topic, number)) for number in (0, 1)]
    assert found == [8, 5]


def test_kafka_is_told_no_offset_that_was_not_acknowledged(
    library: Library, kafka: str, topic: str
) -> None:
    group = unique_topic("group")
    with library.opened(kafka, topic, group, auto_commit_interval_ms=20) as source:
        source.assign(Reader())
        read_to_end(source)
        for _ in range(5):
            source.poll(0.05)
    with closing(KafkaConsumer(bootstrap_servers=kafka, group_id=group)) as other:
        assert [other.committed(TopicPartition(topic, number)) for number in (0, 1)] == [None] * 2


def test_that_kafka_does_not_take_them_is_no_matter(
    library: Library, kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        """A consumer whose every commit fails."""

        def commit(self, *_: object, **__: object) -> None:
            raise RuntimeError("no")

        commit_async = commit

    for module in (kafka_source, confluent_source.client):
        refusing = type("Refusing", (Refusing, module.Consumer), {})
        monkeypatch.setattr(module, "Consumer", refusing)
    with library.opened(kafka, topic) as source:
        source.assign(Reader())
        chunks = read_to_end(source)
        source.acknowledge(dict.fromkeys(source.partitions(), 1))
        assert len(values(chunks, 0)) == 20
