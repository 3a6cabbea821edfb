"""One column of a table of Arrow, as values that metrics accept, in memory of their own."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import InputError, bad_rows, shown
from streammetrics.core.ids.id_hashes import TextColumn
from streammetrics.core.intakes import MOST_ROWS
from streammetrics.core.rows import DictionaryColumn

if TYPE_CHECKING:
    import pyarrow as pa

Values: TypeAlias = "NDArray[np.generic] | DictionaryColumn | list[object]"
# Texts that repeat, or are long, cost less as a dictionary than hashed in each row.
_LONG: Final = 64  # bytes of a text, on average
_SAMPLE: Final = 4096  # rows of which the different texts are counted
_DIFFERENT: Final = 0.98  # the least share of these
_FLOATS: Final = {"halffloat": "float16", "float": "float32", "double": "float64"}


class Lists(NamedTuple):
    """A column of lists: row i has `values[offsets[i]:offsets[i + 1]]`, which may be lists too."""

    values: Values | Lists
    offsets: NDArray[np.int64]


def arrow_column(array: pa.Array | pa.ChunkedArray, column: str) -> Values | Lists:
    """Numbers as an array, texts as DictionaryColumn, times as datetime64 in UTC, and lists.

    A null among numbers stays None; the metric's error names its row. column: its name, for errors.
    InputError for texts that are not UTF-8.
    """
    import pyarrow as pa
    import pyarrow.types as kinds

    if isinstance(array, pa.ChunkedArray):
        array = _combined(array)
    if isinstance(array, pa.ExtensionArray):
        if array.type.extension_name.startswith("pandas."):  # their storage means nothing else
            hint = 'convert them, for example with dt.to_timestamp() or astype("str")'
            raise refused(column, "numbers, texts or times", f"{array.type}", hint)
        array = array.storage
    kind = array.type
    if not (kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)):
        return _plain_values(array, column)
    flat = array.flatten()
    if array.null_count or flat.null_count:
        raise null_lists(column)
    if kinds.is_fixed_size_list(kind):
        offsets = np.arange(len(array) + 1, dtype=np.int64) * kind.list_size
    else:
        offsets = np.array(array.offsets, np.int64)
        offsets -= offsets[0]
    try:
        return Lists(arrow_column(flat, column), offsets)
    except InputError as error:
        if not len(error.rows):
            raise
        rows = np.unique(np.searchsorted(offsets, error.rows, side="right") - 1)
        raise error.of_rows(f"{column}[{rows[0]}]", rows) from None


def _combined(chunks: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    if _is_text(chunks.type):  # one array of texts has at most 2 GiB
        chunks = chunks.dictionary_encode()
    if chunks.num_chunks == 1:
        return chunks.chunk(0)
    try:
        return chunks.combine_chunks()
    except pa.ArrowInvalid:  # dictionaries with nulls, or too many values for their codes
        if not pa.types.is_dictionary(chunks.type):
            raise
        plain = [chunk.dictionary_decode() for chunk in chunks.chunks]
        return _combined(pa.chunked_array(plain))


def encoded_values(array: pa.Array, column: str) -> DictionaryColumn:
    """Any column, dictionary-encoded; a null is None. column: its name, for errors.

    InputError for texts that are not UTF-8, unless they are of the dictionary alone.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    indices, dictionary = array.indices, array.dictionary
    codes = np.array(numbers(indices), np.intp)
    if indices.null_count:
        codes[numbers(indices.is_null())] = len(dictionary)
    try:
        values = dictionary.to_pylist()
    except UnicodeDecodeError:
        _require_utf8(dictionary, codes, column)
        return encoded_values(array.dictionary_decode(), column)
    if indices.null_count:
        values.append(None)
    return DictionaryColumn(codes, tuple(values))


def _require_utf8(texts: pa.Array, codes: NDArray[np.intp], column: str) -> None:
    """InputError with the rows whose text is not UTF-8. codes: which of the texts each row has."""
    others: dict[int, bytes] = {}
    for code, text in enumerate(texts):
        try:
            text.as_py()
        except UnicodeDecodeError as error:
            others[code] = error.object
    rows = np.flatnonzero(np.isin(codes, list(others)))
    if len(rows):
        got = shown(others[int(codes[rows[0]])][:60])
        hint = "convert the column to UTF-8, or leave these rows out"
        raise bad_rows(codes, rows, column, "text in UTF-8", hint, got)


def text_column(array: pa.Array, column: str) -> DictionaryColumn:
    """Many texts in the memory of the array, which become a dictionary when one is asked for: for
    their hashes alone, it would take most of the time, unless the texts repeat. column: its name,
    for errors; InputError for texts that are not UTF-8."""
    import pyarrow as pa

    sample = array.slice(len(array) // 2, _SAMPLE)
    repeat = len(sample.dictionary_encode().dictionary) < _DIFFERENT * len(sample)
    _, ends, content = array.buffers()
    width = np.dtype(np.int64 if pa.types.is_large_string(array.type) else np.int32)
    offsets = np.frombuffer(ends, width, len(array) + 1, array.offset * width.itemsize)
    start, end = offsets[[0, -1]].tolist()
    if repeat or end - start > _LONG * len(array):
        return encoded_values(array, column)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return encoded_values(array, column)
    data = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    starts = offsets.astype(np.int64) - start
    return TextColumn(data[start:end], starts, partial(encoded_values, array, column))


def _are_many_texts(array: pa.Array) -> bool:
    """Whether they are texts without nulls, of more rows than may wait."""
    import pyarrow.types as kinds

    is_plain = kinds.is_string(array.type) or kinds.is_large_string(array.type)
    return is_plain and len(array) > MOST_ROWS and not array.null_count


def numbers(array: pa.Array) -> NDArray[np.generic]:
    """Numbers or bools [n], in the memory of the array where they are bytes there; any for a null.

    pyarrow's own `to_numpy` imports pandas if that is installed, which takes longer than a million
    rows; and so does its `to_pandas_dtype`, which some versions cannot do without.
    """
    import pyarrow.types as kinds

    buffer, start, end = array.buffers()[1], array.offset, array.offset + len(array)
    if buffer is None or start == end:
        return np.zeros(len(array), _dtype(array.type))
    if kinds.is_boolean(array.type):
        octets = np.frombuffer(buffer, np.uint8)[start // 8 : (end + 7) // 8]
        return np.unpackbits(octets, bitorder="little").view(np.bool_)[start % 8 :][: len(array)]
    return np.frombuffer(buffer, _dtype(array.type), end)[start:]


def _dtype(kind: pa.DataType) -> np.dtype[np.generic]:
    """That of numbers of this kind."""
    name = str(kind)
    return np.dtype(_FLOATS.get(name, name))


def decimals(values: Iterable[Decimal | None], scale: int) -> list[object]:
    """Decimals; those without digits after the point as integers."""
    if scale > 0:
        return list(values)
    return [None if value is None else int(value) for value in values]


def null_lists(column: str) -> InputError:
    """The error for a null among lists or their items."""
    hint = "pass an empty list where there is nothing, or leave these rows out"
    return refused(column, "lists without nulls", "null lists or items", hint)


def null_times(column: str, n: int) -> InputError:
    """The error for rows without a time."""
    return refused(column, "a time in each row", f"{n} nulls", "leave these rows out")


def without_zone(column: str, how: str) -> InputError:
    """The error for times that are not known to be in UTC. how: to give them a zone."""
    hint = f"give them a zone, for example with {how}"
    return refused(column, "times with a zone", "times without one", hint)


def refused(column: str, expected: str, got: str, hint: str) -> InputError:
    """The error for a column of a table."""
    return InputError(expected=expected, got=got, where=f"column {column!r}", hint=hint)


def _plain_values(array: pa.Array, column: str) -> Values:
    import pyarrow.types as kinds

    kind = array.type
    if kinds.is_dictionary(kind) and not _is_text(kind.value_type):
        array = array.dictionary_decode()
        kind = array.type
    if _are_many_texts(array):
        return text_column(array, column)
    if kinds.is_dictionary(kind) or _is_text(kind):
        return encoded_values(array, column)
    if kinds.is_timestamp(kind):
        return _times(array, column)
    if kinds.is_decimal(kind):
        return decimals(array.to_pylist(), kind.scale)
    number = kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)
    if number and not array.null_count:
        return np.array(numbers(array))  # the buffer is the table's
    values: list[object] = array.to_pylist()
    return values


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _times(array: pa.Array, column: str) -> NDArray[np.generic]:
    import pyarrow as pa

    if array.type.tz is None:
        raise without_zone(column, 'cast(pyarrow.timestamp("us", "UTC"))')
    if array.null_count:
        raise null_times(column, array.null_count)
    ticks = np.array(numbers(array.cast(pa.int64())))
    return ticks.view(f"M8[{array.type.unit}]")
