"""Arrow rows as columns by dotted path and as texts, without a Python object per row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.model.chunk import Lazy, SourceError, StoredColumns, Texts, Values

if TYPE_CHECKING:
    import pyarrow as pa

_FAR_MS: Final = 1 << 60  # a time outside of every calendar that still fits
_MOST_VIEWED: Final = 64 << 20  # bytes of texts in views, as in a message


class ArrowColumns(StoredColumns):
    """Values by dotted path, converted on access. A path may select fields of structs.

    checked: whether they are those of a message. Its texts are known to be UTF-8, and a column
    whose values may repeat (`_may_repeat`) is not read, but for views of few texts. A text that is
    not UTF-8 stays as bytes, and any other value for which Python has no object is a `NoObject`: no
    reader accepts either.
    """

    def __init__(self, batch: pa.RecordBatch, *, checked: bool = False) -> None:
        columns = list(_flat(batch.schema.names, batch.columns))
        self.arrays: dict[str, pa.Array] = dict(columns)
        self.checked = checked
        counts = Counter(path for path, _ in columns)
        self.repeated = {path for path, count in counts.items() if count > 1}

    def __getitem__(self, path: str) -> Values:
        array = self.arrays[path]
        if path in self.repeated:
            raise SourceError(
                f"two columns have the name {path!r}; rename one of them, or leave it out"
            )
        if self.checked and _may_repeat(array.type):
            if not _has_few_texts(array):
                raise SourceError(f"column {path!r} is one of {array.type}, which is not read")
            array = array.cast("string")
        return _plain(path, array) if self.checked or _is_utf8(array) else _decoded(array)

    def __contains__(self, path: object) -> bool:
        return path in self.arrays

    def part(self, positions: slice) -> ArrowColumns:
        """The rows at these positions. No value is converted."""
        part = copy(self)
        part.arrays = {path: array[positions] for path, array in self.arrays.items()}
        return part

    def present(self, path: str) -> NDArray[np.bool_]:
        """Which rows have a value of any type in a column; bool [n]."""
        flags: NDArray[np.bool_] = self.arrays[path].is_valid().to_numpy(zero_copy_only=False)
        return flags

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def _may_repeat(kind: pa.DataType) -> bool:
    """Whether an array of this type may have one stored value many times, so that its size does not
    bound its values as Python objects."""
    import pyarrow
    from pyarrow import types

    inner: list[pa.DataType] = []
    if types.is_struct(kind):
        inner = [kind.field(i).type for i in range(kind.num_fields)]
    elif types.is_map(kind):
        inner = [kind.key_type, kind.item_type]
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = [kind.value_type]
    elif isinstance(kind, pyarrow.BaseExtensionType):
        inner = [kind.storage_type]
    is_view = types.is_string_view(kind) or types.is_binary_view(kind)
    is_list_view = types.is_list_view(kind) or types.is_large_list_view(kind)
    is_encoded = types.is_run_end_encoded(kind) or types.is_dictionary(kind)
    return (
        is_view
        or is_list_view
        or is_encoded
        or types.is_union(kind)
        or any(map(_may_repeat, inner))
    )


def _has_few_texts(array: pa.Array) -> bool:
    """Whether an array has views of texts, as polars writes them, that end to end are no larger
    than an open message may be."""
    import pyarrow

    if not pyarrow.types.is_string_view(array.type):
        return False
    if not len(array):
        return True
    sizes = np.frombuffer(array.buffers()[1], "<i4")[::4][array.offset :][: len(array)]
    return int(sizes.sum(dtype=np.int64)) <= _MOST_VIEWED


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
    return _objects(array)


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

    def dictionary_column() -> DictionaryColumn:
        return _dictionary_column(array.dictionary_encode())

    _, positions, data = array.buffers()
    if not len(array) or data is None:
        return Texts(np.empty(0, np.uint8), np.zeros(len(array) + 1, np.int64), dictionary_column)
    offsets = np.frombuffer(positions, _offset_type(array))[array.offset :][: len(array) + 1]
    return Texts(np.frombuffer(data, np.uint8), offsets.astype(np.int64), dictionary_column)


def _offset_type(array: pa.Array) -> type[np.int32] | type[np.int64]:
    import pyarrow.types

    return np.int64 if pyarrow.types.is_large_string(array.type) else np.int32


def _dictionary_column(array: pa.Array) -> DictionaryColumn:
    """The distinct values, and the index of each row's value; None is one of them for nulls."""
    distinct = cast("list[str | None]", _objects(array.dictionary))
    codes = array.indices
    if codes.null_count:
        codes = codes.fill_null(len(distinct))
        distinct.append(None)
    return DictionaryColumn(codes.to_numpy(zero_copy_only=False).astype(np.intp), tuple(distinct))


@dataclass(frozen=True, slots=True)
class NoObject:
    """Stands for a value for which Python has no object: a date beyond its calendar, a time in an
    unknown zone, a text of a list that is not UTF-8."""

    type: str

    def __repr__(self) -> str:
        return f"a value of {self.type}"


def _objects(array: pa.Array) -> list[object]:
    """The values as Python objects, one by one only if some of them have none."""
    try:
        values: list[object] = array.to_pylist()
    except _no_object_errors():
        return [_object(value, array.type) for value in array]
    return values


def _object(value: pa.Scalar, kind: pa.DataType) -> object:
    try:
        return value.as_py()
    except _no_object_errors():
        return NoObject(str(kind))


def _no_object_errors() -> tuple[type[Exception], ...]:
    import pyarrow

    return ValueError, OverflowError, LookupError, pyarrow.ArrowException


class RowTexts(Lazy[bytes]):
    """The rows as JSON, created on access: only a refused row needs its text. schema: the types to
    name in a text, those of the batch by default. checked: as in `ArrowColumns`; of a column that
    is not read the text names the type. nbytes: the size of the columns."""

    def __init__(
        self, batch: pa.RecordBatch, schema: pa.Schema | None = None, *, checked: bool = False
    ) -> None:
        self.nbytes: int = batch.nbytes
        schema = batch.schema if schema is None else schema
        fields = list(zip(schema.names, schema.types, batch.columns, strict=True))
        unread = {name for name, kind, _ in fields if checked and _may_repeat(kind)}

        def text(i: int) -> bytes:
            row = {
                name: NoObject(str(kind)) if name in unread else _shown(column, kind, i)
                for name, kind, column in fields
            }
            return json.dumps(row, default=str, ensure_ascii=False).encode("utf-8", "replace")

        super().__init__(batch.num_rows, text)


def _shown(column: pa.Array, kind: pa.DataType, i: int) -> object:
    """One value as a Python object; if there is none, a number for a time, else the name of its
    type, `kind`."""
    import pyarrow

    value = _object(column[i], kind)
    is_time = isinstance(value, NoObject) and pyarrow.types.is_timestamp(kind)
    return column[i].value if is_time else value
