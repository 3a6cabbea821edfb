"""Structured Streaming into the ledger: what a worker would have counted, whatever dies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from streammetrics_consumers.engines.spark_ledger import LedgerSink
from streammetrics_consumers.ledger.ledger import Ledger

from streammetrics import InputError
from tests.consumers.engines.fed_store import (
    ASSIGNED,
    THREE,
    Row,
    assigned_rows,
    digests,
    look_rows,
    row,
    shard_rows,
    table,
    worked,
)
from tests.consumers.small_config import config
from tests.engines.spark.faults import failing_once
from tests.engines.spark.fed_by_spark import METRICS, dying, fed_config, feed

ROOT = Path(__file__).parents[3]
Digests = dict[tuple[object, ...], str]


def all_rows() -> list[Row]:
    random = Random(4)
    return [
        row(
            random.uniform(0, 300),
            random.choice("abc"),  # c is none of the declared variants
            random.randrange(2),
            random.random(),
            random.choice(["fit", "eval", None]),
            f"u{random.randrange(50)}",
        )
        for _ in range(2000)
    ]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Digests:
    """What a worker counts."""
    return digests(worked(tmp_path_factory.mktemp("worked"), all_rows(), metrics=METRICS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The rows in three files, shuffled."""
    rows = all_rows()
    Random(5).shuffle(rows)
    (tmp_path / "rows").mkdir()
    for i in range(3):
        part = pa.Table.from_batches([table(rows[i::3])])
        pq.write_table(part, tmp_path / "rows" / f"{i}.parquet", row_group_size=200)
    return tmp_path


def fed(folder: Path) -> tuple[Digests, int, int]:
    """Its digests, the next batch, and the refused rows."""
    settings = fed_config(folder)
    ledger = Ledger.open(settings.store.url)
    try:
        snapshot = ledger.snapshot()
    finally:
        ledger.close()
    (head,) = snapshot.heads
    assert head.counters.rows == 2000
    return digests(settings), head.next_offset, head.counters.quarantined


def whole(expected: Digests) -> tuple[Digests, int, int]:
    return expected, 3, sum(record["variant"] == "c" for record in all_rows())


def test_a_query_counts_what_a_worker_counts(
    spark: SparkSession, folder: Path, expected: Digests
) -> None:
    feed(spark, folder, through=lambda rows: rows.repartition(3))
    assert fed(folder) == whole(expected)


def test_a_query_writes_the_rows_of_a_worker_for_each_of_several_experiments(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = assigned_rows(1000)
    worker = worked(tmp_path, rows, ASSIGNED, metrics=METRICS, **THREE)
    (tmp_path / "rows").mkdir()
    part = pa.Table.from_batches([table(rows, ASSIGNED)])
    pq.write_table(part, tmp_path / "rows" / "0.parquet", row_group_size=200)
    feed(spark, tmp_path, through=lambda stream: stream.repartition(3), **THREE)
    query = fed_config(tmp_path, **THREE)
    assert shard_rows(query) == shard_rows(worker)
    looks = look_rows(query)
    assert looks == look_rows(worker) and len({experiment for experiment, *_ in looks}) == 3


def test_tasks_that_die_count_once(spark: SparkSession, folder: Path, expected: Digests) -> None:
    feed(spark, folder, through=lambda rows: failing_once(rows, "exit", folder / "mark"))
    assert (folder / "mark").exists()
    assert fed(folder) == whole(expected)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_fails_beside_its_write_counts_once(
    spark: SparkSession, folder: Path, expected: Digests, when: str
) -> None:
    def die() -> None:
        raise RuntimeError("a fault of the test")

    with pytest.raises(Exception, match="a fault of the test"):
        feed(spark, folder, around=lambda sink: dying(sink, when, die))
    feed(spark, folder)
    assert fed(folder) == whole(expected)


@pytest.mark.timeout(600)
def test_a_driver_that_is_killed_after_its_write_counts_once(
    spark: SparkSession, folder: Path, expected: Digests
) -> None:
    killed = subprocess.run(
        [sys.executable, "-m", "tests.engines.spark.fed_by_spark", str(folder), "after"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr.decode()[-2000:]
    feed(spark, folder)
    assert fed(folder) == whole(expected)


def test_another_checkpoint_is_refused_and_may_be_added_on_request(
    spark: SparkSession, folder: Path
) -> None:
    feed(spark, folder)
    with pytest.raises(Exception, match="is not the one counted"):
        feed(spark, folder, checkpoint="another")
    feed(spark, folder, checkpoint="another", on_gap="skip")
    ledger = Ledger.open(fed_config(folder).store.url)
    try:
        assert ledger.snapshot().counters.rows == 4000
    finally:
        ledger.close()


def test_the_config_of_a_worker_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="kind"):
        LedgerSink(config())


def test_without_a_query_its_identity_must_be_given(spark: SparkSession, folder: Path) -> None:
    sink = LedgerSink(fed_config(folder))
    rows = spark.read.parquet(str(folder / "rows"))
    with pytest.raises(InputError, match="identity"):
        sink(rows, 0)
    named_sink = LedgerSink(fed_config(folder), identity="by hand")
    named_sink(rows, 0)
    named_sink.close()
