"""Which settings a user may give to each library, and how they are read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import KafkaError
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.sources.kafka.client_settings import (
    BY_THE_BROKER,
    DEFAULTS,
    OWNED,
    assignment_strategies,
    connection_settings,
    is_incremental,
    kafka_python_settings,
    librdkafka_settings,
    masked,
)
from streammetrics_consumers.sources.kafka.confluent_client import FATAL, made

Value = str | int | float | bool
KNOWN = {
    "bootstrap_servers": "localhost",
    "group_id": None,
    "enable_auto_commit": True,
    "auto_offset_reset": "latest",
    "isolation_level": "read_uncommitted",
    "session_timeout_ms": 45000,
    "check_crcs": True,
    "api_version": None,
    "sasl_plain_password": None,
    "selector": object,
}


def source(**client: Value) -> SourceConfig:
    servers = ("h:1", "i:2")
    return SourceConfig("kafka", "json", None, servers, ("t",), "g", client=client)


def python(**client: Value) -> dict[str, object]:
    """The settings of a client of kafka-python."""
    return kafka_python_settings(source(**client), KNOWN)


def librdkafka(**client: Value) -> dict[str, str]:
    """The settings of a client of confluent-kafka."""
    return librdkafka_settings(replace(source(**client), library="confluent-kafka"))[0]


def test_what_exactly_once_rests_on_is_set_and_is_not_for_the_user() -> None:
    assert python() == {
        **DEFAULTS["kafka-python"],
        "bootstrap_servers": ["h:1", "i:2"],
        "group_id": "g",
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed",
        "allow_auto_create_topics": False,
    }
    assert librdkafka() == {
        **DEFAULTS["confluent-kafka"],
        "fetch.max.bytes": str(50 << 20),
        "receive.message.max.bytes": str(64 << 20),
        "group.protocol": "classic",
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
    for key in OWNED["kafka-python"]:
        for name in (key, key.replace("_", ".")):
            with pytest.raises(ConfigError, match="streammetrics sets it"):
                python(**{name: "x"})
    for key in OWNED["confluent-kafka"]:
        for name in (key, key.replace(".", "_")):
            with pytest.raises(ConfigError, match="streammetrics sets it"):
                librdkafka(**{name: "x"})


def test_a_users_setting_goes_before_our_default_and_is_read_as_the_clients_type() -> None:
    for name, value, expected in (
        ("session_timeout_ms", 6000, 6000),
        ("session_timeout_ms", "6000", 6000),
        ("session.timeout.ms", "6000", 6000),
        ("check_crcs", "false", False),
        ("check_crcs", "True", True),
        ("api_version", "3.5", (3, 5)),
        ("sasl_plain_password", "12", "12"),
    ):
        assert python(**{name: value})[name.replace(".", "_")] == expected
    assert librdkafka()["check.crcs"] == "true"
    settings = librdkafka(session_timeout_ms=6000, check_crcs=False, **{"fetch.wait.max.ms": "50"})
    names = ("session.timeout.ms", "check.crcs", "fetch.wait.max.ms")
    assert [settings[name] for name in names] == ["6000", "false", "50"]


def test_a_setting_that_cannot_be_meant_is_refused() -> None:
    bad: list[tuple[str, Value, str]] = [
        ("session_timeout_ms", "soon", "a whole number"),
        ("session_timeout_ms", True, "a whole number"),
        ("check_crcs", 1, "true or false"),
        ("api_version", "new", 'a version such as "3.5"'),
        ("selector", "x", "only be given in Python"),
        ("session_timout_ms", 1, "did you mean `session_timeout_ms`"),
    ]
    for name, value, message in bad:
        with pytest.raises(ConfigError, match=message):
            python(**{name: value})
    with pytest.raises(ConfigError) as caught:
        python(check_crcs="maybe", session_timeout_ms="soon", group_id="mine")
    assert len(caught.value.problems) == 3
    with pytest.raises(ConfigError, match=r"session\.timeout"):
        made({"group.id": "g", "session.timeout": "5"}, print)


def test_the_size_of_a_poll_has_one_name_in_both_libraries() -> None:
    for client, records in ((source(), 10_000), (source(max_poll_records=7), 7)):
        settings, poll_size = librdkafka_settings(client)
        assert poll_size == records and "max.poll.records" not in settings
    for bad in (0, -1, "many", 10**9, 1.5):
        with pytest.raises(ConfigError, match="a whole number from 1"):
            librdkafka(max_poll_records=bad)


def test_a_strategy_is_given_by_its_name_and_is_one_that_the_library_has() -> None:
    key = "partition_assignment_strategy"
    for options, names in (
        ({}, ["range", "roundrobin"]),
        ({key: "sticky, range"}, ["sticky", "range"]),
        ({key.replace("_", "."): "cooperative-sticky"}, ["cooperative-sticky"]),
    ):
        assert key not in python(**options)
        assert assignment_strategies(source(**options)) == names
    settings = librdkafka(partition_assignment_strategy="cooperative-sticky")
    assert settings["partition.assignment.strategy"] == "cooperative-sticky"
    for bad in ("", "fair", "cooperative-sticky,range"):
        with pytest.raises(ConfigError, match="cooperative-sticky only alone"):
            assignment_strategies(source(**{key: bad}))
    for bad in ("sticky", "", "cooperative-sticky,range"):
        with pytest.raises(ConfigError, match="cooperative-sticky only alone"):
            librdkafka(partition_assignment_strategy=bad)


def test_with_the_protocol_of_kip_848_the_broker_decides_times_and_assignment() -> None:
    name, classic = "group.protocol", librdkafka()
    consumer = librdkafka(**{name: "consumer"})
    assert consumer[name] == "consumer" and is_incremental(consumer) and not is_incremental(classic)
    assert classic.keys() - consumer.keys() == {
        "heartbeat.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
    for key in BY_THE_BROKER:
        with pytest.raises(ConfigError, match=r"the broker's settings group\.consumer\.\*"):
            librdkafka(**{name: "consumer", key.replace(".", "_"): "range"})
    with pytest.raises(ConfigError, match='"classic" or "consumer"'):
        librdkafka(**{name: "share"})
    made(consumer, print).close()
    for spelling in (name, "group_protocol"):
        with pytest.raises(ConfigError, match='write library = "confluent-kafka"'):
            python(**{spelling: "consumer"})


def test_secrets_are_hidden_in_logs_and_messages() -> None:
    options = {"sasl_plain_password": "hunter2", "ssl_password": None, "topic": "t"}
    shown = masked(options)
    assert shown == {"sasl_plain_password": "********", "ssl_password": None, "topic": "t"}
    with pytest.raises(ConfigError) as caught:
        python(sasl_plain_pasword="hunter2")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        librdkafka(**{"group.id": "mine", "sasl.password": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_the_second_client_knows_how_to_reach_the_cluster_and_no_more() -> None:
    options: dict[str, Value] = {"sasl.username": "u", "ssl.ca.location": "a", "fetch.min.bytes": 1}
    assert connection_settings(librdkafka(**options)) == {
        "bootstrap.servers": "h:1,i:2",
        "client.id": "streammetrics",
        "sasl.username": "u",
        "socket.timeout.ms": "15000",
        "ssl.ca.location": "a",
    }


def test_the_errors_that_end_a_source_are_errors_of_the_library() -> None:
    for name in FATAL:
        assert KafkaError(getattr(KafkaError, name)).name() == name
