"""Users that meet in a bucket are sealed there, of a table and of a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines.log_rows import COLUMNS, SPEC, alone, log_table, write_shards
from tests.engines.spark.reading import held
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


def test_sealed_buckets_merge_to_the_sealed_whole(log: DataFrame) -> None:
    from streammetrics.engines.spark import merge, states

    counted = states(log, SPEC, ["variant"], **USERS, n_buckets=7, scope="june")
    merged = held(merge(counted))
    assert {k: s.digest() for k, s in merged.items()} == sealed_whole(["variant"], "june")
    for key, open_state in alone(TABLE, SPEC, ["variant"]).items():
        gauc = merged[key].compute()["gauc"].gauc  # type: ignore[index]
        assert float(gauc) == float(open_state.compute()["gauc"].gauc)  # type: ignore[index]
        assert merged[key].complete  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_stream_gives_sealed_states_of_all_rows_so_far(
    spark: SparkSession, tmp_path: Path
) -> None:
    from streammetrics.engines.spark import stream

    rows = rows_of(spark, write_shards(tmp_path / "log", TABLE, shards=3))
    sink = Upserts()
    run(stream(rows, SPEC, **USERS, n_buckets=3, scope="june"), sink, tmp_path / "checkpoint")
    assert {k: s.digest() for k, s in sink.merged().items()} == sealed_whole([], "june")
