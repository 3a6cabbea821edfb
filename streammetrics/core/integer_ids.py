"""Indices of integer ids, looked up many at a time."""

from __future__ import annotations

from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer, damaged
from streammetrics.core.ids import MAX_IDS, Ids, Indices, too_many
from streammetrics.core.rows import Coded

U64 = NDArray[np.uint64]

_CHUNK: Final = 1 << 15  # ids at a time: temporaries stay in the second-level cache
_BLOCK: Final = 1 << 18  # ids whose strangers are looked for together: fewer calls for each
_ROOM: Final = 2  # places for each id, at least
_PROBES: Final = 64  # rounds; at half full, so many mean ids that defeat this multiplier
_GOLDEN: Final = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: spreads runs of integers evenly


class IntegerIds(Ids):
    """int64 ids in an open-addressed table, looked up many at a time.

    An id becomes a word by a mapping that loses nothing. With 2**b places, the upper b bits of the
    word say its first place; what stands there is `word << b | index`, the rest of the word and
    the number of the id, so that one look tells both. What did not find its first place free has
    the bit `_away` too, which no index reaches. In its second place the rest of the word still
    tells it, since the step from the first is part of that; further on it has no word, and is told
    by `ids[index] == id`. An empty place holds that bit alone. Index 0 is always the id 0, whose
    word is 0 and its place the first one.
    """

    def __init__(self, ids: NDArray[np.int64] | None = None) -> None:
        """ids: [n] different ids, whose indices are 1 to n but for 0, whose index is 0."""
        known = np.empty(0, np.int64) if ids is None else ids[ids != 0]
        self.n = 1 + len(known)
        self.ids = np.zeros(max(16, self.n), np.int64)
        self.ids[1 : self.n] = known
        self.table = np.empty(0, np.uint64)  # made when first needed
        self.multiplier = np.uint64(_GOLDEN)
        self.shared = False

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.table.nbytes

    def index(self, ids: NDArray[np.int64] | Coded) -> Indices:
        assert isinstance(ids, np.ndarray)
        if not len(self.table):
            self._rehash(self.n)
        out = np.empty(len(ids), np.uint32)
        for i in range(0, len(ids), _BLOCK):
            some, here = ids[i : i + _BLOCK], out[i : i + _BLOCK]
            misses = self._look_on(some, here, self._look(some, here))
            for j in range(0, len(misses), _CHUNK):
                miss = misses[j : j + _CHUNK]
                here[miss] = self._probe(some[miss])
        return out

    def _look(self, ids: NDArray[np.int64], out: Indices) -> NDArray[np.intp]:
        """Look at the first place of each id; which of them are not there."""
        words = np.empty(min(_CHUNK, len(ids)), np.uint64)
        places, found = np.empty_like(words), np.empty_like(words)
        bits = np.uint64(self._bits)
        misses = []
        for i in range(0, len(ids), _CHUNK):
            some = ids[i : i + _CHUNK]
            word, place, here = words[: len(some)], places[: len(some)], found[: len(some)]
            self._mix(some, word)
            np.right_shift(word, np.uint64(64) - bits, out=place)
            np.left_shift(word, bits, out=word)
            np.take(self.table, place.view(np.int64), out=here, mode="clip")  # clip: no copy
            here ^= word  # the index alone where the rest of the word is the same
            np.copyto(out[i : i + _CHUNK], here, casting="unsafe")
            misses.append(np.flatnonzero(here >= self._away) + i)
        return np.concatenate(misses)

    def _look_on(
        self, ids: NDArray[np.int64], out: Indices, misses: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Look at the second place of these, where most are; which of them are not there."""
        left = [misses[:0]]
        bits, last = np.uint64(self._bits), len(self.table) - 1
        for i in range(0, len(misses), _CHUNK):
            miss = misses[i : i + _CHUNK]
            words = self._words(ids.take(miss))
            places = self._places(words)
            words <<= bits  # the rest
            places += self._places(words) | 1
            places &= last
            unsure = words == 0  # as what is further on, and what is empty
            words ^= self._away
            words ^= self.table.take(places, mode="clip")
            out[miss] = words
            unsure |= words >= self._away
            left.append(np.compress(unsure, miss))
        return np.concatenate(left)

    def index_all(self, other: Self) -> Indices:
        return self.index(other.ids[: other.n])

    def subset(self, used: Indices) -> tuple[Self, Indices]:
        new = type(self)(self.ids[used])
        return new, np.arange(len(used), dtype=np.uint32) + np.uint32(len(used) > 0 and used[0] > 0)

    def ranks(self, used: Indices) -> NDArray[np.intp]:
        ids = self.ids[used]
        ranks = np.empty(len(ids), np.intp)
        ranks[np.argsort(ids, kind="stable")] = np.arange(len(ids))
        return ranks

    def twin(self) -> Self:
        new = type(self)()
        new.n, new.ids, new.table, new.multiplier = self.n, self.ids, self.table, self.multiplier
        new.shared = self.shared = True
        return new

    def words(self) -> NDArray[np.uint64]:
        return self.ids[: self.n].view(np.uint64)

    def encode(self, used: Indices, out: Writer) -> None:
        ids = self.ids[used]
        signed = len(ids) > 0 and ids[0] < 0
        out.uint(int(signed))
        if signed:
            out.words(ids.view(np.uint64))
        else:  # steps are mostly narrower than ids
            out.ints(np.diff(ids, prepend=np.int64(0)))

    @classmethod
    def decode(cls, n: int, data: Reader) -> tuple[IntegerIds, Indices]:
        """What `encode` wrote for `n` ids, and the index of each."""
        signed = data.uint(1) == 1
        ids = data.words(n).view(np.int64) if signed else np.cumsum(data.ints(n))
        if signed and not (n and ids[0] < 0):
            raise damaged("group ids in the wider form without need")
        if (n and not signed and ids[0] < 0) or not bool((ids[1:] > ids[:-1]).all()):
            raise damaged("group ids out of order")
        return cls(ids), np.where(ids == 0, 0, np.cumsum(ids != 0)).astype(np.uint32)

    @property
    def _bits(self) -> int:
        """The number of bits that say a place."""
        return len(self.table).bit_length() - 1

    @property
    def _away(self) -> np.uint64:
        """The bit of what is not in its first place."""
        return np.uint64(len(self.table) >> 1)

    def _mix(self, ids: NDArray[np.int64], out: U64) -> None:
        """The words of ids, whose upper bits depend on all bits."""
        np.right_shift(ids.view(np.uint64), np.uint64(32), out=out)
        np.bitwise_xor(out, ids.view(np.uint64), out=out)
        np.multiply(out, self.multiplier, out=out)

    def _words(self, ids: NDArray[np.int64]) -> U64:
        words = np.empty(len(ids), np.uint64)
        self._mix(ids, words)
        return words

    def _places(self, words: U64) -> NDArray[np.int64]:
        """The first place of each."""
        return (words >> np.uint64(64 - self._bits)).view(np.int64)

    def _steps(self, words: U64) -> NDArray[np.int64]:
        """The odd step of each from place to place, of what the rest of its word begins with."""
        return self._places(words << np.uint64(self._bits)) | 1

    def _entries(self, words: U64, step: int) -> U64:
        """What stands for these words so many steps from their first places, but for the index."""
        if step > 1:
            return np.full(len(words), self._away)
        entries = words << np.uint64(self._bits)
        return entries | self._away if step else entries

    def _indices(self, found: U64) -> NDArray[np.int64]:
        """The indices in what stands at places; 0 of an empty one."""
        return (found & (self._away - np.uint64(1))).view(np.int64)

    def _probe(self, ids: NDArray[np.int64]) -> Indices:
        """Look on from place to place; an empty place is claimed by writing there, and one wins."""
        self._own()
        if _ROOM * (self.n + len(ids)) > len(self.table):
            # Many rows may have few ids, and a table that is too large is slow.
            in_order = np.sort(ids)
            room = self.n + 1 + int(np.count_nonzero(in_order[1:] != in_order[:-1]))
            if _ROOM * room > len(self.table):
                self._rehash(room)
        out = np.empty(len(ids), np.uint32)
        at = np.arange(len(ids))
        words = self._words(ids)
        places, step = self._places(words), 0
        while True:
            here = self.table.take(places, mode="clip")
            empty = np.flatnonzero(here == self._away)
            if len(empty):
                wanted = places.take(empty)
                self._claim(ids.take(empty), self._entries(words.take(empty), step), wanted)
                here[empty] = self.table.take(wanted, mode="clip")
            found = self._indices(here)
            out[at] = found
            miss = np.flatnonzero(self.ids.take(found, mode="clip") != ids)
            if not len(miss):
                return out
            at, ids, words = at.take(miss), ids.take(miss), words.take(miss)
            step += 1
            if step < _PROBES:
                places = places.take(miss) + self._steps(words) & (len(self.table) - 1)
            else:
                self._rehash(self.n + len(ids), again=True)
                words = self._words(ids)
                places, step = self._places(words), 0

    def _claim(self, ids: NDArray[np.int64], entries: U64, places: NDArray[np.int64]) -> None:
        """Give each of these empty places to one of the ids that want it; entries: no index yet."""
        marks = np.arange(len(ids), dtype=np.uint64)
        self.table[places] = marks
        won = np.flatnonzero(self.table[places] == marks)
        new = self.n + len(won)
        if new > MAX_IDS:
            raise too_many(new)
        if new > len(self.ids):
            more = max(new, 2 * len(self.ids)) - len(self.ids)
            self.ids = np.concatenate([self.ids, np.zeros(more, np.int64)])
        self.ids[self.n : new] = ids[won]
        indices = np.arange(self.n, new, dtype=np.uint64)
        self.table[places[won]] = entries[won] | indices
        self.n = new

    def _rehash(self, room: int, again: bool = False) -> None:
        """A table with room for so many ids; `again`: with another multiplier."""
        bits = max(6, (_ROOM * room).bit_length())
        while True:
            if again:
                self.multiplier = np.uint64(int(self.multiplier) * _GOLDEN % (1 << 64) | 1)
            self.table = np.full(1 << bits, 1 << (bits - 1), np.uint64)
            indices = np.arange(self.n, dtype=np.uint64)
            words = self._words(self.ids[: self.n])
            places = self._places(words)
            for step in range(_PROBES):
                entries = self._entries(words, step) | indices
                empty = self.table[places] == self._away
                self.table[places[empty]] = entries[empty]
                left = np.flatnonzero(self.table[places] != entries)
                if not len(left):
                    return
                words, indices = words[left], indices[left]
                places = places[left] + self._steps(words) & ((1 << bits) - 1)
            again = True

    def _own(self) -> None:
        if self.shared:
            self.ids, self.table, self.shared = self.ids.copy(), self.table.copy(), False
