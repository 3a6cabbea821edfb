"""Which columns of a table `update_from` reads, and the arguments of `update` made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import same_length
from streammetrics.core.conversion import has_rounded, vector
from streammetrics.core.errors import InputError, nearest, shown
from streammetrics.core.ids.keys import key_column, tuples_of
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.tables.arrow_values import Lists, Values, arrow_column, refused
from streammetrics.core.tables.derived import RowsOfTable
from streammetrics.core.tables.frame_values import pandas_column, polars_column
from streammetrics.core.tables.requests import (
    Names,
    TableRequest,
    TakesColumns,
    columns_read,
    named_columns,
    written_columns,
)

_OF_IDS: Final = ("subtopics",)  # whose rows are lists of ids, of any lengths


class ArrowStream(Protocol):
    """A table of Arrow: of pyarrow, polars, pandas, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        """The table as a PyCapsule."""


class ArrowArray(Protocol):
    """A batch of Arrow."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> object:
        """The batch as two PyCapsules."""


class Frame(Protocol):
    """A DataFrame of pandas, or of a library like it."""

    @property
    def columns(self) -> Iterable[Any]:
        """The names of the columns."""

    @property
    def iloc(self) -> Any:
        """The rows by position."""


Table: TypeAlias = "Frame | ArrowStream | ArrowArray | Mapping[str, object]"

OFFSETS: Final = "offsets"  # the argument of metrics whose rows are lists
_A_TABLE: Final = "a table: pandas, polars, Arrow, or a dict of arrays"


class Columns(NamedTuple):
    """The columns of a table."""

    names: Sequence[object]
    column: Callable[[Any], object]


class TableArguments(NamedTuple):
    """The keywords of `update` from a table. kept: the positions of the rows that meet the
    condition, None if all are kept."""

    values: dict[str, object]
    kept: NDArray[np.intp] | None


def arguments_of(spec: TakesColumns, table: Table, request: TableRequest) -> TableArguments:
    """The keywords of `spec.update` from a table [n rows]. InputError for an unknown argument or
    column, and for what is no expression."""
    where, takes, roles = request.where, spec.arguments(), spec._roles()
    table_columns = columns_of(table, where)
    kept_rows: NDArray[np.intp] | None = None
    if request.columns is None and request.condition is None:
        column_names = named_columns(spec, takes, table_columns.names, request)
    else:
        written, column_names = written_columns(spec, table_columns.names, request)
        own_columns = table_columns
        rows = RowsOfTable(written, own_columns.names, lambda name: own_column(own_columns, name))
        kept_rows = rows.kept
        names = [name for name in written.columns if name not in own_columns.names]
        table_columns = Columns([*own_columns.names, *names], rows.values)
    arguments: dict[str, object] = {}
    widths = spec.widths()
    offsets = [argument for argument in takes if roles.get(argument, argument) == OFFSETS]
    for argument, column in columns_read(spec, table_columns.names, column_names).items():
        if isinstance(column, Mapping):
            arguments[argument] = {
                name: _keys(
                    table_columns, key_column, f"{argument}[{shown(name)}]", where, column_names
                )
                for name, key_column in column.items()
            }
            continue
        if isinstance(column, str):
            values = _values(table_columns, column, argument, where, column_names)
            if isinstance(values, Lists):
                ends = [] if argument in widths else offsets
                of_ids = roles.get(argument, argument) in _OF_IDS
                _put_lists(arguments, argument, column, values, ends, of_ids=of_ids)
            else:
                arguments[argument] = values
            continue
        several = [_values(table_columns, name, argument, where, column_names) for name in column]
        join = _table if argument in widths else _tuples
        arguments[argument] = join(argument, column, several)
    return TableArguments(arguments, kept_rows)


def _keys(
    table_columns: Columns,
    column: str | Sequence[str],
    argument: str,
    where: str,
    column_names: Mapping[str, Names],
) -> object:
    """The values of a column of keys, or of several."""
    if isinstance(column, str):
        values = _values(table_columns, column, argument, where, column_names)
        if isinstance(values, Lists):
            raise _lists_of_keys(column)
        return values
    return _tuples(
        argument,
        column,
        [_values(table_columns, name, argument, where, column_names) for name in column],
    )


def columns_of(table: object, where: str) -> Columns:
    """The names of the columns of a table, and the column of a name; InputError if it is none."""
    any_table: Any = table
    if isinstance(any_table, Mapping):
        return Columns([*any_table], any_table.__getitem__)
    if hasattr(any_table, "iloc") and hasattr(any_table, "columns"):
        return Columns([*any_table.columns], any_table.__getitem__)
    if hasattr(any_table, "get_column") and hasattr(any_table, "columns"):
        return Columns(any_table.columns, any_table.get_column)
    if (
        hasattr(any_table, "column")
        and hasattr(any_table, "num_rows")
        and hasattr(any_table, "schema")
    ):
        return Columns(any_table.schema.names, any_table.column)
    if isinstance(any_table, np.ndarray) and any_table.dtype.names:
        return Columns(any_table.dtype.names, any_table.__getitem__)
    if hasattr(any_table, "__arrow_c_stream__") or hasattr(any_table, "__arrow_c_array__"):
        return columns_of(_read(any_table, where), where)
    raise _no_table(any_table, where)


def _no_table(table: object, where: str) -> InputError:
    return InputError(
        expected=_A_TABLE,
        got=f"{type(table).__name__} {shown(table)}",
        where=where,
        hint=_table_instead(table),
    )


def _read(table: Any, where: str) -> object:
    """A table of another library, read by one of Arrow."""
    try:
        import pyarrow as pa
    except ImportError:
        pass
    else:
        stream = hasattr(table, "__arrow_c_stream__")
        try:
            return pa.RecordBatchReader.from_stream(table).read_all() if stream else _batch(table)
        except pa.ArrowInvalid:
            raise _no_table(table, where) from None
    try:
        import polars
    except ImportError:
        raise InputError(
            expected="pyarrow or polars, to read Arrow",
            got=f"neither, for a {type(table).__name__}",
            where=where,
            hint="pip install pyarrow, or pass a dict of arrays",
        ) from None
    return polars.DataFrame(table)


def _batch(table: Any) -> object:
    import pyarrow as pa

    return pa.record_batch(table)


def _table_instead(table: object) -> str:
    if hasattr(table, "collect"):
        return "pass table.collect()"
    if hasattr(table, "toArrow"):
        return "pass table.toArrow(), or see streammetrics.engines for Spark"
    if isinstance(table, list | tuple | np.ndarray):
        return 'pass columns, not rows: {"label": [...], "score": [...]}'
    if hasattr(table, "iloc") or hasattr(table, "to_frame") or hasattr(table, "type"):
        return "pass the table that it is a column of"
    if hasattr(table, "groups"):
        return 'pass the table itself; PerKey(metric) counts each group, with key="column"'
    if not isinstance(table, str | PathLike):
        return "pass a table of one of these libraries, such as its to_pandas() or to_arrow()"
    return "read it first, for example with pandas.read_parquet"


def own_column(table_columns: Columns, name: str) -> object:
    """A column of a table, converted by its own library; InputError if several have its name."""
    if list(table_columns.names).count(name) > 1:
        raise refused(name, "one column of this name", "several", "rename the others")
    column = table_columns.column(name)
    if hasattr(column, "iloc"):
        return pandas_column(column, name)
    if hasattr(column, "to_physical"):
        return polars_column(column, name)
    if hasattr(column, "dictionary_encode"):
        return arrow_column(column, name)
    return column


def _values(
    table_columns: Columns, name: str, argument: str, where: str, column_names: Mapping[str, Names]
) -> Values | Lists | object:
    if name not in table_columns.names:
        used = [
            column for other_argument, column in column_names.items() if other_argument != argument
        ]
        texts = [text for text in table_columns.names if isinstance(text, str)]
        texts = [text for text in texts if text not in used] or texts
        instead = "give the columns names that are texts" if table_columns.names else "pass columns"
        if texts:
            instead = f'name the column, as in {argument}="{texts[0]}"'
        raise InputError(
            expected=f"the column {name!r}",
            got=f"columns {_few(table_columns.names)}" if table_columns.names else "no columns",
            where=f"{where}, {argument}",
            hint=nearest(name, texts, instead),
        )
    return own_column(table_columns, name)


def _few(names: Sequence[object]) -> str:
    """The first of many names."""
    n_more = len(names) - 12
    return ", ".join(map(str, names[:12])) + (f" and {n_more} more" if n_more > 0 else "")


def _put_lists(
    arguments: dict[str, object],
    argument: str,
    column: str,
    lists: Lists,
    ends: Sequence[str],
    *,
    of_ids: bool,
) -> None:
    """Lists as flat values with offsets, as they are, or as a table if all have one length.

    ends: the arguments that take these offsets. of_ids: it takes a list of ids for each item.
    """
    values, offsets = lists
    if of_ids and not ends:
        arguments[argument] = lists
        return
    if isinstance(values, Lists) and not of_ids:
        raise refused(column, "lists of values", "lists of lists", "pass one list for each row")
    if ends:
        arguments[argument] = values
        for end in ends:
            if not np.array_equal(np.asarray(arguments.setdefault(end, offsets)), offsets):
                raise refused(
                    column,
                    "lists as long as those of other columns",
                    "other lengths",
                    "pass an item in each",
                )
        return
    sizes = np.diff(offsets)
    if not isinstance(values, np.ndarray):
        raise refused(column, "lists of numbers", "lists of other values", "convert them")
    if len(sizes) and int(sizes.min()) != int(sizes.max()):
        got = f"lists of {sizes.min()} to {sizes.max()}"
        raise refused(column, "lists of equal length, a value for each class", got, "pad them")
    arguments[argument] = values.reshape(len(sizes), int(sizes[0]) if len(sizes) else 0)


def _table(argument: str, names: Sequence[str], columns: Sequence[object]) -> NDArray[np.generic]:
    """Columns side by side, [n, columns]."""
    arrays = []
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, DictionaryColumn | Lists):
            raise refused(name, "a column of numbers", "texts or lists", f"leave {name!r} out")
        arrays.append(vector(column, name))
        same_length(len(arrays[0]), arrays[-1], name, names[0])
    table = np.column_stack(arrays)
    if has_rounded(arrays, table):  # integers of one column beside floats of another
        return np.column_stack([array.astype(object) for array in arrays])
    return table


def _tuples(argument: str, names: Sequence[str], columns: Sequence[object]) -> DictionaryColumn:
    """A tuple of the values of these columns in each row."""
    keys: list[DictionaryColumn] = []
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, Lists):
            raise _lists_of_keys(name)
        keys.append(key_column(column, name))  # type: ignore[arg-type]
        same_length(len(keys[0]), keys[-1], name, names[0])
    return tuples_of(keys, len(keys[0]))


def _lists_of_keys(name: str) -> InputError:
    return refused(name, "a column of texts or integers", "lists", f"leave {name!r} out")
