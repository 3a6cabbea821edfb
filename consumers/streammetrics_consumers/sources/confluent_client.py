"""The settings of a client of confluent-kafka (librdkafka): ours, the user's, and the defaults.

Names are librdkafka's, such as `session.timeout.ms`, with dots or with underscores. One more is
`max_poll_records`, the greatest number of records in one poll, as the other library has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from streammetrics_consumers.config.keys import Key, Switch, Text, Whole, default_of
from streammetrics_consumers.config.section import ConfigError, Problem
from streammetrics_consumers.config.tables import SourceConfig
from streammetrics_consumers.sources.kafka_client import GREATEST, assignment_strategies, shown

OWNED: Final = frozenset(
    [
        "allow.auto.create.topics", "auto.offset.reset", "bootstrap.servers", "enable.auto.commit",
        "enable.auto.offset.store", "enable.partition.eof", "error.cb", "group.id",
        "group.protocol", "isolation.level", "logger", "metadata.broker.list", "oauth.cb",
        "on.commit", "plugin.library.paths", "receive.message.max.bytes", "stats.cb", "throttle.cb",
    ]
)  # fmt: skip
MAX_POLL: Final = Whole(1, 1_000_000, 5_000)
# What suits a counter, and stands in docs/interface.md; the library knows many more.
KEYS: Final[Mapping[str, Key]] = {
    "client.id": Key(Text("streammetrics"), "the name of this client in the logs of brokers"),
    "session.timeout.ms": Key(
        Whole(1, GREATEST, 10_000), "a worker that was killed holds its partitions for this long"
    ),
    "heartbeat.interval.ms": Key(
        Whole(1, GREATEST, 3_000), "how often a worker says that it is alive"
    ),
    "max_poll_records": Key(
        MAX_POLL, "records in one poll, large enough that numpy's cost of a call does not show"
    ),
    "topic.metadata.refresh.interval.ms": Key(
        Whole(1, GREATEST, 60_000), "when a new partition, or topic, is seen"
    ),
    "socket.timeout.ms": Key(Whole(1, GREATEST, 15_000), "how long an answer may take"),
    "check.crcs": Key(
        Switch(True), "whether damaged records are found; by its own default they are counted"
    ),
}
DEFAULTS: Final = {
    name: str(default_of(key)).lower() for name, key in KEYS.items() if key.kind is not MAX_POLL
}
STRATEGIES: Final = ("range", "roundrobin", "cooperative-sticky")
MAX_FETCH_BYTES: Final = 50 << 20  # the library's own default; an answer has 512 bytes more

# What a second client of the same cluster needs, one that reads nothing.
_CONNECTION: Final = (
    "bootstrap.", "broker.", "client.id", "enable.sasl", "enable.ssl", "https.", "reconnect.",
    "sasl.", "security.", "socket.", "ssl.",
)  # fmt: skip


def client_settings(source: SourceConfig) -> tuple[dict[str, str], int]:
    """The settings of a client of `source`, and how many records a poll may return.

    The library itself checks names and values. Raises ConfigError for a setting that is ours.
    """
    problems: list[Problem] = []
    given: dict[str, str] = {}
    for name, value in source.client.items():
        key = name.replace("_", ".")
        if key in OWNED:
            where = f"[source.client] {name}"
            hint = "remove it; it is set for you"
            problems.append(Problem(where, "a setting that is free", shown(key, value), hint))
        given[key] = str(value).lower() if isinstance(value, bool) else str(value)
    records = given.pop("max.poll.records", str(MAX_POLL.default))
    if (
        not re.fullmatch("[1-9][0-9]{0,8}", records)
        or not MAX_POLL.low <= int(records) <= MAX_POLL.high
    ):
        where, expected = "[source.client] max_poll_records", "a whole number from {} to {}"
        expected = expected.format(MAX_POLL.low, MAX_POLL.high)
        problems.append(Problem(where, expected, records, "correct it"))
    if problems:
        raise ConfigError("the Kafka client", problems)
    return {
        **DEFAULTS,
        "fetch.max.bytes": str(min(MAX_FETCH_BYTES, source.max_batch_bytes - 512)),
        **given,
        "partition.assignment.strategy": ",".join(assignment_strategies(source, STRATEGIES)),
        # Up to here the library decompresses Zstandard; it also bounds an answer.
        "receive.message.max.bytes": str(source.max_batch_bytes),
        "bootstrap.servers": ",".join(source.bootstrap_servers),
        "group.id": source.group or "",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
        "enable.partition.eof": "true",  # its offset lies behind the last control record
    }, int(records)


def connection_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Those of the settings that say how to reach the cluster."""
    return {key: value for key, value in settings.items() if key.startswith(_CONNECTION)}
