"""Indices of integer ids, looked up many at a time."""

from __future__ import annotations

from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer, damaged
from streammetrics.core.ids import MAX_IDS, Ids, Indices, too_many
from streammetrics.core.rows import Coded

_CHUNK: Final = 1 << 15  # ids at a time: temporaries stay in the second-level cache
_BLOCK: Final = 1 << 18  # ids whose strangers are looked for together: fewer calls for each
_ROOM: Final = 3  # places for each id, at least
_PROBES: Final = 64  # rounds; at a third full, so many mean ids that defeat this multiplier
_GOLDEN: Final = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: spreads runs of integers evenly


class IntegerIds(Ids):
    """int64 ids in an open-addressed table, looked up many at a time.

    The table holds indices, and an empty place holds 0. Index 0 is always the id 0, so that one
    comparison, `ids[table[h]] == id`, tells a hit from an empty place and from a stranger.
    """

    def __init__(self, ids: NDArray[np.int64] | None = None) -> None:
        """ids: [n] different ids, whose indices are 1 to n but for 0, whose index is 0."""
        known = np.empty(0, np.int64) if ids is None else ids[ids != 0]
        self.n = 1 + len(known)
        self.ids = np.zeros(max(16, self.n), np.int64)
        self.ids[1 : self.n] = known
        self.table = np.empty(0, np.uint32)  # made when first needed
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
        found = np.empty(len(words), np.int64)
        misses = []
        for i in range(0, len(ids), _CHUNK):
            some, here = ids[i : i + _CHUNK], out[i : i + _CHUNK]
            word, known = words[: len(some)], found[: len(some)]
            self._mix(some, word)
            np.right_shift(word, self._shift(1), out=word)
            np.take(self.table, word.view(np.int64), out=here, mode="clip")  # clip: no copy
            np.take(self.ids, here, out=known, mode="clip")
            misses.append(np.flatnonzero(known != some) + i)
        return np.concatenate(misses)

    def _look_on(
        self, ids: NDArray[np.int64], out: Indices, misses: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Look at the second place of these, where most are; which of them are not there."""
        left = [misses[:0]]
        for i in range(0, len(misses), _CHUNK):
            miss = misses[i : i + _CHUNK]
            some = ids[miss]
            places, steps = self._paths(some)
            places += steps
            places &= len(self.table) - 1
            here = self.table[places]
            out[miss] = here
            left.append(miss[self.ids[here] != some])
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

    def _mix(self, ids: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
        """Words whose upper bits depend on all bits of the ids."""
        np.right_shift(ids.view(np.uint64), np.uint64(32), out=out)
        np.bitwise_xor(out, ids.view(np.uint64), out=out)
        np.multiply(out, self.multiplier, out=out)

    def _shift(self, words: int) -> np.uint64:
        """What leaves the first (or first two) times as many bits as a place has."""
        return np.uint64(max(0, 64 - words * (len(self.table).bit_length() - 1)))

    def _paths(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first place of each id, and the odd step from there to the next."""
        words = np.empty(len(ids), np.uint64)
        self._mix(ids, words)
        steps = (words >> self._shift(2)).view(np.int64) & (len(self.table) - 1) | 1
        return (words >> self._shift(1)).view(np.int64), steps

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
        places, steps = self._paths(ids)
        rounds = 0
        while True:
            here = self.table[places]
            empty = np.flatnonzero(here == 0)
            if len(empty):
                self._claim(ids[empty], places[empty])
                here[empty] = self.table[places[empty]]
            hit = self.ids[here] == ids
            out[at[hit]] = here[hit]
            miss = np.flatnonzero(~hit)
            if not len(miss):
                return out
            at, ids, places, steps = at[miss], ids[miss], places[miss], steps[miss]
            places = (places + steps) & (len(self.table) - 1)
            rounds += 1
            if rounds % _PROBES == 0:
                self._rehash(self.n + len(ids), again=True)
                places, steps = self._paths(ids)

    def _claim(self, ids: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Give each of these empty places to one of the ids that want it."""
        wanting = np.flatnonzero(ids != 0)  # the id 0 is at home in any empty place
        ids, places = ids[wanting], places[wanting]
        marks = np.arange(1, len(ids) + 1, dtype=np.uint32)
        self.table[places] = marks
        won = np.flatnonzero(self.table[places] == marks)
        new = self.n + len(won)
        if new > MAX_IDS:
            raise too_many(new)
        if new > len(self.ids):
            more = max(new, 2 * len(self.ids)) - len(self.ids)
            self.ids = np.concatenate([self.ids, np.zeros(more, np.int64)])
        self.ids[self.n : new] = ids[won]
        self.table[places[won]] = np.arange(self.n, new, dtype=np.uint32)
        self.n = new

    def _rehash(self, room: int, again: bool = False) -> None:
        """A table with room for so many ids; `again`: with another multiplier."""
        size = 1 << max(6, (_ROOM * room).bit_length())
        while True:
            if again:
                self.multiplier = np.uint64(int(self.multiplier) * _GOLDEN % (1 << 64) | 1)
            self.table = np.zeros(size, np.uint32)
            indices = np.arange(1, self.n, dtype=np.uint32)
            places, steps = self._paths(self.ids[1 : self.n])
            for _ in range(_PROBES):
                empty = self.table[places] == 0
                self.table[places[empty]] = indices[empty]
                left = np.flatnonzero(self.table[places] != indices)
                if not len(left):
                    return
                indices, steps = indices[left], steps[left]
                places = (places[left] + steps) & (size - 1)
            again = True

    def _own(self) -> None:
        if self.shared:
            self.ids, self.table, self.shared = self.ids.copy(), self.table.copy(), False
