"""Impressions and clicks on topics of their own, through a real broker: joined they give what whole
events give, to the byte, whether the topics are keyed alike or not."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from contextlib import closing, redirect_stdout
from io import StringIO
from pathlib import Path
from zlib import crc32

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.ledger.failures import NotAStore
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.partition import Partition

from tests.consumers.joined_stream import (
    EVENT,
    METRICS,
    SLICES,
    WHOLE,
    WINDOWS,
    Found,
    Stream,
    config_at,
    digests,
    logs_of,
    run,
    stream,
)
from tests.consumers.small_config import toml
from tests.kafka_broker import Record, create_topic, produce, unique_topic
from tests.patience import until
from tests.requirements import ROOT

pytestmark = pytest.mark.faults

PARTITIONS = 2
COMMAND = (sys.executable, "-m", "streammetrics_consumers.cli")
SOURCE = """\
kind = "kafka"
bootstrap_servers = "{bootstrap}"
topic = {topics}
group = "{group}"
library = "{library}"
[source.client]
session_timeout_ms = 6000
heartbeat_interval_ms = 200
max_poll_records = 25
"""
REST = """\
[store]
url = "join.db"
commit_interval_s = 0.05
[join]
id = "id"
impression = {{ topic = "{0}" }}
label_window_s = 40
[join.outcomes]
click = {{ topic = "{1}" }}
"""


def partition_of(id_: str, salt: str = "") -> int:
    return crc32(f"{salt}{id_}".encode()) % PARTITIONS


def produced(bootstrap: str, events: Stream, *, alike: bool) -> tuple[str, str]:
    """Topics of impressions and of clicks, each keyed by the id: both by the same rule, or not."""
    topics = unique_topic("impressions"), unique_topic("clicks")
    got = [event for part in events.parts.values() for event in part]
    rng = random.Random(1)
    got.sort(key=lambda event: int(event["ts"]) + rng.randrange(10_000))
    for topic, kind in zip(topics, ("shown", "click"), strict=True):
        create_topic(bootstrap, PARTITIONS, name=topic)
        salt = "" if alike or kind == "shown" else "other "
        kind_events = [event for event in got if event["kind"] == kind]
        produce(
            bootstrap,
            topic,
            [
                Record(json.dumps(event).encode(), partition_of(event["id"], salt))
                for event in kind_events
            ],
        )
    return topics


def written(folder: Path, bootstrap: str, topics: tuple[str, str], library: str) -> Path:
    source = SOURCE.format(
        bootstrap=bootstrap, topics=json.dumps(topics), group=unique_topic("group"), library=library
    )
    path = folder / "join.toml"
    text = toml(source, EVENT, WINDOWS, SLICES, METRICS, REST.format(*topics))
    path.write_text(text, encoding="utf-8")
    return path


def ran(config: Path, *words: str) -> str:
    """A command in this process; what it prints."""
    output = StringIO()
    with redirect_stdout(output):
        assert main([*words, str(config)]) == 0
    return output.getvalue()


def joined(config: Path) -> Found:
    with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
        return digests(ledger)


def whole(folder: Path, events: Stream) -> Found:
    """What the whole events give."""
    url = str(folder / "whole.db")
    with closing(Ledger.open(url, create=True)) as ledger:
        run(config_at(WHOLE, url), ledger, logs_of({Partition("m", "whole", "i", 0): events.whole}),
            close=False)  # fmt: skip
        return digests(ledger)


def test_two_topics_keyed_alike_give_what_whole_events_give(kafka: str, tmp_path: Path) -> None:
    events = stream(seed=3)
    config = written(tmp_path, kafka, produced(kafka, events, alike=True), LIBRARIES[0])
    ran(config, "run", "--until-end", "--close", "--no-serve", "--workers", "2")
    assert joined(config) == whole(tmp_path, events)
    assert "the ledger agrees with the log" in ran(config, "verify")


def test_one_topic_after_the_other_gives_the_same(kafka: str, tmp_path: Path) -> None:
    events = stream(seed=4)
    topics = produced(kafka, events, alike=False)
    config = written(tmp_path, kafka, topics, LIBRARIES[1])
    for name in (topics[1], topics[0]):
        partitions = ",".join(f"{name}/{number}" for number in range(PARTITIONS))
        ran(config, "run", "--until-end", "--no-serve", f"--partitions={partitions}")
    ran(config, "run", "--until-end", "--close", "--no-serve")
    assert joined(config) == whole(tmp_path, events)
    output = ran(config, "verify", f"--partitions={topics[1]}/0")
    assert "events of 1 log" in output


def test_a_worker_killed_between_impression_and_click_loses_and_doubles_nothing(
    kafka: str, tmp_path: Path
) -> None:
    events = stream(seed=5, impressions=400)
    config = written(tmp_path, kafka, produced(kafka, events, alike=False), "confluent-kafka")
    command = [*COMMAND, "run", "--until-end", "--no-serve", str(config)]
    worker = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    until_counted(config, 250, worker)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    ran(config, "run", "--until-end", "--close", "--no-serve")
    assert joined(config) == whole(tmp_path, events)


def until_counted(config: Path, aim: int, worker: subprocess.Popen[bytes]) -> None:
    """Wait until so many events are committed, or the worker has ended."""
    until(lambda: rows(config) >= aim or worker.poll() is not None, pause_s=0.005)


def rows(config: Path) -> int:
    try:
        with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
            return ledger.snapshot().counters.rows
    except NotAStore:  # not yet
        return 0
