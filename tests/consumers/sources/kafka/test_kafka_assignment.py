"""How a group shares out the partitions: all of them anew, or only those that have to move."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest
from streammetrics_consumers.config.source import LIBRARIES

from tests.consumers.sources.kafka.kafka_reader import (
    Library,
    Reader,
    polled,
    read,
    read_to_end,
)
from tests.kafka_broker import Record, create_topic, produce, unique_topic
from tests.patience import LIMIT_S

pytestmark = pytest.mark.kafka

COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}
BY_BROKER = Library("confluent-kafka", by_broker=True)
MOVING = [(Library(name), COOPERATIVE) for name in LIBRARIES] + [(BY_BROKER, {})]


@pytest.mark.parametrize(
    ("library", "client"), MOVING, ids=lambda value: getattr(value, "name", "")
)
def test_with_cooperative_assignment_only_what_moves_is_let_go(
    library: Library, client: dict[str, str], kafka: str
) -> None:
    name, group = create_topic(kafka, 4), unique_topic("group")
    produce(kafka, name, [Record(b"%d" % n, n) for n in range(4)])
    with ExitStack() as stack:
        source = stack.enter_context(library.opened(kafka, name, group, **client))
        first, second = Reader(), Reader()
        source.assign(first)
        assert len(read_to_end(source)) == 4
        stayed: set[int] = set()
        with library.opened(kafka, name, group, **client) as two:
            two.assign(second)
            with polled(two):
                read(source, lambda chunks: len(first.owned) == len(second.owned) == 2)
                assert first.numbers | second.numbers == {0, 1, 2, 3}
                stayed |= first.numbers
                produce(kafka, name, [Record(b"more", n) for n in range(4)])
                later = read(source, lambda chunks: len(chunks) == 2)
            assert {chunk.partition.number for chunk in later} == stayed
        # Those that stayed were never let go, and were read on from where they stood.
        assert [(chunk.start, chunk.end) for chunk in later] == [(1, 2)] * 2
        released = [n for event, numbers in first.heard if event != "assigned" for n in numbers]
        assert sorted(released) == sorted({0, 1, 2, 3} - stayed)
        first.heads = dict.fromkeys(range(4), 1)
        read(source, lambda chunks: first.numbers == {0, 1, 2, 3})
        assignment = [numbers for event, numbers in first.heard if event == "assigned" and numbers][
            -1
        ]
        assert set(assignment) == {0, 1, 2, 3} - stayed


def test_with_eager_assignment_everything_is_let_go_and_sought_again(
    library: Library, kafka: str
) -> None:
    name, group = create_topic(kafka, 2), unique_topic("group")
    produce(kafka, name, [Record(b"%d" % n, n) for n in range(2)])
    with library.opened(kafka, name, group) as source:
        reader, second = Reader(), Reader()
        reader.before_revoked = source.confirm  # as a worker does before it commits
        source.assign(reader)
        read_to_end(source)
        with library.opened(kafka, name, group) as two:
            two.assign(second)
            with polled(two):
                # The listener says 0 although record 0 was read: that is where reading goes on.
                repeats = read(
                    source,
                    lambda chunks: bool(chunks) and len(reader.owned) == len(second.owned) == 1,
                )
            assert reader.numbers | second.numbers == {0, 1}
        read(source, lambda chunks: reader.numbers == {0, 1})  # what the second one had comes back
    assert ("revoked", (0, 1)) in reader.heard
    for chunk in repeats:
        assert (chunk.start, chunk.values) == (0, [b"%d" % chunk.partition.number])


def test_members_who_share_topics_get_equal_numbers_and_answers_between_two_polls_are_taken(
    library: Library, kafka: str
) -> None:
    names = [create_topic(kafka, 2, name=unique_topic(stem)) for stem in ("views", "clicks")]
    group = unique_topic("group")
    with ExitStack() as stack:
        opened = [library.opened(kafka, ",".join(names), group) for _ in range(2)]
        members = [stack.enter_context(member) for member in opened]
        readers = [Reader(), Reader()]
        limit_s = time.monotonic() + LIMIT_S
        for source, reader in zip(members, readers, strict=True):
            source.assign(reader)
        while [len(reader.owned) for reader in readers] != [2, 2]:
            assert time.monotonic() < limit_s, [reader.heard for reader in readers]
            for source in members:
                source.poll(0.0)
            time.sleep(0.1)
        assert len(readers[0].owned | readers[1].owned) == 4
        assert [len(reader.numbers) for reader in readers] == [1, 1]
        rebalances = sum(event == "assigned" for reader in readers for event, _ in reader.heard)
        assert rebalances <= 6
