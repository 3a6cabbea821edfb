"""Spark reads a topic of a real broker: same digest as one process, and the consumer's ranges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streammetrics import Accumulator
from streammetrics.engines import Positions
from streammetrics.engines.spark import stream
from tests.engines.log_rows import COLUMNS, SPEC, Key, digests, log_table, updated_states
from tests.engines.spark.test_micro_batches import Upserts, run
from tests.kafka_broker import Record, create_topic, produce

ROWS = 2_000
TABLE = log_table(ROWS, users=100)
FIELDS = "variant string, user bigint, label smallint, score float"


@pytest.fixture(scope="module")
def topic(spark_kafka: str) -> tuple[str, str]:
    """A broker, and a topic of two partitions that has the rows of TABLE, one an event."""
    name = create_topic(spark_kafka, 2)
    rows = TABLE.select(["variant", "user", "label", "score"]).to_pylist()
    produce(spark_kafka, name, [Record(json.dumps(r).encode(), i % 2) for i, r in enumerate(rows)])
    return spark_kafka, name


def events(records: DataFrame) -> DataFrame:
    """The fields of each event, and where it stands."""
    event = F.from_json(F.col("value").cast("string"), FIELDS).alias("event")
    return records.select("topic", "partition", "offset", event).select(
        "topic", "partition", "offset", "event.*"
    )


def check(states: dict[Key, Accumulator], name: str) -> None:
    assert digests(states) == digests(updated_states(TABLE, SPEC))
    ranges = [(source, start, end) for source, _, start, end in states[()].provenance]
    assert ranges == [(f"{name}/{p}", 0, ROWS // 2) for p in (0, 1)]


def test_a_stream_of_a_topic_notes_its_ranges_of_offsets(
    spark: SparkSession, topic: tuple[str, str], tmp_path: Path
) -> None:
    broker, name = topic
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
    source = source.option("subscribe", name).option("startingOffsets", "earliest")
    rows = events(source.option("maxOffsetsPerTrigger", 900).load())
    places = Positions(("topic", "partition"), "offset")
    sink = Upserts(fail_at=1, when="after")
    counted = stream(rows, SPEC, columns=COLUMNS, provenance=places)
    with pytest.raises(Exception, match="a fault of the sink"):
        run(counted, sink, tmp_path / "checkpoint")
    run(counted, sink, tmp_path / "checkpoint")
    check(sink.merged(), name)
