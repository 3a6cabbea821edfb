"""Several topics in one Kafka source, against a real broker."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise

import pytest
from kafka import KafkaAdminClient, TopicPartition
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources.source import Disconnected, GapError

from tests.consumers.sources.kafka_reader import Library, read, read_to_end
from tests.kafka_broker import (
    Record,
    create_topic,
    delete_topic,
    produce,
    unique_topic,
)


class Listener:
    """Starts each partition where it is told, by its name, and knows which are ours."""

    def __init__(self, **heads: int) -> None:
        self.heads, self.owned = heads, set[Partition]()

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        self.owned |= {*partitions}
        return {p: self.heads.get(p.topic.partition("-")[0], 0) for p in partitions}

    def on_revoked(self, partitions: list[Partition]) -> None:
        self.owned -= {*partitions}

    on_lost = on_revoked


@pytest.fixture(scope="module")
def topics(kafka: str) -> tuple[str, str]:
    """`views` of two partitions, `clicks` of one; each record says where it stands."""
    names = unique_topic("views"), unique_topic("clicks")
    for name, partitions in zip(names, (2, 1), strict=True):
        create_topic(kafka, partitions, name=name)
        _produce(kafka, name, partitions, 10)
    return names


def _produce(kafka: str, name: str, partitions: int, count: int) -> None:
    stem = name.partition("-")[0]
    records = [
        Record(f"{stem}/{number} {i}".encode(), number)
        for number in range(partitions)
        for i in range(count)
    ]
    produce(kafka, name, records)


def _values(chunks: Sequence[Chunk]) -> dict[str, list[bytes | None]]:
    found: dict[str, list[bytes | None]] = {}
    for chunk in chunks:
        stem = f"{chunk.partition.topic.partition('-')[0]}/{chunk.partition.number}"
        found.setdefault(stem, []).extend(chunk.values)
    return found


def _said(stem: str, first: int = 0, end: int = 10) -> list[bytes]:
    return [f"{stem} {i}".encode() for i in range(first, end)]


def test_all_partitions_of_all_topics_are_there_and_each_topic_has_its_id(
    library: Library, kafka: str, topics: tuple[str, str]
) -> None:
    views, clicks = topics
    with library.opened(kafka, ",".join(topics)) as source:
        found = source.partitions()
        assert [(p.topic, p.number) for p in found] == [(views, 0), (views, 1), (clicks, 0)]
        assert len({p.topic_id for p in found}) == 2
        assert source.ends() == dict.fromkeys(found, 10)
        assert [source.beginning(p) for p in found] == [0, 0, 0]


def test_partitions_of_one_number_are_read_apart_each_from_its_head(
    library: Library, kafka: str, topics: tuple[str, str]
) -> None:
    with library.opened(kafka, ",".join(topics), max_poll_records=3) as source:
        source.assign(Listener(views=2, clicks=7))
        chunks = read_to_end(source)
        assert source.known_ends() == source.ends()
        assert source.hears()
        source.acknowledge(source.ends())
    assert _values(chunks) == {
        "views/0": _said("views/0", 2),
        "views/1": _said("views/1", 2),
        "clicks/0": _said("clicks/0", 7),
    }
    for partition in {chunk.partition for chunk in chunks}:
        own = [chunk for chunk in chunks if chunk.partition == partition]
        assert all(a.end == b.start for a, b in pairwise(own))


def test_a_seek_moves_one_topics_partition_alone(
    library: Library, kafka: str, topics: tuple[str, str]
) -> None:
    with library.opened(kafka, ",".join(topics)) as source:
        source.assign(Listener())
        read_to_end(source)
        source.seek(source.partitions()[2], 8)
        again = read(source, lambda chunks: any(chunk.end == 10 for chunk in chunks))
    assert _values(again) == {"clicks/0": _said("clicks/0", 8)}


def test_partitions_by_hand_are_of_every_topic_or_of_the_one_that_is_named(
    library: Library, kafka: str, topics: tuple[str, str]
) -> None:
    views, clicks = topics
    for names, expected in (
        ((0,), {f"{views}/0", f"{clicks}/0"}),
        ((f"{clicks}/0", 1), {f"{views}/1", f"{clicks}/0"}),
    ):
        with library.opened(kafka, ",".join(topics), names=names) as source:
            listener = Listener()
            source.assign(listener)
            assert {str(p) for p in listener.owned} == expected
            read(source, lambda chunks: sum(map(len, chunks)) == 20)


def test_members_who_share_topics_get_equal_numbers_together(library: Library, kafka: str) -> None:
    names = [create_topic(kafka, 2, name=unique_topic(stem)) for stem in ("views", "clicks")]
    group = unique_topic("group")
    with (
        library.opened(kafka, ",".join(names), group) as one,
        library.opened(kafka, ",".join(names), group) as other,
    ):
        mine, theirs = Listener(), Listener()
        one.assign(mine)
        other.assign(theirs)
        for _ in range(200):
            one.poll(0.05)
            other.poll(0.05)
            if len(mine.owned) == len(theirs.owned) == 2:
                break
        assert len(mine.owned | theirs.owned) == 4
        for listener in (mine, theirs):
            assert len({p.number for p in listener.owned}) == 1


def test_what_one_topic_has_lost_is_a_gap_of_that_topic(library: Library, kafka: str) -> None:
    names = [create_topic(kafka, 1, name=unique_topic(stem)) for stem in ("views", "clicks")]
    for name in names:
        _produce(kafka, name, 1, 10)
    with closing(KafkaAdminClient(bootstrap_servers=kafka)) as admin:
        admin.delete_records({TopicPartition(names[1], 0): 6})
    with library.opened(kafka, ",".join(names)) as source:
        source.assign(Listener(clicks=2))
        with pytest.raises(GapError) as caught:
            read(source, lambda _: False)
    assert (caught.value.partition.topic, caught.value.head) == (names[1], 2)
    assert (caught.value.beginning, caught.value.end) == (6, 10)


def test_a_topic_that_is_missing_is_named(
    library: Library, kafka: str, topics: tuple[str, str]
) -> None:
    missing = unique_topic("nowhere")
    with (
        pytest.raises(SourceError, match=f"there is no topic '{missing}'"),
        library.opened(kafka, f"{topics[0]},{missing}"),
    ):
        pass


def test_one_of_the_topics_made_anew_is_found_out(library: Library, kafka: str) -> None:
    names = [create_topic(kafka, 1, name=unique_topic(stem)) for stem in ("views", "clicks")]
    with library.opened(kafka, ",".join(names), metadata_max_age_ms=200) as source:
        source.assign(Listener())
        delete_topic(kafka, names[1])
        create_topic(kafka, 1, name=names[1])

        def confirm(_: list[Chunk]) -> bool:
            if library.name == "confluent-kafka":
                source.confirm()  # type: ignore[attr-defined]
            return False

        with pytest.raises(Disconnected):
            read(source, confirm)
