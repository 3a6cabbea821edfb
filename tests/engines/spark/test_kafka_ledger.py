"""A topic of Kafka through Spark into the ledger, and from there to the page and the terminal."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.engines.spark_ledger import LedgerSink

from tests.consumers.cli.test_endless_commands import served
from tests.consumers.engines.fed_store import digests, worked
from tests.engines.spark.fed_by_spark import METRICS, dying, fed_config
from tests.engines.spark.test_spark_ledger import all_rows
from tests.kafka_broker import Record, create_topic, produce
from tests.patience import LIMIT_S

FIELDS = "ts bigint, variant string, label int, score double, phase string, user string"
PER_BATCH = 700  # offsets: three batches


@pytest.fixture(scope="module")
def topic(spark_kafka: str) -> str:
    """The rows as events of a topic of two partitions."""
    name = create_topic(spark_kafka, 2)
    values = [json.dumps(row).encode() for row in all_rows()]
    produce(spark_kafka, name, [Record(v, i % 2, timestamp_ms=1) for i, v in enumerate(values)])
    return name


def events(spark: SparkSession, broker: str, topic: str) -> DataFrame:
    """Its records as a stream: the fields of each event, and when it was written."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
    source = source.option("subscribe", topic).option("startingOffsets", "earliest")
    records = source.option("maxOffsetsPerTrigger", PER_BATCH).load()
    event = F.from_json(F.col("value").cast("string"), FIELDS).alias("event")
    rows = records.select("timestamp", event).select("timestamp", "event.*")
    return rows.withColumn("ts", F.timestamp_millis("ts"))


def test_the_page_and_the_terminal_show_what_spark_read_from_kafka(
    spark: SparkSession,
    spark_kafka: str,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = fed_config(tmp_path)
    sink = LedgerSink(config)

    def run(around: object = sink) -> None:
        writer = events(spark, spark_kafka, topic).writeStream.foreachBatch(around)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def die() -> None:
        raise RuntimeError("a fault of the test")

    with pytest.raises(Exception, match="a fault of the test"):
        run(dying(sink, "after", die))
    run()
    sink.close()
    assert digests(config) == digests(worked(tmp_path, all_rows(), metrics=METRICS))

    store = config.store.url
    assert main(["results", store, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["rows_read"] == len(all_rows())
    with served(Path(store)) as process:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("serving ").strip()
        with urllib.request.urlopen(url + "api/results", timeout=LIMIT_S) as answer:
            shown = json.load(answer)
        process.terminate()
        assert process.wait(LIMIT_S) == 0
    assert shown["results"] == printed["results"]
    assert shown["rows_read"] == printed["rows_read"]
