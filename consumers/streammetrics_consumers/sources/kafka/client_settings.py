"""The settings of a Kafka client, for either library: ours, those of the user, and the defaults.

OWNED     settings that exactly-once counting depends on; setting one of them is an error
DEFAULTS  suitable values for counting; `[source.client]` and `-X key=value` override them

Names are those of the library, with dots or underscores. librdkafka has no setting for the
maximum number of records per poll, so `max_poll_records` works for both.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from typing import Final

from streammetrics_consumers.config.keys import Key
from streammetrics_consumers.config.kinds import Switch, Text, Whole
from streammetrics_consumers.config.section import ConfigError, Problem, Value, did_you_mean
from streammetrics_consumers.config.source import OWNED_CLIENT_KEYS, KafkaLibrary, SourceConfig
from streammetrics_consumers.sources import Disconnected

OWNED: Final[Mapping[KafkaLibrary, frozenset[str]]] = {
    "kafka-python": OWNED_CLIENT_KEYS
    | {
        *("allow_auto_create_topics", "consumer_timeout_ms", "default_offset_commit_callback"),
        "kafka_client",
    },
    "confluent-kafka": frozenset(
        [
            *("allow.auto.create.topics", "auto.offset.reset", "bootstrap.servers"),
            *("enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof"),
            *("error.cb", "group.id", "isolation.level", "logger"),
            *("metadata.broker.list", "oauth.cb", "on.commit", "plugin.library.paths"),
            *("receive.message.max.bytes", "stats.cb", "throttle.cb"),
        ]
    ),
}
_GREATEST: Final = (1 << 31) - 1
_MAX_POLL: Final = (1, 1_000_000)
_CLIENT: Final = Key(Text(), "streammetrics", "the name of this client in the brokers' logs")
_SESSION: Final = Key(Whole(1, _GREATEST), 10_000, "how long a killed worker keeps its partitions")
_HEARTBEAT: Final = Key(Whole(1, _GREATEST), 3_000, "the time between two heartbeats of a worker")
_RECORDS: Final = Key(
    Whole(*_MAX_POLL), 10_000, "records per poll; enough to make numpy's cost per call negligible"
)
_ANSWER: Final = Key(Whole(1, _GREATEST), 15_000, "the longest wait for an answer")
_NEW_PARTITION: Final = Key(Whole(1, _GREATEST), 60_000, "how soon a new partition is seen")
# Our defaults, which docs/config.md lists; the libraries have many more settings.
KEYS: Final[Mapping[KafkaLibrary, Mapping[str, Key]]] = {
    "kafka-python": {
        "client_id": _CLIENT,
        "session_timeout_ms": _SESSION,
        "heartbeat_interval_ms": _HEARTBEAT,
        "max_poll_records": _RECORDS,
        "metadata_max_age_ms": _NEW_PARTITION,
        "request_timeout_ms": _ANSWER,
        "metrics_enabled": Key(Switch(), False, "whether the library collects metrics"),
    },
    "confluent-kafka": {
        "client.id": _CLIENT,
        "session.timeout.ms": _SESSION,
        "heartbeat.interval.ms": _HEARTBEAT,
        "max_poll_records": _RECORDS,
        "topic.metadata.refresh.interval.ms": _NEW_PARTITION,
        "socket.timeout.ms": _ANSWER,
        "check.crcs": Key(
            Switch(),
            True,
            "whether checksums are verified; by the library's default, damaged records are counted",
        ),
    },
}
DEFAULTS: Final[Mapping[KafkaLibrary, Mapping[str, object]]] = {
    "kafka-python": {name: key.default for name, key in KEYS["kafka-python"].items()},
    "confluent-kafka": {
        name: str(key.default).lower()
        for name, key in KEYS["confluent-kafka"].items()
        if key is not _RECORDS
    },
}
STRATEGIES: Final[Mapping[KafkaLibrary, tuple[str, ...]]] = {
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "confluent-kafka": ("range", "roundrobin", "cooperative-sticky"),
}
# With the group protocol of KIP-848 the broker decides these.
BY_THE_BROKER: Final = (
    "group.protocol.type",
    "heartbeat.interval.ms",
    "partition.assignment.strategy",
    "session.timeout.ms",
)
PROTOCOLS: Final = ("classic", "consumer")
MAX_FETCH_BYTES: Final = 50 << 20  # librdkafka's own default; a response has 512 bytes more
# The settings for a second client of the same cluster, which reads no records.
_CONNECTION: Final = (
    *("bootstrap.", "broker.", "client.id", "enable.sasl", "enable.ssl", "https.", "reconnect."),
    *("sasl.", "security.", "socket.", "ssl."),
)
_SECRET: Final = re.compile(
    r"pass|secret|token|credential|jaas|oauth.*config|key[._]pem", re.IGNORECASE
)
_HIDDEN: Final = "********"


def kafka_python_settings(
    source: SourceConfig, client_defaults: Mapping[str, object]
) -> dict[str, object]:
    """All settings for a client of kafka-python. `client_defaults` are the client's own.

    A text is converted to the type of the client's default, and dots in a name become underscores,
    so `-X session.timeout.ms=6000` has its usual meaning. Raises ConfigError with every key that is
    unknown, ours, or of another type.
    """
    owned = OWNED["kafka-python"]
    problems: list[Problem] = []
    settings: dict[str, object] = {}
    for name, value in source.client.items():
        key, where = name.replace(".", "_"), f"[source.client] {name}"
        if key == "partition_assignment_strategy":
            continue  # see assignment_strategies
        if key == "group_protocol":
            problems.append(_only_classic(where, value))
            continue
        if key in owned:
            problems.append(_owned(where, key, value))
        elif key not in client_defaults:
            free = [option for option in client_defaults if option not in owned]
            close = did_you_mean(key, free)
            hint = close if close.startswith("did") else "see kafka-python's KafkaConsumer"
            # The message omits the value: the key may be a misspelt password.
            problems.append(Problem(where, "a setting of the client", repr(key), hint))
        else:
            try:
                settings[key] = _as(client_defaults[key], key, value)
            except ValueError as error:
                problems.append(Problem(where, str(error), _shown(key, value), "correct it"))
    if problems:
        raise ConfigError("the Kafka client", problems)
    return {
        **DEFAULTS["kafka-python"],
        **settings,
        "bootstrap_servers": list(source.bootstrap_servers),
        "group_id": source.group,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed",
        "allow_auto_create_topics": False,
    }


def librdkafka_settings(source: SourceConfig) -> tuple[dict[str, str], int]:
    """The settings of a client of librdkafka, and the maximum number of records per poll.

    The library checks names and values. Raises ConfigError for one of our own settings.
    """
    defaults = {name: str(value) for name, value in DEFAULTS["confluent-kafka"].items()}
    problems: list[Problem] = []
    settings: dict[str, str] = {}
    for name, value in source.client.items():
        key = name.replace("_", ".")
        if key in OWNED["confluent-kafka"]:
            problems.append(_owned(f"[source.client] {name}", key, value))
        settings[key] = str(value).lower() if isinstance(value, bool) else str(value)
    records = settings.pop("max.poll.records", str(_RECORDS.default))
    if (
        not re.fullmatch("[1-9][0-9]{0,8}", records)
        or not _MAX_POLL[0] <= int(records) <= _MAX_POLL[1]
    ):
        where, expected = "[source.client] max_poll_records", "a whole number from {} to {}"
        expected = expected.format(*_MAX_POLL)
        problems.append(Problem(where, expected, records, "correct it"))
    protocol = settings.setdefault("group.protocol", "classic")
    if protocol not in PROTOCOLS:
        where, hint = "[source.client] group.protocol", "leave it out for classic"
        problems.append(Problem(where, '"classic" or "consumer"', repr(protocol), hint))
    if protocol == "consumer":
        defaults = {name: value for name, value in defaults.items() if name not in BY_THE_BROKER}
        problems += [
            _broker_problem(name, settings[name]) for name in BY_THE_BROKER if name in settings
        ]
    if problems:
        raise ConfigError("the Kafka client", problems)
    if protocol == "classic":
        settings["partition.assignment.strategy"] = ",".join(assignment_strategies(source))
    return {
        **defaults,
        "fetch.max.bytes": str(min(MAX_FETCH_BYTES, source.max_batch_bytes - 512)),
        **settings,
        # The library's limit for decompressed Zstandard; it also bounds a response.
        "receive.message.max.bytes": str(source.max_batch_bytes),
        "bootstrap.servers": ",".join(source.bootstrap_servers),
        "group.id": source.group or "",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
        "enable.partition.eof": "true",  # its offset is after the last control record
    }, int(records)


def connection_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for connecting to the cluster."""
    return {key: value for key, value in settings.items() if key.startswith(_CONNECTION)}


def assignment_strategies(source: SourceConfig) -> list[str]:
    """The assignment strategies of the group: the comma-separated names in
    `partition_assignment_strategy`, preferred first. Raises ConfigError for an unsupported one.

    "cooperative-sticky" moves only the partitions that must move, while reading of the others
    continues. All members of a group need a common strategy, and it excludes the other strategies.
    """
    key, strategies = "partition_assignment_strategy", STRATEGIES[source.library]
    for name, value in source.client.items():
        if name.replace(".", "_") != key:
            continue
        names = [strategy.strip() for strategy in str(value).split(",")]
        is_combinable = "cooperative-sticky" not in names or len(names) == 1
        if not is_combinable or not set(names) <= set(strategies):
            expected = f"some of {', '.join(strategies)}, cooperative-sticky only alone"
            problem = Problem(f"[source.client] {name}", expected, repr(value), "correct it")
            raise ConfigError("the Kafka client", [problem])
        return names
    return ["range", "roundrobin"]


def require_reachable(servers: Sequence[str], timeout_s: float) -> None:
    """Raise Disconnected unless one of these `host:port` accepts a connection.

    Uses a plain socket, since each failed attempt of the client keeps a socket until it is
    garbage-collected.
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
        f"kafka: no broker answers: {'; '.join(failures)}; start one, or correct the addresses"
    )


def masked(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings for a log, with secrets hidden."""
    return {
        key: _HIDDEN if _SECRET.search(key) and value is not None else value
        for key, value in sorted(settings.items())
    }


def _shown(key: str, value: object) -> str:
    """A value for a message, hidden if it is a secret."""
    return _HIDDEN if _SECRET.search(key) else repr(value)


def is_incremental(settings: Mapping[str, str]) -> bool:
    """Whether the group moves only the partitions that must move: librdkafka then adds and removes
    partitions, where it otherwise replaces them all."""
    strategy = settings.get("partition.assignment.strategy")
    return settings["group.protocol"] == "consumer" or strategy == "cooperative-sticky"


def _only_classic(where: str, value: Value) -> Problem:
    """The problem of `group.protocol` with kafka-python, which has the classic protocol alone."""
    hint = 'write library = "confluent-kafka", which has both protocols, or remove it'
    expected = "no group protocol, since kafka-python has the classic one alone"
    return Problem(where, expected, repr(value), hint)


def _broker_problem(name: str, value: str) -> Problem:
    """The problem of a setting that the broker decides in the protocol of KIP-848."""
    expected = 'nothing, since the broker decides it with group.protocol = "consumer"'
    hint = "remove it; the broker's settings group.consumer.* have the times"
    return Problem(f"[source.client] {name}", expected, repr(value), hint)


def _owned(where: str, key: str, value: object) -> Problem:
    hint = "remove it; streammetrics sets it"
    return Problem(where, "a setting that is not reserved", _shown(key, value), hint)


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
    raise ValueError("a setting with a plain value; this one can only be given in Python")
