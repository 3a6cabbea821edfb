"""States of a stream: each micro-batch adds to them, and emits the whole states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streammetrics.core.accumulator import Accumulator
from streammetrics.engines import Positions, Sealing, merged, partial, seal
from streammetrics.engines.groups import BUCKET, STATE, piece_of, piece_of_group
from streammetrics.engines.partial import positions_of
from streammetrics.engines.spark.frames import Rows, rows_of


def stream(
    df: DataFrame,
    spec: Accumulator,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    user: str | None = None,
    n_buckets: int | None = None,
    scope: str = "",
    provenance: Positions | bool = True,
) -> DataFrame:
    """A streaming table (by..., bucket int, state binary): states of all rows so far.

    A micro-batch emits the whole state of each group and bucket that it changed, so that a sink
    replaces the row of (by..., bucket), and writing it twice is harmless. Write it with
    outputMode("update") and a checkpoint; Spark needs the RocksDB state store for it:
    `org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider`.

    The arguments are those of `states`. Each micro-batch reads and writes the groups and buckets of
    its rows. The provenance of a state is the batches of the query, `QUERY/batches: [0, 7)`, or
    with Positions the ranges of offsets.
    """
    positions = positions_of(provenance, "stream(provenance)")
    rows = rows_of(df, spec, by, columns, where, user, n_buckets, scope, positions, F.lit(0))
    added = rows.table.mapInArrow(_count(rows, positions), rows.state_columns())
    processor = Cumulative(rows.by, rows.sealing, note_batches=provenance is True)
    return added.groupBy(*rows.by, BUCKET).transformWithState(
        processor, rows.state_columns(), "Update", "None"
    )


class Cumulative(StatefulProcessor):  # type: ignore[misc]  # pyspark is not in each environment
    """Keeps one state for each group and bucket; emits it, sealed if `sealing` is given."""

    def __init__(self, by: Sequence[str], sealing: Sealing | None, *, note_batches: bool) -> None:
        self._by = tuple(by)
        self._sealing = sealing
        self._note_batches = note_batches

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._held = handle.getValueState(STATE, f"{STATE} binary")

    def handleInputRows(
        self, key: object, rows: Iterable[Row], timerValues: object
    ) -> Iterator[Row]:
        """The whole state, with these rows of partial states added."""
        partial_rows = list(rows)
        group = {name: partial_rows[0][name] for name in (*self._by, BUCKET)}
        total = merged(bytes(row[STATE]) for row in partial_rows)
        group_values = [group[name] for name in self._by]
        if self._note_batches:
            _note_batch(total, piece_of(group_values, group[BUCKET]))
        if self._held.exists():
            before = merged([bytes(self._held.get()[0])])
            before.merge(total)
            total = before
        self._held.update((total.to_file_bytes(),))
        shown = (
            total
            if self._sealing is None
            else seal(total, self._sealing, group[BUCKET], piece_of_group(group_values))
        )
        yield Row(**group, **{STATE: shown.to_file_bytes()})

    def close(self) -> None:
        """Do nothing: all state is in Spark's state store."""


def _note_batch(state: Accumulator, piece: str) -> None:
    """Note the batch of the query in the provenance; a rerun of the batch has the same number."""
    context = TaskContext.get()
    batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    if context is not None and batch is not None:
        query = context.getLocalProperty("sql.streaming.queryId")
        state.provenance.add(f"spark-{query}/batches", int(batch), int(batch) + 1, piece)


def _count(
    rows: Rows, positions: Positions | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    spec, group_columns, columns, where = rows.spec, rows.by, rows.columns, rows.where

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from partial(
            batches,
            spec,
            group_columns,
            columns=columns,
            where=where,
            bucket=BUCKET,
            counted=positions,
        )

    return count
