"""The kinds of state that a metric may declare: each is a commutative monoid.

A part is declared once, in the class body. Its value in an accumulator is a *column*: `width`
states side by side, so that one call serves one state or ten thousand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Stack, Unlike, Writer, damaged
from streammetrics.core.parts.score_bits import floats_of

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

# The slot of each row, [n].
Slots = NDArray[np.intp]
SLOT_0: Final = np.zeros(1, np.intp)  # the slot of an accumulator of one state
C = TypeVar("C", bound="Column")
C_co = TypeVar("C_co", bound="Column", covariant=True)


class Column(ABC):
    """The states of one part for `width` slots. It may reorganise itself at any time."""

    width: int

    @property
    @abstractmethod
    def total_count(self) -> int:
        """An upper bound of the sum of all counts inside; 0 where nothing can overflow."""

    @property
    def bound(self) -> int:
        """As `total_count`, or larger if that takes less time."""
        return self.total_count

    @property
    def stacks(self) -> bool:
        """Whether `decode_stack` is worth trying with states like this one."""
        return False

    @property
    def unknown(self) -> bool:
        """Whether the value of a state is unknown for some rows, see `LaterPart.unknown`."""
        return False

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory that the states hold."""

    @abstractmethod
    def widen(self, width: int) -> None:
        """Append empty states until there are `width`."""

    @abstractmethod
    def merge(self, other: Self, to: Slots) -> None:
        """Add state i of `other` to state `to[i]`; `to` may repeat, `other` keeps its value."""

    @abstractmethod
    def take(self, slots: Slots) -> Self:
        """Copies of these states, in this order."""

    @abstractmethod
    def encode(self, out: Writer) -> None:
        """The canonical bytes of all states in slot order."""

    def encode_each(self, slots: Slots) -> list[bytes]:
        """The canonical bytes of each of these states, as `encode` writes it alone."""
        encoded = []
        for i in range(len(slots)):
            self.take(slots[i : i + 1]).encode(out := Writer())
            encoded.append(out.bytes_())
        return encoded


class SeveralColumn(Column, Generic[C]):
    """`width` states of `n` inner states each, which are the slots of one column: state · n + i."""

    def __init__(self, inner: C, n: int, width: int) -> None:
        self.inner, self.n, self.width = inner, n, width

    @property
    def total_count(self) -> int:
        return self.inner.total_count

    @property
    def unknown(self) -> bool:
        return self.inner.unknown

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes

    def widen(self, width: int) -> None:
        self.inner.widen(width * self.n)
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        self.inner.merge(other.inner, self._inner_slots(to))

    def take(self, slots: Slots) -> Self:
        return type(self)(self.inner.take(self._inner_slots(slots)), self.n, len(slots))

    def encode(self, out: Writer) -> None:
        self.inner.encode(out)

    def _inner_slots(self, states: Slots) -> Slots:
        return inner_slots(states, self.n)


def inner_slots(states: Slots, n: int) -> Slots:
    """The slots of the `n` inner states of each of these states."""
    slots: Slots = (states[:, None] * n + np.arange(n)).reshape(-1)
    return slots


class Part(ABC, Generic[C_co]):
    """One named part of a state."""

    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    # The column is in the instance's __dict__, which takes precedence over this descriptor. These
    # signatures are for the type checker; on the class the attribute is the part itself.
    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...
    @overload
    def __get__(self, obj: object, owner: type) -> C_co: ...
    def __get__(self, obj: object | None, owner: type) -> Self | C_co:
        if obj is None:
            return self
        raise AttributeError(self.name)

    @abstractmethod
    def empty(self, owner: Declared, width: int) -> C_co:
        """`width` empty states, for an accumulator with these settings."""

    def idempotent(self, owner: Declared) -> bool:
        """Whether merging a state twice is the same as merging it once."""
        return False

    @abstractmethod
    def decode(self, owner: Declared, width: int, data: Reader) -> C_co:
        """The column that `encode` wrote; StateError for others, before any large allocation."""

    def decode_some(self, owner: Declared, width: int, data: Reader, slots: Slots) -> C_co:
        """As `decode`, of these slots alone: `decode(...).take(slots)`. Override it where a column
        takes far more memory than its bytes."""
        return self.decode(owner, width, data).take(slots)

    def decode_stack(self, owner: Declared, stack: Stack) -> C_co:
        """As `decode`, of the one state in each row of a stack, side by side; Unlike if rows are
        laid out in different ways, or not as `encode` writes them."""
        raise Unlike


class LaterPart(Part[C_co]):
    """A part that a metric may gain later: states that were written without it have one that is
    unknown."""

    @abstractmethod
    def unknown(self, owner: Declared, width: int, rows: NDArray[np.int64]) -> C_co:
        """The states of slots with these numbers of rows [width], if what they added is unknown:
        empty without rows. Those of some rows and of others merge into those of all."""


class ExtremeColumn(Column):
    """The greatest (sign 1) or least (sign -1) int64 of each slot, or none.

    values: [width]; where nothing is known, `none_of(sign)`.
    """

    def __init__(self, sign: int, values: NDArray[np.int64], is_known: NDArray[np.bool_]) -> None:
        self.sign, self.values, self.known = sign, values, is_known
        self.width = len(values)

    @property
    def total_count(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.known.nbytes

    def add(self, values: NDArray[np.int64], slots: Slots | None = None) -> None:
        """Add values, int64 [n], none of them -2**63."""
        if not len(values):
            return
        if slots is None:
            values, slots = values[[values.argmax() if self.sign > 0 else values.argmin()]], SLOT_0
        rows = np.flatnonzero(self.exceeds(values, slots) | (values == none_of(self.sign)))
        if len(rows):  # few, once a slot has some rows
            row_slots = slots[rows]
            self.known[row_slots] = True
            (np.maximum if self.sign > 0 else np.minimum).at(self.values, row_slots, values[rows])

    def exceeds(self, values: NDArray[np.int64], slots: Slots) -> NDArray[np.bool_]:
        """Whether each value is beyond the extreme of its slot: bool [n]."""
        extremes = self.values.take(slots)
        return values > extremes if self.sign > 0 else values < extremes

    def value(self, slot: int = 0) -> int | None:
        """The extreme, or None where nothing was added."""
        return int(self.values[slot]) if self.known[slot] else None

    def floats(self, slots: Slots) -> NDArray[np.float64]:
        """The extremes of these slots, of floats added as `ordered_integers`; nan where nothing
        was added."""
        return np.where(self.known[slots], floats_of(self.values[slots]), np.nan)

    def widen(self, width: int) -> None:
        n_new = width - self.width
        self.values = np.concatenate([self.values, np.full(n_new, none_of(self.sign))])
        self.known = np.concatenate([self.known, np.zeros(n_new, np.bool_)])
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        known_slots = np.flatnonzero(other.known)
        self.add(other.values[known_slots], to[known_slots])

    def take(self, slots: Slots) -> Self:
        return type(self)(self.sign, self.values[slots], self.known[slots])

    def encode(self, out: Writer) -> None:
        out.bits(self.known)
        out.raw((self.sign * self.values[self.known]).astype("<i8").tobytes())


def none_of(sign: int) -> np.int64:
    """The int64 that every other one is beyond: that of an extreme which is not known."""
    return np.int64(-(1 << 63) if sign > 0 else (1 << 63) - 1)


class Extreme(Part[ExtremeColumn]):
    """The greatest (`"max"`) or least (`"min"`) of the int64 values that were added."""

    def __init__(self, kind: str = "max") -> None:
        self.sign = {"max": 1, "min": -1}[kind]

    def empty(self, owner: Declared, width: int) -> ExtremeColumn:
        is_known = np.zeros(width, np.bool_)
        return ExtremeColumn(self.sign, np.full(width, none_of(self.sign)), is_known)

    def idempotent(self, owner: Declared) -> bool:
        return True

    def decode(self, owner: Declared, width: int, data: Reader) -> ExtremeColumn:
        column = self.empty(owner, width)
        is_known = data.bits(width)
        values = np.frombuffer(data.raw(8 * int(is_known.sum())), "<i8")
        if (values == -(1 << 63)).any():
            raise damaged("an extreme of -2**63")
        column.values[is_known], column.known = values * self.sign, is_known
        return column
