"""Indices of group ids: each different id gets the next small integer.

Indices depend on the order of arrival and never leave the process: bytes hold the ids in sorted
order, and results are exact sums over groups, so neither depends on the order of arrival.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import count, pairwise
from sys import getsizeof
from typing import Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer, damaged
from streammetrics.core.errors import StateError
from streammetrics.core.ids.id_hashes import hashed_ids
from streammetrics.core.ids.keys import encode_key
from streammetrics.core.rows import DictionaryColumn, sorted_distinct

MAX_IDS: Final = (1 << 31) - 2
_INT: Final = getsizeof(1 << 20)

Indices = NDArray[np.uint32]


class Ids(ABC):
    """A set of ids, each with an index."""

    n: int

    @abstractmethod
    def index(self, ids: NDArray[np.int64] | DictionaryColumn) -> Indices:
        """uint32 [n]: the index of each id; ids not seen before get one."""

    @abstractmethod
    def index_all(self, other: Self) -> Indices:
        """uint32 [other.n]: the index here of each of the other's ids."""

    @abstractmethod
    def subset(self, used: Indices) -> tuple[Self, Indices]:
        """Only the ids with these indices (ascending), and their new indices, ascending."""

    @abstractmethod
    def ranks(self, used: Indices) -> NDArray[np.intp]:
        """The rank of each of these ids in their sorted order."""

    @abstractmethod
    def twin(self) -> Self:
        """The same ids with the same indices."""

    @abstractmethod
    def words(self) -> NDArray[np.uint64]:
        """uint64 [n]: by index, the word of each id, from which unit hashes are computed."""

    @abstractmethod
    def encode(self, used: Indices, out: Writer) -> None:
        """Write the ids with these indices, which are given in the sorted order of the ids."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory."""


class StringIds(Ids):
    """A set of strings."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        """names: different strings, whose indices are 0 to n - 1."""
        self.names = list(names)
        self.strings = sum(map(getsizeof, self.names))
        self._positions: defaultdict[str, int] | None = None  # made when first needed

    @property
    def positions(self) -> defaultdict[str, int]:
        """The index of each name; looking up an unknown name gives it the next index."""
        if self._positions is None:
            next_index = count(len(self.names)).__next__
            self._positions = defaultdict(next_index, zip(self.names, count()))
        return self._positions

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of ids."""
        return len(self.names)

    @property
    def nbytes(self) -> int:
        total = self.strings + getsizeof(self.names)
        if self._positions is not None:  # the dict, and the numbers in it
            total += getsizeof(self._positions) + _INT * self.n
        return total

    def index(self, ids: NDArray[np.int64] | DictionaryColumn) -> Indices:
        strings = cast("DictionaryColumn", ids)
        names = cast("tuple[str, ...]", strings.values)
        if len(names) <= len(strings):
            return self._named(names)[strings.codes]
        used, codes = np.unique(strings.codes, return_inverse=True)
        return self._named([names[i] for i in used.tolist()])[codes]

    def index_all(self, other: Self) -> Indices:
        return self._named(other.names)

    def subset(self, used: Indices) -> tuple[Self, Indices]:
        new = type(self)([self.names[i] for i in used.tolist()])
        return new, np.arange(len(used), dtype=np.uint32)

    def ranks(self, used: Indices) -> NDArray[np.intp]:
        names = [self.names[i] for i in used.tolist()]
        # By code point, which is also the order of the UTF-8 bytes.
        order = sorted(range(len(names)), key=names.__getitem__)
        ranks = np.empty(len(names), np.intp)
        ranks[order] = np.arange(len(names))
        return ranks

    def twin(self) -> Self:
        new = type(self)()
        new.names, new.strings = self.names.copy(), self.strings
        return new

    def words(self) -> NDArray[np.uint64]:
        return hashed_ids(self.names).view(np.uint64)

    def encode(self, used: Indices, out: Writer) -> None:
        names = [self.names[i].encode("utf-8", "surrogatepass") for i in used.tolist()]
        out.ints(np.array([len(name) for name in names], np.int64))
        out.raw(b"".join(names))

    @classmethod
    def decode(cls, n: int, data: Reader) -> tuple[StringIds, Indices]:
        """The `n` ids that `encode` wrote, and the index of each."""
        sizes = data.ints(n).tolist()
        if sum(sizes) > data.left:
            raise damaged(f"ids of {sum(sizes)} bytes in {data.left} bytes")
        try:
            names = [bytes(data.raw(k)).decode("utf-8", "surrogatepass") for k in sizes]
        except UnicodeDecodeError:
            raise damaged("an id that is not UTF-8") from None
        if any(a >= b for a, b in pairwise(names)):
            raise damaged("group ids out of order")
        return cls(names), np.arange(n, dtype=np.uint32)

    def _named(self, names: Sequence[str]) -> Indices:
        positions = self.positions
        # A list first: if numpy drew the indices one by one, the processor would wait for each.
        indices = list(map(positions.__getitem__, names))
        if len(positions) > len(self.names):
            if len(positions) > MAX_IDS:
                raise too_many(len(positions))
            new = _tail(positions, len(self.names))
            self.names.extend(new)
            self.strings += sum(map(getsizeof, new))
        return np.array(indices, np.uint32)


class MemberIds(StringIds):
    """Pairs of a group id and a set of members, each as the text that `pair_text` makes.

    In a bag each pair is a group, so that its rows keep their set; its word is that of the group
    id, so that all pairs of a group leave a state together.
    """

    def pairs(self) -> list[list[int | str]]:
        """By index, the group id and then the members of each pair."""
        return _pairs_of(self.names)

    def words(self) -> NDArray[np.uint64]:
        owners = [owner for owner, *_ in self.pairs()]
        if owners and isinstance(owners[0], str):
            return hashed_ids(cast("list[str]", owners)).view(np.uint64)
        return np.array(owners, np.int64).view(np.uint64)

    @classmethod
    def decode(cls, n: int, data: Reader) -> tuple[StringIds, Indices]:
        ids, indices = super().decode(n, data)
        try:
            pairs = _pairs_of(ids.names)
            texts = [pair_text(owner, members_text(members)) for owner, *members in pairs]
        except (ValueError, TypeError, RecursionError):
            texts = []
        if texts != ids.names:
            raise damaged("a set of members in another form than written")
        return ids, indices


def members_text(members: Collection[int | str]) -> str:
    """The one text of a set of members: ascending integers, then ascending strings.

    >>> pair_text(7, members_text(["price", "car", 3]))
    '[7,3,"car","price"]'
    """
    if not members or not all(type(member) is str or _is_int64(member) for member in members):
        raise ValueError(members)
    ordered = sorted(set(members), key=lambda member: (isinstance(member, str), member))
    return encode_key(tuple(ordered)).decode()[1:-1]


def pair_text(owner: int | str, members: str) -> str:
    """The text of a group id with the text of a set of members."""
    if type(owner) is not str and not _is_int64(owner):
        raise ValueError(owner)
    return f"[{encode_key(owner).decode()},{members}]"


def _is_int64(value: object) -> bool:
    return type(value) is int and -1 << 63 <= value < 1 << 63


def _pairs_of(names: Sequence[str]) -> list[list[int | str]]:
    pairs: list[list[int | str]] = [json.loads(name) for name in names]
    return pairs


def _tail(positions: dict[str, int], n_known: int) -> list[str]:
    """The keys of a dict after the first `n_known`, newest last."""
    tail = []
    for name in reversed(positions):
        if positions[name] < n_known:
            break
        tail.append(name)
    return tail[::-1]


def too_many(n: int) -> StateError:
    """The error for more ids than there are indices."""
    return StateError(
        expected=f"at most {MAX_IDS} different groups in one state",
        got=str(n),
        where="groups",
        hint="keep separate states for ranges of groups",
    )


# -- integer ids, looked up many at a time --------------------------------------------------------
U64 = NDArray[np.uint64]
Found = NDArray[np.int32]

_CHUNK: Final = 1 << 15  # ids at a time: temporaries stay in the second-level cache
_BLOCK: Final = 1 << 16  # ids whose unknown ones are added together, for fewer calls
_ROOM: Final = 3  # table positions for each id, at least
_PATH: Final = 64  # positions that an id may take; an id that finds none changes the multiplier
_GOLDEN: Final = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: spreads runs of integers evenly
_EMPTY: Final = -1


class IntegerIds(Ids):
    """int64 ids in an open-addressed table, looked up many at a time.

    The index of an id is the number of ids added before it: `ids[index]` is the id. `table` has
    2**b positions, each of which holds an index or `_EMPTY`. The *path* of an id is a sequence of
    positions that depends on the id, the multiplier and b alone. Two invariants hold between calls
    of methods:

    1. The index of each id is at one of the first `_PATH` positions of its path, and no position
       before it on that path is empty. (`_place` adds ids so, and no position is ever emptied.)
    2. No index is at two positions, and no id has two indices. (`_add` is given different ids that
       are not in the table, and each gets one new index and one position.)

    So `_find` follows a path until it finds the id itself, where `ids[table[position]] == id`, or
    reaches an empty position or the end of the path, and then the id is new. No id is special: a
    position only says where in `ids` to look.
    """

    def __init__(self, ids: NDArray[np.int64] | None = None) -> None:
        """ids: [n] different ids, whose indices are 0 to n - 1."""
        first_ids = np.empty(0, np.int64) if ids is None else ids
        self.n = len(first_ids)
        self.ids = np.zeros(max(16, self.n), np.int64)
        self.ids[: self.n] = first_ids
        self.table = np.empty(0, np.int32)  # made when first needed
        self.multiplier = np.uint64(_GOLDEN)
        self.shared = False

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.table.nbytes

    def index(self, ids: NDArray[np.int64] | DictionaryColumn) -> Indices:
        ids = cast("NDArray[np.int64]", ids)
        if not len(self.table):
            self._make_table()
        out = np.empty(len(ids), np.int32)
        for i in range(0, len(ids), _BLOCK):
            block, indices = ids[i : i + _BLOCK], out[i : i + _BLOCK]
            self._find(block, indices)
            new = np.flatnonzero(indices == _EMPTY)
            if len(new):
                strangers, new_indices = block.take(new), np.empty(len(new), np.int32)
                self._add(sorted_distinct(strangers))
                self._find(strangers, new_indices)
                indices[new] = new_indices
        return out.view(np.uint32)

    def index_all(self, other: Self) -> Indices:
        return self.index(other.ids[: other.n])

    def subset(self, used: Indices) -> tuple[Self, Indices]:
        return type(self)(self.ids[used]), np.arange(len(used), dtype=np.uint32)

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
        else:  # differences are mostly narrower than ids
            out.ints(np.diff(ids, prepend=np.int64(0)))

    @classmethod
    def decode(cls, n: int, data: Reader) -> tuple[IntegerIds, Indices]:
        """The `n` ids that `encode` wrote, and the index of each."""
        signed = data.uint(1) == 1
        ids = data.words(n).view(np.int64) if signed else np.cumsum(data.ints(n))
        if signed and not (n and ids[0] < 0):
            raise damaged("group ids in a wider form than necessary")
        if (n and not signed and ids[0] < 0) or not bool((ids[1:] > ids[:-1]).all()):
            raise damaged("group ids out of order")
        return cls(ids), np.arange(n, dtype=np.uint32)

    def _find(self, ids: NDArray[np.int64], out: Found) -> None:
        """Write the index of each id to `out`, or `_EMPTY` where it is not in the table."""
        for i in range(0, len(ids), _CHUNK):
            chunk, indices = ids[i : i + _CHUNK], out[i : i + _CHUNK]
            words = self._words(chunk)
            positions = self._positions(words)
            self.table.take(positions, out=indices, mode="clip")  # clip: no copy; none is outside
            rows = self._others(indices, chunk)
            steps, positions = self._steps(words.take(rows)), positions.take(rows)
            for _ in range(_PATH - 1):
                if not len(rows):
                    break
                positions = positions + steps & self._last
                candidates = self.table.take(positions, mode="clip")
                indices[rows] = candidates
                remaining = self._others(candidates, chunk.take(rows))
                rows, positions, steps = (
                    rows.take(remaining),
                    positions.take(remaining),
                    steps.take(remaining),
                )
            indices[rows] = _EMPTY  # at the end of their paths

    def _others(self, indices: Found, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """The rows whose position in the table holds the index of another id."""
        table_ids = self.ids.take(indices, mode="clip")  # clip: `_EMPTY` reads some id
        return np.flatnonzero((table_ids != ids) & (indices != _EMPTY))

    def _add(self, ids: NDArray[np.int64]) -> None:
        """Give indices and positions to these different ids, none of which is in the table."""
        start, new = self.n, self.n + len(ids)
        if new > MAX_IDS:
            raise too_many(new)
        self._own()
        if new > len(self.ids):
            room = max(new, 2 * len(self.ids)) - len(self.ids)
            self.ids = np.concatenate([self.ids, np.zeros(room, np.int64)])
        self.ids[start:new] = ids
        self.n = new
        if _ROOM * new > len(self.table):
            self._make_table()
        elif not self._place(start):
            self._change_multiplier()

    def _make_table(self) -> None:
        """A new table of all ids, with room for as many more."""
        self.table = np.empty(1 << max(6, (_ROOM * self.n).bit_length()), np.int32)
        self.table.fill(_EMPTY)
        if not self._place(0):
            self._change_multiplier()

    def _change_multiplier(self) -> None:
        """Fill the table again, with a multiplier by which all ids find positions."""
        placed = False
        while not placed:
            self.multiplier = np.uint64(int(self.multiplier) * _GOLDEN % (1 << 64) | 1)
            self.table.fill(_EMPTY)
            placed = self._place(0)

    def _place(self, start: int) -> bool:
        """Put each index from `start` on at the first empty position of its id's path.

        If several reach an empty position together, one gets it and the others go on. Returns
        whether all found a position; if not, the table must be filled again.
        """
        indices = np.arange(start, self.n, dtype=np.int32)
        words = self._words(self.ids[start : self.n])
        positions, steps = self._positions(words), self._steps(words)
        for _ in range(_PATH):
            empty = np.flatnonzero(self.table.take(positions, mode="clip") == _EMPTY)
            self.table[positions.take(empty)] = indices.take(empty)
            left = np.flatnonzero(self.table.take(positions, mode="clip") != indices)
            if not len(left):
                return True
            indices, steps = indices.take(left), steps.take(left)
            positions = positions.take(left) + steps & self._last
        return False

    @property
    def _last(self) -> int:
        """The last position, a number with a 1 in each bit."""
        return len(self.table) - 1

    def _words(self, ids: NDArray[np.int64]) -> U64:
        """A word for each id, whose upper bits depend on all bits of the id."""
        words = ids.view(np.uint64) >> np.uint64(32)
        words ^= ids.view(np.uint64)
        words *= self.multiplier
        return words

    def _positions(self, words: U64) -> NDArray[np.int64]:
        """The first position of each path: the upper bits of the word."""
        return (words >> np.uint64(64 - self._last.bit_length())).view(np.int64)

    def _steps(self, words: U64) -> NDArray[np.int64]:
        """The step of each path between positions: the bits that follow, made odd, so that a path
        reaches every position."""
        return self._positions(words << np.uint64(self._last.bit_length())) | 1

    def _own(self) -> None:
        if self.shared:
            self.ids, self.table, self.shared = self.ids.copy(), self.table.copy(), False


# Kinds of group ids, by the name that a setting has.
ID_KINDS: Final[Mapping[str, type[StringIds] | type[IntegerIds]]] = {
    "integer": IntegerIds,
    "hashed": IntegerIds,
    "exact": StringIds,
    "members": MemberIds,
}
