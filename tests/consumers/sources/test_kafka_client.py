"""Which client settings a user may give, and how they are read."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.config.tables import SourceConfig
from streammetrics_consumers.sources.kafka_client import (
    DEFAULTS,
    OWNED,
    assignment_strategies,
    client_settings,
    masked,
)

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


def settings(**client: str | int | float | bool) -> dict[str, object]:
    source = SourceConfig(
        "kafka", "json", bootstrap_servers=("h:1", "i:2"), topics=("t",), group="g", client=client
    )
    return client_settings(source, KNOWN)


def test_what_exactly_once_rests_on_is_set() -> None:
    found = settings()
    assert found == {
        **DEFAULTS,
        "bootstrap_servers": ["h:1", "i:2"],
        "group_id": "g",
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed",
        "allow_auto_create_topics": False,
    }


@pytest.mark.parametrize("key", sorted(OWNED))
def test_what_exactly_once_rests_on_is_not_for_the_user(key: str) -> None:
    with pytest.raises(ConfigError, match="it is set for you"):
        settings(**{key: "x"})
    with pytest.raises(ConfigError, match="it is set for you"):
        settings(**{key.replace("_", "."): "x"})


def test_a_users_setting_goes_before_our_default() -> None:
    assert settings(session_timeout_ms=6000)["session_timeout_ms"] == 6000


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("session_timeout_ms", "6000", 6000),
        ("session.timeout.ms", "6000", 6000),
        ("check_crcs", "false", False),
        ("check_crcs", "True", True),
        ("api_version", "3.5", (3, 5)),
        ("sasl_plain_password", "12", "12"),
    ],
)
def test_a_text_is_read_as_the_type_of_the_clients_default(
    name: str, text: str, value: object
) -> None:
    assert settings(**{name: text})[name.replace(".", "_")] == value


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("session_timeout_ms", "soon", "a whole number"),
        ("session_timeout_ms", True, "a whole number"),
        ("check_crcs", 1, "true or false"),
        ("api_version", "new", 'a version such as "3.5"'),
        ("selector", "x", "only be given in Python"),
        ("session_timout_ms", 1, "did you mean `session_timeout_ms`"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(
    name: str, value: str | int | bool, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        settings(**{name: value})


def test_every_bad_setting_is_listed_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        settings(check_crcs="maybe", session_timeout_ms="soon", group_id="mine")
    assert len(caught.value.problems) == 3


def test_secrets_are_hidden_in_logs_and_messages() -> None:
    shown = masked({"sasl_plain_password": "hunter2", "ssl_password": None, "topic": "t"})
    assert shown == {"sasl_plain_password": "********", "ssl_password": None, "topic": "t"}
    with pytest.raises(ConfigError) as caught:
        settings(sasl_plain_pasword="hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["range", "roundrobin"]),
        ({"partition_assignment_strategy": "sticky, range"}, ["sticky", "range"]),
        ({"partition.assignment.strategy": "cooperative-sticky"}, ["cooperative-sticky"]),
    ],
)
def test_a_strategy_is_given_by_its_name(given: dict[str, str], names: list[str]) -> None:
    assert "partition_assignment_strategy" not in settings(**given)
    assert assignment_strategies(SourceConfig("kafka", "json", client=given)) == names


@pytest.mark.parametrize("text", ["", "fair", "cooperative-sticky,range"])
def test_a_strategy_that_cannot_be_meant_is_refused(text: str) -> None:
    given = {"partition_assignment_strategy": text}
    with pytest.raises(ConfigError, match="cooperative-sticky alone"):
        assignment_strategies(SourceConfig("kafka", "json", client=given))
