"""Parts that keep what parts should not: floats, orders, too little. For the mutants."""

from __future__ import annotations

import struct
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.parts.part import Column, Part, Slots


class ArrayColumn(Column):
    """States [width, n] of any dtype, added as they are and written as they lie."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values, self.width = values, len(values)

    total_count = property(lambda self: 0)
    nbytes = property(lambda self: self.values.nbytes)

    def widen(self, width: int) -> None:
        more = np.zeros((width - self.width, self.values.shape[1]), self.values.dtype)
        self.values, self.width = np.concatenate([self.values, more]), width

    def merge(self, other: Self, to: Slots) -> None:
        np.add.at(self.values, to, other.values)

    def take(self, slots: Slots) -> Self:
        return type(self)(self.values[slots])

    def encode(self, out: Writer) -> None:
        out.raw(self.values.tobytes())

    def dense(self) -> NDArray[Any]:
        return self.values[0].copy()


class LastColumn(ArrayColumn):
    """The last row that came, and whether one came."""

    def merge(self, other: Self, to: Slots) -> None:
        known = other.values[:, 1] > 0
        self.values[to[known]] = other.values[known]


class Array(Part[ArrayColumn]):
    """`n` numbers of a dtype."""

    def __init__(self, n: int, dtype: type, column: type[ArrayColumn] = ArrayColumn) -> None:
        self.n, self.dtype, self.column = n, dtype, column

    def empty(self, owner: Any, width: int) -> ArrayColumn:
        return self.column(np.zeros((width, self.n), self.dtype))

    def decode(self, owner: Any, width: int, data: Reader) -> ArrayColumn:
        raw = data.raw(width * self.n * np.dtype(self.dtype).itemsize)
        return self.column(np.frombuffer(raw, self.dtype).reshape(width, self.n).copy())


class DictColumn(Column):
    """Counts by label in a dictionary, written in the order in which labels came; one slot."""

    def __init__(self, counts: dict[int, int]) -> None:
        self.counts, self.width = counts, 1

    total_count = property(lambda self: 0)
    nbytes = property(lambda self: 100 * len(self.counts))

    def widen(self, width: int) -> None:
        raise NotImplementedError

    def add(self, label: int, n: int) -> None:
        self.counts[label] = self.counts.get(label, 0) + n

    def merge(self, other: Self, to: Slots) -> None:
        for label, n in other.counts.items():
            self.add(label, n)

    def take(self, slots: Slots) -> Self:
        return type(self)(dict(self.counts))

    def encode(self, out: Writer) -> None:
        out.uint(len(self.counts))
        for label, n in self.counts.items():
            out.uint(label)
            out.uint(n)


class Dict(Part[DictColumn]):
    """Counts by label."""

    def empty(self, owner: Any, width: int) -> DictColumn:
        return DictColumn({})

    def decode(self, owner: Any, width: int, data: Reader) -> DictColumn:
        return DictColumn({data.uint(): data.uint() for _ in range(data.uint(2))})


class ForgetfulColumn(ArrayColumn):
    """Writes how many rows there are, but not of which label."""

    def encode(self, out: Writer) -> None:
        for total in self.values.sum(axis=1).tolist():
            out.raw(struct.pack("<qq", total, 0))
