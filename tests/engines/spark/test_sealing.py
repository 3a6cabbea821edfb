"""Users that meet in a bucket are sealed there; what breaks that contract is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streammetrics import load
from tests.engines.log_rows import COLUMNS, SPEC, alone, log_table, write_shards
from tests.engines.spark.reading import digests_of, held
from tests.engines.spark.test_stream import Upserts, rows_of, run

pa = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'streammetrics[parquet]'")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = log_table(8_000, users=400)
USERS = {"columns": COLUMNS, "user": "user"}


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    return spark.read.parquet(write_shards(tmp_path_factory.mktemp("log"), TABLE, shards=3))


def sealed_whole(by: list[str], scope: str) -> dict[tuple[object, ...], str]:
    """The digests that one process gets: sealing does not depend on the buckets."""
    from streammetrics.engines import Sealing, seal

    one = Sealing("user", 1, "none", scope)
    return {key: seal(state, one).digest() for key, state in alone(TABLE, SPEC, by).items()}


@pytest.mark.parametrize("n_buckets", [1, 7])
def test_sealed_buckets_merge_to_the_sealed_whole(log: DataFrame, n_buckets: int) -> None:
    from streammetrics.engines.spark import merge, states

    counted = states(log, SPEC, ["variant"], **USERS, n_buckets=n_buckets, scope="june")
    merged = held(merge(counted))
    assert {k: s.digest() for k, s in merged.items()} == sealed_whole(["variant"], "june")
    for key, open_state in alone(TABLE, SPEC, ["variant"]).items():
        gauc = merged[key].compute()["gauc"].gauc  # type: ignore[index]
        assert float(gauc) == float(open_state.compute()["gauc"].gauc)  # type: ignore[index]
        assert merged[key].complete  # type: ignore[attr-defined]


def test_sealed_states_of_another_scope_refuse(log: DataFrame) -> None:
    from streammetrics.engines.spark import merge, states

    june, july = (
        states(log, SPEC, **USERS, n_buckets=2, scope=scope) for scope in ("june", "july")
    )
    with pytest.raises(Exception, match="scope"):
        merge(june.union(july)).toArrow()


def test_one_bucket_sealed_by_two_jobs_refuses(log: DataFrame) -> None:
    from streammetrics.engines.spark import merge, states

    halves = log.randomSplit([1.0, 1.0], seed=3)
    sealed = [states(half, SPEC, **USERS, n_buckets=2, scope="june") for half in halves]
    with pytest.raises(Exception, match="twice"):
        merge(sealed[0].union(sealed[1])).toArrow()


def test_sealing_where_a_shuffle_is_missing_refuses_instead_of_giving_a_number(
    log: DataFrame,
) -> None:
    from pyspark import TaskContext
    from pyspark.sql import functions as F

    from streammetrics.engines import Sealing, Task, partial
    from streammetrics.engines.spark import merge

    sealing = Sealing("user", 4, "mine", "june")

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        task = Task("mine", context.partitionId())
        yield from partial(
            batches, SPEC, columns=COLUMNS, bucket="bucket", counted=task, sealing=sealing
        )

    rows = log.withColumn("bucket", F.pmod(F.xxhash64("user"), F.lit(4)).cast("int"))
    right = rows.repartition(3, "bucket").mapInArrow(count, "bucket int, state binary")
    assert digests_of(merge(right)) == sealed_whole([], "june")
    for broken in (rows.coalesce(2), rows.hint("rebalance", "bucket").repartition(3)):
        wrong = broken.mapInArrow(count, "bucket int, state binary")
        with pytest.raises(Exception, match="twice"):
            merge(wrong).toArrow()


def test_a_bucket_holds_its_share_although_a_user_has_a_tenth_of_the_rows(log: DataFrame) -> None:
    from streammetrics.engines.spark import states

    def largest(n_buckets: int) -> int:
        counted = states(log, SPEC, **USERS, n_buckets=n_buckets)
        sizes = [
            load(row["state"]).compute()["gauc"].rows  # type: ignore[attr-defined]
            for row in counted.toArrow().to_pylist()
        ]
        assert sum(sizes) == TABLE.num_rows
        return max(sizes)

    assert largest(1) == TABLE.num_rows
    assert largest(8) < TABLE.num_rows * 0.35  # an eighth, and the user with a tenth


@pytest.mark.slow
def test_a_stream_gives_sealed_states_of_all_rows_so_far(
    spark: SparkSession, tmp_path: Path
) -> None:
    from streammetrics.engines.spark import stream

    rows = rows_of(spark, write_shards(tmp_path / "log", TABLE, shards=3))
    sink = Upserts()
    run(stream(rows, SPEC, **USERS, n_buckets=3, scope="june"), sink, tmp_path / "checkpoint")
    assert {k: s.digest() for k, s in sink.merged().items()} == sealed_whole([], "june")
