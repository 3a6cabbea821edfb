"""A streaming query of files into a store, in this process or in one that dies.

`python -m tests.engines.spark.fed_by_spark FOLDER WHEN` runs the query and kills itself with
SIGKILL: `before` the second batch is written to the store, or `after` that and before Spark knows.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.engines.batch_ledger import Gap

from tests.consumers.engines.fed_store import SPARK
from tests.consumers.small_config import config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Sink = Callable[[DataFrame, int], None]

METRICS = """
auc = { type = "HistogramAUC" }
ctr = { type = "Ratio" }
gauc = { type = "GroupedAUC" }
"""
DEADLY_BATCH = 1


def fed_config(folder: Path, **parts: str) -> Config:
    """The config of a query that feeds `fed.db` in this folder."""
    base_config = config(**{"source": SPARK, "metrics": METRICS, **parts})
    return replace(base_config, store=replace(base_config.store, url=str(folder / "fed.db")))


def dying(sink: Sink, when: str, die: Callable[[], None]) -> Sink:
    """A sink that dies at its second batch, before or after that is written."""

    def sunk(rows: DataFrame, batch: int) -> None:
        if batch == DEADLY_BATCH and when == "before":
            die()
        sink(rows, batch)
        if batch == DEADLY_BATCH and when == "after":
            die()

    return sunk


def feed(
    spark: SparkSession,
    folder: Path,
    *,
    around: Callable[[Sink], Sink] = lambda sink: sink,
    through: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    checkpoint: str = "checkpoint",
    on_gap: Gap = "stop",
    record_time: str | None = None,
    **parts: str,
) -> None:
    """Count every file of `folder/rows`, one a batch, from where the checkpoint stands.

    parts: of the config.
    """
    from streammetrics_consumers.engines.spark_ledger import LedgerSink

    rows = folder / "rows"
    schema = spark.read.parquet(str(rows)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(rows))
    sink = LedgerSink(fed_config(folder, **parts), on_gap=on_gap, record_time=record_time)
    try:
        query = (
            through(stream)
            .writeStream.option("checkpointLocation", str(folder / checkpoint))
            .trigger(availableNow=True)
            .foreachBatch(around(sink))
            .start()
        )
        query.awaitTermination()
    finally:
        sink.close()


def main(folder: Path, when: str) -> None:
    """Feed, and die."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )

    def die() -> None:
        os.killpg(os.getpgid(0), signal.SIGKILL)  # with its JVM, as a machine dies

    feed(session, folder, around=lambda sink: dying(sink, when, die))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
