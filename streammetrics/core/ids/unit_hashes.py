"""Hashes of users and other units, which assign them to buckets and select samples.

The word of an integer id is its 64 bits, that of a string its SipHash (`id_hashes.py`). A word XOR
the hash of a salt is mixed by splitmix64, so that hashes under two salts are unrelated. (Steele,
Lea and Flood 2014, "Fast splittable pseudorandom number generators", OOPSLA, figure 17, for the
mixer, with Vigna's constants.)
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.checks import column_codes
from streammetrics.core.conversion import has_booleans, vector
from streammetrics.core.errors import InputError
from streammetrics.core.ids.id_hashes import HashedIds, TextColumn
from streammetrics.core.ids.keys import dictionary_column, group_ids
from streammetrics.core.rows import DictionaryColumn

Words: TypeAlias = NDArray[np.uint64]

_CHUNK: Final = 1 << 15  # words at a time: they stay in the second-level cache
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_STEPS: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_INT64: Final = np.dtype(np.int64)
_LAST: Final = np.uint64(31)


def salt_word(salt: str) -> np.uint64:
    """The 64 bits of a salt: BLAKE2b of its UTF-8 under the key `streammetrics-salt`."""
    from hashlib import blake2b

    data = salt.encode("utf-8", "surrogatepass")
    digest = blake2b(data, digest_size=8, key=b"streammetrics-salt").digest()
    return np.uint64(int.from_bytes(digest, "little"))


def unit_hashes(ids: ArrayLike | DictionaryColumn, salt: np.uint64, name: str) -> Words:
    """uint64 [n]: the hash of each id under a salt; the same on every machine, for ever.

    It is `mixed` of the `unit_words`.
    """
    return mixed(unit_words(ids, name), salt)


def unit_words(ids: ArrayLike | DictionaryColumn, name: str) -> Words:
    """uint64 [n]: the word of each id, from which hashes are computed; a view for integers.

    ids: [n] integers of 64 bits or strings, one kind in a column, or the result of `hash_ids`. The
    integer 5 and the string "5" are two ids. InputError for anything else, booleans among them.
    """
    if type(ids) is np.ndarray and ids.dtype is _INT64 and ids.ndim == 1:
        return ids.view(np.uint64)
    if isinstance(ids, HashedIds | TextColumn):
        return _words(group_ids(ids, "hashed", name))
    if not isinstance(ids, DictionaryColumn):
        array: NDArray[Any] = vector(ids, name)
        if has_booleans(ids, array):
            array = np.fromiter(cast("list[object]", ids), object, len(array))
        if array.dtype.kind in "iu":
            return _words(group_ids(array, "integer", name))
        ids = dictionary_column(array if array.dtype.kind != "O" else array.tolist(), name)
    codes = column_codes(ids, name)
    kind = "integer" if len(codes) and isinstance(ids.values[codes[0]], int) else "hashed"
    if len(ids.values) > len(codes):  # a dictionary larger than the batch
        return _words(group_ids(ids, kind, name))
    used = DictionaryColumn(np.arange(len(ids.values)), ids.values)
    try:
        return _words(group_ids(used, kind, name))[codes]
    except InputError:  # of a value that no row has, or it names the row
        return _words(group_ids(ids, kind, name))


def mixed(words: Words, salt: np.uint64) -> Words:
    """splitmix64 of (word XOR salt), [n]."""
    out = words ^ salt
    spare = np.empty(min(_CHUNK, len(out)), np.uint64)
    for start in range(0, len(out), _CHUNK):
        chunk = out[start : start + _CHUNK]
        shifted = spare[: len(chunk)]
        chunk += _GOLDEN
        for shift, factor in _STEPS:
            np.right_shift(chunk, shift, out=shifted)
            chunk ^= shifted
            chunk *= factor
        np.right_shift(chunk, _LAST, out=shifted)
        chunk ^= shifted
    return out


def words_of(hashes: Words, salt: np.uint64) -> Words:
    """The words of ids from their hashes under a salt, [n]: the inverse of `mixed`.

    >>> word = np.array([5, 7], np.uint64)
    >>> words_of(mixed(word, salt_word("a")), salt_word("a")).tolist()
    [5, 7]
    """
    words = _unshifted(hashes, 31)
    for shift, factor in reversed(_STEPS):
        words = _unshifted(words * np.uint64(pow(int(factor), -1, 1 << 64)), int(shift))
    return (words - _GOLDEN) ^ salt


def _unshifted(words: Words, shift: int) -> Words:
    """The x with x ^ x >> shift = word, [n]."""
    inverse = words.copy()
    for bits in range(shift, 64, shift):
        inverse ^= words >> np.uint64(bits)
    return inverse


def _words(ids: NDArray[np.int64] | DictionaryColumn) -> Words:
    return np.ascontiguousarray(cast("NDArray[np.int64]", ids)).view(np.uint64)
