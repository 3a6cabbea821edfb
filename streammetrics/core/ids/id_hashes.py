"""The 64-bit hashes of string ids: SipHash-1-3 of their UTF-8 under a fixed key.

Source: Aumasson & Bernstein 2012, "SipHash: a fast short-input PRF", INDOCRYPT, section 2, with one
round for each word and three at the end. It needs only additions, rotations and XOR of 64-bit
words, so numpy hashes a column at a time. For a text longer than `LONGEST` bytes, its BLAKE2b
digest of 32 bytes is hashed, so that no text needs more than a few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import InputError, bad_rows, shown
from streammetrics.core.ids.key_forms import PAIR, joined_pairs
from streammetrics.core.rows import DictionaryColumn, Key, offsets_of

KEY: Final = b"streammetrics-id"
LONGEST: Final = 128  # bytes of a text that is hashed directly

_K0, _K1 = (np.uint64(int.from_bytes(half, "little")) for half in (KEY[:8], KEY[8:]))
_BEGIN: Final = tuple(
    np.uint64(int.from_bytes(word, "big")) ^ key
    for word, key in (
        (b"somepseu", _K0),
        (b"dorandom", _K1),
        (b"lygenera", _K0),
        (b"tedbytes", _K1),
    )
)
_CHUNK: Final = 1 << 13  # texts at a time: their words stay in the caches
_END: Final = np.uint64(0xFF)
_BITS: Final = {bits: np.uint64(bits) for bits in (13, 16, 17, 21, 32, 43, 47, 48, 51)}
_BEFORE: Final = np.array([(1 << 8 * n) - 1 for n in range(8)], np.uint64)  # the first n bytes

Words: TypeAlias = NDArray[np.uint64]

# A pipeline passes the same column to each metric. Its hashes are kept as long as it lives.
_KNOWN: Final[WeakKeyDictionary[DictionaryColumn, NDArray[np.int64]]] = WeakKeyDictionary()


class HashedIds(np.ndarray[tuple[int], np.dtype[np.int64]]):
    """The hashes of a column of string ids, int64 [n]; see `hash_ids`."""


class TextColumn(DictionaryColumn):
    """A column of UTF-8 texts stored end to end, as in Arrow: their hashes need no dictionary.
    Whoever reads `codes` or `values` makes one."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        encode: Callable[[], DictionaryColumn],
    ) -> None:
        """Text i is `data[offsets[i]:offsets[i + 1]]`. encode: the column as a dictionary."""
        self.__dict__.update(data=data, offsets=offsets, encode=encode)

    def __len__(self) -> int:
        return len(self.__dict__["offsets"]) - 1

    @cached_property
    def dictionary(self) -> DictionaryColumn:
        """The same column with each different text once."""
        return cast("DictionaryColumn", self.__dict__["encode"]())

    @property
    def codes(self) -> NDArray[np.intp]:
        """The code of each row in the dictionary."""
        return self.dictionary.codes

    @property
    def values(self) -> tuple[Key, ...]:
        """The texts of the dictionary."""
        return self.dictionary.values

    @property
    def nbytes(self) -> int:
        return int(self.__dict__["data"].nbytes + self.__dict__["offsets"].nbytes)

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest text."""
        return int(np.diff(self.__dict__["offsets"]).max(initial=0))

    @cached_property
    def hashes(self) -> NDArray[np.int64]:
        """int64 [n]: the hash of each text."""
        hashes = hashed_texts(self.__dict__["data"], self.__dict__["offsets"])
        hashes.flags.writeable = False  # several metrics may read them
        return hashes


def hash_ids(names: Sequence[str]) -> HashedIds:
    """String ids as `ids="hashed"` keeps them: hashed once, for all metrics that read the column.

    names: [n] strings. The hash of a string is the same on every machine, for ever.

    >>> from streammetrics import GroupedAUC, hash_ids
    >>> users = hash_ids(["ann", "bo", "ann", "bo"])
    >>> auc = GroupedAUC(ids="hashed")
    >>> auc.update([1, 0, 0, 1], [0.9, 0.2, 0.1, 0.3], groups=users)
    >>> auc.compute().gauc
    1.0

    InputError for ids that are not strings; pass columns of integers to `update` unchanged.
    """
    try:
        return hashed_ids(names).view(HashedIds)
    except TypeError:
        if not isinstance(names, Sequence | np.ndarray):
            raise InputError(
                expected="a sequence of strings",
                got=shown(names),
                where="names",
                hint="pass a list of ids",
            ) from None
        row = [isinstance(name, str) for name in names].index(False)
        hint = "pass integers to update directly, or strings here"
        raise bad_rows(names, np.array([row]), "names", "strings", hint) from None


def hash_texts(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> HashedIds:
    """As `hash_ids`, for UTF-8 texts stored end to end, as in Arrow.

    Text i is `data[offsets[i]:offsets[i + 1]]`; offsets: [n + 1], from 0 or later, ascending.

    >>> import numpy as np
    >>> from streammetrics import hash_ids, hash_texts
    >>> data, offsets = np.frombuffer(b"annbo", np.uint8), np.array([0, 3, 5])
    >>> hash_texts(data, offsets).tolist() == hash_ids(["ann", "bo"]).tolist()
    True
    """
    arrays: tuple[tuple[str, object, str], ...] = (("data", data, "u1"), ("offsets", offsets, "i8"))
    for name, array, kind in arrays:
        if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
            raise InputError(
                expected=f"an array [n] of {np.dtype(kind).name}",
                got=shown(array),
                where=f"hash_texts({name})",
                hint="pass the buffers of a string array of Arrow, or use hash_ids",
            )
    ends = (0, *offsets[[0, -1]].tolist(), len(data)) if len(offsets) else (1, 0)
    if list(ends) != sorted(ends) or bool((np.diff(offsets) < 0).any()):
        raise InputError(
            expected=f"ascending offsets from 0 to {len(data)}, one more than texts",
            got=shown(offsets),
            where="hash_texts(offsets)",
            hint="pass [n + 1] offsets into data",
        )
    return hashed_texts(data, offsets).view(HashedIds)


def hashed_ids(names: Sequence[str]) -> NDArray[np.int64]:
    """int64 [n]: the hash of each string."""
    joined = "".join(names)
    if joined.isascii():
        sizes = np.fromiter(map(len, names), np.int64, len(names))
        return hashed_texts(np.frombuffer(joined.encode(), np.uint8), offsets_of(sizes))
    if PAIR.search(joined):  # perhaps of two names
        names = [*map(joined_pairs, names)]
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return hashed_texts(np.frombuffer(b"".join(encoded), np.uint8), offsets_of(sizes))


def hashed_texts(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [n]: the hash of each text; text i is `data[offsets[i]:offsets[i + 1]]`."""
    n = len(offsets) - 1
    out = np.empty(n, np.int64)
    # Words are read at any byte, up to seven bytes beyond the last text.
    padded = np.concatenate([data[: offsets[-1]], np.zeros(8, np.uint8)])
    words = np.ndarray(len(padded) - 7, "<u8", padded.data, strides=(1,))
    for start in range(0, n, _CHUNK):
        hashes = out[start : start + _CHUNK]
        starts, sizes = (
            offsets[start : start + len(hashes)],
            np.diff(offsets[start : start + len(hashes) + 1]),
        )
        most = int(sizes.max())
        if most > LONGEST:
            long = np.flatnonzero(sizes > LONGEST)
            short = np.flatnonzero(sizes <= LONGEST)
            hashes[short] = _hashed(words, starts[short], sizes[short]).view(np.int64)
            digests = [_digest(data, int(starts[i]), int(sizes[i])) for i in long.tolist()]
            of_digests = np.frombuffer(b"".join(digests), np.uint8)
            hashes[long] = hashed_texts(of_digests, np.arange(len(long) + 1, dtype=np.int64) * 32)
        else:
            hashes[:] = _hashed(words, starts, sizes).view(np.int64)
    return out


def is_hashed(column: DictionaryColumn) -> bool:
    """Whether the hashes of a column are known; then its strings were checked."""
    return column in _KNOWN


def hashes_of(column: DictionaryColumn) -> NDArray[np.int64]:
    """The hash of each value of a column of strings, computed once for all its readers."""
    hashes = _KNOWN.get(column)
    if hashes is None:
        hashes = hashed_ids(cast("tuple[str, ...]", column.values))
        hashes.flags.writeable = False
        _KNOWN[column] = hashes
    return hashes


def _digest(data: NDArray[np.uint8], start: int, size: int) -> bytes:
    from hashlib import blake2b

    return blake2b(data[start : start + size].tobytes(), digest_size=32).digest()


def _hashed(words: Words, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Words:
    """The hashes of texts; `words[i]` is the eight bytes from position i on."""
    whole = sizes >> 3
    order: NDArray[np.intp] | None = None
    if len(whole) and whole.min() != whole.max():  # longest first, so that shorter ones drop out
        # Of one byte, which numpy sorts by counting: a text has at most LONGEST bytes.
        order = np.argsort((LONGEST - whole).astype(np.uint8), kind="stable")
        starts, sizes, whole = starts[order], sizes[order], whole[order]
    last = words[starts + (whole << 3)] & _BEFORE[sizes & 7] | (sizes << 56).view(np.uint64)
    state = [np.full(len(sizes), word, np.uint64) for word in _BEGIN]
    spare = np.empty(len(sizes), np.uint64)
    n_longer = len(whole)
    for i in range(int(whole.max(initial=0))):
        n_longer = int(np.searchsorted(-whole[:n_longer], -i, side="left"))
        _word(
            [part[:n_longer] for part in state], words[starts[:n_longer] + 8 * i], spare[:n_longer]
        )
    _word(state, last, spare)
    state[2] ^= _END
    for _ in range(3):
        _round(state, spare)
    hashes: Words = state[0] ^ state[1] ^ state[2] ^ state[3]
    if order is None:
        return hashes
    out = np.empty_like(hashes)
    out[order] = hashes
    return out


def _word(state: Sequence[Words], word: Words, spare: Words) -> None:
    state[3][...] ^= word
    _round(state, spare)
    state[0][...] ^= word


def _round(state: Sequence[Words], spare: Words) -> None:
    a, b, c, d = state
    a += b
    _turn(b, 13, spare)
    b ^= a
    _turn(a, 32, spare)
    c += d
    _turn(d, 16, spare)
    d ^= c
    a += d
    _turn(d, 21, spare)
    d ^= a
    c += b
    _turn(b, 17, spare)
    b ^= c
    _turn(c, 32, spare)


def _turn(word: Words, bits: int, spare: Words) -> None:
    """Rotate left."""
    np.left_shift(word, _BITS[bits], out=spare)
    np.right_shift(word, _BITS[64 - bits], out=word)
    np.bitwise_or(word, spare, out=word)
