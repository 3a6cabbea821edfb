"""Every public accumulator, panels, keys, windows and lists too, goes through Spark unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from streammetrics import load
from streammetrics.engines import partial, results_rows
from streammetrics.engines.spark import merge, results
from tests.engines.every_case import Rows, every_case

FIGURES = ["metric", "view", "value", "low", "high"]


def placed(rows: Rows) -> dict[str, str]:
    """Argument -> its column in the table of all cases: those of one type share it."""
    return {f.name: f"{f.name} {f.type}" for f in rows.batch.schema}


def of_all_cases() -> pa.Table:
    """A row for each row of each case, with the number of the case; null is what it has not."""
    tables = []
    for number, rows in enumerate(every_case()):
        table = pa.Table.from_batches([rows.batch]).rename_columns(list(placed(rows).values()))
        numbers = pa.array([number] * table.num_rows, pa.int32())
        tables.append(table.append_column("case", numbers))
    return pa.concat_tables(tables, promote_options="default")


@pytest.fixture(scope="module")
def counted(spark: SparkSession) -> DataFrame:
    """A table (case, bucket, state): what each task counted of each case."""
    cases = [(rows.spec, placed(rows)) for rows in every_case()]

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["case"].unique().to_pylist():
                spec, columns = cases[number]
                case_batch = batch.filter(pa.compute.equal(batch["case"], number))
                yield from partial([case_batch], spec, ["case"], columns=columns)

    table = spark.createDataFrame(of_all_cases()).repartition(3)
    return table.mapInArrow(count, "case int, bucket int, state binary")


def test_the_states_of_tasks_merge_to_those_of_one_process(counted: DataFrame) -> None:
    states = merge(counted).toArrow().to_pylist()
    states_by_case = {row["case"]: load(row["state"]) for row in states}
    assert len(states_by_case) == len(states)
    assert states_by_case == {number: rows.whole for number, rows in enumerate(every_case())}


def test_their_results_are_rows(counted: DataFrame) -> None:
    texts_by_case: dict[int, list[str]] = {number: [] for number in range(len(every_case()))}
    for row in results(counted).toArrow().to_pylist():
        texts_by_case[row["case"]].append(repr(tuple(row[name] for name in FIGURES)))
    expected = [sorted(map(repr, results_rows(rows.whole))) for rows in every_case()]
    assert [sorted(rows) for rows in texts_by_case.values()] == expected
