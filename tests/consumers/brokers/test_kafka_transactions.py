"""Transactions through a real broker: those that aborted are no events, nor is an open one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.config.keys import LIBRARIES
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop

from tests.consumers.brokers.kafka_fold import KafkaLog, kafka_log
from tests.consumers.folded import fold, records
from tests.kafka_broker import unique_topic

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("library", LIBRARIES)]

MARKER = 1  # the offset that the end of a transaction takes


def read_to_the_end(log: KafkaLog) -> int:
    """Run a worker to the end; the lag that it shows then."""
    watch = StatusRecorder(itertools.count().__next__)  # it looks at each poll
    service.run(load_config(log.config), Options(until_end=True), stop=Stop(), status=watch)
    (place,) = watch.snapshot().places
    assert place.end is not None
    return place.end - place.position


def require_counted(log: KafkaLog, kept: Sequence[bytes | None], head: int) -> None:
    """The states are those of the records that were kept, and the head stands there."""
    found = log.counted()
    ((partition, (at, _)),) = found.heads.items()
    expected = fold({partition: kept})
    assert (found.states, found.counters) == (expected.states, expected.counters)
    assert at == head


def test_records_that_were_aborted_are_never_counted_and_no_lag_is_left(
    kafka: str, tmp_path: Path, library: str
) -> None:
    first, aborted, open_, last = (records(seed, 60, broken_share=0) for seed in range(4))
    with (
        kafka_log(tmp_path, kafka, library, partitions=1) as log,
        closing(
            KafkaProducer(bootstrap_servers=kafka, transactional_id=unique_topic("tx"))
        ) as producer,
    ):

        def begin(values: Sequence[bytes | None]) -> None:
            producer.begin_transaction()
            for value in values:
                producer.send(log.topic, value, key=b"k", partition=0)
            producer.flush()

        producer.init_transactions()
        begin(first)
        producer.commit_transaction()
        begin(aborted)
        producer.abort_transaction()
        begin(open_)
        stable = 2 * (60 + MARKER)  # the end for those who read, while what lies behind is open
        assert read_to_the_end(log) == 60
        require_counted(log, first, stable)
        producer.abort_transaction()
        assert read_to_the_end(log) == 0
        require_counted(log, first, stable + 60 + MARKER)
        begin(last)
        producer.commit_transaction()
        assert read_to_the_end(log) == 0
        require_counted(log, [*first, *last], stable + 2 * (60 + MARKER))
