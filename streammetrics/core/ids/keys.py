"""Keys: what a map of states may be keyed by, their one form in bytes, and their stable hash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from json.encoder import encode_basestring_ascii
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.bytes.codec import damaged
from streammetrics.core.checks import integers
from streammetrics.core.conversion import require_strings, vector
from streammetrics.core.errors import InputError, shown
from streammetrics.core.rows import DictionaryColumn, Key, Scalar
from streammetrics.core.slips import ids_instead

MAX_KEY_BYTES: Final = 4096
_HASH_NAME: Final = b"streammetrics-key/1"


def encode_key(key: Key) -> bytes:
    """Canonical JSON: a scalar, or a list of scalars."""
    if isinstance(key, tuple | list):
        return f"[{','.join(map(_scalar_json, key))}]".encode()
    return _scalar_json(key).encode()


# As `json.dumps` writes it, in a quarter of its time: a state with many keys writes each of them.
def _scalar_json(value: Scalar) -> str:
    if value is None:
        return "null"
    return encode_basestring_ascii(value) if isinstance(value, str) else int.__repr__(value)


def decode_key(data: bytes) -> Key:
    """What `encode_key` wrote; StateError for anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise damaged("a key that is not JSON") from None
    key = tuple(value) if isinstance(value, list) else value
    if not _is_key(key) or encode_key(key) != data:
        raise damaged(f"the key {shown(data)}")
    return key


def key_hash(encoded: bytes) -> int:
    """64 bits of BLAKE2b under a fixed name: the same everywhere, for ever."""
    return int.from_bytes(blake2b(encoded, digest_size=8, key=_HASH_NAME).digest(), "big")


def dictionary_column(
    keys: ArrayLike | DictionaryColumn | Sequence[Key], name: str = "keys"
) -> DictionaryColumn:
    """Any column of keys, with each distinct key named once.

    keys: [n] of integers, strings or None, a list of tuples of these, or `DictionaryColumn`.
    """
    if isinstance(keys, DictionaryColumn):
        return _checked_codes(whole(keys, name), name)
    if isinstance(keys, list | tuple):
        return _from_objects(list(keys), name)
    array: NDArray[Any] = vector(keys, name)
    require_strings(array, name)
    if array.dtype.kind in "mM":  # `tolist` would make integers of nanoseconds
        raise _bad_keys(list(array), name)
    if array.dtype.kind in "iu":
        return _from_integers(array)
    if array.dtype.kind == "U":
        values, inverse = np.unique(array, return_inverse=True)
        return _checked_codes(
            DictionaryColumn(inverse.astype(np.intp), tuple(values.tolist())), name
        )
    return _from_objects(array.tolist(), name)


def whole(keys: DictionaryColumn, name: str) -> DictionaryColumn:
    """The same column with codes of the one type, or InputError for codes that name nothing."""
    codes = integers(keys.codes, f"{name}.codes")
    bad = np.flatnonzero((codes < 0) | (codes >= len(keys.values)))
    if len(bad):
        raise InputError(
            expected=f"codes from 0 to {len(keys.values) - 1}, one for each value",
            got=f"{codes[bad[0]]}",
            where=f"{name}.codes[{bad[0]}]",
            hint="pass DictionaryColumn(codes, values) with codes that are places in values",
            rows=bad,
        )
    whole = DictionaryColumn(codes.astype(np.intp, copy=False), tuple(keys.values))
    # A dictionary is often larger than a batch, and an update costs the batch.
    return _used(whole) if len(whole.values) > 2 * len(codes) + 8 else whole


def _from_integers(array: NDArray[Any]) -> DictionaryColumn:
    if not len(array):
        return DictionaryColumn(np.empty(0, np.intp), ())
    low, high = int(array.min()), int(array.max())
    if high - low < 4 * len(array) and high < 1 << 63:
        codes = array.astype(np.int64) - low
        present = np.flatnonzero(np.bincount(codes) != 0)
        place = np.zeros(high - low + 1, np.intp)
        place[present] = np.arange(len(present))
        return DictionaryColumn(place[codes], tuple((present + low).tolist()))
    values, inverse = np.unique(array, return_inverse=True)
    return DictionaryColumn(inverse.astype(np.intp), tuple(values.tolist()))


def _from_objects(values: list[Key], name: str) -> DictionaryColumn:
    known: dict[Key, int] = {}
    try:
        codes = [known.setdefault(_plain(v), len(known)) for v in values]
    except TypeError:
        raise _bad_keys(values, name) from None
    # True is 1 and 1.0 is 1 to a dict, so look at what came and not at what was kept.
    kinds = set(map(type, values))
    if not kinds <= {str, int, type(None)} and not all(_is_key(_plain(v)) for v in values):
        raise _bad_keys(values, name)
    return _checked_codes(DictionaryColumn(np.array(codes, np.intp), tuple(known)), name)


def _plain(value: Any) -> Any:
    """Python's scalars for numpy's, and a tuple for a list; anything else as it is."""
    if isinstance(value, np.generic):
        return _plain_scalar(value)
    return tuple(map(_plain_scalar, value)) if isinstance(value, tuple | list) else value


def _plain_scalar(value: Any) -> Any:
    plain = isinstance(value, np.integer | np.str_) and not isinstance(value, np.timedelta64)
    return value.item() if plain else value


def _is_key(value: object) -> bool:
    if isinstance(value, tuple):
        return all(v is None or type(v) in (str, int) for v in value)
    return value is None or type(value) in (str, int)


def _checked_codes(keys: DictionaryColumn, name: str) -> DictionaryColumn:
    bad = [i for i, v in enumerate(keys.values) if not _is_key(v) or _too_long(v)]
    rows = np.flatnonzero(np.isin(keys.codes, bad)) if bad else np.empty(0, np.intp)
    if len(rows):
        first = keys.values[keys.codes[rows[0]]]
        raise InputError(
            expected=f"strings, integers, None or tuples of them, of at most {MAX_KEY_BYTES} bytes",
            got=f"{shown(first)} ({type(first).__name__})",
            where=f"{name}[{rows[0]}]",
            hint="shorten or convert these keys",
            rows=rows,
        )
    return _used(keys) if bad else keys


def _used(keys: DictionaryColumn) -> DictionaryColumn:
    """Only the values that some row has."""
    used, codes = np.unique(keys.codes, return_inverse=True)
    return DictionaryColumn(
        codes.astype(np.intp, copy=False), tuple(keys.values[i] for i in used.tolist())
    )


def _too_long(key: Key) -> bool:
    scalars = key if isinstance(key, tuple) else (key,)
    # An upper bound first, so that few keys are written to be measured. Integers of 4,300 digits
    # cannot be written at all; those of 3.4 bits a byte have more digits than fit.
    if sum(map(_most_bytes, scalars)) < MAX_KEY_BYTES:
        return False
    if any(isinstance(v, int) and 10 * v.bit_length() > 34 * MAX_KEY_BYTES for v in scalars):
        return True
    return len(encode_key(key)) > MAX_KEY_BYTES


def _most_bytes(scalar: Scalar) -> int:
    if isinstance(scalar, str):
        return 12 * len(scalar) + 4  # a character beyond 16 bits is two escapes of six
    return 8 if scalar is None else scalar.bit_length() // 3 + 8


def _bad_keys(values: Sequence[object], name: str) -> InputError:
    bad = [i for i, v in enumerate(values) if not _is_key(_plain(v))]
    first = values[bad[0]] if bad else values[0]
    return InputError(
        expected="strings, integers, None, or tuples of them",
        got=f"{shown(first)} ({type(first).__name__})",
        where=f"{name}[{bad[0] if bad else 0}]",
        hint=ids_instead(first) or "convert booleans to strings or integers first",
        rows=np.array(bad, np.intp),
    )
