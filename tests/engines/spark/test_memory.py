"""What a task holds: the open state of its bucket, and of its rows a batch."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streammetrics import Accumulator, HistogramAUC
from streammetrics.engines import Sealing, Task, partial
from tests.engines.log_rows import COLUMNS, SPEC

ROWS, USERS = 2_000_000, 80_000  # 25 rows a user; one has a tenth of all
FIXED = 80 << 20  # what is loaded with the first rows, and a few batches; 52 MB were seen
MEASURED = ["bucket", "rows", "before", "peak"]


def forget_peak() -> None:
    """Begin anew with the peak of this process: Spark uses a worker again."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """The most that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(
    spark: SparkSession, spec: Accumulator, columns: dict[str, str], n_buckets: int
) -> list[dict[str, int]]:
    """For each bucket its rows, what its task had before, and at most until they were sealed."""
    sealing = Sealing("user", n_buckets, "mine", "june")

    def count(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        forget_peak()
        before, rows, bucket = peak_bytes(), 0, key[0].as_py()

        def count_batches() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            for batch in batches:
                rows += batch.num_rows
                yield batch

        task = Task("mine", bucket)
        output = partial(
            count_batches(), spec, columns=columns, bucket=bucket, counted=task, sealing=sealing
        )
        assert sum(batch.num_rows for batch in output) == 1
        figures = pa.array([bucket, rows, before, peak_bytes()], pa.int64())
        yield pa.record_batch([figures.slice(i, 1) for i in range(4)], MEASURED)

    user = F.when(F.col("id") % 10 == 0, 7).otherwise(F.xxhash64("id") % USERS)
    log = spark.range(ROWS, numPartitions=2).select(
        user.alias("user"),
        (F.xxhash64("id") % 2 == 0).cast("smallint").alias("label"),
        F.rand(3).cast("float").alias("score"),
    )
    bucket = F.pmod(F.xxhash64("user"), F.lit(n_buckets)).cast("int")
    schema = ", ".join(f"{name} bigint" for name in MEASURED)
    counted = log.withColumn("bucket", bucket).groupBy("bucket").applyInArrow(count, schema)
    tasks: list[dict[str, int]] = counted.toArrow().to_pylist()
    assert sum(task["rows"] for task in tasks) == ROWS
    return tasks


def test_a_task_needs_sixty_bytes_a_row_of_its_bucket_and_a_histogram_none(
    spark: SparkSession,
) -> None:
    plain = {"labels": "label", "scores": "score"}
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
    try:
        measurements = [
            (0, measured(spark, HistogramAUC(), plain, n_buckets=1)),
            (60, measured(spark, SPEC, COLUMNS, n_buckets=2)),
        ]
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
    for of_row, tasks in measurements:
        for task in tasks:
            grown = task["peak"] - task["before"]
            assert grown < FIXED + of_row * task["rows"], task
