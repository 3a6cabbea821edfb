"""Sums of float64 without rounding: the same for every order, split and machine.

A sum is held in limbs of 32 bits, each in an int64 so that many rows may be added before carries
are propagated: limb j counts units of 2 ** (32 j - 1088). The column keeps only the limbs that its
values touch, so a sum of counts takes one limb or two and any float64 fits into 70. Infinities are
counted separately; the checks of rows refuse NaN. Rounding happens once, in `value`. (Neal, "Fast
exact summation using small and large superaccumulators", arXiv:1505.05571.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Stack, Unlike, Writer, damaged, ints_each
from streammetrics.core.parts.float_bits import (
    BITS,
    CHUNK,
    LOW,
    UNIT,
    Dyadics,
    Split,
    Units,
    as_units,
    carry,
    differ_much,
    dyadic,
    joined,
    largest,
    limbs_of,
    nearest,
    padded,
    settled,
    sum_by_exponent,
    sum_by_levels,
    sum_by_levels_in_slots,
    sums_by_slot,
    two_product,
)
from streammetrics.core.parts.many_slots import AnySlots, ManySlots, cell_slots
from streammetrics.core.parts.part import Column, LaterPart, Slots
from streammetrics.core.rows import ranges

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

_ONE: Final = UNIT // BITS  # the limb that counts whole numbers
_LIMB_BYTES: Final = 4
_MAX_BYTES: Final = 2 * UNIT // 8  # 2**63 values below 2**1024 stay below 2**1088
_MAX_LOAD: Final = 1 << 29  # a row adds less than 2**33 to a limb, and 2**33 * 2**29 < 2**63
_FEW_SLOTS: Final = 8  # values for each slot from which sums by slot pay
_FEW_ROWS: Final = 2  # values for each slot from which it pays to add them up as floats
_FEW: Final = 8  # if one of this many values is left, it costs less than another level
_FEW_OF_MANY: Final = 128  # the same where it is added to many slots
_MANY: Final = 1 << 14  # rows that are worth a pass over all exponents
# The numbers of infinities where there are none: they take no memory, and are not writeable.
_NONE: Final = np.broadcast_to(np.zeros(2, np.int64), (1 << 40, 2))


class ExactSumColumn(Column):
    """`width` exact sums: `limbs` int64 [capacity, n], whose column 0 is limb number `first`."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.first = _ONE
        self.limbs = np.zeros((width, 1), np.int64)
        self.infinities: NDArray[np.int64] = _NONE[:width]  # the numbers of -inf and of +inf
        self.load = 0  # no limb exceeds load * 2**33 in size

    @property
    def total_count(self) -> int:
        return sum(self.infinities.ravel().tolist())

    @property
    def stacks(self) -> bool:
        return True

    @property
    def unknown(self) -> bool:
        return bool(self.infinities[: self.width].all(axis=1).any())

    @property
    def nbytes(self) -> int:
        return self.limbs.nbytes + self.infinities.nbytes * self.infinities.flags.writeable

    def add(self, values: NDArray[np.float64], slots: AnySlots | None = None) -> None:
        """Add values [n] to the states at `slots` [n], or all to state 0; no NaN."""
        whole = 0
        for start in range(0, len(values), CHUNK):
            chunk = values[start : start + CHUNK]
            to = None if slots is None else slots[start : start + CHUNK]
            top = largest(chunk)
            if top == math.inf:
                self.add(*self._without_infinities(chunk, to))
            elif to is not None:
                if isinstance(to, ManySlots) and not to.pays:
                    self.add(to.spread(chunk), to.every())
                elif not (top < 1 << 31 and self._add_integers(chunk, to)):
                    self._add_to_slots(chunk, to, top)
            elif (units := sum_by_levels(chunk, top)) is not None:
                whole += units
            elif len(values) - start < _MANY:
                self._add_units(as_units(chunk), None)
            else:  # more such chunks are likely to follow
                finite_values, _ = self._without_infinities(values[start:], None)
                self._add_units(sum_by_exponent(finite_values), None)
                break
        self.add_units(whole)

    def add_units(self, units: int) -> None:
        """Add an integer in units of 2 ** -1088 to state 0."""
        if units:
            first, limbs = limbs_of(units)
            self._cover(first, first + len(limbs), 1)
            self.limbs[0, first - self.first :][: len(limbs)] += limbs

    def add_products(
        self,
        a: NDArray[np.float64] | Split,
        b: NDArray[np.float64] | Split,
        slots: AnySlots | None = None,
    ) -> NDArray[np.float64]:
        """Add a · b [n], exact if a, b and a · b are 0 or within 2**±960; return it rounded."""
        products, errors = two_product(a, b)
        for part in (products, errors) if errors.any() else (products,):
            self.add(part, slots)
        return products

    def units(self, slots: Slots) -> Dyadics:
        """The finite sums of these states."""
        if len(slots) == 1:  # a loop over limbs costs less than calls of numpy
            row = self.limbs[slots.item(0)].tolist()
            low = next((limb for limb, units in enumerate(row) if units), len(row))
            units = [joined(row[low:])]
        else:
            limbs = self.limbs[slots]
            used = np.flatnonzero(limbs.any(axis=0)).tolist()
            low, high = (used[0], used[-1]) if used else (0, 0)
            units = limbs[:, high].tolist()
            for limb in range(high - 1, low - 1, -1):
                below = limbs[:, limb].tolist()
                units = [(above << BITS) + digit for above, digit in zip(units, below, strict=True)]
        shift = UNIT - BITS * (self.first + low)
        return Dyadics(units, shift) if shift >= 0 else Dyadics([u << -shift for u in units], 0)

    def pairs(self, slots: Slots) -> list[tuple[int, int] | None]:
        """The sums of these states as units, and n: units / 2 ** n; None where an infinity was
        added."""
        units, shift = self.units(slots)
        pairs: list[tuple[int, int] | None] = [*zip(units, repeat(shift))]
        for i in self.infinite(slots):
            pairs[i] = None
        return pairs

    def infinite(self, slots: Slots) -> list[int]:
        """The positions of the slots to which an infinity was added."""
        if not self.infinities.any():
            return []
        return np.flatnonzero(self.infinities[slots].any(axis=1)).tolist()

    def value(self, slot: int = 0) -> float:
        """The sum of one state, correctly rounded; inf past the largest float, nan for inf with
        -inf."""
        minus, plus = self.infinities[slot].tolist()
        if minus or plus:
            return math.nan if minus and plus else math.inf if plus else -math.inf
        return nearest(self.quanta(slot), UNIT)

    def finite(self, slot: int = 0) -> bool:
        """Whether no infinity was added."""
        return not self.infinities[slot].any()

    def fraction(self, slot: int = 0) -> Fraction | float:
        """The exact sum; if an infinity was added, what `value` returns: inf, -inf or nan."""
        return self.finite_fraction(slot) if self.finite(slot) else self.value(slot)

    def finite_fraction(self, slot: int = 0) -> Fraction:
        """The exact sum of the finite values alone: for sums that `finite` is known of."""
        return dyadic(self.quanta(slot), UNIT)

    def widen(self, width: int) -> None:
        if width > len(self.limbs):
            n_new = max(width, 2 * len(self.limbs)) - len(self.limbs)
            self.limbs = padded(self.limbs, below=n_new)
            self.infinities = _numbers(padded(self.infinities, below=n_new))
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        if other.load > 1:
            other.settle()
        n = other.limbs.shape[1]
        self._cover(other.first, other.first + n, other.width)
        offset = other.first - self.first
        if other.width == 1:
            slot = to.item(0)
            limbs = self.limbs[slot, offset : offset + n]
            np.add(limbs, other.limbs[0], out=limbs)
        else:
            np.add.at(self.limbs[:, offset : offset + n], to, other.limbs[: other.width])
        if other.infinities.flags.writeable:
            np.add.at(self._counted(), to, other.infinities[: other.width])

    def take(self, slots: Slots) -> Self:
        new = type(self)(0)
        new.width, new.first, new.load = len(slots), self.first, self.load
        new.limbs, infinities = self.limbs[slots], self.infinities
        new.infinities = infinities[slots] if infinities.flags.writeable else _NONE[: len(slots)]
        return new

    def encode(self, out: Writer) -> None:
        if self.width == 1:
            self._encode_one(out)
            return
        length, low, negative, content = self._trimmed()
        for column in (length, low, negative, self.infinities[: self.width].ravel()):
            out.ints(column)
        out.raw(content)

    def encode_each(self, slots: Slots, n: int = 1) -> list[bytes]:
        """The bytes of each `n` states in a row; those of one state if n is 1."""
        if not len(slots):
            return []
        states = self.take(slots)
        length, low, negative, content = states._trimmed()
        edges = np.arange(0, len(slots) + 1, n)
        ends = np.concatenate([[0], np.cumsum(length)])[edges].tolist()
        fields = [ints_each(column, edges) for column in (length, low, negative)]
        fields.append(ints_each(states.infinities.ravel(), 2 * edges))
        fields.append([content[start:end] for start, end in pairwise(ends)])
        return [*map(b"".join, zip(*fields, strict=True))]

    def _trimmed(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], bytes]:
        """Of each sum the bytes of its size without zeros at both ends, where they begin, and
        whether it is negative; and these bytes."""
        negative, size = self._magnitudes()
        used = size != 0
        low = used.argmax(axis=1)
        high = size.shape[1] - used[:, ::-1].argmax(axis=1)
        length = np.where(used.any(axis=1), high - low, 0)
        positions = np.arange(size.shape[1])
        mask = (positions >= low[:, None]) & (positions < (low + length)[:, None])
        first = np.where(length > 0, low + _LIMB_BYTES * self.first, 0)
        return length, first, negative.astype(np.int64), size[mask].tobytes()

    def _encode_one(self, out: Writer) -> None:
        """As `encode`, for one state in a tenth of the time that numpy takes."""
        units = self.quanta(0)
        size = abs(units)
        zeros = ((size & -size).bit_length() - 1) // 8 if size else 0
        data = (size >> 8 * zeros).to_bytes((size.bit_length() + 7) // 8 - zeros, "little")
        for number in (len(data), zeros, int(units < 0)):
            out.int_(number)
        out.ints(self.infinities[0])
        out.raw(data)

    def quanta(self, slot: int = 0) -> int:
        """One finite sum as an integer in units of 2 ** -1088."""
        return joined(self.limbs[slot].tolist()) << BITS * self.first

    def _without_infinities(
        self, values: NDArray[np.float64], slots: AnySlots | None
    ) -> tuple[NDArray[np.float64], AnySlots | None]:
        """Count the infinities among the values and return the others."""
        infinite = np.isinf(values)
        infinite_rows, finite_rows = np.flatnonzero(infinite), np.flatnonzero(~infinite)
        if not len(infinite_rows):
            return values, slots
        to = None if slots is None else slots[infinite_rows]
        cells = cell_slots(to, 2, (values[infinite_rows] > 0).astype(np.intp))
        for index in [cells] if not isinstance(cells, ManySlots) else [c for _, c in cells.each()]:
            np.add.at(self._counted().reshape(-1), index, 1)
        return values[finite_rows], None if slots is None else slots[finite_rows]

    def _counted(self) -> NDArray[np.int64]:
        """The numbers of infinities [capacity, 2], to be changed."""
        if not self.infinities.flags.writeable:
            self.infinities = np.zeros((len(self.limbs), 2), np.int64)
        return self.infinities

    def _add_integers(self, values: NDArray[np.float64], slots: AnySlots) -> bool:
        """Add values that are all small integers (clicks, views), or return False."""
        if values[0] % 1 or values[-1] % 1:
            return False
        if not np.array_equal(whole := values.astype(np.int64), values):
            return False
        if isinstance(slots, ManySlots):
            self._add_multiples(slots.sums(values, 0), 0, slots.present)
            return True
        self._cover(_ONE, _ONE + 1, len(values))
        low, limb = int(slots.min()), _ONE - self.first
        size = int(slots.max()) - low + 1
        if _FEW_ROWS * size <= len(values):  # sums below 2**31 * 2**15 are exact in float64
            sums = np.bincount(slots - low, values, size)
            self.limbs[low : low + size, limb] += sums.astype(np.int64)
        else:
            np.add.at(self.limbs.reshape(-1), slots * self.limbs.shape[1] + limb, whole)
        return True

    def _add_to_slots(self, values: NDArray[np.float64], slots: AnySlots, top: float) -> None:
        """Add finite values, of size at most `top`; by levels if there are few slots."""
        add: Callable[[NDArray[np.float64], int], NDArray[np.int64]]
        if isinstance(slots, ManySlots):
            add, to, few = slots.sums, slots.present, len(values) // _FEW_OF_MANY
        elif _FEW_SLOTS * self.width <= len(values) and not differ_much(values[:64], top, few=8):
            add = partial(sums_by_slot, slots, self.width)
            to, few = np.arange(self.width), len(values) // _FEW
        else:
            self._add_units(as_units(values), slots)
            return
        levels, remainders = sum_by_levels_in_slots(values, add, top, few)
        for units, exponent in levels:
            self._add_multiples(units, exponent, to)
        positions = np.flatnonzero(remainders != 0)
        if not len(positions):
            return
        small, slots = as_units(remainders[positions]), slots[positions]
        if not isinstance(slots, ManySlots):
            self._add_units(small, slots)
            return
        for rows, row_slots in slots.each():
            self._add_units(small if rows is None else small.take(rows), row_slots)

    def _add_multiples(self, units: NDArray[np.int64], exponent: int, slots: Slots) -> None:
        """Add units of 2 ** exponent to slots that all differ."""
        limb, shift = divmod(UNIT + exponent, BITS)
        low, high = (units & LOW) << shift, units >> BITS
        above = (high & LOW) << shift
        parts = (
            low & LOW,
            (low >> BITS) + (above & LOW),
            (above >> BITS) + (high >> BITS << shift),
        )
        used = [i for i, part in enumerate(parts) if part.any()]
        if used:
            self._cover(limb + used[0], limb + used[-1] + 1, 1)
        positions = slots * self.limbs.shape[1] + (limb - self.first)
        for i in used:
            np.add.at(self.limbs.reshape(-1), positions + i, parts[i])

    def _add_units(self, rows: Units, slots: Slots | None) -> None:
        """Add each integer to the three limbs that its bits can touch."""
        units, position, sign = rows
        if not units.all():  # zeros have no position, and must not allocate limbs
            nonzero_rows = np.flatnonzero(units != 0)
            units, position, sign = units[nonzero_rows], position[nonzero_rows], sign[nonzero_rows]
            slots = None if slots is None else slots[nonzero_rows]
        if not len(units):
            return
        shift = position & (BITS - 1)
        limb = position >> 5
        self._cover(int(limb.min()), int(limb.max()) + 3, len(units))
        limb -= self.first
        if slots is not None:
            limb += slots * self.limbs.shape[1]
        low = (units & LOW) << shift
        high = (units >> BITS) << shift
        middle = (low >> BITS) + (high & LOW)
        low &= LOW
        high >>= BITS
        flat = self.limbs.reshape(-1)
        for part in (low, middle, high):
            part ^= sign
            part -= sign
            np.add.at(flat, limb, part)
            limb += 1

    def _cover(self, start: int, end: int, rows: int) -> None:
        """Allocate limbs [start, end), with room for `rows` further values in each."""
        self.load += rows
        if self.load > _MAX_LOAD:
            self.settle()
            self.load += rows
        before = max(self.first - start, 0)
        after = max(end - self.first - self.limbs.shape[1], 0)
        if before or after:
            self.limbs = padded(self.limbs, before=before, after=after)
            self.first -= before

    def settle(self) -> None:
        """Propagate carries, so that each limb has room for rows again."""
        self.limbs, self.load = settled(self.limbs), 1

    def _magnitudes(self) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
        """Which sums are negative, and the bytes of all magnitudes, lowest first."""
        self.settle()
        limbs = self.limbs[: self.width].copy()
        negative = limbs[:, -1] < 0
        limbs[negative] *= -1
        carry(limbs)
        return negative, limbs.astype("<u4").view(np.uint8)


def _numbers(infinities: NDArray[np.integer]) -> NDArray[np.int64]:
    """These numbers of infinities [width, 2], without memory if there are none."""
    return infinities.astype(np.int64) if infinities.any() else _NONE[: len(infinities)]


def _decoded_one(data: Reader) -> ExactSumColumn:
    """As `ExactSum.decode`, for one state."""
    length, low, negative = data.int_(), data.int_(), data.int_()
    column = ExactSumColumn(1)
    column.infinities = _numbers(data.ints(2).reshape(1, 2))
    if low + length > _MAX_BYTES or negative > 1:
        raise damaged("an exact sum that is out of range")
    if not length and (low or negative):
        raise damaged("a zero that is not in its canonical form")
    content = bytes(data.raw(length))
    if not length:
        return column
    if not (content[0] and content[-1]):
        raise damaged("an exact sum with leading or trailing zeros")
    column.first, before = divmod(low, _LIMB_BYTES)
    whole = bytes(before) + content + bytes(-(before + length) % _LIMB_BYTES)
    limbs = np.frombuffer(whole, "<u4").astype(np.int64)[None, :]
    column.limbs, column.load = -limbs if negative else limbs, 1
    return column


class ExactSum(LaterPart[ExactSumColumn]):
    """A sum of float64 values without rounding, the same in any order."""

    def empty(self, owner: Declared, width: int) -> ExactSumColumn:
        return ExactSumColumn(width)

    def unknown(self, owner: Declared, width: int, rows: NDArray[np.int64]) -> ExactSumColumn:
        column = self.empty(owner, width)
        column.infinities = np.stack([rows, rows], axis=1)  # one of each sign for a row: nan
        return column

    def decode_stack(self, owner: Declared, stack: Stack) -> ExactSumColumn:
        length, low, negative = stack.int_(), stack.int_(), stack.int_()
        infinities, _ = stack.narrow(2)
        content = stack.raw(length)
        if low + length > _MAX_BYTES or negative > 1 or (not length and (low or negative)):
            raise Unlike
        column = ExactSumColumn(stack.n)
        column.infinities = _numbers(infinities)
        if not length:
            return column
        if not (content[:, 0].all() and content[:, -1].all()):
            raise Unlike
        column.first, before = divmod(low, _LIMB_BYTES)
        n = -(-(before + length) // _LIMB_BYTES)
        size = np.zeros((stack.n, _LIMB_BYTES * n), np.uint8)
        size[:, before : before + length] = content
        limbs = size.view("<u4").astype(np.int64)
        column.limbs, column.load = -limbs if negative else limbs, 1
        return column

    def decode(self, owner: Declared, width: int, data: Reader) -> ExactSumColumn:
        return _decoded(width, data, None)

    def decode_some(
        self, owner: Declared, width: int, data: Reader, slots: Slots
    ) -> ExactSumColumn:
        return _decoded(width, data, slots)


def _decoded(width: int, data: Reader, slots: Slots | None) -> ExactSumColumn:
    """The sums of these slots; None: of all. The limbs of others are not made."""
    if width == 1:
        return _decoded_one(data) if slots is None else _decoded_one(data).take(slots)
    (long, most), (lows, top), (negative, sign) = [data.narrow(width) for _ in range(3)]
    counts, infinite = data.narrow(2 * width)
    if not (most or top or sign or infinite):  # zeros, of which no bytes bound the number
        return ExactSumColumn(width if slots is None else len(slots))
    infinities = counts.reshape(width, 2)
    length, low = long.astype(np.int16), lows.astype(np.int16)
    if max(most, top, (low + length).max(initial=0)) > _MAX_BYTES or sign > 1:
        raise damaged("an exact sum that is out of range")
    if ((length == 0) & ((low | negative) != 0)).any():
        raise damaged("a zero that is not in its canonical form")
    content = np.frombuffer(data.raw(int(length.sum())), np.uint8)
    end = np.cumsum(length, dtype=np.intp)
    nonzero = np.flatnonzero(length)
    if not (content[end[nonzero] - 1].all() and content[(end - length)[nonzero]].all()):
        raise damaged("an exact sum with leading or trailing zeros")
    if slots is not None:
        places, _ = ranges((end - length)[slots], end[slots])
        content, length, low, negative = content[places], length[slots], low[slots], negative[slots]
        infinities, nonzero = infinities[slots], np.flatnonzero(length)
    column = ExactSumColumn(len(length))
    column.infinities = _numbers(infinities)
    if not len(nonzero):
        return column
    first = int(low[nonzero].min()) // _LIMB_BYTES
    n = int((low + length).max() - 1) // _LIMB_BYTES + 1 - first
    size = np.zeros((len(length), _LIMB_BYTES * n), np.uint8)
    positions = np.arange(size.shape[1]) + _LIMB_BYTES * first
    size[(positions >= low[:, None]) & (positions < (low + length)[:, None])] = content
    column.first, column.load, column.limbs = first, 1, size.view("<u4").astype(np.int64)
    column.limbs[negative == 1] *= -1
    return column
