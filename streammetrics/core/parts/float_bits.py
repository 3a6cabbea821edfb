"""Decomposition of float64 values into integers, so that they can be added without rounding.

A position counts binary digits from 2 ** -1088; this unit is below the least float64, and 1.0 is
at a multiple of 32. Nothing here depends on the order of the values or on the processor: every
operation is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Integers in limbs of 32 bits, lowest first, each in an int64 so that many may be added.

BITS: Final = 32
LOW: Final = (1 << BITS) - 1


def padded(
    cells: NDArray[np.int64], *, below: int = 0, before: int = 0, after: int = 0
) -> NDArray[np.int64]:
    """The cells with zeros around them, in a tenth of the time of `np.pad`."""
    n, width = cells.shape
    new = np.zeros((n + below, before + width + after), np.int64)
    new[:n, before : before + width] = cells
    return new


def limbs_of(units: int) -> tuple[int, list[int]]:
    """The first limb of an integer that is not zero, and the values to add from there on."""
    sign, units = (-1, -units) if units < 0 else (1, units)
    first = ((units & -units).bit_length() - 1) // BITS
    units >>= first * BITS
    n = -(-units.bit_length() // BITS)
    return first, [sign * (units >> i * BITS & LOW) for i in range(n)]


def joined(limbs: list[int]) -> int:
    """The integer with these limbs, the lowest first."""
    units = 0
    for limb in reversed(limbs):
        units = (units << BITS) + limb
    return units


def carry(limbs: NDArray[np.int64]) -> None:
    """Bring each limb [width, n] but the topmost into [0, 2**32)."""
    for j in range(limbs.shape[1] - 1):
        limbs[:, j + 1] += limbs[:, j] >> BITS
        limbs[:, j] &= LOW


def settled(limbs: NDArray[np.int64]) -> NDArray[np.int64]:
    """After carries each limb is in [0, 2**32), but the topmost in [-2**31, 2**31)."""
    carry(limbs)
    while limbs.size and not -(1 << 31) <= limbs[:, -1].min() <= limbs[:, -1].max() < 1 << 31:
        limbs = padded(limbs, after=1)
        carry(limbs[:, -2:])
    return limbs


UNIT: Final = 1088  # binary digits after the point
CHUNK: Final = 1 << 15  # rows whose temporaries stay in the L2 cache
_FRACTION: Final = (1 << 52) - 1
_LEVELS: Final = 3  # more of them cost as much as sums by exponent
_FEW: Final = 64  # values that cost less one by one than another level
_DEEP: Final = 47  # binary digits of a level: the sum of 2**15 values of these is below 2**63
_WORD: Final = (1 << 64) - 1


class Units(NamedTuple):
    """Integers [n] below 2**62 at their positions [n]; sign is -1 where negative, else 0."""

    units: NDArray[np.int64]
    position: NDArray[np.int64]
    sign: NDArray[np.int64]

    def take(self, rows: NDArray[np.intp]) -> Units:
        """Some of them."""
        return Units(*(part[rows] for part in self))


def largest(values: NDArray[np.float64]) -> float:
    """The largest absolute value of [n], n >= 1, no NaN; in one pass if none is negative.

    As unsigned integers, floats are ordered by absolute value, with negative ones above others.
    """
    value: float = values.item(values.view(np.uint64).argmax())
    return value if value > 0 else max(-value, values.item(values.argmax()))


def as_units(values: NDArray[np.float64]) -> Units:
    """Finite values [n] as units of 53 bits."""
    bits = np.ascontiguousarray(values).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    units = bits & _FRACTION
    units |= np.minimum(exponent, 1) << 52  # a subnormal has no hidden bit
    np.maximum(exponent, 1, out=exponent)
    exponent += UNIT - 1075
    return Units(units, exponent, bits >> 63)


def sum_by_exponent(values: NDArray[np.float64]) -> Units:
    """Finite values [n], up to 2**35 of them, added up for each sign and exponent.

    The halves of the fractions are added separately, so that no sum of integers can overflow.
    """
    low, high = np.zeros(4096, np.int64), np.zeros(4096, np.int64)
    bits = np.ascontiguousarray(values).view(np.int64)
    for start in range(0, len(bits), CHUNK):
        chunk = bits[start : start + CHUNK]
        kind = chunk >> 52
        kind &= 0xFFF
        half = chunk & 0x3FFFFFF
        np.add.at(low, kind, half)
        np.bitwise_and(chunk, _FRACTION, out=half)
        half >>= 26
        np.add.at(high, kind, half)
        hidden = np.bincount(kind, minlength=4096)
        hidden[::2048] = 0  # subnormals have no hidden bit
        high += hidden << 26
    kind = np.flatnonzero((low | high) != 0)
    position = np.maximum(kind & 0x7FF, 1) + (UNIT - 1075)
    sign = -(kind >> 11)
    return Units(
        np.concatenate([low[kind], high[kind]]),
        np.concatenate([position, position + 26]),
        np.concatenate([sign, sign]),
    )


def sum_by_levels(values: NDArray[np.float64], top: float) -> int | None:
    """The exact sum of values [n], n <= 2**15, all of size at most `top`, in units of 2 ** -1088.

    None if the values differ too much in size, or lie at the ends of the range. Adding and
    subtracting 1.5 * 2**k rounds every value to a multiple of one unit; what is left of it goes to
    the next level. Between both, the bits of the floats are an integer that grows by 1 with each
    unit, so sums of these integers are exact in any order, in 64 bits without their overflow. Most
    values need two levels; a few are added one by one. (Demmel and Nguyen, "Fast reproducible
    floating-point summation", ARITH 2013.)
    """
    if top == 0:
        return 0
    if not 1e-200 < top < 1e200 or differ_much(values[:64], top, 2.0**-85, few=2):
        return None
    room, remainders, total = math.frexp(top)[1], values, 0
    whole = np.empty_like(values)
    bits = whole.view(np.int64)
    for level in range(_LEVELS):
        big = math.ldexp(1.5, room + 52 - _DEEP)  # its last bit is worth 2**(room - _DEEP)
        np.add(remainders, big, out=whole)
        units = int(np.add.reduce(bits)) - len(bits) * int(np.float64(big).view(np.int64))
        total += (units + (1 << 63) & _WORD) - (1 << 63) << UNIT + room - _DEEP
        np.subtract(whole, big, out=whole)
        # The first value alone usually shows that something is left of most.
        if level or remainders.item(0) == whole.item(0):
            left = remainders != whole
            if np.count_nonzero(left) <= _FEW:
                return total + sum(map(_units, (remainders[left] - whole[left]).tolist()))
        remainders = np.subtract(remainders, whole, out=remainders if level else None)
        room -= _DEEP
    return None


def _units(value: float) -> int:
    """A finite number in units of 2 ** -1088."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << UNIT + 1 - denominator.bit_length()  # the denominator is a power of two


_FEW_SLOTS: Final = 64  # whose rows often have the slot of the row before
_LANES: Final = np.arange(CHUNK) & 3


class LevelSums(NamedTuple):
    """Sums by slot [n] in units of 2 ** exponent, for each level; and the remainders of the values
    [rows], 0 if there is none."""

    levels: list[tuple[NDArray[np.int64], int]]
    rest: NDArray[np.float64]


def sums_by_slot(
    slots: NDArray[np.intp], n: int, values: NDArray[np.float64], exponent: int
) -> NDArray[np.int64]:
    """The sum of the values [rows] in each of `n` slots, in units of 2 ** exponent, of which the
    values are multiples; their sizes add up to less than 2**53 units."""
    lanes, cells = 1, slots
    if n <= _FEW_SLOTS and len(slots) <= CHUNK:
        # Four sums for each slot: a processor waits for that of the row before.
        lanes, cells = 4, n * _LANES[: len(slots)]
        cells += slots
    sums = np.bincount(cells, values, lanes * n).reshape(lanes, n).sum(axis=0)
    units: NDArray[np.int64] = np.ldexp(sums, -exponent).astype(np.int64)
    return units


def sum_by_levels_in_slots(
    values: NDArray[np.float64],
    add: Callable[[NDArray[np.float64], int], NDArray[np.int64]],
    top: float,
    few: int,
) -> LevelSums:
    """As `sum_by_levels`, of values [rows] that `add` adds up by slot, as `sums_by_slot` does.

    A level has 37 binary digits: the float64 sum of up to 2**15 such multiples of a unit is exact
    in any order, and no slot has more values than there are rows. Values much smaller than the
    others become remainders, once there are at most `few`.
    """
    levels: list[tuple[NDArray[np.int64], int]] = []
    if not 1e-200 < top < 1e200:
        return LevelSums(levels, values)
    room = math.frexp(top)[1]
    remainders, whole = values, np.empty_like(values)
    for level in range(_LEVELS):
        big = math.ldexp(1.5, room + 15)
        np.add(remainders, big, out=whole)
        np.subtract(whole, big, out=whole)
        levels.append((add(whole, room - 37), room - 37))
        remainders = np.subtract(remainders, whole, out=remainders if level else None)
        if np.count_nonzero(remainders != 0) <= few:  # slow on floats themselves
            break
        room -= 37
    return LevelSums(levels, remainders)


def differ_much(
    sample: NDArray[np.float64], top: float, share: float = 2.0**-60, few: int = 0
) -> bool:
    """Whether more than `few` values are too small for three levels: below this share of `top`."""
    size = np.abs(sample)
    return int(np.count_nonzero((size < top * share) & (size > 0))) > few


# Products (Dekker 1971, Numer. Math. 18, 224-242).

_SPLIT: Final = 134217729.0  # 2**27 + 1


class Split(NamedTuple):
    """Floats [n] as sums of two halves of at most 26 bits: those of several products are made
    once."""

    value: NDArray[np.float64]
    head: NDArray[np.float64]
    tail: NDArray[np.float64]


def split(value: NDArray[np.float64]) -> Split:
    """Both halves, exact below 2**996."""
    big = value * _SPLIT
    head = big - value
    np.subtract(big, head, out=head)
    return Split(value, head, np.subtract(value, head, out=big))


def two_product(
    a: NDArray[np.float64] | Split, b: NDArray[np.float64] | Split
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rounded product and its error, exact if a, b and a · b are 0 or within 2**±960."""
    same = a is b
    a = a if isinstance(a, Split) else split(a)
    b = a if same else b if isinstance(b, Split) else split(b)
    product = a.value * b.value
    error = a.head * b.head
    error -= product
    term = a.head * b.tail
    error += term
    error += term if same else np.multiply(a.tail, b.head, out=term)
    error += np.multiply(a.tail, b.tail, out=term)
    return product, error


Dyadic: TypeAlias = tuple[int, int]  # units, and n: units / 2 ** n


class Dyadics(NamedTuple):
    """Numbers without rounding: integers in units of 2 ** -shift; shift is at least 0."""

    units: list[int]
    shift: int

    def fractions(self) -> list[Fraction]:
        """The numbers."""
        return [dyadic(units, self.shift) for units in self.units]


class IntegerRatio(NamedTuple):
    """A number as a quotient of integers, which is not reduced: that takes most of the time of a
    Fraction. denominator: positive."""

    numerator: int
    denominator: int

    def as_integer_ratio(self) -> tuple[int, int]:
        """Both integers, not in lowest terms."""
        return self

    def __bool__(self) -> bool:
        return self.numerator != 0


Exact: TypeAlias = int | Fraction | IntegerRatio


def fraction(number: Exact) -> Fraction:
    """The number in lowest terms.

    >>> fraction(IntegerRatio(6, 4)), fraction(2)
    (Fraction(3, 2), Fraction(2, 1))
    """
    return number if isinstance(number, Fraction) else Fraction(*number.as_integer_ratio())


_ZERO: Final = Fraction()


def dyadic(units: int, shift: int) -> Fraction:
    """Units / 2 ** shift, reduced without the greatest common divisor of long integers.

    >>> dyadic(6, 2), dyadic(0, 5)
    (Fraction(3, 2), Fraction(0, 1))
    """
    if not units:
        return _ZERO  # most sums at the rare scales
    zeros = min(shift, (units & -units).bit_length() - 1)
    if zeros == shift:
        return Fraction(units >> zeros)
    return Fraction(units >> zeros, 1 << shift - zeros)


def nearest(units: int, shift: int) -> float:
    """The nearest float to units / 2 ** shift, infinite past the largest.

    >>> nearest(3, 1)
    1.5
    """
    try:
        return units / (1 << shift)
    except OverflowError:
        return math.inf if units > 0 else -math.inf
