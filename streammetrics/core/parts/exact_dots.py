"""Exact sums of products of columns: each column is cut into digits, and a matrix product adds all
products of digits at once.

A digit is a multiple of its unit and at most 2**20 of them in size. So a sum of 2**13 products of
two digits is a whole number of at most 2**53 units, and so is every part of it: float64 holds them
all, and a matrix product rounds nothing, whatever its order. (Ozaki, Ogita, Oishi & Rump 2012,
Numer. Algorithms 59, 95-118.)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from operator import add
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.parts.float_bits import CHUNK, UNIT, largest

Column: TypeAlias = NDArray[np.float64] | NDArray[np.int8] | NDArray[np.uint8]
Rows: TypeAlias = NDArray[np.intp]

DOT_ROWS: Final = 1 << 17  # of one call: enough for what a call costs, and few for memory
_BLOCK: Final = 1 << 13  # rows
_ROWS: Final = 1 << 22  # whose sums of units fit int64
_SHARED: Final = 1 << 18  # products from which a matrix product may be shared among threads
_DOUBLE: Final = 52  # digits after which most numbers are complete
_MOST: Final = 2.0**150  # products of three digits are far from both ends of the floats
_FAR: Final = 1 << 20
_ONE: Final = range(1)  # the place of the first digit, which is 1


class Dot(NamedTuple):
    """sign · Σ a b, of columns [n] of finite float64 or of 8-bit integers; b None: 1 each.

    squared: Σ a² b, for one column of float64. A column in several sums is cut once if it is the
    same object.
    """

    total: ExactSumColumn
    a: Column
    b: Column | None = None
    sign: int = 1
    squared: bool = False


def add_dots(dots: Sequence[Dot]) -> Rows:
    """Add sums of products of rows to state 0 of each; return the rows that are left out, in which
    numbers differ too much in size for digits, or lie beyond 2**±150."""
    columns = {id(x): x for dot in dots for x in (dot.a, dot.b) if x is not None}
    n, left, totals = len(dots[0].a), [np.arange(0)], [0] * len(dots)
    cut = _CUBES if any(dot.squared for dot in dots) else _PRODUCTS
    for start in range(0, n, _ROWS):
        parts = [x[start : start + _ROWS] for x in columns.values()]
        grams, indices = _grams(parts, cut, cut.depths[0])
        rows = indices + start
        if 0 < len(rows) <= len(parts[0]) >> 2:
            more_grams, indices = _grams([x[rows] for x in columns.values()], cut, cut.depths[1])
            grams, rows = [*grams, *more_grams], rows[indices]
        for gram in grams:
            totals = [*map(add, totals, gram.units(dots, [*columns]))]
        left.append(rows)
    for dot, units in zip(dots, totals, strict=True):
        dot.total.add_units(dot.sign * units)
    return np.concatenate(left)


def _grams(columns: Sequence[Column], cut: _Digits, depth: int) -> tuple[Collection[_Gram], Rows]:
    """The sums of products of columns [n], cut into up to `depth` digits, and the rows left out."""
    n = len(columns[0])
    most = (3 * depth - 1 if cut.squared else depth) * len(columns)
    digits = np.empty((1 + most, min(n, _BLOCK)))
    spare = np.empty(digits.shape[1])
    digits[0] = 1.0
    grams: dict[tuple[int, ...], _Gram] = {}  # by the sizes and the digits of the columns
    left = [np.arange(0)]
    for first in range(0, n, CHUNK):
        end = min(first + CHUNK, n)
        powers = [cut.power(x[first:end]) for x in columns]
        if _FAR in powers:
            left.append(np.arange(first, end))
            continue
        for start in range(first, end, _BLOCK):
            stop = min(start + _BLOCK, end)
            m = stop - start
            sizes, used, mask = [], 1, None
            for x, power in zip(columns, powers, strict=True):
                size, is_left = 1, None
                part, free = x[start:stop], digits[used:, :m]
                if x.itemsize == 1:
                    free[0] = part
                else:
                    size, is_left = cut.digits(part.view(np.float64), power, free, spare[:m], depth)
                sizes.append(size)
                used += size
                if cut.squared:
                    _square(digits[used - size : used, :m], digits[used:, :m])
                    sizes.append(2 * size - 1)
                    used += sizes[-1]
                if is_left is not None:
                    mask = is_left if mask is None else np.logical_or(mask, is_left, out=mask)
            if mask is not None:
                rows = np.flatnonzero(mask)
                if len(rows) > m >> 2:
                    left.append(np.arange(start, stop))
                    continue
                left.append(rows + start)
                digits[1:used, rows] = 0.0
            key = (*powers, *sizes)
            if key not in grams:
                grams[key] = _Gram(sizes, powers, cut)
            grams[key].add(digits[:used, :m])
    return grams.values(), np.concatenate(left)


class _Digits(NamedTuple):
    """How numbers are cut into digits.

    width: binary digits from one unit to the next. depths: the most digits of a number, at first
    and in rows that are left. squared: the digits of the square follow.
    """

    width: int
    depths: tuple[int, int]
    squared: bool = False

    def power(self, x: Column) -> int:
        """The power of two above all sizes of a column [n], n >= 1; _FAR if it is not for digits.

        That of small integers makes 1 the unit of their only digit.
        """
        if x.itemsize == 1:
            return self.width - 1
        top = largest(x.view(np.float64))
        return math.frexp(top)[1] if not top or 1 / _MOST < top < _MOST else _FAR

    def digits(
        self,
        values: NDArray[np.float64],
        power: int,
        digits: NDArray[np.float64],
        spare: NDArray[np.float64],
        depth: int,
    ) -> tuple[int, NDArray[np.bool_] | None]:
        """Cut values [m] below 2**power in size into up to `depth` digits [d, m]: how many there
        are, and the rows where something is left; None if there is none.

        Adding and subtracting 1.5 · 2**52 units rounds to the next of them, which is exact, and so
        is the rest: at most half a unit, or 2**(width - 1) of the next ones.
        """
        residual = values
        for size in range(1, depth + 1):
            big, digit = math.ldexp(1.5, power + 53 - self.width * size), digits[size - 1]
            np.add(residual, big, out=digit)
            np.subtract(digit, big, out=digit)
            has_exact_end = residual.item(0) == digit.item(0) or residual.item(-1) == digit.item(-1)
            if has_exact_end or size * self.width > _DOUBLE:
                mask = residual != digit
                n = np.count_nonzero(mask)
                if not n:
                    return size, None
                if n <= len(residual) >> 6 and depth == self.depths[0]:
                    break
            residual = np.subtract(residual, digit, out=spare)
        return size, mask

    def exponents(self, sizes: Sequence[int], powers: Sequence[int]) -> Iterator[range]:
        """Those of the units of the digits, by column, and of their squares."""
        step = 2 if self.squared else 1
        for size, power in zip(sizes[::step], powers, strict=True):
            first = power + 1 - self.width
            for times in range(1, step + 1):
                last = first - self.width * (size - 1)
                yield range(times * first, times * last - 1, -self.width)


_PRODUCTS: Final = _Digits(21, (4, 6))
# The sum of 2**13 products of three digits, of which up to 10 make one digit of a square, is below
# 10 · 2**(13 + 3 · 12) units.
_CUBES: Final = _Digits(13, (6, 10), squared=True)


def _square(digits: NDArray[np.float64], squares: NDArray[np.float64]) -> None:
    """The digits [k, m] of the squares of numbers, [2 k - 1, m], not carried."""
    k = len(digits)
    for i, digit in enumerate(digits):
        last = i + k - 1  # to which no other digit has added
        if i == k - 1:
            np.multiply(digit, digit, out=squares[last])
            return
        twice = digit + digit
        if not i:
            np.multiply(digit, digit, out=squares[0])
            np.multiply(digits[1:], twice, out=squares[1:k])
            continue
        squares[2 * i] += digit * digit
        for j in range(i + 1, k - 1):
            squares[i + j] += twice * digits[j]
        np.multiply(digits[-1], twice, out=squares[last])


class _Gram:
    """Sums of the products of all digits, but the first, with all digits; the first is 1."""

    def __init__(self, sizes: Sequence[int], powers: Sequence[int], cut: _Digits) -> None:
        """sizes, powers: of each column the number of its digits, and its power of two."""
        self.width = cut.width
        self.right = 1 + sizes[0] if cut.squared else 1 + sum(sizes)
        self.places = [range(*ends) for ends in pairwise(accumulate(sizes, initial=1))]
        self.exponents = [0, *chain.from_iterable(cut.exponents(sizes, powers))]
        shifts = np.array(self.exponents)
        self.scale = np.ldexp(1.0, -(shifts[1:, None] + shifts[: self.right]))
        self.sums = np.zeros(self.scale.shape, np.int64)

    def add(self, digits: NDArray[np.float64]) -> None:
        """Add those of up to 2**13 rows; digits: [k, m]."""
        k, m = digits.shape
        step = max(_SHARED // (k * self.right), 1)
        total = digits[1:, :step] @ digits[: self.right, :step].T
        for start in range(step, m, step):
            piece = digits[:, start : start + step]
            total += piece[1:] @ piece[: self.right].T
        total *= self.scale
        self.sums += total.astype(np.int64)

    def units(self, dots: Sequence[Dot], columns: Sequence[int]) -> Iterator[int]:
        """The sum of each dot, in units of 2 ** -1088; columns: the `id` of each."""
        step = len(self.places) // len(columns)
        places, rows = dict(zip(columns, self.places[::step], strict=True)), self.sums.tolist()
        for _, a, b, _, squared in dots:
            left = self.places[1] if squared else places[id(a)]
            right = _ONE if b is None else places[id(b)]
            units = 0
            for i in left:
                of_digit = 0
                for j in right:
                    of_digit = (of_digit << self.width) + rows[i - 1][j]
                units = (units << self.width) + of_digit
            yield units << UNIT + self.exponents[left[-1]] + self.exponents[right[-1]]
