"""The settings of a Kafka client: ours, those of the user, and which are not for the user.

ours      what exactly-once rests on; giving them is an error
defaults  what suits a counter; `[source.client]` and `-X key=value` go before them
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from typing import Final

from streammetrics_consumers.config.keys import Key, Switch, Text, Whole, default_of
from streammetrics_consumers.config.section import ConfigError, Problem, Value, did_you_mean
from streammetrics_consumers.config.tables import OWNED_CLIENT_KEYS, SourceConfig
from streammetrics_consumers.sources.source import Disconnected

OWNED: Final = frozenset(
    [
        *OWNED_CLIENT_KEYS,
        "allow_auto_create_topics",
        "consumer_timeout_ms",
        "default_offset_commit_callback",
        "kafka_client",
    ]
)
GREATEST: Final = (1 << 31) - 1
# What suits a counter, and stands in docs/interface.md; the library knows many more.
KEYS: Final[Mapping[str, Key]] = {
    "client_id": Key(Text("streammetrics"), "the name of this client in the logs of brokers"),
    "session_timeout_ms": Key(
        Whole(1, GREATEST, 10_000), "a worker that was killed holds its partitions for this long"
    ),
    "heartbeat_interval_ms": Key(
        Whole(1, GREATEST, 3_000), "how often a worker says that it is alive"
    ),
    "max_poll_records": Key(
        Whole(1, 1_000_000, 5_000),
        "records in one poll, large enough that numpy's cost of a call does not show",
    ),
    "metadata_max_age_ms": Key(
        Whole(1, GREATEST, 60_000), "when a new partition, or a topic made anew, is seen"
    ),
    "request_timeout_ms": Key(Whole(1, GREATEST, 15_000), "how long an answer may take"),
    "metrics_enabled": Key(Switch(False), "whether the library counts what it does"),
}
DEFAULTS: Final = {name: default_of(key) for name, key in KEYS.items()}
STRATEGIES: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
_SECRET: Final = re.compile(
    r"pass|secret|token|credential|jaas|oauth.*config|key[._]pem", re.IGNORECASE
)
_HIDDEN: Final = "********"


def client_settings(source: SourceConfig, known: Mapping[str, object]) -> dict[str, object]:
    """All settings for a client of `source`. `known` are the client's own defaults.

    A text is read as the type of the client's default, and dots in a name are underscores, so
    that `-X session.timeout.ms=6000` says what it says elsewhere. Raises ConfigError with every
    key that is unknown, ours, or of another type.
    """
    problems: list[Problem] = []
    given: dict[str, object] = {}
    for name, value in source.client.items():
        key, where = name.replace(".", "_"), f"[source.client] {name}"
        if key == "partition_assignment_strategy":
            continue  # see assignment_strategies
        if key in OWNED:
            problems.append(
                Problem(
                    where,
                    "a setting that is free",
                    shown(key, value),
                    "remove it; it is set for you",
                )
            )
        elif key not in known:
            free = [one for one in known if one not in OWNED]
            close = did_you_mean(key, free)
            hint = close if close.startswith("did") else "see kafka-python's KafkaConsumer"
            # The value stays unsaid: the key may be a misspelt password.
            problems.append(Problem(where, "a setting of the client", repr(key), hint))
        else:
            try:
                given[key] = _as(known[key], key, value)
            except ValueError as error:
                problems.append(Problem(where, str(error), shown(key, value), "correct it"))
    if problems:
        raise ConfigError("the Kafka client", problems)
    return {
        **DEFAULTS,
        **given,
        "bootstrap_servers": list(source.bootstrap_servers),
        "group_id": source.group,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed",
        "allow_auto_create_topics": False,
    }


def assignment_strategies(source: SourceConfig, known: Sequence[str] = STRATEGIES) -> list[str]:
    """How the group shares out the partitions: names that stand in `partition_assignment_strategy`
    with commas between, the preferred one first. Raises ConfigError for a name not in `known`.

    "cooperative-sticky" moves only the partitions that have to move, while the others are read on.
    All members of a group need a strategy in common, and it cannot stand beside the other ones.
    """
    key = "partition_assignment_strategy"
    for name, value in source.client.items():
        if name.replace(".", "_") != key:
            continue
        names = [one.strip() for one in str(value).split(",")]
        alone = "cooperative-sticky" not in names or len(names) == 1
        if not alone or not set(names) <= set(known):
            expected = f"some of {', '.join(known)}, cooperative-sticky alone"
            problem = Problem(f"[source.client] {name}", expected, repr(value), "correct it")
            raise ConfigError("the Kafka client", [problem])
        return names
    return ["range", "roundrobin"]


def require_reachable(servers: Sequence[str], timeout_s: float) -> None:
    """Raise Disconnected unless someone listens at one of these `host:port`.

    A plain socket, since each try of the client that fails keeps a socket until it is collected.
    """
    failures = []
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
            return
        except OSError as error:
            failures.append(f"{server}: {error.strerror or error}")
    raise Disconnected(
        f"kafka: no broker answers: {'; '.join(failures)}; start it, or correct its address"
    )


def masked(settings: Mapping[str, object]) -> dict[str, object]:
    """The same for a log: what is secret is hidden."""
    return {
        key: _HIDDEN if _SECRET.search(key) and value is not None else value
        for key, value in sorted(settings.items())
    }


def shown(key: str, value: object) -> str:
    """A value for a message."""
    return _HIDDEN if _SECRET.search(key) else repr(value)


def _as(default: object, key: str, value: Value) -> object:
    if key == "api_version":
        if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+){1,2}", value):
            return tuple(int(part) for part in value.split("."))
        raise ValueError('a version such as "3.5"')
    if isinstance(default, bool):
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise ValueError("true or false")
        return value
    if isinstance(default, int):
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,12}", value):
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("a whole number")
        return value
    if default is None or isinstance(default, str):
        return value
    raise ValueError("a setting that is a plain value; this one can only be given in Python")
