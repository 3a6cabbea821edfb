"""Arrow rows as columns by dotted path and as texts, without a Python object per row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.model.chunk import Lazy, SourceError, Texts, Values

if TYPE_CHECKING:
    import pyarrow as pa

_FAR_MS: Final = 1 << 60  # a time outside of every calendar that still fits


class ArrowColumns(Mapping[str, Values]):
    """Values by dotted path, converted on access. A path may select fields of structs.

    checked: whether all texts are known to be UTF-8. A text that is not UTF-8 stays as bytes.
    """

    def __init__(self, batch: pa.RecordBatch, *, checked: bool = False) -> None:
        self.arrays: dict[str, pa.Array] = dict(_flat(batch.schema.names, batch.columns))
        self.checked = checked

    def __getitem__(self, path: str) -> Values:
        array = self.arrays[path]
        return _plain(path, array) if self.checked or _is_utf8(array) else _decoded(array)

    def present(self, path: str) -> NDArray[np.bool_]:
        """Which rows have a value of any type at a path; bool [n]."""
        flags: NDArray[np.bool_] = self.arrays[path].is_valid().to_numpy(zero_copy_only=False)
        return flags

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def _is_utf8(array: pa.Array) -> bool:
    """Whether all texts of an array, if it has any, are UTF-8."""
    import pyarrow

    values = array.dictionary if pyarrow.types.is_dictionary(array.type) else array
    if not (pyarrow.types.is_string(values.type) or pyarrow.types.is_large_string(values.type)):
        return True
    try:
        values.validate(full=True)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _decoded(array: pa.Array) -> list[object]:
    """Texts one by one; invalid UTF-8 stays as bytes, which no reader accepts as text."""
    import pyarrow

    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return [_text_or_bytes(value) for value in array.cast(pyarrow.large_binary()).to_pylist()]


def _text_or_bytes(value: bytes | None) -> object:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _flat(
    names: Sequence[str], arrays: Sequence[pa.Array], prefix: str = ""
) -> Iterator[tuple[str, pa.Array]]:
    import pyarrow.types

    for name, array in zip(names, arrays, strict=True):
        if pyarrow.types.is_struct(array.type):
            # flatten() applies the nulls of the struct to its fields.
            inner = [array.type.field(i).name for i in range(array.type.num_fields)]
            yield from _flat(inner, array.flatten(), f"{prefix}{name}.")
        else:
            yield prefix + name, array


def _plain(path: str, array: pa.Array) -> Values:
    import pyarrow.types

    kind = array.type
    if pyarrow.types.is_timestamp(kind):
        if kind.tz is None:
            raise SourceError(
                f"column {path!r} holds times without a zone; write them with one, or as integers "
                "with time_unit"
            )
        return _times(array)
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        if array.null_count == 0:
            return _texts(array)
        array = array.dictionary_encode()
        kind = array.type
    if pyarrow.types.is_dictionary(kind):
        return _dictionary_column(array)
    if array.null_count == 0 and (
        pyarrow.types.is_floating(kind)
        or pyarrow.types.is_integer(kind)
        or pyarrow.types.is_boolean(kind)
    ):
        numbers: Values = array.to_numpy(zero_copy_only=False)
        return numbers
    plain: Values = array.to_pylist()
    return plain


def _times(array: pa.Array) -> Values:
    import pyarrow

    # Drop the zone, which only affects display; numpy then rounds toward the past.
    utc = array.cast(pyarrow.timestamp(array.type.unit)).to_numpy(zero_copy_only=False)
    if array.type.unit == "s":
        seconds = utc.view(np.int64)
        far = ~np.isnat(utc) & (np.abs(seconds) > _FAR_MS // 1000)
        utc = np.where(far, np.datetime64(_FAR_MS // 1000, "s"), utc)
    ms: Values = utc.astype("datetime64[ms]")
    return ms


def _texts(array: pa.Array) -> Texts:
    """The texts in Arrow's buffers, without a copy of the bytes."""

    def named(start: int, end: int) -> DictionaryColumn:
        return _dictionary_column(array[start:end].dictionary_encode())

    _, positions, data = array.buffers()
    if not len(array) or data is None:
        return Texts(np.empty(0, np.uint8), np.zeros(len(array) + 1, np.int64), named)
    offsets = np.frombuffer(positions, _offset_type(array))[array.offset :][: len(array) + 1]
    return Texts(np.frombuffer(data, np.uint8), offsets.astype(np.int64), named)


def _offset_type(array: pa.Array) -> type[np.int32] | type[np.int64]:
    import pyarrow.types

    return np.int64 if pyarrow.types.is_large_string(array.type) else np.int32


def _dictionary_column(array: pa.Array) -> DictionaryColumn:
    """The distinct values, and the index of each row's value; None is one of them for nulls."""
    distinct = array.dictionary.to_pylist()
    codes = array.indices
    if codes.null_count:
        codes = codes.fill_null(len(distinct))
        distinct.append(None)
    return DictionaryColumn(codes.to_numpy(zero_copy_only=False).astype(np.intp), tuple(distinct))


class RowTexts(Lazy[bytes]):
    """The rows as JSON, created on access: only a refused row needs its text. schema: the types to
    name in a text, those of the batch by default. nbytes: the size of the columns."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema | None = None) -> None:
        self.nbytes: int = batch.nbytes
        schema = batch.schema if schema is None else schema
        fields = list(zip(schema.names, schema.types, batch.columns, strict=True))

        def text(i: int) -> bytes:
            row = {name: _shown(column, kind, i) for name, kind, column in fields}
            return json.dumps(row, default=str, ensure_ascii=False).encode("utf-8", "replace")

        super().__init__(batch.num_rows, text)


def _shown(column: pa.Array, kind: pa.DataType, i: int) -> object:
    """One value as a Python object; if there is none (a time beyond the calendar, an unknown zone),
    a number or the name of its type, `kind`."""
    import pyarrow

    try:
        return column[i].as_py()
    except (ValueError, OverflowError, LookupError, pyarrow.ArrowException):
        return column[i].value if pyarrow.types.is_timestamp(kind) else f"a value of {kind}"
