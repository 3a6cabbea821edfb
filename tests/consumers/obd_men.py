"""The real events of obd_men, with the config of docs/config.md, from a file or from Kafka."""

from __future__ import annotations

import json
from pathlib import Path

from tests.kafka_broker import Record, create_topic, produce

FILE = "obd_men_events.jsonl"
EVENTS = 20_000
PARTITIONS = 8

TOML = """\
[source]
{source}
[event]
time = "ts"
variant = "variant"
variants = ["random", "bts"]
user = "user"
label = "label"
score = "score"
[windows]
size_s = 86400
slide_s = 86400
lateness_s = 600
max_ahead_s = 3600
retention_s = 2592000
[slices]
by = [[], ["variant"], ["phase"], ["variant", "phase"]]
max_keys = 10000
[metrics]
{metrics}
[store]
url = "{store}"
commit_interval_s = {interval_s}
"""

METRICS = """\
auc = { type = "HistogramAUC" }
propensity_auc = { type = "ExactAUC", inputs = { scores = "propensity" } }
gauc = { type = "GroupedAUC", weight = "impressions" }
ctr = { type = "Ratio" }
"""

KAFKA = """\
kind = "kafka"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "{group}"
library = "{library}"
[source.client]
session_timeout_ms = 1000
heartbeat_interval_ms = 200
{wait} = 50
max_poll_records = {records}
"""


def write_config(
    folder: Path, source: str, name: str, interval_s: float = 0.2, metrics: str = METRICS
) -> Path:
    """A config file, with a store of the same name beside it."""
    path = folder / f"{name}.toml"
    store = f"{name}.db"
    text = TOML.format(source=source, store=store, interval_s=interval_s, metrics=metrics)
    path.write_text(text, encoding="utf-8")
    return path


def from_file(data: Path) -> str:
    """[source] of the file."""
    return f'kind = "file"\npath = "{data / FILE}"\n'


def from_kafka(
    bootstrap: str, topic: str, group: str, records: int = 1000, library: str = "kafka-python"
) -> str:
    """[source] of a topic."""
    return KAFKA.format(
        bootstrap=bootstrap,
        topic=topic,
        group=group,
        records=records,
        library=library,
        wait="fetch_max_wait_ms" if library == "kafka-python" else "fetch_wait_max_ms",
    )


def lines(data: Path) -> list[bytes]:
    """The events as bytes."""
    return (data / FILE).read_bytes().splitlines()


def produced(bootstrap: str, data: Path) -> str:
    """A topic of eight partitions that holds all events: those of a user in one partition."""
    # The events are of 2019, and a broker drops records by their timestamps.
    topic = create_topic(bootstrap, PARTITIONS, configs={"retention.ms": "-1"})
    records = []
    for line in lines(data):
        fields = json.loads(line)
        number = int(fields["user"][1:], 16) % PARTITIONS
        records.append(Record(line, number, timestamp_ms=fields["ts_ms"]))
    produce(bootstrap, topic, records)
    return topic
