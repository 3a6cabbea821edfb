"""Fixtures of the tests of the Kafka sources."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.source import LIBRARIES

from tests.consumers.sources.kafka.kafka_reader import Library, make_topics


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    """Each library that reads Kafka: all of them promise the same."""
    return Library(request.param)


@pytest.fixture(scope="session")
def topics(kafka: str) -> str:
    """`views` of two partitions and `clicks` of one, with 10 records each. Only to be read."""
    return make_topics(kafka)


@pytest.fixture(scope="session")
def clicks(topics: str) -> str:
    """One topic of one partition of 10 records. Only to be read."""
    return topics.partition(",")[2]
