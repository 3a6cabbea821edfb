"""The keys of a map of states: their values, their canonical bytes, and their stable hash."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, count
from json.encoder import encode_basestring_ascii
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.checks import column_codes, integers
from streammetrics.core.codec import damaged
from streammetrics.core.conversion import plain, require_strings, vector
from streammetrics.core.errors import InputError, bad_rows, shown
from streammetrics.core.ids.id_hashes import HashedIds, TextColumn, hashes_of, is_hashed
from streammetrics.core.ids.key_forms import PAIR, SCALARS, joined_pairs, stored_key
from streammetrics.core.rows import (
    NO_KEY,
    DictionaryColumn,
    Key,
    KeyLike,
    Scalar,
    distinct,
)
from streammetrics.core.slips import ids_instead, times_instead

MAX_KEY_BYTES: Final = 4096
_FEW_TUPLES: Final = 256  # to make them all takes less time than to see which occur
_HASH_NAME: Final = b"streammetrics-key/1"


def encode_key(key: Key) -> bytes:
    """Canonical JSON: a scalar, or a list of scalars."""
    if isinstance(key, tuple | list):
        return f"[{','.join(map(_scalar_json, key))}]".encode()
    return _scalar_json(key).encode()


# As `json.dumps`, in a quarter of its time, since a state may have many keys.
def _scalar_json(value: Scalar) -> str:
    if value is None:
        return "null"
    return encode_basestring_ascii(value) if isinstance(value, str) else int.__repr__(value)


@lru_cache(maxsize=1 << 16)  # the states of many metrics and windows have the same keys
def decode_key(data: bytes) -> Key:
    """The key that `encode_key` wrote; StateError for anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise damaged("a key that is not JSON") from None
    key = tuple(value) if isinstance(value, list) else value
    if not _is_key(key) or encode_key(key) != data:
        raise damaged(f"the key {shown(data)}")
    return key


def key_hash(encoded: bytes) -> int:
    """64 bits of BLAKE2b under a fixed name: the same on every machine, for ever."""
    import hashlib  # which loads OpenSSL

    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8, key=_HASH_NAME).digest(), "big")


def dictionary_column(
    keys: ArrayLike | DictionaryColumn | Sequence[Key], name: str = "keys"
) -> DictionaryColumn:
    """Any column of keys, dictionary-encoded.

    keys: [n] of integers, strings or None, a list of tuples of these, or `DictionaryColumn`.
    """
    if isinstance(keys, DictionaryColumn):
        return _checked_codes(whole(keys, name), name)
    if isinstance(keys, list | tuple):
        return _from_objects(list(keys), name)
    array: NDArray[Any] = vector(keys, name)
    require_strings(array, name)
    if array.dtype.kind in "mM" and len(array):  # `tolist` would convert nanoseconds to integers
        raise _bad_keys(list(array), name)
    if array.dtype.kind in "iu":
        return _integer_keys(array)
    if array.dtype.kind == "U":
        values, inverse = np.unique(array, return_inverse=True)
        return _checked_codes(
            DictionaryColumn(inverse.astype(np.intp), tuple(values.tolist())), name
        )
    return _from_objects(array.tolist(), name)


def key_column(
    keys: ArrayLike | DictionaryColumn | Sequence[KeyLike], name: str = "keys"
) -> DictionaryColumn:
    """A column of keys as `dictionary_column` reads it, which also takes what `stored_key` turns
    into a key: booleans, whole floats and dates, also as datetime64[D].

    >>> key_column(np.array(["2026-01-31", "2026-02-01"], "datetime64[D]")).values
    ('2026-01-31', '2026-02-01')
    >>> key_column([1, True, 1.0, ("de", False)]).values
    (1, 'True', ('de', 'False'))
    """
    if isinstance(keys, DictionaryColumn):
        return _stored_values(whole(keys, name), name)
    if isinstance(keys, list | tuple):
        return _from_objects(list(keys), name, stored_key)
    array: NDArray[Any] = vector(keys, name)
    if array.dtype.name in _FEW:  # the different values alone: such columns repeat them
        different, codes = np.unique(array, return_inverse=True)
        return _stored_values(DictionaryColumn(codes.astype(np.intp), tuple(different)), name)
    if array.dtype.kind == "O":
        return _from_objects(array.tolist(), name, stored_key)
    return dictionary_column(array, name)


def _stored_values(keys: DictionaryColumn, name: str) -> DictionaryColumn:
    """The column with each value in the form of a state; InputError for one that is no key."""
    if most_bytes_of(keys.values, set(map(type, keys.values))) < MAX_KEY_BYTES:
        return keys
    values = [*map(stored_key, keys.values)]
    if not all(map(_is_key, values)):  # read by row, for the rows of the error
        return _from_objects([values[i] for i in keys.codes.tolist()], name)
    numbers: dict[Key, int] = {}  # several values may be one key
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.intp)
    return _checked_codes(DictionaryColumn(codes[keys.codes], tuple(numbers)), name)


_FEW: Final = ("bool", "datetime64[D]", "float16", "float32", "float64")


def tuples_of(columns: Sequence[DictionaryColumn], n: int) -> DictionaryColumn:
    """The tuple of the values of these columns [n] in each row. Some of the values may be those of
    no row.

    >>> column = dictionary_column(["a", "b", "a"])
    >>> tuples_of([column, dictionary_column([1, 1, 2])], 3).values
    (('a', 1), ('a', 2), ('b', 1), ('b', 2))
    """
    if not columns:
        return DictionaryColumn(np.zeros(n, np.intp), ((),) if n else ())
    codes = columns[0].codes
    keys: list[tuple[Any, ...]] = [(value,) for value in columns[0].values]
    for column in columns[1:]:
        size, values = len(column.values), column.values
        codes = codes * size + column.codes
        if len(keys) * size <= _FEW_TUPLES:
            keys = [(*key, value) for key in keys for value in values]
        else:
            pairs, codes = distinct(codes, len(keys) * size)
            keys = [(*keys[pair // size], values[pair % size]) for pair in pairs.tolist()]
    return DictionaryColumn(codes, tuple(keys))


def named_column(keys: DictionaryColumn, name: str, where: str) -> DictionaryColumn:
    """The column with (name, key) in place of each key, (name, *key) for a tuple, and NO_KEY for
    None.

    >>> named_column(dictionary_column(["a", "b"]), "variant", "keys").values
    (('variant', 'a'), ('variant', 'b'))
    """
    name = joined_pairs(name)
    pairs = [
        NO_KEY if key is None else (name, *key) if isinstance(key, tuple) else (name, key)
        for key in keys.values
    ]
    column = DictionaryColumn(keys.codes, tuple(pairs))
    most = most_bytes_of(keys.values, set(map(type, keys.values)))
    if most + _text_bytes(len(name)) < MAX_KEY_BYTES:
        return column
    bad = [i for i, key in enumerate(pairs) if key is not NO_KEY and _too_long(key)]
    return _without(column, bad, where)


def whole(keys: DictionaryColumn, name: str) -> DictionaryColumn:
    """The same column with codes of type intp; InputError for codes out of range."""
    whole = DictionaryColumn(column_codes(keys, name), tuple(keys.values))
    # A dictionary is often larger than a batch, and an update must cost no more than the batch.
    return _used(whole) if is_large(whole) else whole


def is_large(keys: DictionaryColumn) -> bool:
    """Whether there are far more values than rows."""
    return len(keys.values) > 2 * len(keys.codes) + 8


def _integer_keys(array: NDArray[Any]) -> DictionaryColumn:
    if not len(array):
        return DictionaryColumn(np.empty(0, np.intp), ())
    low, high = array.item(array.argmin()), array.item(array.argmax())
    if low == high:
        return DictionaryColumn(np.zeros(len(array), np.intp), (low,))
    if high - low < 1 << 62 and high < 1 << 63:
        present, codes = distinct(array.astype(np.int64) - low, high - low + 1)
        return DictionaryColumn(codes, tuple((present + low).tolist()))
    values, inverse = np.unique(array, return_inverse=True)
    return DictionaryColumn(inverse.astype(np.intp), tuple(values.tolist()))


def _from_objects(
    objects: list[Any], name: str, read: Callable[[Any], Any] | None = None
) -> DictionaryColumn:
    """read: turns other values into keys; by default only those of numpy are."""
    values, kinds = objects, set(map(type, objects))
    # Rows of scalars repeat so often that only different ones are worth another pass.
    sure = tuple in kinds and most_bytes_of(values, kinds) < MAX_KEY_BYTES
    if not (sure or kinds <= SCALARS):
        values = [*map(read or _plain, objects)]
        if not all(map(_is_key, values)):
            raise _bad_keys(objects, name, read or _plain)
    # True, 1.0 and 1 are one key of a dict, so the dict is made of values of known types.
    key_codes: defaultdict[Key, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(key_codes.__getitem__, values), np.intp, len(values))
    keys = DictionaryColumn(codes, tuple(key_codes))
    return keys if sure else _checked_codes(keys, name, kinds if kinds <= SCALARS else None)


# Functions of all values at once take a tenth of the time of one call for each value.
def most_bytes_of(values: Sequence[Key], kinds: set[type]) -> int:
    """An upper bound of the bytes of each of these keys; MAX_KEY_BYTES if some may be no key, or in
    another form than that of a state. kinds: their types."""
    if tuple not in kinds:
        return _most_bytes_of_scalars(values, kinds)
    tuples: Sequence[Any] = values
    if len(kinds) > 1:
        tuples = [value for value in values if type(value) is tuple]
    widths = set(map(len, tuples))
    flat = [*chain.from_iterable(tuples)]
    width = max(*widths, 1)
    if width >= MAX_KEY_BYTES:
        return MAX_KEY_BYTES
    # Values at one position of tuples are mostly of one kind.
    step = width if len(widths) == 1 else 1
    scalars: list[Sequence[Any]] = [flat[i::step] for i in range(step)]
    if len(kinds) > 1:
        scalars.append([value for value in values if type(value) is not tuple])
    most = max([_most_bytes_of_scalars(column, set(map(type, column))) for column in scalars])
    return min(width * most, MAX_KEY_BYTES)


def _most_bytes_of_scalars(values: Sequence[Any], kinds: set[type]) -> int:
    if kinds == {str}:
        pairs = not (every := "\n".join(values)).isascii() and PAIR.search(every)
        return MAX_KEY_BYTES if pairs else _text_bytes(max(map(len, values)))
    if kinds == {int}:
        return _integer_bytes(max(max(values), -min(values)).bit_length())
    if not kinds <= SCALARS:
        return MAX_KEY_BYTES
    by_kind = [(kind, [v for v in values if type(v) is kind]) for kind in kinds & {str, int}]
    bounds = [_most_bytes_of_scalars(scalars, {kind}) for kind, scalars in by_kind]
    return max(bounds, default=_integer_bytes(0))


def _plain(value: Any) -> Any:
    """Python's scalars for numpy's, and a tuple for a list; anything else unchanged."""
    if type(value) is str or type(value) is int:  # as most are
        return value
    return tuple(map(plain, value)) if isinstance(value, tuple | list) else plain(value)


def _paired(key: Key) -> Key:
    """The key with one character for each pair of surrogates: in JSON, and so in the bytes of a
    state, they are the same."""
    if isinstance(key, tuple):
        return tuple([joined_pairs(scalar) if type(scalar) is str else scalar for scalar in key])
    return joined_pairs(key) if type(key) is str else key


def _is_key(value: object) -> bool:
    if isinstance(value, tuple):
        return all(v is None or type(v) in (str, int) for v in value)
    return value is None or type(value) in (str, int)


def _checked_codes(
    keys: DictionaryColumn, name: str, kinds: set[type] | None = None
) -> DictionaryColumn:
    """The column with keys in one form; InputError. kinds: the types of its values, if known."""
    if most_bytes_of(keys.values, kinds or set(map(type, keys.values))) < MAX_KEY_BYTES:
        return keys
    keys = DictionaryColumn(keys.codes, tuple(map(_paired, keys.values)))
    bad = [i for i, v in enumerate(keys.values) if not _is_key(v) or _too_long(v)]
    return _without(keys, bad, name)


def _without(keys: DictionaryColumn, bad: list[int], name: str) -> DictionaryColumn:
    """The same column; InputError if one of these bad values is in a row."""
    rows = np.flatnonzero(np.isin(keys.codes, bad)) if bad else np.empty(0, np.intp)
    if len(rows):
        first = keys.values[keys.codes[rows[0]]]
        expected = f"strings, integers, None or tuples of them, of at most {MAX_KEY_BYTES} bytes"
        got = f"{shown(first)} ({type(first).__name__})"
        raise bad_rows(keys.values, rows, name, expected, "shorten or convert these keys", got)
    return _used(keys) if bad else keys


def _used(keys: DictionaryColumn) -> DictionaryColumn:
    """The same column, with only the values that occur in a row."""
    used, codes = np.unique(keys.codes, return_inverse=True)
    values = tuple(map(keys.values.__getitem__, used.tolist()))
    return DictionaryColumn(codes.astype(np.intp, copy=False), values)


def _too_long(key: Key) -> bool:
    scalars = key if isinstance(key, tuple) else (key,)
    # An upper bound first, so that few keys are written to be measured. Python does not write
    # integers above 4,300 digits; those above 3.4 bits for each allowed byte have too many digits.
    if sum(map(_most_bytes, scalars)) < MAX_KEY_BYTES:
        return False
    if any(isinstance(v, int) and 10 * v.bit_length() > 34 * MAX_KEY_BYTES for v in scalars):
        return True
    return len(encode_key(key)) > MAX_KEY_BYTES


def _most_bytes(scalar: Scalar) -> int:
    if isinstance(scalar, str):
        return _text_bytes(len(scalar))
    return _integer_bytes(0 if scalar is None else scalar.bit_length())


def _text_bytes(length: int) -> int:
    return 12 * length + 4  # a character beyond 16 bits is two escapes of six


def _integer_bytes(bits: int) -> int:
    return bits // 3 + 8


def _bad_keys(
    values: Sequence[object], name: str, read: Callable[[Any], Any] | None = None
) -> InputError:
    bad = np.flatnonzero([not _is_key((read or _plain)(v)) for v in values])
    first = values[bad[0]]
    hint = ids_instead(first) or times_instead(first) or "convert them to strings or integers first"
    got = f"{shown(first)} ({type(first).__name__})"
    return bad_rows(values, bad, name, "strings, integers, None, or tuples of them", hint, got)


# -- ids, which are all of one kind -------------------------------------------------------------
_NAMES: Final = {str: "strings", int: "integers of at most 64 bits"}


def group_ids(
    groups: ArrayLike | DictionaryColumn,
    kind: str,
    name: str = "groups",
    setting: str = "ids",
    *,
    decimals: bool = False,
) -> NDArray[np.int64] | DictionaryColumn:
    """Ids [n] in the form that bags with ids "integer", "hashed" or "exact" take; kinds never mix.

    name: of the column. setting: the name of the setting with the kind. decimals: where strings
    are required, integers are taken as their decimal digits, as in the events of a log.
    """
    if isinstance(groups, HashedIds):
        if kind == "hashed":
            return integers(groups.view(np.ndarray), name)
        raise InputError(
            expected="integers" if kind == "integer" else "the strings themselves",
            got="hashes of strings",
            where=name,
            hint=f'use {setting}="hashed", or pass the ids without hash_ids',
        )
    if kind == "integer":
        return _integers(groups, name, setting)
    if kind == "hashed" and isinstance(groups, TextColumn) and _is_short(groups):
        return groups.hashes
    if isinstance(groups, DictionaryColumn) and set(map(type, groups.values)) <= {str}:
        strings = whole(groups, name)
        if kind == "exact" or strings.values is not groups.values or not is_hashed(groups):
            strings = _checked_codes(strings, name)
    else:
        encoded = dictionary_column(groups, name)
        hint = f'pass strings, or use {setting}="integer" for integers'
        _refuse_others(encoded, (str, int) if decimals else (str,), name, hint)
        groups = strings = DictionaryColumn(encoded.codes, tuple(map(str, encoded.values)))
    if kind == "exact":
        return strings
    # Other metrics may read the same column, so the hashes are kept with that object.
    owner = groups if strings.values is groups.values else strings
    return hashes_of(owner)[strings.codes]


def _is_short(texts: TextColumn) -> bool:
    """Whether each text, of at most as many characters as bytes, is certainly short enough."""
    return _text_bytes(texts.longest) < MAX_KEY_BYTES


def _integers(groups: ArrayLike | DictionaryColumn, name: str, setting: str) -> NDArray[np.int64]:
    hint = f'pass integers, or use {setting}="hashed" for strings'
    if isinstance(groups, DictionaryColumn):
        column = DictionaryColumn(column_codes(groups, name), groups.values)
        _refuse_others(column, (int,), name, hint)
        values = [cast("int", v) if _is(v, (int,)) else 0 for v in column.values]
        return integers(values, name)[column.codes]
    try:
        return integers(groups, name)
    except InputError as error:
        if not error.expected.startswith("integers"):  # a missing value, or not a column
            raise
        expected = f'integers of 64 bits, because {setting}="integer"'
        raise error.but(expected=expected, hint=_hint_of_floats(groups, error) or hint) from None


def _refuse_others(
    groups: DictionaryColumn, kinds: tuple[type[str] | type[int], ...], name: str, hint: str
) -> None:
    """Refuse values of another kind that occur in a row; unused values do not matter."""
    bad = [i for i, value in enumerate(groups.values) if not _is(value, kinds)]
    rows = np.flatnonzero(np.isin(groups.codes, bad)) if bad else np.empty(0, np.intp)
    if len(rows):
        first = groups.values[groups.codes[rows[0]]]
        expected = " or ".join(_NAMES[kind] for kind in kinds)
        got = f"{shown(first)} ({type(first).__name__})"
        if first is None:
            hint = "drop or fill the rows without an id"
        raise bad_rows(groups.values, rows, name, expected, hint, got)


def _is(value: Key, kinds: tuple[type[str] | type[int], ...]) -> bool:
    if isinstance(value, int):
        return int in kinds and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63
    return str in kinds and isinstance(value, str)


def _hint_of_floats(groups: ArrayLike, error: InputError) -> str | None:
    first = vector(groups, "ids")[error.rows[0]] if len(error.rows) else None
    return ids_instead(first)
