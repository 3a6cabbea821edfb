"""States of tables: counted by tasks, merged inside the engine, and read as rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from streammetrics.core.accumulator import Accumulator
from streammetrics.engines import Positions, Task, merge_all, partial, results_rows
from streammetrics.engines.groups import BUCKET, STATE
from streammetrics.engines.spark.tables import Rows, rows_of, states_type

Batches = Iterator[pa.RecordBatch]


def states(
    df: DataFrame,
    spec: Accumulator,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    user: str | None = None,
    n_buckets: int | None = None,
    scope: str = "",
    job: str | None = None,
    provenance: Positions | bool = True,
) -> DataFrame:
    """A table (by..., bucket int, state binary): what each task counted, to be stored or merged.

    spec: an empty accumulator. by: columns of strings, integers or bools; null is a group. columns:
    argument of `spec.update` -> column, where the names differ.

    user, n_buckets: the rows of a user meet in one of `n_buckets` buckets; each group and bucket is
    counted apart, so that a task holds one of them at a time. scope: what the rows are, such as
    "2026-11-01": then each bucket is sealed, and GroupedAUC is a kilobyte instead of its
    users.
    Without buckets each task of the table counts what it has, and nothing is shuffled.

    Beside a state stands what it counted: its task of `job` (default: a new name for each call), or
    with Positions the ranges of offsets of the rows, or with False nothing. A state that is merged
    with a second try of itself refuses.
    """
    positions = provenance if isinstance(provenance, Positions) else None
    # Of `df`, whatever stands before it: a task's own number is another one in a union.
    task = F.spark_partition_id()
    rows = rows_of(df, spec, by, columns, user, n_buckets, scope, positions, task)
    named = (job or f"spark-{uuid.uuid4().hex}") if provenance is True else None
    if user is None:
        return rows.table.mapInArrow(_count_partition(rows, named, positions), rows.out())
    count = _count_group(rows, named, positions)
    return rows.table.groupBy(*rows.by, BUCKET).applyInArrow(count, rows.out())


def merge(
    states_df: DataFrame,
    by: Sequence[str] | None = None,
    *,
    replay: str = "refuse",
    tree: int = 0,
) -> DataFrame:
    """A table (by..., bucket = 0, state): one state for each group of some of the columns.

    by: default all columns of the groups. replay="skip": a state that is wholly counted already is
    left out; "refuse" raises OverlapError for it. tree: into how many states of each group
    neighbouring buckets are merged first, side by side; for thousands of tasks.
    """
    keys = groups_of(states_df) if by is None else tuple(by)
    if tree:
        some = states_df.withColumn(BUCKET, F.pmod(F.col(BUCKET), F.lit(tree)))
        fold = _fold(keys, replay, keep_bucket=True)
        states_df = some.groupBy(*keys, BUCKET).applyInArrow(fold, states_type(states_df, keys))
    fold = _fold(keys, replay, keep_bucket=False)
    return states_df.groupBy(*keys).applyInArrow(fold, states_type(states_df, keys))


def results(states_df: DataFrame, by: Sequence[str] | None = None) -> DataFrame:
    """A table (by..., metric, view, value, low, high): what the merged states say.

    Read it with one `toArrow()`. An exact value has low = high = value.
    """
    merged = merge(states_df, by)
    keys = groups_of(merged)
    text = [StructField(name, StringType()) for name in ("metric", "view")]
    numbers = [StructField(name, DoubleType()) for name in ("value", "low", "high")]
    out = [*(merged.schema[name] for name in keys), *text, *numbers]
    return merged.mapInArrow(_read(keys), StructType(out))


def aggregate(
    df: DataFrame,
    spec: Accumulator,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    user: str | None = None,
    n_buckets: int | None = None,
    scope: str = "",
) -> DataFrame:
    """`results(states(...))`: a table (by..., metric, view, value, low, high)."""
    counted = states(df, spec, by, columns=columns, user=user, n_buckets=n_buckets, scope=scope)
    return results(counted)


def groups_of(states_df: DataFrame) -> tuple[str, ...]:
    """The columns of the groups of a table of states."""
    return tuple(name for name in states_df.columns if name not in (BUCKET, STATE))


def _count_partition(
    rows: Rows, job: str | None, positions: Positions | None
) -> Callable[[Batches], Batches]:
    spec, by, columns = rows.spec, rows.by, rows.columns

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is not None:
            number = first.column(BUCKET)[0].as_py()
            counted = positions if job is None else Task(job, number)
            rows = chain([first], batches)
            yield from partial(rows, spec, by, columns=columns, bucket=number, counted=counted)

    return count


def _count_group(
    rows: Rows, job: str | None, positions: Positions | None
) -> Callable[[tuple[pa.Scalar, ...], Batches], Batches]:
    spec, by, columns, sealing = rows.spec, rows.by, rows.columns, rows.sealing

    # A task is named by its bucket, not by the partition: adaptive execution joins partitions.
    def count(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        bucket = key[-1].as_py()
        counted = positions if job is None else Task(job, bucket)
        yield from partial(
            batches, spec, by, columns=columns, bucket=bucket, counted=counted, sealing=sealing
        )

    return count


def _fold(
    by: Sequence[str], replay: str, *, keep_bucket: bool
) -> Callable[[tuple[pa.Scalar, ...], Batches], Batches]:
    def fold(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        held = (cell.as_py() for batch in batches for cell in batch.column(STATE))
        state = merge_all(held, replay=replay)
        keys = key if keep_bucket else (*key, pa.scalar(0, pa.int32()))
        row = [pa.array([value.as_py()], value.type) for value in keys]
        row.append(pa.array([state], pa.binary()))
        yield pa.RecordBatch.from_arrays(row, [*by, BUCKET, STATE])

    return fold


def _read(keys: Sequence[str]) -> Callable[[Batches], Batches]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [results_rows(cell.as_py()) for cell in batch.column(STATE)]
            of = pa.array([i for i, rows in enumerate(found) for _ in rows], pa.int64())
            flat = list(zip(*(row for rows in found for row in rows), strict=True)) or [()] * 5
            kinds = [pa.string(), pa.string(), pa.float64(), pa.float64(), pa.float64()]
            made = [pa.array(list(v), kind) for v, kind in zip(flat, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(
                [*(batch.column(name).take(of) for name in keys), *made],
                [*keys, "metric", "view", "value", "low", "high"],
            )

    return read
