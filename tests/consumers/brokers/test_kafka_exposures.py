"""Exposures and orders on topics of their own, through a real broker: whichever of them lags, and
whoever is killed, a ledger holds what a fold over the events gives, to the byte."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.partition import Partition

from tests.consumers.brokers.test_kafka_join import (
    COMMAND,
    PARTITIONS,
    SOURCE,
    partition_of,
    ran,
    until_counted,
)
from tests.consumers.exposed_stream import (
    EVENT,
    LATENESS_MS,
    METRICS,
    RANKER,
    SLICES,
    WINDOWS,
    Event,
    Stream,
    expected,
    results,
    stream,
)
from tests.consumers.small_config import toml
from tests.kafka_broker import Record, create_topic, produce, unique_topic
from tests.requirements import ROOT

REST = """\
[store]
url = "exposed.db"
commit_interval_s = 0.05
[exposures]
topic = "{}"
unit = "user"
experiment = "exp"
arm = "arm"
"""


def produced(bootstrap: str, events: Stream) -> tuple[tuple[str, str], Stream]:
    """Topics of exposures and of orders, keyed by the user, each by a rule of its own; and what is
    in them."""
    topics = unique_topic("exposures"), unique_topic("orders")
    rng = random.Random(1)
    every = [event for part in events.parts.values() for event in part]
    every.sort(key=lambda event: int(event["ts"]) + rng.randrange(LATENESS_MS))
    parts: dict[Partition, list[Event]] = {}
    for topic, kind in zip(topics, ("exposure", "order"), strict=True):
        create_topic(bootstrap, PARTITIONS, name=topic)
        kind_events = [event for event in every if event["kind"] == kind]
        placements = [(event, partition_of(event["user"], kind)) for event in kind_events]
        produce(
            bootstrap, topic, [Record(json.dumps(e).encode(), number) for e, number in placements]
        )
        for event, number in placements:
            parts.setdefault(Partition("", topic, "", number), []).append(event)
    return topics, Stream(parts)


def written(folder: Path, bootstrap: str, topics: tuple[str, str]) -> Path:
    source = SOURCE.format(
        bootstrap=bootstrap, topics=json.dumps(topics), group=unique_topic("group"),
        library="confluent-kafka",
    )  # fmt: skip
    path = folder / "exposed.toml"
    text = toml(source, EVENT, WINDOWS, SLICES, METRICS, REST.format(topics[0]) + RANKER)
    path.write_text(text, encoding="utf-8")
    return path


def require_equal(path: Path, events: Stream) -> None:
    config: Config = load_config(path)
    with closing(Ledger.open(config.store.url)) as ledger:
        assert results(ledger) == expected(config, events.parts)


@pytest.mark.parametrize("first", [0, 1])
def test_one_topic_after_the_other_gives_what_both_together_give(
    kafka: str, tmp_path: Path, first: int
) -> None:
    topics, events = produced(kafka, stream(seed=3 + first, late_share=0))
    path = written(tmp_path, kafka, topics)
    for name in (topics[first], topics[1 - first]):
        partitions = ",".join(f"{name}/{number}" for number in range(PARTITIONS))
        ran(path, "run", "--until-end", "--no-serve", f"--partitions={partitions}")
    ran(path, "run", "--until-end", "--close", "--no-serve")
    require_equal(path, events)
    assert "the ledger agrees with the log" in ran(path, "verify")


def test_two_workers_count_what_one_does(kafka: str, tmp_path: Path) -> None:
    topics, events = produced(kafka, stream(seed=5))
    path = written(tmp_path, kafka, topics)
    ran(path, "run", "--until-end", "--close", "--no-serve", "--workers", "2")
    require_equal(path, events)


def test_a_worker_killed_between_an_exposure_and_an_order_loses_and_doubles_nothing(
    kafka: str, tmp_path: Path
) -> None:
    topics, events = produced(kafka, stream(seed=6, units=120))
    path = written(tmp_path, kafka, topics)
    command = [*COMMAND, "run", "--until-end", "--no-serve", str(path)]
    worker = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    until_counted(path, 150, worker)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    ran(path, "run", "--until-end", "--close", "--no-serve")
    require_equal(path, events)
