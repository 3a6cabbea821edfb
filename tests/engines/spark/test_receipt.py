"""The receipt of a Kafka consumer is that of a backfill in Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.engines.log_rows import write_shards
from tests.engines.receipt import COLUMNS, DAY_MS, START_MS, VARIANTS, consumed, logged
from tests.engines.spark.reading import digests_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_consumer_and_a_backfill_in_spark_give_the_same_receipt(
    kafka: str, spark: SparkSession, tmp_path: Path
) -> None:
    from streammetrics.engines.spark import merge, states

    live = consumed(kafka, tmp_path)
    log = spark.read.parquet(write_shards(tmp_path / "log", logged()))
    day = log.where(f"ms >= {START_MS} and ms < {START_MS + DAY_MS}")
    backfill = merge(states(day, live["a"].empty(), ["variant"], columns=COLUMNS))
    assert digests_of(backfill) == {(v,): live[v].digest() for v in VARIANTS}
