"""Written columns and conditions: Spark gives the digests of rows that plain Python derived."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from streammetrics import BinaryConfusion, Moments, SettingsError
from streammetrics.engines import Positions
from streammetrics.engines.spark import aggregate, counts, merge, results, states, stream
from streammetrics.engines.spark.frames import rows_of
from tests.engines.hostile_rows import BY, COLUMNS, SPEC, WHERE, derived_alone, hostile_rows
from tests.engines.log_rows import digests, digests_of
from tests.engines.spark.test_micro_batches import Upserts, run
from tests.engines.spark.test_micro_batches import rows_of as stream_of

TABLE = hostile_rows()


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("rows")
    for i in range(3):
        pq.write_table(TABLE.slice(i * 20, 20), folder / f"{i}.parquet")
    return spark.read.parquet(str(folder))


def test_states_and_results_are_those_of_rows_derived_before(rows: DataFrame) -> None:
    expected = derived_alone(TABLE)
    counted = states(rows, SPEC, BY, columns=COLUMNS, where=WHERE)
    assert digests_of(merge(counted)) == expected
    by_user = states(rows, SPEC, BY, columns=COLUMNS, where=WHERE, user="offset", n_buckets=3)
    assert digests_of(merge(by_user)) == expected
    ranges = Positions((), "offset")
    positioned = states(rows.coalesce(1), SPEC, BY, columns=COLUMNS, where=WHERE, provenance=ranges)
    assert digests_of(merge(positioned)) == expected
    table = aggregate(rows, SPEC, BY, columns=COLUMNS, where=WHERE).toArrow().to_pylist()
    same = results(counted).toArrow().to_pylist()
    assert sorted(map(str, table)) == sorted(map(str, same)) and table


def test_only_the_columns_that_are_read_leave_spark(rows: DataFrame) -> None:
    columns = {"values": "dwell_s + 1", "unread": "reward * 2"}
    counted = rows_of(
        rows, Moments(), (), columns, "surface == 'home'", None, None, "", None, lit(0)
    )
    assert counted.table.columns == ["dwell_s", "surface", "bucket"]


@pytest.mark.parametrize(
    ("columns", "where", "words"),
    [
        ({"values": "dwel_s + 1"}, None, "did you mean 'dwell_s'"),
        ({"values": "dwell_s +"}, None, "column 10: expected an expression"),
        ({"values": "dwell_s"}, "surfac == 'x'", "did you mean 'surface'"),
        ({"value": "dwell_s"}, None, "did you mean 'values'"),
        ({"values": "a + 1", "a": "values + 1"}, None, "computed of others"),
    ],
)
def test_mistakes_are_found_before_any_row_is_read(
    rows: DataFrame, columns: dict[str, str], where: str | None, words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        states(rows, Moments(), columns=columns, where=where)


def test_sql_counts_columns_of_the_table_alone(rows: DataFrame) -> None:
    columns = {"labels": "dwell_s > 3", "scores": "reward"}
    with pytest.raises(SettingsError, match="expected columns of the table"):
        counts(rows, BinaryConfusion(), columns=columns)


def test_a_stream_counts_the_same(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    folder = str(tmp_path / "in")
    rows.write.parquet(folder)
    sink = Upserts()
    counted = stream(stream_of(spark, folder), SPEC, BY, columns=COLUMNS, where=WHERE)
    run(counted, sink, tmp_path / "checkpoint")
    assert digests(sink.merged()) == derived_alone(TABLE)
