"""Counts by SQL make the same states as rows that reach Python, and refuse what they refuse."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streammetrics import Accumulator, BinaryConfusion, HistogramAUC, Ratio, SettingsError
from streammetrics.engines.spark import counts, merge
from tests.engines.log_rows import digests, digests_of, updated_states

NAMES = {"labels": "label", "scores": "score"}
EDGES = [0.0, -0.0, 1.0, 0.5, 0.25, 1 - 2.0**-24, 2.0**-149, 0.3, 0.7]
SPECS = [
    BinaryConfusion(threshold=0.3),
    HistogramAUC(grid="equal", resolution=12),
    HistogramAUC(grid="equal", resolution=2),
]


def rows(kind: str, seed: int = 4) -> pa.Table:
    """Random scores, and those at the edges of buckets with their neighbours."""
    rng = np.random.default_rng(seed)
    real = np.dtype(kind).type
    edges = np.array(EDGES, real)
    grid = (np.arange(4097) / 4096).astype(real)
    near = np.concatenate([np.nextafter(grid, real(0)), grid, np.nextafter(grid, real(2))])
    scores = np.concatenate([edges, near[(near >= 0) & (near <= 1)], rng.random(3_000, real)])
    n = len(scores)
    return pa.table(
        {
            "variant": pa.array(rng.choice(np.array(["a", "b", None], object), n), pa.string()),
            "label": pa.array(rng.integers(0, 2, n).astype(np.int16)),
            "score": pa.array(scores),
        }
    )


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_counts_give_the_states_of_the_rows(spark: SparkSession, kind: str) -> None:
    table = rows(kind)
    df = spark.createDataFrame(table).repartition(3)
    for spec in SPECS:
        counted = merge(counts(df, spec, ["variant"], columns=NAMES))
        assert digests_of(counted) == digests(updated_states(table, spec, ["variant"], NAMES)), spec


@pytest.mark.parametrize("positive", ["click", 2])
def test_the_positive_class_has_any_label(spark: SparkSession, positive: int | str) -> None:
    negative = "view" if positive == "click" else 7
    table = pa.table({"labels": [positive, negative, positive], "scores": [0.9, 0.2, 0.1]})
    spec = BinaryConfusion(positive=positive)
    state = spec.empty()
    state.update(table["labels"].to_pylist(), table["scores"].to_numpy())
    assert digests_of(counts(spark.createDataFrame(table), spec)) == {(): state.digest()}


def test_labels_are_compared_as_by_states(spark: SparkSession) -> None:
    names = ["integer", "real", "flag", "whole"]
    rows = [(2**53 + 1, 2.0**53, True, Decimal(1)), (2**53, 0.0, False, Decimal(0))]
    df = spark.createDataFrame(
        [(*row, 0.9) for row in rows],
        "integer bigint, real double, flag boolean, whole decimal(9,0), scores double",
    )
    for name, positive in zip(names, [2**53, 2**53 + 1, 2, 1], strict=True):
        spec = BinaryConfusion(positive=positive)
        state = spec.empty()
        state.update([row[names.index(name)] for row in rows], [0.9, 0.9])
        columns = {"labels": name, "scores": "scores"}
        assert digests_of(counts(df, spec, columns=columns)) == {(): state.digest()}, name


@pytest.mark.parametrize(
    ("labels", "kind", "positive"),
    [
        (["1", "0"], "string", 1),
        (["2", "x"], "string", 2),
        (["click", "Click"], "string", "click"),
        ([2, 3], "int", "2"),
        ([2.0, 2.5], "double", 2),
        ([2.0, float("nan")], "double", 2),
        ([Decimal("1.00000000000000000001"), Decimal(0)], "decimal(38,20)", 1),
        ([date(2026, 1, 1)], "date", "2026-01-01"),
    ],
)
def test_labels_that_states_refuses_are_refused(
    spark: SparkSession, labels: list[object], kind: str, positive: int | str
) -> None:
    df = spark.createDataFrame([(v, 0.5) for v in labels], f"labels {kind}, scores double")
    with pytest.raises(Exception, match=r"InputError: labels\["):
        counts(df, BinaryConfusion(positive=positive)).toArrow()


def test_a_group_column_has_any_name_but_those_of_states(spark: SparkSession) -> None:
    names = ["cell", "rows", "truth", "label"]
    table = pa.table({**{name: ["a"] for name in names}, "labels": [1], "scores": [0.5]})
    df = spark.createDataFrame(table)
    state = BinaryConfusion()
    state.update([1], [0.5])
    assert digests_of(counts(df, BinaryConfusion(), names)) == {("a",) * 4: state.digest()}
    with pytest.raises(SettingsError, match="columns not named bucket or state"):
        counts(df.withColumnRenamed("cell", "state"), BinaryConfusion(), ["state"])


@pytest.mark.parametrize(("label", "score"), [(2, 0.5), (None, 0.5), (1, float("nan")), (0, 1.5)])
def test_what_a_metric_refuses_is_refused(
    spark: SparkSession, label: int | None, score: float | None
) -> None:
    table = pa.table({"labels": pa.array([1, label], pa.int32()), "scores": pa.array([0.5, score])})
    with pytest.raises(Exception, match="InputError"):
        counts(spark.createDataFrame(table), SPECS[1]).toArrow()


def test_metrics_that_are_no_plain_counts_and_rows_with_weights_are_refused(
    spark: SparkSession,
) -> None:
    rows = {"labels": [1, 0], "scores": [0.5, 0.1], "numerators": [1, 0]}
    plain = spark.createDataFrame(pa.table(rows))
    refused: list[Accumulator] = [HistogramAUC(), Ratio(), BinaryConfusion(weight_unit="1/10")]
    for spec in refused:
        with pytest.raises(SettingsError):
            counts(plain, spec)  # type: ignore[arg-type]
    weighted = spark.createDataFrame(pa.table({**rows, "weights": [1, 2]}))
    with pytest.raises(SettingsError, match="weights"):
        counts(weighted, BinaryConfusion())
    collated = spark.sql("SELECT 'click' COLLATE UTF8_LCASE AS labels, 0.5D AS scores")
    with pytest.raises(SettingsError, match="labels without a collation"):
        counts(collated, BinaryConfusion(positive="click"))
    with pytest.raises(SettingsError, match="True or False"):
        counts(plain, BinaryConfusion(), provenance="rows")  # type: ignore[arg-type]
