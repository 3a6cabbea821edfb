"""A broker of our own that is killed, and one whose disk has damaged a batch."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.sources.source import Disconnected

from tests.consumers.sources.kafka_reader import Library, Reader, read_to_end, threads, values
from tests.kafka_broker import Broker, Record, create_topic, produce

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(300)]


def test_a_batch_that_is_damaged_on_disk_is_a_clear_stop(library: Library, broker: Broker) -> None:
    name = create_topic(broker.bootstrap)
    produce(broker.bootstrap, name, [Record(b"good")])
    produce(broker.bootstrap, name, [Record(b"to be damaged")])
    (log,) = (broker.folder / "logs").glob(f"{name}-0/*.log")
    broker.stop()
    damage(log, b"to be damaged")
    broker.start()
    with library.opened(broker.bootstrap, name) as source:
        source.assign(Reader())
        chunks: list[Chunk] = []
        began_s = time.monotonic()
        with pytest.raises(SourceError, match=f"{name}.*offset.*1") as caught:
            while time.monotonic() - began_s < 20:
                chunks += source.poll(0.1)
        assert not isinstance(caught.value, Disconnected)  # another try would end as this one
        assert values(chunks, 0) in ([b"good"], [])


def damage(log: Path, text: bytes) -> None:
    """Change one byte of a record, so that the checksum of its batch is wrong."""
    found = bytearray(log.read_bytes())
    found[found.index(text)] ^= 1
    log.write_bytes(found)


def test_a_broker_that_is_killed_and_started_again_is_read_on(
    library: Library, broker: Broker
) -> None:
    name = create_topic(broker.bootstrap)
    produce(broker.bootstrap, name, [Record(b"%d" % i) for i in range(10)])
    with library.opened(broker.bootstrap, name) as source:
        reader = Reader()
        source.assign(reader)
        found = values(read_to_end(source), 0)
        reader.heads = {0: 10}
        broker.kill()
        before = threads()
        for _ in range(5):
            assert source.poll(0.2) == []  # it says nothing, and waits
        broker.start()
        produce(broker.bootstrap, name, [Record(b"%d" % i) for i in range(10, 20)])
        limit_s = time.monotonic() + 60
        while len(found) < 20:
            assert time.monotonic() < limit_s
            for chunk in source.poll(0.2):
                found += chunk.values
        assert threads() < before + 5  # one that each try left would make five more
    assert found == [b"%d" % i for i in range(20)]
