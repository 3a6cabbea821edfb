"""Fields of records: values of each kind as unsigned integers that order as they do, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.bytes.codec import Reader, Writer, damaged
from streammetrics.core.checks import booleans, integers, scores
from streammetrics.core.errors import InputError
from streammetrics.core.ids.id_hashes import HashedIds
from streammetrics.core.ids.keys import (
    MAX_KEY_BYTES,
    decode_key,
    dictionary_column,
    encode_key,
    group_ids,
)
from streammetrics.core.parts.record_table import Field
from streammetrics.core.parts.score_bits import (
    are_codes,
    codes_of,
    in_type,
    integers_of,
    scores_of,
)
from streammetrics.core.rows import DictionaryColumn, Key

Values: TypeAlias = "NDArray[np.generic] | DictionaryColumn"
_DTYPES: Final[dict[str, type[np.unsignedinteger]]] = {
    "float32": np.uint32,
    "float64": np.uint64,
    "int64": np.uint64,
    "hashed": np.uint64,
    "word": np.uint64,  # 64 bits that stand for themselves
    "bool": np.uint8,
    "byte": np.uint8,
}
KINDS: Final = ("float32", "float64", "int64", "bool", "key", "hashed")  # of columns


def _hashes(values: ArrayLike | DictionaryColumn, name: str) -> NDArray[np.generic]:
    try:
        hashes = group_ids(values, "hashed", name)
    except InputError as error:
        raise error.but(hint='pass strings, or declare the column as "int64"') from None
    return cast("NDArray[np.int64]", hashes)


_CHECKS: Final[dict[str, Callable[..., Values]]] = {
    "float32": lambda values, name: in_type(scores(values, name), "float32"),
    "float64": lambda values, name: in_type(scores(values, name), "float64"),
    "int64": integers,
    "bool": booleans,
    "key": dictionary_column,
    "hashed": _hashes,
}


def checked(values: ArrayLike | DictionaryColumn, kind: str, name: str) -> Values:
    """A column [n] of this kind as its one type, or InputError."""
    return _CHECKS[kind](values, name)


def codes_of_kind(values: NDArray[np.generic], kind: str) -> Field:
    """The field [n] of checked values of any kind but keys, in memory of its own."""
    if kind in ("bool", "byte", "word"):
        return values.astype(_DTYPES[kind])
    return codes_of(values)  # type: ignore[arg-type]


def values_of(field: Field, kind: str, keys: KeyTable | None) -> Values:
    """What a field stands for."""
    if kind == "key":
        assert keys is not None
        return DictionaryColumn(field.astype(np.intp), tuple(keys.values))
    if kind in ("float32", "float64"):
        return scores_of(field)
    if kind == "bool":
        return field.astype(np.bool_)
    if kind in ("byte", "word"):
        return field
    found = integers_of(field)
    return found.view(HashedIds) if kind == "hashed" else found


class KeyTable:
    """The different keys of a field, each with a number, in the order in which they came."""

    __slots__ = ("positions", "values")

    def __init__(self, values: Iterable[Key] = ()) -> None:
        self.values = list(values)
        self.positions = {key: i for i, key in enumerate(self.values)}

    def numbers(self, keys: Sequence[Key]) -> Field:
        """The number of each key; new ones get the next. In the narrowest type."""
        for key in keys:
            if key not in self.positions:
                self.positions[key] = len(self.values)
                self.values.append(key)
        return self.narrowed(np.array([self.positions[key] for key in keys], np.int64))

    def narrowed(self, numbers: NDArray[np.integer]) -> Field:
        """Numbers of this table in the narrowest type that holds all of them."""
        return numbers.astype(np.min_scalar_type(max(len(self.values) - 1, 0)))

    def in_order(self, field: Field) -> tuple[KeyTable, Field]:
        """A table of the keys that are used, in the order of their bytes, and the field by it."""
        there = np.zeros(len(self.values), np.bool_)
        there[field] = True
        used = np.flatnonzero(there).tolist()
        used.sort(key=lambda number: encode_key(self.values[number]))
        if used == list(range(len(self.values))):
            return self, self.narrowed(field)
        table = KeyTable(self.values[number] for number in used)
        place = np.zeros(len(self.values), np.int64)
        place[used] = np.arange(len(used))
        return table, table.narrowed(place)[field]

    def twin(self) -> KeyTable:
        """The same, to grow apart."""
        return KeyTable(self.values)


def write_field(field: Field, kind: str, keys: KeyTable | None, out: Writer) -> None:
    """A field of records in their one order; keys as `in_order` has them."""
    if kind == "key":
        assert keys is not None
        out.uint(len(keys.values))
        for key in keys.values:
            out.text(encode_key(key))
        out.ints(field.astype(np.int64))
    else:
        out.raw(field.astype(np.dtype(_DTYPES[kind]).newbyteorder("<"), copy=False).tobytes())


def read_field(n: int, kind: str, data: Reader) -> tuple[Field, KeyTable | None]:
    """What `write_field` wrote of n records."""
    if kind == "key":
        return _read_keys(n, data)
    dtype = np.dtype(_DTYPES[kind])
    raw = np.frombuffer(data.raw(n * dtype.itemsize), dtype.newbyteorder("<"))
    field = raw.astype(dtype)
    if kind in ("float32", "float64") and not are_codes(field.astype(np.uint64), kind):
        raise damaged("codes of no number")
    if kind == "bool" and n and field.max() > 1:
        raise damaged("a bool above 1")
    return field, None


def _read_keys(n: int, data: Reader) -> tuple[Field, KeyTable]:
    size = data.uint(min(n, data.left))
    names = [data.text(MAX_KEY_BYTES) for _ in range(size)]
    if any(a >= b for a, b in pairwise(names)):
        raise damaged("keys out of order")
    table = KeyTable(map(decode_key, names))
    numbers = data.ints(n)
    if not np.array_equal(np.unique(numbers), np.arange(size)):
        raise damaged("keys that no record has, or records without one")
    return table.narrowed(numbers), table
