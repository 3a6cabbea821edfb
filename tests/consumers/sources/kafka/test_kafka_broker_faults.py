"""A broker of our own that is killed and started again, and whose disk has damaged a batch."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from streammetrics_consumers.config.keys import LIBRARIES
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources import Disconnected

from tests.consumers.sources.kafka.kafka_reader import Library, Reader, read_to_end, threads
from tests.kafka_broker import Broker, Record, create_topic, produce

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(300)]
BOTH = [Library(name) for name in LIBRARIES]


def damage(log: Path, text: bytes) -> None:
    """Change one byte of a record, so that the checksum of its batch is wrong."""
    found = bytearray(log.read_bytes())
    found[found.index(text)] ^= 1
    log.write_bytes(found)


def test_a_broker_that_is_killed_and_started_again_is_read_on_by_both_libraries(
    broker: Broker,
) -> None:
    name = create_topic(broker.bootstrap)
    produce(broker.bootstrap, name, [Record(b"%d" % i) for i in range(10)])
    with ExitStack() as stack:
        # librdkafka joins again only when its session is over.
        timeouts = {"kafka-python": 10_000, "confluent-kafka": 6_000}
        sources = []
        for one in BOTH:
            opened = one.opened(broker.bootstrap, name, session_timeout_ms=timeouts[one.name])
            sources.append(stack.enter_context(opened))
        found: list[list[bytes | None]] = []
        for source in sources:
            reader = Reader()
            source.assign(reader)
            found.append([v for chunk in read_to_end(source) for v in chunk.values])
            reader.heads = {0: 10}
        broker.kill()
        before = threads()
        for _ in range(5):
            assert [source.poll(0.2) for source in sources] == [[], []]  # they wait
        broker.start()
        produce(broker.bootstrap, name, [Record(b"%d" % i) for i in range(10, 20)])
        limit_s = time.monotonic() + 60
        while min(map(len, found)) < 20:
            assert time.monotonic() < limit_s
            for source, come in zip(sources, found, strict=True):
                come += [v for chunk in source.poll(0.2) for v in chunk.values]
        assert threads() < before + 5  # one that each try left would make five more
    assert found == [[b"%d" % i for i in range(20)]] * 2


def test_a_batch_that_is_damaged_on_disk_is_a_clear_stop_in_both_libraries(
    broker: Broker,
) -> None:
    name = create_topic(broker.bootstrap)
    for value in (b"good", b"to be damaged"):
        produce(broker.bootstrap, name, [Record(value)])
    (log,) = (broker.folder / "logs").glob(f"{name}-0/*.log")
    broker.stop()
    damage(log, b"to be damaged")
    broker.start()
    for library in BOTH:
        with library.opened(broker.bootstrap, name, names=(0,)) as source:
            source.assign(Reader())
            values: list[bytes | None] = []
            began_s = time.monotonic()
            with pytest.raises(SourceError, match=f"{name}.*offset.*1") as caught:
                while time.monotonic() - began_s < 20:
                    values += [v for chunk in source.poll(0.1) for v in chunk.values]
            assert not isinstance(caught.value, Disconnected)  # another try would end as this one
            assert values in ([b"good"], [])
