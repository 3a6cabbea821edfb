"""Indices of group ids: each different id gets the next small integer.

Indices depend on the order of arrival and never leave the process: bytes hold the ids in their
own order, and results sum over groups exactly, so that no order shows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from itertools import count, pairwise
from sys import getsizeof
from typing import Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bytes.codec import Reader, Writer, damaged
from streammetrics.core.errors import StateError
from streammetrics.core.ids.id_hashes import hashed_ids
from streammetrics.core.rows import DictionaryColumn

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
        """Only the ids with these indices (ascending), and the new indices of these, ascending."""

    @abstractmethod
    def ranks(self, used: Indices) -> NDArray[np.intp]:
        """The place of each of these ids among them in the ids' own order."""

    @abstractmethod
    def twin(self) -> Self:
        """The same ids with the same indices."""

    @abstractmethod
    def words(self) -> NDArray[np.uint64]:
        """uint64 [n]: the word of each id, from which hashes of units are made; by index."""

    @abstractmethod
    def encode(self, used: Indices, out: Writer) -> None:
        """Write these ids, which are given in the ids' own order."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory."""


class StringIds(Ids):
    """Strings as they are."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        """names: different strings, whose indices are 0 to n - 1."""
        self.names = list(names)
        # A name that is looked for and not there gets the next number.
        self.positions = defaultdict(count(len(self.names)).__next__, zip(self.names, count()))
        self.strings = sum(map(getsizeof, self.names))

    @property
    def n(self) -> int:  # type: ignore[override]
        """How many."""
        return len(self.names)

    @property
    def nbytes(self) -> int:
        # The strings, the list and the dict of them, and the numbers in it.
        return self.strings + getsizeof(self.names) + getsizeof(self.positions) + _INT * self.n

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
        return type(self)(self.names)

    def words(self) -> NDArray[np.uint64]:
        return hashed_ids(self.names).view(np.uint64)

    def encode(self, used: Indices, out: Writer) -> None:
        names = [self.names[i].encode("utf-8", "surrogatepass") for i in used.tolist()]
        out.ints(np.array([len(name) for name in names], np.int64))
        out.raw(b"".join(names))

    @classmethod
    def decode(cls, n: int, data: Reader) -> tuple[StringIds, Indices]:
        """What `encode` wrote for `n` ids, and the index of each."""
        sizes = data.ints(n).tolist()
        if sum(sizes) > data.left:
            raise damaged(f"ids of {sum(sizes)} bytes in {data.left}")
        try:
            names = [bytes(data.raw(k)).decode("utf-8", "surrogatepass") for k in sizes]
        except UnicodeDecodeError:
            raise damaged("an id that is not UTF-8") from None
        if any(a >= b for a, b in pairwise(names)):
            raise damaged("group ids out of order")
        return cls(names), np.arange(n, dtype=np.uint32)

    def _named(self, names: Sequence[str]) -> Indices:
        positions = self.positions
        # A list first: while numpy reads one number after the other, the processor waits for each.
        found = list(map(positions.__getitem__, names))
        if len(positions) > len(self.names):
            if len(positions) > MAX_IDS:
                raise too_many(len(positions))
            new = _tail(positions, len(self.names))
            self.names.extend(new)
            self.strings += sum(map(getsizeof, new))
        return np.array(found, np.uint32)


def _tail(positions: dict[str, int], known: int) -> list[str]:
    """The keys of a dict after the first `known`, newest last."""
    tail = []
    for name in reversed(positions):
        if positions[name] < known:
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
