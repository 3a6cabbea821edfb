"""States from plain counts: Spark counts in SQL, and Python reads one row per label and cell."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import pyarrow as pa
from numpy.typing import ArrayLike
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streammetrics.classification import BinaryConfusion, HistogramAUC
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.checks import binary_labels
from streammetrics.core.conversion import flag
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.forms import PlainCells
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.tables.arrow_values import arrow_column
from streammetrics.engines.groups import BUCKET, STATE, group_names, piece_of
from streammetrics.engines.spark.frames import (
    columns_of,
    quoted,
    require_columns,
    require_other_names,
    states_type,
)

Counting = BinaryConfusion | HistogramAUC

# Beside them are the group columns, which may have any name.
_LABEL, _CELL, _ROWS = "streammetrics label", "streammetrics cell", "streammetrics rows"
_FLOATS = ("float", "double")


def counts(
    df: DataFrame,
    spec: Counting,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    job: str | None = None,
    provenance: bool = True,
) -> DataFrame:
    """`states(df, spec, by)` for a metric of plain counts: the same states, counted by SQL.

    spec: BinaryConfusion, or HistogramAUC(grid="equal"), whose buckets are exact in floats, without
    weights. The scores must be of type float or double. Python reads one row for each label and
    non-empty cell; `benchmarks/spark_routes.py` measures the gain. Columns are columns of the
    table, for SQL rounds and compares otherwise than the expressions of `states`.
    """
    cells, column_names = _checked(df, spec, columns)
    noted = flag(provenance, "counts(provenance)", SettingsError)
    keys = group_names(by)
    require_columns(df, [*keys, *column_names.values()])
    require_other_names(keys, keys, "counts(by)")
    label = F.col(quoted(column_names["labels"]))  # which Python compares with the positive class
    cell = _cell(F.col(quoted(column_names["scores"])).cast("double"), cells)
    rows = df.select(
        *(F.col(quoted(name)) for name in keys), label.alias(_LABEL), cell.alias(_CELL)
    )
    counted = rows.groupBy(*keys, _LABEL, _CELL).agg(F.count(F.lit(1)).alias(_ROWS))
    name = (job or f"spark-{uuid.uuid4().hex}") if noted else None
    return counted.groupBy(*keys).applyInArrow(_state(spec, keys, name), states_type(df, keys))


def _checked(
    df: DataFrame, spec: Counting, columns: Mapping[str, str] | None
) -> tuple[PlainCells, Mapping[str, str]]:
    """The cells, and the columns of labels and scores; SettingsError for anything SQL cannot count
    exactly."""
    metric: object = spec
    cells = metric._plain_cells() if isinstance(metric, Accumulator) else None
    if cells is None:
        raise _refused('BinaryConfusion or HistogramAUC(grid="equal")', shown(spec), "spec")
    spec.from_counts([], [], [])  # refuses a spec with weights
    read, _ = columns_of(df, spec, columns)
    column_names = {argument: str(column) for argument, column in read.items()}
    if "weights" in column_names:
        raise _refused("rows without weights", shown(column_names["weights"]), "columns")
    require_columns(df, list(column_names.values()))
    kind = df.schema[column_names["scores"]].dataType.simpleString()
    if kind not in _FLOATS:
        raise _refused("scores of type float or double", kind, column_names["scores"])
    label_kind = df.schema[column_names["labels"]].dataType.simpleString()
    if "collate" in label_kind:  # SQL would take Click for click
        raise _refused("labels without a collation", label_kind, column_names["labels"])
    return cells, column_names


def _cell(score: Column, cells: PlainCells) -> Column:
    """The prediction or the bucket, or -1 for an invalid score. Products with 2**r are exact."""
    no_score = score.isNull() | F.isnan(score)
    if cells.threshold is not None:
        above = (score >= F.lit(cells.threshold)).cast("int")
        return F.when(no_score, -1).otherwise(above)
    inside = ~no_score & (score >= 0) & (score <= 1)
    bucket = F.least((score * F.lit(float(cells.buckets))).cast("int"), F.lit(cells.buckets - 1))
    return F.when(inside, bucket).otherwise(-1)


def _state(
    spec: Counting, by: Sequence[str], job: str | None
) -> Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def state_of(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        cells = pa.Table.from_batches(list(batches))
        values = cast("ArrayLike | DictionaryColumn", arrow_column(cells[_LABEL], "labels"))
        labels = binary_labels(values, "labels", spec.positive)
        state = spec.from_counts(labels, *(cells[name].to_numpy() for name in (_CELL, _ROWS)))
        if job is not None:
            piece = piece_of((value.as_py() for value in key), 0)
            state.provenance.add(f"{job}/tasks", 0, 1, piece)
        row = [pa.array([value.as_py()], value.type) for value in key]
        row += [pa.array([0], pa.int32()), pa.array([state.to_file_bytes()], pa.binary())]
        yield pa.RecordBatch.from_arrays(row, [*by, BUCKET, STATE])

    return state_of


def _refused(expected: str, got: str, where: str) -> SettingsError:
    return SettingsError(
        expected=expected,
        got=got,
        where=f"counts({where})",
        hint="use `states`, which accepts every metric",
    )
