"""Exact sums of products of columns: each column is cut into digits, and a matrix product adds all
products of digits at once.

A digit is a multiple of its unit and at most 2**20 of them in size. So a sum of 2**13 products of
two digits is a whole number of at most 2**53 units, and so is every part of it: float64 holds them
all, and a matrix product rounds nothing, whatever its order. (Ozaki, Ogita, Oishi & Rump 2012,
Numer. Algorithms 59, 95-118.)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from operator import add
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.parts.float_bits import CHUNK, UNIT, largest

Column: TypeAlias = NDArray[np.float64] | NDArray[np.int8] | NDArray[np.uint8]
Rows: TypeAlias = NDArray[np.intp]

_DIGIT: Final = 21  # binary digits from one unit to the next
_BLOCK: Final = 1 << 13  # rows
_ROWS: Final = 1 << 22  # whose sums of units fit int64
_FAR: Final = 1 << 20
_PRODUCTS: Final = 1 << 18  # of one matrix product: more would be shared among threads
_ONE: Final = range(1)  # the place of the first digit, which is 1
_DEPTHS: Final = 4, 6  # the most digits of a number, at first and in rows that are left
_MOST: Final = 2.0**200  # products of three digits are far from both ends of the floats


class Dot(NamedTuple):
    """sign · Σ a b, of columns [n] of finite float64 or of small integers; b None: 1 each.

    A column in several sums is cut once if it is the same object.
    """

    total: ExactSumColumn
    a: Column
    b: Column | None = None
    sign: int = 1


def add_dots(dots: Sequence[Dot]) -> Rows:
    """Add sums of products of rows to state 0 of each; return the rows that are left out, in which
    numbers differ too much in size for digits, or lie beyond 2**±200."""
    columns = {id(x): x for dot in dots for x in (dot.a, dot.b) if x is not None}
    n, left, totals = len(dots[0].a), [np.arange(0)], [0] * len(dots)
    for start in range(0, n, _ROWS):
        rows = np.arange(start, min(start + _ROWS, n))
        for depth in _DEPTHS:
            index = slice(start, start + _ROWS) if depth == _DEPTHS[0] else rows
            some = [x[index] for x in columns.values()]
            before = len(rows)
            grams, rest = _grams(some, before, depth)
            rows = rows[rest]
            for gram in grams:
                totals = [*map(add, totals, gram.units(dots, columns))]
            if not 0 < len(rows) <= before >> 2:
                break
        left.append(rows)
    for dot, units in zip(dots, totals, strict=True):
        dot.total.add_units(dot.sign * units)
    return np.concatenate(left)


def _grams(columns: Collection[Column], n: int, depth: int) -> tuple[Collection[_Gram], Rows]:
    """The sums of products of columns [n], cut into up to `depth` digits, and the rows left out."""
    digits = np.empty((1 + depth * len(columns), min(n, _BLOCK)))
    spare = np.empty(digits.shape[1])
    digits[0] = 1.0
    grams: dict[tuple[int, ...], _Gram] = {}  # by the sizes and the digits of the columns
    left = [np.arange(0)]
    for first in range(0, n, CHUNK):
        end = min(first + CHUNK, n)
        powers = [_power(x[first:end]) for x in columns]
        if _FAR in powers:
            left.append(np.arange(first, end))
            continue
        for start in range(first, end, _BLOCK):
            stop = min(start + _BLOCK, end)
            m = stop - start
            sizes, used, mask = [], 1, None
            for x, power in zip(columns, powers, strict=True):
                size, rest = 1, None
                if x.itemsize == 1:
                    digits[used, :m] = x[start:stop]
                else:
                    size, rest = _cut(x[start:stop], power, digits[used:, :m], spare[:m], depth)
                sizes.append(size)
                used += size
                if rest is not None:
                    mask = rest if mask is None else np.logical_or(mask, rest, out=mask)
            if mask is not None:
                rows = np.flatnonzero(mask)
                if len(rows) > m >> 2:
                    left.append(np.arange(start, stop))
                    continue
                left.append(rows + start)
                digits[1:used, rows] = 0.0
            key = (*powers, *sizes)
            if key not in grams:
                grams[key] = _Gram(sizes, powers)
            grams[key].add(digits[:used, :m])
    return grams.values(), np.concatenate(left)


def _power(x: Column) -> int:
    """The power of two above all sizes of a column [n], n >= 1; _FAR if it is not for digits."""
    if x.itemsize == 1:
        return _DIGIT - 1
    top = largest(x)
    return math.frexp(top)[1] if not top or 1 / _MOST < top < _MOST else _FAR


def _cut(
    values: NDArray[np.float64],
    power: int,
    digits: NDArray[np.float64],
    spare: NDArray[np.float64],
    depth: int,
) -> tuple[int, NDArray[np.bool_] | None]:
    """Cut values [m] below 2**power in size into up to `depth` digits [d, m]: how many there are,
    and the rows where something is left; None if there is none.

    Adding and subtracting 1.5 · 2**52 units rounds to the next of them, which is exact, and so is
    the rest: at most half a unit, or 2**20 of the next ones.
    """
    rest = values
    for size in range(1, depth + 1):
        big, digit = math.ldexp(1.5, power + 53 - _DIGIT * size), digits[size - 1]
        np.add(rest, big, out=digit)
        np.subtract(digit, big, out=digit)
        if size > 2 or rest.item(0) == digit.item(0) or rest.item(-1) == digit.item(-1):
            mask = rest != digit
            n = np.count_nonzero(mask)
            if not n:
                return size, None
            if n <= len(rest) >> 6:
                break
        rest = np.subtract(rest, digit, out=spare)
    return size, mask


class _Gram:
    """Sums of the products of all digits, but the first, with all digits; the first is 1."""

    def __init__(self, sizes: Sequence[int], powers: Sequence[int]) -> None:
        """sizes, powers: of each column the number of its digits, and the `_power`."""
        self.places = [range(*ends) for ends in pairwise(accumulate(sizes, initial=1))]
        self.exponents = [0]  # of the units of digits
        for size, power in zip(sizes, powers, strict=True):
            self.exponents += range(power + 1 - _DIGIT, power + 1 - _DIGIT * (size + 1), -_DIGIT)
        shifts = np.array(self.exponents)
        self.scale = np.ldexp(1.0, -(shifts[1:, None] + shifts))
        self.sums = np.zeros(self.scale.shape, np.int64)

    def add(self, digits: NDArray[np.float64]) -> None:
        """Add those of up to 2**13 rows; digits: [k, m]."""
        k, m = digits.shape
        step = max(_PRODUCTS // (k * k), 1)
        total = digits[1:, :step] @ digits[:, :step].T
        for start in range(step, m, step):
            piece = digits[:, start : start + step]
            total += piece[1:] @ piece.T
        total *= self.scale
        self.sums += total.astype(np.int64)

    def units(self, dots: Sequence[Dot], columns: Iterable[int]) -> Iterator[int]:
        """The sum of each dot, in units of 2 ** -1088; columns: the `id` of each."""
        places, rows = dict(zip(columns, self.places, strict=True)), self.sums.tolist()
        for _, a, b, _ in dots:
            left, right = places[id(a)], _ONE if b is None else places[id(b)]
            units = 0
            for i in left:
                of_digit = 0
                for j in right:
                    of_digit = (of_digit << _DIGIT) + rows[i - 1][j]
                units = (units << _DIGIT) + of_digit
            yield units << UNIT + self.exponents[left[-1]] + self.exponents[right[-1]]
