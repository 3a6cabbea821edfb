"""States of one layout read side by side: the bytes of each are a row of one table.

A field that is laid out differently in some rows, or not as `encode` writes it, raises Unlike. Then
the states are read one by one, which reports any error. So this module reports none, and checks
as strictly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bytes.codec import KINDS

_FEW: Final = 64


class Unlike(Exception):
    """These states must be read one by one."""


class Stack:
    """Reads states of one length, a field of all at once; the bytes of each are a row."""

    __slots__ = ("at", "end", "n", "rows")

    def __init__(self, states: Sequence[bytes], start: int, end: int) -> None:
        """Read bytes [start, end) of each state; all states have one length."""
        self.n = len(states)
        self.rows = np.frombuffer(b"".join(states), np.uint8).reshape(self.n, -1)
        self.at, self.end = start, end

    def same(self) -> int:
        """The next byte, if it is the same in all rows."""
        at = self.at
        if at >= self.end:
            raise Unlike
        self.at = at + 1
        found = self.rows[:, at]
        byte: int = found.item(0)
        if found.tobytes().count(byte) < self.n:
            raise Unlike
        return byte

    def narrow(self, n: int) -> tuple[NDArray[np.unsignedinteger], int]:
        """As `Reader.narrow`: integers [rows, n], and the greatest of all."""
        width = self.same()
        if not width:
            if n > _FEW:  # `encode` does not write this many zeros here
                raise Unlike
            return np.zeros((self.n, n), np.uint8), 0
        if not n or width not in KINDS:
            raise Unlike
        kind, least = KINDS[width]
        values = self.raw(n * width)
        if width > 1:
            values = np.ascontiguousarray(values).view(kind)
        tops = values.max(axis=1)
        top = int(tops.max())
        if tops.min() < least or top >= 1 << 63:
            raise Unlike
        return values, top

    def int_(self) -> int:
        """As `Reader.int_`, for an integer below 256 that is the same in all rows."""
        width = self.same()
        value = self.same() if width else 0
        if width > 1 or value < width:
            raise Unlike
        return value

    def raw(self, n: int) -> NDArray[np.uint8]:
        """The next `n` bytes of all rows [rows, n]."""
        at = self.at
        if n > self.end - at:
            raise Unlike
        self.at = at + n
        return self.rows[:, at : at + n]

    def finish(self) -> None:
        """Refuse unread bytes."""
        if self.at != self.end:
            raise Unlike
