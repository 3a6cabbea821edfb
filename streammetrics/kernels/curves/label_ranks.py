"""The labels of a sorted run, a bit for each key: its positives, their indices, and its ties.

Keys are those of `segments`: the label is the lowest bit, the score is above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.rounding import exact_dot, exact_sum

Words = NDArray[np.unsignedinteger]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]  # key i has bit i % 64 of word i // 64

_WORD: Final = 6  # bits of the number of a bit in a word of 64
_CHUNK: Final = 1 << 16  # keys at a time, in the second-level cache; a multiple of 64
_NEAR: Final = 8  # keys; the pairs of a tie of more are counted from the number of its labels
# By place j: the bits of a word whose number has 2**j. So the sum of the numbers of its 1 bits is
# the sum over j of 2**j times those that it shares with the mask.
_NUMBERED: Final = tuple(
    np.uint64(sum(1 << bit for bit in range(64) if bit >> place & 1)) for place in range(_WORD)
)


class LabelRanks:
    """The labels of a sorted run of keys [n], of which 1 is a positive.

    total: the positives.
    """

    __slots__ = ("_before", "_bits", "_index_sums", "total")

    def __init__(self, words: Words) -> None:
        self._bits = _packed(words, lambda keys: keys.astype(np.uint8) & np.uint8(1))
        self._before = np.zeros(len(self._bits) + 1, np.int64)
        np.cumsum(np.bitwise_count(self._bits), out=self._before[1:])
        self._index_sums: Ints | None = None  # of the positives before each word
        self.total = int(self._before[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        sums = 0 if self._index_sums is None else self._index_sums.nbytes
        return self._bits.nbytes + self._before.nbytes + sums

    def positives(self, ends: NDArray[np.intp]) -> Ints:
        """The positives among the first `ends` keys; [k]."""
        return self._first(ends)[0]

    def rows(self, ends: NDArray[np.intp]) -> tuple[Ints, Ints]:
        """The negatives and the positives among the first `ends` keys; [k]."""
        positives = self.positives(ends)
        return ends - positives, positives

    def repeats(self, starts: NDArray[np.intp], ends: NDArray[np.intp]) -> Ints:
        """The rows in each of these ranges of equal keys; [k]."""
        return ends - starts

    def index_sum(self) -> int:
        """The sum of the indices of all positives, however large."""
        return exact_dot(self._firsts, np.diff(self._before)) + exact_sum(_numbers(self._bits))

    def index_sums(self, ends: NDArray[np.intp]) -> tuple[Ints, Ints]:
        """The positives among the first `ends` keys, and the sum of their indices; [k]. Sums may
        wrap around; a difference of two is right if it fits."""
        if self._index_sums is None:
            of_word = self._firsts * np.diff(self._before) + _numbers(self._bits)
            self._index_sums = np.cumsum(of_word) - of_word
        positives, word, bits = self._first(ends)
        sums = (word << _WORD) * np.bitwise_count(bits) + _numbers(bits)
        sums += self._index_sums[word]
        return positives, sums

    def ties(self, words: Words) -> int:
        """The pairs of a negative and a positive of one score among these keys, however many."""
        label_bit = words.dtype.type(1)
        same = _packed(words, lambda keys: (keys[1:] ^ keys[:-1]) <= label_bit)
        tied, ties = same, 0  # whether a key is tied with the one at this distance after it
        for distance in range(1, _NEAR):
            if not tied.any():
                return ties
            pairs = tied & ~self._bits & _later_bits(self._bits, distance)
            ties += int(np.bitwise_count(pairs).sum(dtype=np.int64))
            tied = tied & _later_bits(same, distance)
        used = np.flatnonzero(tied)  # few words
        if not len(used):
            return ties
        bits = np.flatnonzero(np.unpackbits(tied[used].view(np.uint8), bitorder="little"))
        indices = (used[bits >> _WORD] << _WORD) + (bits & 63)
        # These keys begin ties of more than _NEAR keys, or are in one; each tie once:
        new = (words[indices[1:]] ^ words[indices[:-1]]) > label_bit
        begins = indices[np.concatenate([[True], new])]
        ends = indices[np.concatenate([new, [True]])] + (_NEAR + 1)
        p = self.positives(ends) - self.positives(begins)
        n = ends - begins - p
        fewer = np.minimum(n, p)
        counted = sum(  # the pairs at each distance
            int(np.minimum(np.minimum(fewer, d), n + p - d).sum()) for d in range(1, _NEAR)
        )
        return ties + exact_dot(n, p) - counted

    @property
    def _firsts(self) -> Ints:
        """The index of the first key of each word."""
        return np.arange(len(self._bits), dtype=np.int64) << _WORD

    def _first(self, ends: NDArray[np.intp]) -> tuple[Ints, NDArray[np.intp], Bits]:
        """The positives among the first `ends` keys, their last word, and its bits."""
        word = ends >> _WORD
        bits = self._bits[word]
        bits &= (np.uint64(1) << (ends & 63).view(np.uint64)) - np.uint64(1)
        return self._before[word] + np.bitwise_count(bits), word, bits


def _packed(words: Words, bit: Callable[[Words], NDArray[np.bool_ | np.integer]]) -> Bits:
    """A bit for each key, of which at least the last is 0 and spare. bit: of some keys, from these
    and the next one."""
    packed = np.zeros((len(words) >> _WORD) + 1 << 3, np.uint8)
    for i in range(0, len(words), _CHUNK):
        chunk = np.packbits(bit(words[i : i + _CHUNK + 1])[:_CHUNK], bitorder="little")
        packed[i >> 3 : (i >> 3) + len(chunk)] = chunk
    return packed.view("<u8")


def _later_bits(bits: Bits, distance: int) -> Bits:
    """The bit of the key `distance` after each, from 1 to 63."""
    shifted: Bits = bits >> np.uint64(distance)
    shifted[:-1] |= bits[1:] << np.uint64(64 - distance)
    return shifted


def _numbers(bits: Bits) -> Ints:
    """The sum of the numbers, 0 to 63, of the 1 bits of each word."""
    out = np.zeros(len(bits), np.uint16)
    for place, mask in enumerate(_NUMBERED):
        out += np.left_shift(np.bitwise_count(bits & mask), place, dtype=np.uint16)
    return out.astype(np.int64)
