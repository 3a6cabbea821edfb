"""States of tables: counted by tasks, merged inside the engine, and read as rows; and what a table
must have for that, and what is taken of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError, shown
from streammetrics.engines import Positions, Sealing, Task, merge_all, partial, results_rows
from streammetrics.engines.arrow import columns_read, renamed_columns
from streammetrics.engines.groups import BUCKET, STATE, require_users

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


@dataclass(frozen=True)
class Rows:
    """A table that has the columns that are counted and no others, and the bucket of each row."""

    table: DataFrame
    spec: Accumulator
    by: tuple[str, ...]
    columns: Mapping[str, str]
    sealing: Sealing | None

    def out(self) -> StructType:
        """The columns of states: by, bucket, state."""
        return states_type(self.table, self.by)


def rows_of(
    df: DataFrame,
    spec: Accumulator,
    by: Sequence[str],
    columns: Mapping[str, str] | None,
    user: str | None,
    n_buckets: int | None,
    scope: str,
    positions: Positions | None,
    unbucketed: Column,
) -> Rows:
    """The columns that are counted and the bucket, `unbucketed` without users; or SettingsError."""
    by = (by,) if isinstance(by, str) else tuple(by)
    require_users(user, n_buckets)
    if scope and user is None:
        raise SettingsError(
            expected="a scope only beside user and n_buckets",
            got=f"scope={shown(scope)}",
            where="states",
            hint="name the column whose rows shall meet in a task, and in how many buckets",
        )
    named = columns_of(df, spec, columns)
    places = () if positions is None else (*positions.source, positions.offset)
    needed = dict.fromkeys([*by, *named.values(), *places])
    require_columns(df, [*needed, *([] if user is None else [user])])
    if BUCKET in needed or STATE in by:
        raise SettingsError(
            expected=f"columns that are not named {BUCKET} or {STATE}: states have these",
            got=shown(list(needed)),
            where="states(by, columns)",
            hint="rename the column: df.withColumnRenamed",
        )
    if user is None:
        bucket = unbucketed
    else:
        # xxhash64 and pmod of a long do not overflow, with ANSI arithmetic or without.
        bucket = F.pmod(F.xxhash64(F.col(quoted(user))), F.lit(n_buckets)).cast("int")
    kept = [F.col(quoted(name)) for name in needed]
    rows = Rows(df.select(*kept, bucket.alias(BUCKET)), spec, by, named, None)
    if user is None or n_buckets is None or not scope:
        return rows
    # The same number is hashed otherwise as an int, a bigint or a string: the type is in the name.
    kind = df.schema[user].dataType.simpleString()
    return replace(rows, sealing=Sealing(user, n_buckets, f"spark-xxhash64({kind})", scope))


def columns_of(
    df: DataFrame, spec: Accumulator, columns: Mapping[str, str] | None
) -> dict[str, str]:
    """Argument of `spec.update` -> column; what is not named is the column of its own name."""
    columns = renamed_columns(spec, columns or {}, df.columns, "states(columns)")
    takes = spec.arguments()
    strange = sorted(columns.keys() - takes.keys())
    if strange:
        raise SettingsError(
            expected=f"some of {', '.join(takes)}",
            got=", ".join(strange),
            where="states(columns)",
            hint=f"name arguments of {type(spec).__name__}.update",
        )
    return columns_read(spec, df.columns, columns)


def states_type(df: DataFrame, by: Sequence[str]) -> StructType:
    """The columns by (as in `df`), bucket and state."""
    keys = [StructField(name, df.schema[name].dataType) for name in by]
    state = StructField(STATE, BinaryType(), nullable=False)
    return StructType([*keys, StructField(BUCKET, IntegerType(), nullable=False), state])


def require_columns(df: DataFrame, names: Sequence[str]) -> None:
    """SettingsError for a column that the table does not have."""
    for name in names:
        if name not in df.columns:
            raise SettingsError(
                expected=f"columns of the table: {', '.join(df.columns)}",
                got=shown(name),
                where="by, columns or user",
                hint="name a column, for instance columns={'labels': 'label'}",
            )


def quoted(name: str) -> str:
    """A column's name, dots and all, as Spark's `col` takes it."""
    return "`" + name.replace("`", "``") + "`"
