"""Events that a producer sends twice, through a real broker: with [dedup] they give what each of
them once gives, to the byte, with workers that are killed between an event and its repeat."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from pathlib import Path

import pytest
from streammetrics_consumers.config.keys import LIBRARIES

from tests.consumers.joined_stream import EVENT, METRICS, SLICES, WINDOWS, stream
from tests.consumers.small_config import toml
from tests.consumers.worker.test_kafka_join import (
    COMMAND,
    PARTITIONS,
    SOURCE,
    joined,
    partition_of,
    ran,
    until_counted,
    whole,
)
from tests.kafka_broker import Record, create_topic, produce, unique_topic
from tests.requirements import ROOT

pytestmark = pytest.mark.slow

REST = """\
[store]
url = "repeats.db"
commit_interval_s = 0.05
[dedup]
event_id = "id"
keyed = {keyed}
"""


def written(folder: Path, bootstrap: str, library: str, *, keyed: bool = True) -> Path:
    """A config of a topic in which a third of the events stands twice."""
    rng, topic = random.Random(8), unique_topic("repeats")
    sent = []
    for one in stream(seed=6, impressions=300).whole:
        sent.append(one)
        if rng.random() < 1 / 3:
            sent.append(sent[-1 - rng.randrange(min(len(sent), 20))])
    create_topic(bootstrap, PARTITIONS, name=topic)
    produce(
        bootstrap,
        topic,
        [Record(json.dumps(one).encode(), partition_of(one["id"])) for one in sent],
    )
    source = SOURCE.format(
        bootstrap=bootstrap, topics=json.dumps(topic), group=unique_topic("group"), library=library
    )
    path = folder / "repeats.toml"
    rest = REST.format(keyed=json.dumps(keyed))
    event = f'{EVENT}\nlabel = "label"'
    path.write_text(toml(source, event, WINDOWS, SLICES, METRICS, rest), encoding="utf-8")
    return path


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_was_sent_twice_counts_once(kafka: str, tmp_path: Path, library: str) -> None:
    config = written(tmp_path, kafka, library)
    command = [*COMMAND, "run", "--until-end", "--no-serve", str(config)]
    for aim in (50, 150):
        worker = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        until_counted(config, aim, worker)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    ran(config, "run", "--until-end", "--no-serve", "--workers", "2")
    assert joined(config) == whole(tmp_path, stream(seed=6, impressions=300))
    results = json.loads(ran(config.with_suffix(".db"), "results", "--json"))
    assert results["repeated"] > 60
    assert results["rows_read"] == 300 + results["repeated"]
    assert "the ledger says what the log says" in ran(config, "verify")


def test_repeats_that_may_come_to_another_partition_are_refused_at_the_start(
    kafka: str, tmp_path: Path
) -> None:
    config = written(tmp_path, kafka, "kafka-python", keyed=False)
    done = subprocess.run(
        [*COMMAND, "run", "--until-end", "--no-serve", str(config)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "[dedup] keyed" in done.stderr
