"""Units of rows that count in many slots: each hash once, with the set of its slots.

Twenty experiments have the same users, whose hashes are then sorted once instead of twenty times.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.many_slots import SLOTS_OF_WORD, Members
from streammetrics.core.parts.part import Slots

FEW: Final = 1 << 15  # hashes that may be pending, however few are settled


class SharedUnits:
    """Hashes with the slots of each: `hashes` [n] are settled, ascending, each once, and `members`
    are their slots; those in `pending` are not."""

    def __init__(self) -> None:
        self.hashes = np.empty(0, np.uint64)
        self.members: Members = np.empty((0, 0), np.uint64)
        self.pending: list[tuple[Words, Members]] = []
        self.n_pending = 0

    @property
    def n(self) -> int:
        """The number of hashes, where one that is pending may be there already."""
        return len(self.hashes) + self.n_pending

    @property
    def nbytes(self) -> int:
        """Bytes of memory that they take."""
        pieces = [(self.hashes, self.members), *self.pending]
        return sum(hashes.nbytes + members.nbytes for hashes, members in pieces)

    def add(self, hashes: Words, members: Members) -> None:
        """Add hashes [n] to the slots of each."""
        self.pending.append((hashes, members))
        self.n_pending += len(hashes)
        if self.n_pending > max(FEW, len(self.hashes)):
            self._settle()

    def pairs(self) -> tuple[Slots, Words]:
        """Each slot with each of its hashes, ascending."""
        self._settle()
        slots, positions = list[int](), [np.empty(0, np.intp)]
        for i, word in enumerate(self.members):
            present = int(np.bitwise_or.reduce(word))
            for bit in range(present.bit_length()):
                if present >> bit & 1:
                    slots.append(SLOTS_OF_WORD * i + bit)
                    positions.append(np.flatnonzero(word & np.uint64(1 << bit)))
        sizes = [*map(len, positions[1:])]
        return np.repeat(np.array(slots, np.intp), sizes), self.hashes[np.concatenate(positions)]

    def _settle(self) -> None:
        """Sort all hashes, and unite the slots of equal ones."""
        if not self.n_pending:
            return
        pieces = [(self.hashes, self.members), *self.pending]
        hashes = np.concatenate([piece for piece, _ in pieces])
        words = max(len(members) for _, members in pieces)  # fewer while there were fewer slots
        members, end = np.zeros((words, len(hashes)), np.uint64), 0
        for piece, piece_members in pieces:
            members[: len(piece_members), end : end + len(piece)] = piece_members
            end += len(piece)
        order = np.argsort(hashes)
        hashes = hashes[order]
        firsts = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        self.hashes = hashes[firsts]
        self.members = np.bitwise_or.reduceat(members[:, order], firsts, axis=1)
        self.pending, self.n_pending = [], 0
