"""Refused events are forwarded at least once, and counting never waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from threading import Event

import pytest
from kafka import KafkaConsumer
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import not_forwarded
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.process.quarantine_topic import Forwarder, Message, forwarding

from tests.consumers.memory_run import GOOD, ONE, Run
from tests.consumers.memory_source import Log
from tests.consumers.messages import KAFKA
from tests.consumers.small_config import config
from tests.kafka_broker import create_topic
from tests.patience import LIMIT_S

# Where each library forwards.
MODULES = {
    "kafka-python": "streammetrics_consumers.sources.kafka.kafka_client",
    "confluent-kafka": "streammetrics_consumers.sources.kafka.confluent_client",
}


class Topic:
    """What a topic has, and whether it answers."""

    def __init__(self, *, away: bool = False) -> None:
        self.away, self.messages = away, list[Message]()

    def send(self, messages: Sequence[Message]) -> None:
        self.messages += messages
        if self.away:
            raise OSError("no answer")

    def close(self) -> None:
        """Nothing is open."""


def forwarder_of(ledger: Ledger, opener: Callable[[], Topic]) -> Forwarder:
    forwarder = Forwarder(ledger.store, opener)
    for head in ledger.snapshot().heads:
        forwarder.committed(head)
    return forwarder


def test_each_is_sent_with_its_place_and_reason_and_not_again(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log([GOOD, b"{", GOOD, b"[1]"])})
    run()
    topic = Topic()
    with closing(Ledger.open(run.config.store.url)) as ledger:
        for _ in range(2):
            forwarder_of(ledger, lambda: topic).forward(Event())
    assert [value for _, value, _ in topic.messages] == [b"{", b"[1]"]
    key, _, headers = topic.messages[0]
    assert key == b"test/events/id/0/1/0"
    assert dict(headers)["reason"] == b"not_json"


def test_what_was_not_acknowledged_is_sent_again_after_a_restart(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log([b"{"])})
    run()
    away, live_topic = Topic(away=True), Topic()
    with closing(Ledger.open(run.config.store.url)) as ledger:
        with pytest.raises(OSError, match="no answer"):
            forwarder_of(ledger, lambda: away).forward(Event())
        forwarder_of(ledger, lambda: live_topic).forward(Event())
    assert [message[:2] for message in live_topic.messages] == [m[:2] for m in away.messages]


def with_topic(settings: Config, topic: str = "refused") -> Config:
    return replace(settings, quarantine=replace(settings.quarantine, topic=topic))


def test_a_topic_that_is_away_is_nothing_to_the_count(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log([b"{"])})
    run()
    topic = Topic(away=True)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        [head] = ledger.snapshot().heads
        with forwarding(with_topic(run.config), ledger.store, lambda: topic) as moved:
            callback: Callable[[Head], None] = moved
            callback(head)
    assert topic.messages


@pytest.mark.parametrize("source", ['kind = "file"\npath = "x"', KAFKA.replace('"t"', '"r"')])
def test_the_topic_is_another_one_of_kafka(source: str) -> None:
    with pytest.raises(ConfigError, match=r"\[quarantine\] topic"):
        config(source=source, rest='[quarantine]\ntopic = "r"')


@pytest.mark.parametrize("library", ["kafka-python", "confluent-kafka"])
def test_a_real_topic_has_them_and_without_one_they_stay_in_the_ledger(
    kafka: str, tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the two, the library that reads is the one that forwards.
    main_library, spare_library = sorted(MODULES, key=lambda name: name != library)
    names = {"kafka-python": "Forwarding", "confluent-kafka": "ConfluentForwarding"}
    monkeypatch.setattr(f"{MODULES[spare_library]}.{names[spare_library]}", None)
    topic = create_topic(kafka)
    run = Run(tmp_path, {ONE: Log([GOOD, b"{"])})
    source = KAFKA.replace('"h:1"', f'"{kafka}"') + f'\nlibrary = "{library}"'
    run()
    module = import_module(MODULES[main_library])
    with monkeypatch.context() as patch, closing(Ledger.open(run.config.store.url)) as ledger:
        patch.setattr(module, "ANSWER_S", 1.0)
        forwarding, settings = getattr(module, names[main_library]), config(source=source).source
        forwarder = Forwarder(ledger.store, lambda: forwarding(settings, "nowhere"))
        with closing(forwarder):
            forwarder.committed(ledger.snapshot().heads[0])
            with pytest.raises(Exception, match=r"(?i)topic|metadata"):
                forwarder.forward(Event())
        [entry] = not_forwarded(ledger.store, [1], 10)
    assert entry.payload == b"{"
    run.logs[ONE].append(b"[1]")
    topic_settings = config(source=source, rest=f'[quarantine]\ntopic = "{topic}"')
    run(config=replace(topic_settings, store=run.config.store))
    reader = KafkaConsumer(
        topic,
        bootstrap_servers=kafka,
        auto_offset_reset="earliest",
        consumer_timeout_ms=round(LIMIT_S * 1000),
    )
    with closing(reader):
        record = next(iter(reader))
    assert (record.key, record.value) == (b"test/events/id/0/1/0", b"{")
    assert dict(record.headers)["reason"] == b"not_json"
