"""What each library's Kafka source promises, against a real broker: reading from the heads, seeks,
holes, gaps, replaced topics, and Kafka's own offsets."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from itertools import pairwise

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources import Disconnected, GapError
from streammetrics_consumers.sources.kafka import confluent_client, kafka_source

from tests.consumers.sources.kafka.kafka_reader import (
    FIRST_MS,
    Library,
    Reader,
    fill,
    make_topics,
    partition_values,
    read,
    read_to_end,
    values,
)
from tests.kafka_broker import (
    Record,
    add_partitions,
    create_topic,
    delete_topic,
    produce,
    unique_topic,
)
from tests.patience import LIMIT_S

pytestmark = pytest.mark.kafka


def test_the_log_is_named_by_the_ids_of_cluster_and_topic_and_has_its_ends_and_times(
    library: Library, kafka: str, topics: str
) -> None:
    views, clicks = topics.split(",")
    with (
        library.opened(kafka, topics) as source,
        closing(KafkaAdminClient(bootstrap_servers=kafka)) as admin,
    ):
        partitions = source.partitions()
        assert [(p.topic, p.number) for p in partitions] == [(views, 0), (views, 1), (clicks, 0)]
        ids = [str(described["topic_id"]) for described in admin.describe_topics([views, clicks])]
        assert {partitions[0].topic_id, partitions[2].topic_id} == {*ids}
        assert partitions[0].cluster == admin.describe_cluster()["cluster_id"]
        assert source.ends() == dict.fromkeys(partitions, 10)
        assert [source.beginning(p) for p in partitions] == [0, 0, 0]
        # A time is the offset of the first record that is not older.
        times = (0, FIRST_MS + 5, 10**13)
        assert [source.offset_at(partitions[0], time_ms) for time_ms in times] == [0, 5, 10]


def test_each_partition_is_read_in_order_from_its_head_and_not_from_kafkas_offset(
    library: Library, kafka: str, topics: str
) -> None:
    views, group = topics.split(",")[0], unique_topic("group")
    with closing(KafkaConsumer(bootstrap_servers=kafka, group_id=group)) as consumer:
        consumer.commit({TopicPartition(views, 0): OffsetAndMetadata(5, "", -1)})
    with library.opened(kafka, topics, group, max_poll_records=3) as source:
        source.assign(Reader({"views": 2, "clicks": 7}))
        chunks = read_to_end(source)
        assert source.known_ends() == source.ends()
        assert source.is_connected()
    assert values(chunks) == {
        "views/0": partition_values("views/0", 2),
        "views/1": partition_values("views/1", 2),
        "clicks/0": partition_values("clicks/0", 7),
    }
    for partition in {chunk.partition for chunk in chunks}:
        partition_chunks = [chunk for chunk in chunks if chunk.partition == partition]
        assert partition_chunks[0].start == (7 if partition.topic.startswith("clicks") else 2)
        assert all(a.end == b.start for a, b in pairwise(partition_chunks))
        assert [o for chunk in partition_chunks for o in chunk.offsets] == list(
            range(partition_chunks[0].start, 10)
        )


def test_a_seek_moves_one_topics_partition_alone(library: Library, kafka: str, topics: str) -> None:
    with library.opened(kafka, topics, names=(0, 1)) as source:  # no group rebalances
        source.assign(Reader())
        read_to_end(source)
        source.seek(source.partitions()[2], 8)
        repeats = read(source, lambda chunks: any(chunk.end == 10 for chunk in chunks))
        source.seek(Partition("c", topics.split(",")[0], "i", 99), 5)  # not ours: nothing happens
    assert (repeats[0].start, values(repeats)) == (8, {"clicks/0": partition_values("clicks/0", 8)})


def test_partitions_by_hand_need_no_group_and_are_of_every_topic_or_of_the_one_that_is_named(
    library: Library, kafka: str, topics: str
) -> None:
    views, clicks = topics.split(",")
    for names, expected in (
        ((0,), {f"{views}/0", f"{clicks}/0"}),
        ((f"{clicks}/0", 1), {f"{views}/1", f"{clicks}/0"}),
    ):
        with library.opened(kafka, topics, names=names) as source:
            reader = Reader({"views": 8})
            source.assign(reader)
            assert {str(partition) for partition in reader.owned} == expected  # at once
            chunks = read(source, lambda chunks: sum(map(len, chunks)) == 12)
            assert values(chunks)["clicks/0"] == partition_values("clicks/0")


def test_aborted_records_are_holes_and_those_of_an_open_transaction_are_not_read_yet(
    library: Library, kafka: str
) -> None:
    name = create_topic(kafka)
    producer = KafkaProducer(bootstrap_servers=kafka, transactional_id=unique_topic("tx"))

    def begin(value: bytes) -> None:
        producer.begin_transaction()
        for _ in range(3):
            producer.send(name, value, partition=0)
        producer.flush()

    with closing(producer):
        producer.init_transactions()
        for value in (b"kept", b"aborted", b"kept", b"aborted"):
            begin(value)
            producer.commit_transaction() if value == b"kept" else producer.abort_transaction()
        begin(b"open")
        with library.opened(kafka, name, names=(0,)) as source:  # no group rebalances
            (partition,) = source.partitions()
            stable = 16  # four markers and six aborted records among them
            assert source.ends() == {partition: stable}
            source.assign(Reader())
            chunks = read_to_end(source)
            # What lies behind shows as lag, until nothing is open any more.
            read(source, lambda _: source.known_ends() == {partition: stable + 3})
            producer.abort_transaction()
            chunks += read(source, lambda batch: any(chunk.end == stable + 4 for chunk in batch))
            assert source.known_ends() == source.ends() == {partition: stable + 4}
    assert [value for chunk in chunks for value in chunk.values] == [b"kept"] * 6
    assert [chunk.start for chunk in chunks] == [0, *(chunk.end for chunk in chunks[:-1])]


def test_keys_and_headers_come_with_the_records(library: Library, kafka: str) -> None:
    name, headers = create_topic(kafka), (("trace", b"1"), ("trace", b"2"))
    tombstone = Record(None, key=b"k", timestamp_ms=10**12)
    produce(kafka, name, [Record(b"a", key=b"k", headers=headers), tombstone])
    with library.opened(kafka, name) as source:
        source.assign(Reader())
        chunks = read_to_end(source)
    keys = [key for chunk in chunks for key in chunk.keys or ()]
    header_lists = [list(pairs) for chunk in chunks for pairs in chunk.headers or ()]
    times = [time for chunk in chunks for time in chunk.timestamps_ms or ()]
    assert [value for chunk in chunks for value in chunk.values] == [b"a", None]
    assert (keys, header_lists, times[1]) == ([b"k", b"k"], [list(headers), []], 10**12)


# -- the listener, and Kafka's own offsets


def test_what_the_listener_raises_comes_out_of_the_poll(
    library: Library, kafka: str, topics: str
) -> None:
    with library.opened(kafka, topics) as source:
        reader = Reader()
        reader.error = RuntimeError("the ledger is away")
        source.assign(reader)
        with pytest.raises(RuntimeError, match="the ledger is away"):
            read(source, lambda chunks: False)


def test_kafkas_offsets_follow_what_was_acknowledged_and_nothing_else(
    library: Library, kafka: str, topics: str
) -> None:
    group, partition_ids = (
        unique_topic("group"),
        [(topics.split(",")[0], 0), (topics.split(",")[1], 0)],
    )

    def committed() -> list[int | None]:
        with closing(KafkaConsumer(bootstrap_servers=kafka, group_id=group)) as consumer:
            return [
                consumer.committed(TopicPartition(*partition_id)) for partition_id in partition_ids
            ]

    with library.opened(kafka, topics, group, auto_commit_interval_ms=20) as source:
        source.assign(Reader())
        read_to_end(source)
        for _ in range(3):
            source.poll(0.05)
    assert committed() == [None, None]
    with library.opened(kafka, topics, group) as source:
        first, _, two = source.partitions()
        reader = Reader()
        source.assign(reader)
        read(source, lambda chunks: len(reader.owned) == 3)
        source.acknowledge({first: 7, two: 5})
        source.acknowledge({first: 8, two: 5})
        heard = list(reader.heard)
    assert reader.heard == heard  # it hears nothing of the end
    assert committed() == [8, 5]


def test_that_kafka_does_not_take_them_is_no_matter(
    library: Library, kafka: str, clicks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        """A consumer whose every commit fails."""

        def commit(self, *_: object, **__: object) -> None:
            raise RuntimeError("no")

        commit_async = commit

    for module in (kafka_source, confluent_client):
        refusing = type("Refusing", (Refusing, module.Consumer), {})
        monkeypatch.setattr(module, "Consumer", refusing)
    with library.opened(kafka, clicks) as source:
        source.assign(Reader())
        chunks = read_to_end(source)
        source.acknowledge(dict.fromkeys(source.partitions(), 1))
        assert values(chunks) == {"clicks/0": partition_values("clicks/0")}


# -- gaps and other logs


def test_a_head_outside_of_the_log_is_a_gap_of_its_topic(library: Library, kafka: str) -> None:
    names = make_topics(kafka, partitions=(1, 1))
    clicks = names.split(",")[1]
    with closing(KafkaAdminClient(bootstrap_servers=kafka)) as admin:
        admin.delete_records({TopicPartition(clicks, 0): 6})
    for head in (2, 25):
        with library.opened(kafka, names) as source:
            assert source.beginning(source.partitions()[1]) == 6
            source.assign(Reader({"clicks": head}))
            with pytest.raises(GapError) as caught:
                read(source, lambda _: False)
        gap = caught.value
        assert str(gap.partition) == f"{clicks}/0"
        assert (gap.head, gap.beginning, gap.end) == (head, 6, 10)


def test_records_of_a_replaced_topic_are_not_confirmed_as_those_of_the_old_one(
    library: Library, kafka: str
) -> None:
    names = make_topics(kafka, partitions=(1, 1), count=3)
    clicks = names.split(",")[1]

    def confirmed(chunks: list[Chunk]) -> bool:
        source.confirm()
        return any(chunk.partition.topic == clicks for chunk in chunks)

    with library.opened(kafka, names) as source:
        before = source.partitions()[1]
        source.assign(Reader())
        read_to_end(source)
        confirmed([])
        delete_topic(kafka, clicks)
        limit = time.monotonic() + LIMIT_S
        while True:  # the name is free only a moment later
            assert time.monotonic() < limit
            with suppress(Exception):
                create_topic(kafka, name=clicks)
                break
        fill(kafka, clicks, 1, 5)
        with pytest.raises(Disconnected, match=r"deleted or replaced|UNKNOWN_TOPIC|UnknownTopic"):
            read(source, confirmed)
    with library.opened(kafka, names) as source:
        after = source.partitions()[1]
    assert (before.topic, before.cluster) == (after.topic, after.cluster)
    assert before.topic_id != after.topic_id


def test_a_partition_that_is_added_is_given_to_the_group(library: Library, kafka: str) -> None:
    name = create_topic(kafka)
    with library.opened(kafka, name, metadata_max_age_ms=200) as source:
        reader = Reader()
        source.assign(reader)
        read(source, lambda chunks: reader.numbers == {0})
        add_partitions(kafka, name, 2)
        produce(kafka, name, [Record(b"new", 1)])
        chunks = read(source, lambda chunks: any(c.values for c in chunks))
        assert (chunks[-1].partition.number, chunks[-1].start) == (1, 0)
        assert len(source.partitions()) == 2


def test_a_topic_that_is_not_there_is_named(
    library: Library, kafka: str, clicks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.sources.kafka.TOPIC_PAUSE_S", 0.01)
    with pytest.raises(SourceError, match="topic 'nowhere' does not exist"):
        library.source(library.config(kafka, f"{clicks},nowhere"))
