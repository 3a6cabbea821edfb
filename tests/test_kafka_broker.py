"""The broker of the tests is a real one, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

from tests.kafka_broker import (
    Broker,
    Record,
    answers_api_versions,
    create_topic,
    delete_topic,
    free_ports,
    missing,
    produce,
)
from tests.requirements import ROOT, absent


def read(bootstrap: str, topic: str, counts: dict[int, int]) -> dict[int, list[bytes | None]]:
    """The values of each partition, up to the given number of records."""
    places = {TopicPartition(topic, number): count for number, count in counts.items()}
    values: dict[int, list[bytes | None]] = {number: [] for number in counts}
    with contextlib.closing(
        KafkaConsumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="none"
        )
    ) as consumer:
        consumer.assign(list(places))
        for place in places:
            consumer.seek(place, 0)
        limit = time.monotonic() + 30
        while any(len(values[number]) < count for number, count in counts.items()):
            assert time.monotonic() < limit, "the records did not arrive within 30 s"
            for place, records in consumer.poll(500).items():
                values[place.partition] += [record.value for record in records]
    return values


def test_what_is_produced_to_a_partition_is_read_from_it_in_that_order(kafka: str) -> None:
    topic = create_topic(kafka, 2)
    sent = [Record(b"a", 0), Record(b"b", 1), Record(None, 1, key=b"k"), Record(b"c", 0)]
    assert produce(kafka, topic, sent) == [0, 0, 1, 1]
    assert read(kafka, topic, {0: 2, 1: 2}) == {0: [b"a", b"c"], 1: [b"b", None]}
    delete_topic(kafka, topic)


def test_a_port_where_nobody_listens_does_not_count_as_a_broker() -> None:
    (port,) = free_ports(1)
    assert not answers_api_versions(f"127.0.0.1:{port}")


@pytest.fixture
def own_broker_can_start() -> None:
    why = missing()
    if why is not None:
        absent("kafka", why)


@pytest.mark.kafka
@pytest.mark.xdist_group("kafka")
@pytest.mark.usefixtures("own_broker_can_start")
def test_a_killed_broker_that_starts_again_still_has_its_records(tmp_path: Path) -> None:
    with Broker(tmp_path / "broker") as broker:
        topic = create_topic(broker.bootstrap)
        produce(broker.bootstrap, topic, [Record(b"kept")])
        broker.kill()
        assert not answers_api_versions(broker.bootstrap)
        broker.start()
        assert read(broker.bootstrap, topic, {0: 1}) == {0: [b"kept"]}


@pytest.mark.kafka
@pytest.mark.xdist_group("kafka")
@pytest.mark.usefixtures("own_broker_can_start")
def test_the_broker_ends_when_the_process_that_owns_it_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, time\n"
        "from tests.kafka_broker import Broker\n"
        "print(Broker(pathlib.Path(sys.argv[1])).start().bootstrap, flush=True)\n"
        "time.sleep(600)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "broker")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        bootstrap = owner.stdout.readline().strip()
        assert answers_api_versions(bootstrap)
        owner.send_signal(signal.SIGKILL)
    limit = time.monotonic() + 10
    while answers_api_versions(bootstrap):
        assert time.monotonic() < limit, "the broker outlived its owner by 10 s"
        time.sleep(0.02)
