"""Which settings of librdkafka a user may give, and how they are read."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.config.tables import SourceConfig
from streammetrics_consumers.sources.confluent_client import (
    DEFAULTS,
    OWNED,
    client_settings,
    connection_settings,
)


def config(**client: str | int | float | bool) -> SourceConfig:
    return SourceConfig(
        "kafka", "json", bootstrap_servers=("h:1", "i:2"), topics=("t",), group="g", client=client
    )


def settings(**client: str | int | float | bool) -> dict[str, str]:
    return client_settings(config(**client))[0]


def test_what_exactly_once_rests_on_is_set() -> None:
    assert settings() == {
        **DEFAULTS,
        "fetch.max.bytes": str(50 << 20),
        "receive.message.max.bytes": str(64 << 20),
        "partition.assignment.strategy": "range,roundrobin",
        "bootstrap.servers": "h:1,i:2",
        "group.id": "g",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
        "enable.partition.eof": "true",
    }


@pytest.mark.parametrize("key", sorted(OWNED))
def test_what_exactly_once_rests_on_is_not_for_the_user(key: str) -> None:
    for name in (key, key.replace(".", "_")):
        with pytest.raises(ConfigError, match="it is set for you"):
            settings(**{name: "x"})


def test_damaged_records_are_looked_for_unless_the_user_says_no() -> None:
    assert settings()["check.crcs"] == "true"
    assert settings(check_crcs=False)["check.crcs"] == "false"


def test_a_name_has_dots_or_underscores_and_any_plain_value() -> None:
    found = settings(session_timeout_ms=6000, **{"fetch.wait.max.ms": "50"})
    assert (found["session.timeout.ms"], found["fetch.wait.max.ms"]) == ("6000", "50")


def test_the_size_of_a_poll_has_the_name_that_the_other_library_gives_it() -> None:
    assert client_settings(config())[1] == 5000
    assert client_settings(config(max_poll_records=7))[1] == 7
    assert "max.poll.records" not in settings(max_poll_records=7)
    for bad in (0, -1, "many", 10**9, 1.5):
        with pytest.raises(ConfigError, match="a whole number from 1"):
            settings(max_poll_records=bad)


def test_a_strategy_is_one_that_the_library_has() -> None:
    found = settings(partition_assignment_strategy="cooperative-sticky")
    assert found["partition.assignment.strategy"] == "cooperative-sticky"
    for bad in ("sticky", "", "cooperative-sticky,range", "fair"):
        with pytest.raises(ConfigError, match="cooperative-sticky alone"):
            settings(partition_assignment_strategy=bad)


def test_secrets_are_not_said() -> None:
    with pytest.raises(ConfigError) as caught:
        settings(**{"group.id": "mine", "sasl.password": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_the_second_client_knows_how_to_reach_the_cluster_and_no_more() -> None:
    given = {"sasl.username": "u", "ssl.ca.location": "ca.pem", "fetch.min.bytes": 1}
    found = connection_settings(settings(**given))
    assert found == {
        "bootstrap.servers": "h:1,i:2",
        "client.id": "streammetrics",
        "sasl.username": "u",
        "socket.timeout.ms": "15000",
        "ssl.ca.location": "ca.pem",
    }
