"""States of tables have the digest of one process, by every route and after every fault; users that
meet in a bucket are sealed there, of a table and of a stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streammetrics import InputError, Ratio, SettingsError
from streammetrics.engines import Positions, Sealing, seal
from streammetrics.engines.spark import aggregate, merge, results, states, stream
from tests.engines.log_rows import (
    COLUMNS,
    SPEC,
    digests,
    digests_of,
    log_table,
    merged_states,
    updated_states,
    write_shards,
)
from tests.engines.spark.faults import failing_once
from tests.engines.spark.test_micro_batches import Upserts, rows_of, run

BY = ("variant", "phase")
TABLE = log_table()


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    return spark.read.parquet(write_shards(tmp_path_factory.mktemp("log"), TABLE))


@pytest.fixture(scope="module")
def expected() -> dict[tuple[object, ...], str]:
    return digests(updated_states(TABLE, SPEC, BY))


def test_tasks_count_what_they_have_and_their_states_merge(
    log: DataFrame, expected: dict[tuple[object, ...], str]
) -> None:
    assert digests_of(merge(states(log, SPEC, BY, columns=COLUMNS))) == expected


def test_users_meet_in_buckets_and_the_states_merge(
    log: DataFrame, expected: dict[tuple[object, ...], str]
) -> None:
    counted = states(log, SPEC, BY, columns=COLUMNS, user="user", n_buckets=5)
    assert digests_of(merge(counted)) == expected


def test_states_are_stored_as_parquet_and_rolled_up_later(
    spark: SparkSession, log: DataFrame, tmp_path: Path
) -> None:
    states(log, SPEC, BY, columns=COLUMNS).write.parquet(str(tmp_path / "states"))
    stored = spark.read.parquet(str(tmp_path / "states"))
    assert digests_of(merge(stored, ["phase"], tree=2)) == digests(
        updated_states(TABLE, SPEC, ["phase"])
    )
    assert digests_of(merge(stored, [])) == digests(updated_states(TABLE, SPEC))


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_task_that_fails_while_it_counts_is_run_again_and_counts_once(
    log: DataFrame, expected: dict[tuple[object, ...], str], how: str, tmp_path: Path
) -> None:
    rows = failing_once(log, how, tmp_path / "rows")
    assert digests_of(merge(states(rows, SPEC, BY, columns=COLUMNS))) == expected
    counted = states(log, SPEC, BY, columns=COLUMNS, user="user", n_buckets=4)
    assert digests_of(merge(failing_once(counted, how, tmp_path / "states"))) == expected
    assert (tmp_path / "rows").exists() and (tmp_path / "states").exists()


def test_results_are_rows_of_figures(log: DataFrame) -> None:
    rows = aggregate(log, SPEC, ["variant"], columns=COLUMNS).toArrow().to_pylist()
    assert list(rows[0]) == ["variant", "metric", "view", "value", "low", "high"]
    state = updated_states(TABLE, SPEC, ["variant"])[("a",)]
    ratio = state.compute()["ctr"].ratio  # type: ignore[index]
    ctr = {"variant": "a", "metric": "ctr", "view": "ratio"}
    matches = [r for r in rows if r.items() >= ctr.items()]
    assert matches == [{**ctr, "value": ratio, "low": ratio, "high": ratio}]
    merged_rows = results(states(log, SPEC, ["variant"], columns=COLUMNS)).toArrow().to_pylist()
    assert sorted(map(str, merged_rows)) == sorted(map(str, rows))


def test_no_rows_are_no_groups(log: DataFrame) -> None:
    assert aggregate(log.limit(0), SPEC, BY, columns=COLUMNS).toArrow().num_rows == 0


def test_a_second_try_of_a_state_refuses_or_is_left_out_on_request(log: DataFrame) -> None:
    counted = states(log, SPEC, columns=COLUMNS)
    twice = counted.union(counted)
    with pytest.raises(Exception, match="twice"):
        merge(twice).toArrow()
    assert digests_of(merge(twice, replay="skip")) == digests(updated_states(TABLE, SPEC))
    (bare,) = merged_states(merge(states(log, SPEC, columns=COLUMNS, provenance=False))).values()
    assert list(bare.provenance) == []


def test_two_runs_of_a_named_job_refuse_and_two_jobs_do_not(log: DataFrame) -> None:
    first, second = (states(log, SPEC, columns=COLUMNS, job="june") for _ in range(2))
    with pytest.raises(Exception, match="twice"):
        merge(first.union(second)).toArrow()
    unnamed_job = states(log, SPEC, columns=COLUMNS)
    twice = updated_states(TABLE, SPEC)[()] + updated_states(TABLE, SPEC)[()]
    assert digests_of(merge(first.union(unnamed_job))) == {(): twice.digest()}


def test_rows_that_know_their_offsets_leave_ranges_of_them(log: DataFrame) -> None:
    places = Positions(("variant", "partition"), "offset")
    clicks = F.lit("clicks")  # a topic; a partition is read by one task, as of a log
    whole = log.withColumn("variant", clicks).repartition(4, "partition")
    (state,) = merged_states(
        merge(states(whole, SPEC, columns=COLUMNS, provenance=places))
    ).values()
    ranges = [(source, start, end) for source, _, start, end in state.provenance]
    assert ranges == [(f"clicks/{p}", 0, TABLE.num_rows // 4) for p in range(4)]


def test_ansi_arithmetic_makes_no_difference(
    spark: SparkSession, log: DataFrame, expected: dict[tuple[object, ...], str]
) -> None:
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        counted = states(log, SPEC, BY, columns=COLUMNS, user="user", n_buckets=3)
        assert digests_of(merge(counted)) == expected
    spark.conf.unset("spark.sql.ansi.enabled")


def test_rows_that_a_metric_refuses_end_the_job_with_its_reason(spark: SparkSession) -> None:
    rows = spark.createDataFrame(pa.table({"numerators": np.array([1.0, np.nan])}))
    with pytest.raises(Exception, match="numerators"):
        aggregate(rows, Ratio()).toArrow()


@pytest.mark.parametrize(
    "arguments",
    [
        {"user": "user"},
        {"user": "user", "n_buckets": 0},
        {"scope": "june"},
        {"user": "nobody", "n_buckets": 4},
        {"columns": {"labels": "label", "scores": "score", "users": "nobody"}},
        {"columns": {"colours": "label"}},
        {"by": ["nothing"]},
        {"by": None},
        {"provenance": "rows"},
    ],
)
def test_what_does_not_fit_is_refused_before_a_job_starts(
    log: DataFrame, arguments: dict[str, object]
) -> None:
    with pytest.raises(SettingsError):
        states(log, SPEC, **{"columns": COLUMNS, **arguments})  # type: ignore[arg-type]


def test_group_columns_are_named_as_no_column_of_results(log: DataFrame) -> None:
    named = log.withColumnRenamed("variant", "value")
    with pytest.raises(InputError, match="by: expected names of columns"):
        aggregate(named, SPEC, ["value"], columns=COLUMNS)
    with pytest.raises(InputError, match="by: expected names of columns"):
        results(states(named, SPEC, ["value"], columns=COLUMNS))


USERS = {"columns": COLUMNS, "user": "user"}


def sealed_whole(group_columns: list[str], scope: str) -> dict[tuple[object, ...], str]:
    """The digests that one process gets: sealing does not depend on the buckets."""
    sealing = Sealing("user", 1, "none", scope)
    return {
        key: seal(state, sealing).digest()
        for key, state in updated_states(TABLE, SPEC, group_columns).items()
    }


def test_sealed_buckets_merge_to_the_sealed_whole(log: DataFrame) -> None:
    counted = states(log, SPEC, ["variant"], **USERS, n_buckets=7, scope="june")
    merged = merged_states(merge(counted))
    assert {k: s.digest() for k, s in merged.items()} == sealed_whole(["variant"], "june")
    for key, open_state in updated_states(TABLE, SPEC, ["variant"]).items():
        gauc = merged[key].compute()["gauc"].gauc  # type: ignore[index]
        assert float(gauc) == float(open_state.compute()["gauc"].gauc)  # type: ignore[index]
        assert merged[key].complete  # type: ignore[attr-defined]


def test_a_stream_gives_sealed_states_of_all_rows_so_far(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = rows_of(spark, write_shards(tmp_path / "log", TABLE, shards=3))
    sink = Upserts()
    run(stream(rows, SPEC, **USERS, n_buckets=3, scope="june"), sink, tmp_path / "checkpoint")
    assert {k: s.digest() for k, s in sink.merged().items()} == sealed_whole([], "june")
