"""What a table must have, and what is taken of it: the rows that tasks count, with their bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError, shown
from streammetrics.engines import Positions, Sealing
from streammetrics.engines.arrow import renamed_columns
from streammetrics.engines.groups import BUCKET, STATE, require_buckets


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
    _require_buckets(user, n_buckets, scope)
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
    named = {}
    for argument, required in takes.items():
        column = columns.get(argument, argument)
        if required or argument in columns or column in df.columns:
            named[argument] = column
    return named


def states_type(df: DataFrame, by: Sequence[str]) -> StructType:
    """The columns by (as in `df`), bucket and state."""
    keys = [StructField(name, df.schema[name].dataType) for name in by]
    state = StructField(STATE, BinaryType(), nullable=False)
    return StructType([*keys, StructField(BUCKET, IntegerType(), nullable=False), state])


def _require_buckets(user: str | None, n_buckets: int | None, scope: str) -> None:
    if (user is None) != (n_buckets is None) or (scope and user is None):
        raise SettingsError(
            expected="user and n_buckets together, and scope only beside them",
            got=f"user={shown(user)}, n_buckets={shown(n_buckets)}, scope={shown(scope)}",
            where="states",
            hint="name the column whose rows shall meet in a task, and in how many buckets",
        )
    if n_buckets is not None:
        require_buckets(n_buckets)


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
