"""Columns of Arrow batches as arguments of `update`, copied into their own memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, shown
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.settings import use_current_names

if TYPE_CHECKING:
    import pyarrow as pa

Values: TypeAlias = "NDArray[np.generic] | DictionaryColumn | list[object]"

_OFFSETS = "offsets"  # the argument of metrics whose rows are lists


def arguments_of(
    spec: Accumulator, batch: pa.RecordBatch, columns: Mapping[str, str] | None
) -> dict[str, Values]:
    """The keywords of `spec.update` from a batch [n rows].

    columns: argument -> column; an argument that is not named has the column of its own name. The
    column of an optional argument may be missing, unless `columns` names it.
    """
    takes, names = spec.arguments(), set(batch.schema.names)
    renamed = renamed_columns(spec, columns or {}, names, "columns")
    for argument, column in renamed.items():
        if argument not in takes or column not in names:
            raise InputError(
                expected=f"arguments ({', '.join(takes)}), each with one of the columns "
                f"({', '.join(batch.schema.names)})",
                got=f"{shown(argument)}: {shown(column)}",
                where="columns",
                hint="correct the name",
            )
    found: dict[str, Values] = {}
    for argument, column in columns_read(spec, names, renamed).items():
        if column not in names:
            raise InputError(
                expected=f"the column {column!r}",
                got=f"only {', '.join(batch.schema.names)}",
                where=f"rows of {type(spec).__name__}",
                hint=f"name it: columns={{{argument!r}: ...}}",
            )
        _put(found, argument, column, batch.column(column), lists=_OFFSETS in takes)
    return found


def renamed_columns(
    spec: Accumulator, columns: Mapping[str, str], names: Collection[str], where: str
) -> dict[str, str]:
    """Argument -> column, also for former names; InputError if the former and the current name
    are both columns, because they may mean different groups."""
    renamed = dict(columns)
    for argument, was in spec.former_arguments().items():
        if was in names and not {argument, was} & renamed.keys():
            if argument in names:
                raise InputError(
                    expected=f"a named column for {argument!r}, because {was!r} is its former name",
                    got=f"columns {argument!r} and {was!r}",
                    where=where,
                    hint=f"pass columns={{{argument!r}: ...}}, or give each metric its own column "
                    "by Panel(inputs=...)",
                )
            renamed[was] = was
    use_current_names(where, spec.former_arguments(), renamed, stacklevel=4)
    return renamed


def columns_read(
    spec: Accumulator, there: Collection[str], columns: Mapping[str, str]
) -> dict[str, str]:
    """Argument of `spec.update` -> column: the one in `columns`, or that of its own name. Optional
    arguments without a column are left out."""
    return {
        argument: columns.get(argument, argument)
        for argument, required in spec.arguments().items()
        if required or argument in columns or argument in there
    }


def _put(
    found: dict[str, Values], argument: str, column: str, array: pa.Array, *, lists: bool
) -> None:
    import pyarrow.types as kinds

    kind = array.type
    if not (kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)):
        found[argument] = plain_values(array, column)
        return
    flat = array.flatten()
    if array.null_count or flat.null_count:
        raise _refused(column, "lists without nulls", "null lists or items", "leave these rows out")
    if kinds.is_fixed_size_list(kind):
        offsets = np.arange(len(array) + 1, dtype=np.int64) * kind.list_size
    else:
        offsets = np.array(array.offsets, np.int64)
        offsets -= offsets[0]
    values = plain_values(flat, column)
    if not lists:
        found[argument] = _table(column, values, np.diff(offsets))
        return
    found[argument] = values
    known = found.setdefault(_OFFSETS, offsets)
    if not np.array_equal(np.asarray(known), offsets):
        raise _refused(
            column,
            "lists as long as those of other columns",
            "other lengths",
            "pass an item in each",
        )


def _table(column: str, values: Values, sizes: NDArray[np.int64]) -> NDArray[np.generic]:
    if not isinstance(values, np.ndarray):
        raise _refused(column, "lists of numbers", "lists of other values", "convert them")
    if len(sizes) and int(sizes.min()) != int(sizes.max()):
        got = f"lists of {sizes.min()} to {sizes.max()}"
        raise _refused(column, "lists of equal length, a value for each class", got, "pad them")
    return values.reshape(len(sizes), int(sizes[0]) if len(sizes) else 0)


def plain_values(array: pa.Array, column: str) -> Values:
    """Numbers as an array, texts as DictionaryColumn, times with a zone as milliseconds since 1970.

    A null among numbers stays None; the metric's error names its row.
    """
    import pyarrow.types as kinds

    kind = array.type
    if kinds.is_dictionary(kind) or _is_text(kind):
        return encoded_values(array)
    if kinds.is_timestamp(kind):
        return _milliseconds(array, column)
    number = kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)
    if number and not array.null_count:
        return np.array(array.to_numpy(zero_copy_only=False))  # the buffer is the engine's
    values: list[object] = array.to_pylist()
    return values


def encoded_values(array: pa.Array) -> DictionaryColumn:
    """Any column, dictionary-encoded; a null is None."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type) and (array.null_count or array.dictionary.null_count):
        array = array.dictionary_decode()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode(null_encoding="encode")
    codes = np.array(array.indices.to_numpy(zero_copy_only=False), np.intp)
    return DictionaryColumn(codes, tuple(array.dictionary.to_pylist()))


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _milliseconds(array: pa.Array, column: str) -> NDArray[np.int64]:
    import pyarrow as pa

    unit = array.type.unit
    if array.type.tz is None:
        raise _refused(column, "times with a zone", "times without one", "give them a zone")
    if array.null_count:
        raise _refused(column, "a time in each row", f"{array.null_count} nulls", "leave them out")
    ticks = np.array(array.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if unit == "s":
        return ticks * 1000
    return ticks // {"ms": 1, "us": 1_000, "ns": 1_000_000}[unit]


def _refused(column: str, expected: str, got: str, hint: str) -> InputError:
    return InputError(expected=expected, got=got, where=f"column {column!r}", hint=hint)
