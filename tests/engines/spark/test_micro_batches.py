"""A stream's states are those of all rows so far, whatever crashed on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.tws_tester import TwsTester

from streammetrics import Accumulator, OverlapError, Ratio, load
from streammetrics.engines.spark import stream
from streammetrics.engines.spark.micro_batches import Cumulative
from tests.engines.log_rows import (
    COLUMNS,
    SPEC,
    Key,
    digests,
    log_table,
    updated_states,
    write_shards,
)
from tests.engines.spark.faults import failing_once

TABLE = log_table(6_000, users=300)
Write = Callable[["DataFrame", int], None]


class Upserts:
    """A store of cumulative states by (group, bucket): the last one written stays.

    fail_at: the batch in which the sink fails once, "before" or "after" its write.
    """

    def __init__(self, fail_at: int | None = None, when: str = "before") -> None:
        self.rows: dict[tuple[object, ...], bytes] = {}
        self._fail = (fail_at, when)

    def __call__(self, batch: DataFrame, number: int) -> None:
        self._maybe_fail(number, "before")
        for row in batch.toArrow().to_pylist():
            state = row.pop("state")
            self.rows[tuple(row.values())] = state
        self._maybe_fail(number, "after")

    def _maybe_fail(self, number: int, when: str) -> None:
        if self._fail == (number, when):
            self._fail = (None, when)
            raise RuntimeError("a fault of the sink")

    def merged(self) -> dict[Key, Accumulator]:
        totals: dict[Key, Accumulator] = {}
        for (*key, _bucket), data in self.rows.items():
            state = load(data)
            totals[tuple(key)] = totals[tuple(key)] + state if tuple(key) in totals else state
        return totals


def rows_of(spark: SparkSession, folder: str) -> DataFrame:
    """The files of a folder as a stream, two of them in a micro-batch."""
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(folder)


def run(states: DataFrame, sink: Write, checkpoint: Path) -> StreamingQuery:
    writer = states.writeStream.outputMode("update").foreachBatch(sink)
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_the_write_of_the_sink_counts_nothing_twice(
    spark: SparkSession, tmp_path: Path, when: str
) -> None:
    folder = write_shards(tmp_path / "log", TABLE)
    sink = Upserts(fail_at=1, when=when)
    states = stream(
        rows_of(spark, folder), SPEC, ["variant"], columns=COLUMNS, user="user", n_buckets=2
    )
    with pytest.raises(Exception, match="a fault of the sink"):
        run(states, sink, tmp_path / "checkpoint")
    assert digests(sink.merged()) != digests(updated_states(TABLE, SPEC, ["variant"]))
    run(states, sink, tmp_path / "checkpoint")
    totals = sink.merged()
    assert digests(totals) == digests(updated_states(TABLE, SPEC, ["variant"]))
    batches = {(start, end) for _, _, start, end in totals[("a",)].provenance}
    assert batches == {(0, 3)}


def test_a_task_that_fails_in_a_stream_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    rows = rows_of(spark, write_shards(tmp_path / "log", TABLE))
    states = stream(failing_once(rows, "exit", tmp_path / "mark"), SPEC, columns=COLUMNS)
    sink = Upserts()
    run(states, sink, tmp_path / "checkpoint")
    assert digests(sink.merged()) == digests(updated_states(TABLE, SPEC))
    assert (tmp_path / "mark").exists()


def test_a_batch_adds_to_the_state_and_gives_all_of_it() -> None:
    tester = TwsTester(Cumulative(["variant"], None, note_batches=True))
    rng = np.random.default_rng(3)
    clicks = rng.integers(0, 2, 60)
    whole = Ratio()
    for i in range(0, 60, 20):
        parts = []
        for part in (clicks[i : i + 13], clicks[i + 13 : i + 20]):
            state = Ratio()
            state.update(part)
            whole.update(part)
            parts.append(Row(variant="a", bucket=0, state=state.to_file_bytes()))
        (row,) = tester.test(("a", 0), parts)
        assert (row["variant"], row["bucket"]) == ("a", 0)
        assert load(row["state"]) == whole


def test_groups_and_buckets_have_states_apart() -> None:
    tester = TwsTester(Cumulative(["variant"], None, note_batches=False))
    state = Ratio()
    state.update([1, 0])
    for key in (("a", 0), (None, 0), ("a", 1)):
        row = Row(variant=key[0], bucket=key[1], state=state.to_file_bytes())
        (output,) = tester.test(key, [row])
        assert load(output["state"]) == state


def test_rows_that_were_counted_before_are_refused() -> None:
    tester = TwsTester(Cumulative([], None, note_batches=False))
    state = Ratio()
    state.update([1, 0])
    state.provenance.add("clicks/0", 0, 2)
    tester.test((0,), [Row(bucket=0, state=state.to_file_bytes())])
    with pytest.raises(OverlapError):
        tester.test((0,), [Row(bucket=0, state=state.to_file_bytes())])
