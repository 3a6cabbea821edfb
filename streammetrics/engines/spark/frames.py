"""States of tables: counted by tasks, merged inside the engine, and read as rows; and the selection
and checks of the table's columns."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.tables import Names, TableRequest, needed_columns
from streammetrics.engines import Positions, Sealing, Task, partial
from streammetrics.engines.groups import BUCKET, STATE, group_names, require_users
from streammetrics.engines.keyed import (
    SHARDS,
    StatesByGroup,
    batch_of_figures,
    results_of_shard,
    shards,
)
from streammetrics.engines.merging import (
    RESULT_NUMBERS,
    RESULT_TEXTS,
    figures_of_states,
    read_state,
    require_no_result_names,
)
from streammetrics.engines.partial import positions_of

_PLAIN = (StringType(), ByteType(), ShortType(), IntegerType(), LongType(), BooleanType())
Batches = Iterator[pa.RecordBatch]


def states(
    df: DataFrame,
    spec: Accumulator,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    user: str | None = None,
    n_buckets: int | None = None,
    scope: str = "",
    job: str | None = None,
    provenance: Positions | bool = True,
) -> DataFrame:
    """A table (by..., bucket int, state binary): the state of each task, to store or merge.

    spec: an empty accumulator. by: columns of strings, integers or bools; null is a group. columns:
    argument of `spec.update` -> column, if the names differ, or expression of columns; where: the
    condition on rows; both as in `Accumulator.update_from`, and evaluated as there, not by Spark.

    user, n_buckets: the rows of a user are in one of `n_buckets` buckets; each group and bucket is
    counted separately, so that a task holds one of them at a time. scope: a name for the rows, such
    as "2026-11-01": then each bucket is sealed, and GroupedAUC is a kilobyte instead of its users.
    Without buckets each task of the table counts its own rows, and nothing is shuffled.

    The provenance of a state is its task of `job` (default: a new name for each call), with
    Positions the ranges of offsets of the rows, with False nothing. A retry of a state refuses to
    merge with the first try.
    """
    positions = positions_of(provenance, "states(provenance)")
    # Evaluated on `df` itself: in a union the number of the running task would be different.
    task = F.spark_partition_id()
    rows = rows_of(df, spec, by, columns, where, user, n_buckets, scope, positions, task)
    job_name = (job or f"spark-{uuid.uuid4().hex}") if provenance is True else None
    if user is None:
        return rows.table.mapInArrow(
            _count_partition(rows, job_name, positions), rows.state_columns()
        )
    count = _count_group(rows, job_name, positions)
    return rows.table.groupBy(*rows.by, BUCKET).applyInArrow(count, rows.state_columns())


def merge(
    states_df: DataFrame,
    by: Sequence[str] | None = None,
    *,
    replay: str = "refuse",
    tree: int = 0,
) -> DataFrame:
    """A table (by..., bucket = 0, state): one state per group of the columns `by`.

    by: default all group columns. replay="skip": a state that is already fully counted is left
    out; "refuse" raises OverlapError for it. tree: the number of states per group that buckets are
    merged into first, in parallel; for thousands of tasks.
    """
    keys = groups_of(states_df) if by is None else group_names(by)
    if tree:
        states_df = states_df.withColumn(BUCKET, F.pmod(F.col(BUCKET), F.lit(tree)))
        states_df = _merged_by(states_df, (*keys, BUCKET), states_type(states_df, keys), replay)
    return _merged_by(states_df, keys, states_type(states_df, keys), replay)


def results(states_df: DataFrame, by: Sequence[str] | None = None) -> DataFrame:
    """A table (by..., metric, view, value, low, high): the results of the merged states.

    Read it with one `toArrow()`. An exact value has low = high = value.
    """
    merged = merge(states_df, by)
    keys = groups_of(merged)
    return merged.mapInArrow(_read(keys), _results_type(merged, keys))


def aggregate(
    df: DataFrame,
    spec: Accumulator,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    user: str | None = None,
    n_buckets: int | None = None,
    scope: str = "",
) -> DataFrame:
    """`results(states(...))`: a table (by..., metric, view, value, low, high).

    Groups without buckets of users are counted together: a task ships a keyed state for each shard
    of the groups, so that twenty thousand groups cost little more than two.
    """
    if user is not None or not by:
        counted = states(
            df,
            spec,
            by,
            columns=columns,
            where=where,
            user=user,
            n_buckets=n_buckets,
            scope=scope,
        )
        return results(counted)
    rows = rows_of(df, spec, by, columns, where, user, n_buckets, scope, None, F.lit(0))
    counted = rows.table.mapInArrow(_count_shards(rows), "shard int, state binary")
    out = _results_type(rows.table, rows.by)
    return counted.groupBy("shard").applyInArrow(_read_shard(rows), out)


def _results_type(df: DataFrame, by: Sequence[str]) -> StructType:
    """The columns by (as in `df`), metric, view, value, low and high; InputError for one of `by`
    that is named as another."""
    require_no_result_names(by)
    keys = [StructField(name, df.schema[name].dataType) for name in by]
    texts = [StructField(name, StringType()) for name in RESULT_TEXTS]
    numbers = [StructField(name, DoubleType()) for name in RESULT_NUMBERS]
    return StructType([*keys, *texts, *numbers])


def groups_of(states_df: DataFrame) -> tuple[str, ...]:
    """The group columns of a table of states."""
    return tuple(name for name in states_df.columns if name not in (BUCKET, STATE))


def _count_partition(
    rows: Rows, job: str | None, positions: Positions | None
) -> Callable[[Batches], Batches]:
    spec, group_columns, columns, where = rows.spec, rows.by, rows.columns, rows.where

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is not None:
            number = first.column(BUCKET)[0].as_py()
            counted = positions if job is None else Task(job, number)
            rows = chain([first], batches)
            yield from partial(
                rows,
                spec,
                group_columns,
                columns=columns,
                where=where,
                bucket=number,
                counted=counted,
            )

    return count


def _count_group(
    rows: Rows, job: str | None, positions: Positions | None
) -> Callable[[tuple[pa.Scalar, ...], Batches], Batches]:
    spec, group_columns, columns, where = rows.spec, rows.by, rows.columns, rows.where
    sealing = rows.sealing

    # A task is identified by its bucket, because adaptive execution coalesces partitions.
    def count(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        bucket = key[-1].as_py()
        counted = positions if job is None else Task(job, bucket)
        yield from partial(
            batches,
            spec,
            group_columns,
            columns=columns,
            where=where,
            bucket=bucket,
            counted=counted,
            sealing=sealing,
        )

    return count


def _count_shards(rows: Rows) -> Callable[[Batches], Batches]:
    spec, group_columns, columns, where = rows.spec, rows.by, rows.columns, rows.where

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for shard, state in shards(batches, spec, group_columns, columns, where):
            row = [pa.array([shard], pa.int32()), pa.array([state], pa.binary())]
            yield pa.RecordBatch.from_arrays(row, ["shard", STATE])

    return count


def _read_shard(rows: Rows) -> Callable[[tuple[pa.Scalar, ...], Batches], Batches]:
    fields = [pa.field(name, to_arrow_type(rows.table.schema[name].dataType)) for name in rows.by]

    def read(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        cells = (cell.as_py() for batch in batches for cell in batch.column(STATE))
        yield from results_of_shard(cells, fields)

    return read


def _merged_by(df: DataFrame, keys: Sequence[str], out: StructType, replay: str) -> DataFrame:
    """The merged states of each group of these columns; the bucket is 0 if it is none of them.

    Spark spends milliseconds on each group that it hands over, so where equal values of Spark are
    equal in Python, it hands over many, by their hash.
    """
    together = bool(keys) and all(df.schema[name].dataType in _PLAIN for name in keys)
    columns = [F.col(quoted(name)) for name in keys]
    groups = [F.pmod(F.xxhash64(*columns), F.lit(SHARDS))] if together else columns
    return df.groupBy(*groups).applyInArrow(_fold(keys, replay, together), out)


def _fold(
    keys: Sequence[str], replay: str, together: bool
) -> Callable[[tuple[pa.Scalar, ...], Batches], Batches]:
    names = [name for name in keys if name != BUCKET]

    def fold(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        states = StatesByGroup(replay)
        kinds: list[pa.DataType] = []
        for batch in batches:
            columns = [batch.column(name) for name in keys]
            kinds = kinds or [column.type for column in columns]
            groups = zip(*map(pa.Array.to_pylist, columns), strict=True) if together else repeat(())
            states.add(zip(groups, batch.column(STATE).to_pylist(), strict=together))
        for group, state in states.merged():
            values = group if together else [value.as_py() for value in key]
            columns = [pa.array([x], kind) for x, kind in zip(values, kinds, strict=True)]
            row = dict(zip(keys, columns, strict=True))
            row.setdefault(BUCKET, pa.array([0], pa.int32()))
            row[STATE] = pa.array([state], pa.binary())
            ordered = [*names, BUCKET, STATE]
            yield pa.RecordBatch.from_arrays([row[name] for name in ordered], ordered)

    return fold


def _read(keys: Sequence[str]) -> Callable[[Batches], Batches]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            states = [read_state(cell.as_py()) for cell in batch.column(STATE)]
            figures = figures_of_states(states)
            yield batch_of_figures([batch.column(name) for name in keys], figures, keys)

    return read


@dataclass(frozen=True)
class Rows:
    """A table with only the counted columns, and the bucket of each row. columns and where: as they
    were given."""

    table: DataFrame
    spec: Accumulator
    by: tuple[str, ...]
    columns: Mapping[str, str]
    where: str | None
    sealing: Sealing | None

    def state_columns(self) -> StructType:
        """The columns of states: by, bucket, state."""
        return states_type(self.table, self.by)


def rows_of(
    df: DataFrame,
    spec: Accumulator,
    by: Sequence[str],
    columns: Mapping[str, str] | None,
    where: str | None,
    user: str | None,
    n_buckets: int | None,
    scope: str,
    positions: Positions | None,
    unbucketed: Column,
) -> Rows:
    """The counted columns and the bucket, `unbucketed` without users; SettingsError if invalid."""
    group_columns = group_names(by)
    require_users(user, n_buckets)
    if scope and user is None:
        raise SettingsError(
            expected="a scope only with user and n_buckets",
            got=f"scope={shown(scope)}",
            where="states",
            hint="pass the column of the users and the number of buckets",
        )
    _, counted = columns_of(df, spec, columns, where)
    source_columns = () if positions is None else (*positions.source, positions.offset)
    needed = dict.fromkeys([*group_columns, *counted, *source_columns])
    require_columns(df, [*needed, *([] if user is None else [user])])
    require_other_names(needed, group_columns, "states(by, columns)")
    if user is None:
        bucket = unbucketed
    else:
        # xxhash64 and pmod of a long do not overflow, with or without ANSI arithmetic.
        bucket = F.pmod(F.xxhash64(F.col(quoted(user))), F.lit(n_buckets)).cast("int")
    counted_columns = [F.col(quoted(name)) for name in needed]
    table = df.select(*counted_columns, bucket.alias(BUCKET))
    rows = Rows(table, spec, group_columns, columns or {}, where, None)
    if user is None or n_buckets is None or not scope:
        return rows
    # An int, a bigint and a string of the same number have different hashes: the name has the type.
    kind = df.schema[user].dataType.simpleString()
    return replace(rows, sealing=Sealing(user, n_buckets, f"spark-xxhash64({kind})", scope))


def columns_of(
    df: DataFrame,
    spec: Accumulator,
    columns: Mapping[str, str] | None,
    where: str | None = None,
) -> tuple[Mapping[str, Names], list[str]]:
    """Argument of `spec.update` -> column, by default that of its own name; and the columns of the
    table that these and the condition are computed of. SettingsError as `update_from`."""
    try:
        return needed_columns(spec, df.columns, TableRequest({}, "states", columns, where))
    except InputError as error:
        raise SettingsError(
            expected=error.expected, got=error.got, where=error.where, hint=error.hint
        ) from None


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


def require_other_names(counted: Collection[str], by: Sequence[str], where: str) -> None:
    """SettingsError for counted columns or group columns that are named as a column of states."""
    if BUCKET in counted or STATE in by:
        raise SettingsError(
            expected=f"columns not named {BUCKET} or {STATE}, which are columns of states",
            got=shown(list(counted)),
            where=where,
            hint="rename the column: df.withColumnRenamed",
        )


def quoted(name: str) -> str:
    """A column name, which may contain dots, quoted for Spark's `col`."""
    return "`" + name.replace("`", "``") + "`"
