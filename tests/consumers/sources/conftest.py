"""Fixtures of the tests of the sources."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.keys import LIBRARIES

from tests.consumers.sources.kafka_reader import Library


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    """Each library that reads Kafka: all of them promise the same."""
    return Library(request.param)


@pytest.fixture(scope="module")
def topic(kafka: str) -> str:
    """Two partitions of 20 and 10 records."""
    from tests.kafka_broker import Record, create_topic, produce

    name = create_topic(kafka, 2)
    records = [Record(f"a{i}".encode(), 0, timestamp_ms=10**12 + i) for i in range(20)]
    records += [Record(f"b{i}".encode(), 1) for i in range(10)]
    produce(kafka, name, records)
    return name
