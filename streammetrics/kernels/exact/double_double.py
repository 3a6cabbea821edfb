"""Arithmetic with twice the digits of a double, the same bits on every machine.

A number is the sum of a `Pair` of doubles, the first being that sum rounded: about 106 bits. Only
IEEE operations are used, in a fixed order (Dekker 1971, Numer. Math. 18, 224-242; Knuth, The Art of
Computer Programming 2, section 4.2.2). So a mean of rational values is correctly rounded, although
no value is held as a fraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.float_bits import two_product

Floats = NDArray[np.float64]

_GRIDS: Final = (2.0**26, 2.0**61, 2.0**96)


class Pair(NamedTuple):
    """high + low, with high the nearest double to it; both [n], or of any one shape."""

    high: Floats
    low: Floats

    def take(self, positions: NDArray[np.intp] | slice) -> Pair:
        """The numbers at these positions."""
        return Pair(self.high[positions], self.low[positions])


def add(x: Pair, y: Pair) -> Pair:
    """The sum of x and y."""
    total, error = two_sum(x.high, y.high)
    return _normal(total, error + (x.low + y.low))


def minus(x: Pair, y: Pair) -> Pair:
    """The difference of x and y."""
    return add(x, Pair(-y.high, -y.low))


def times(x: Pair, y: Pair) -> Pair:
    """The product of x and y."""
    product, error = two_product(x.high, y.high)
    return _normal(product, error + (x.high * y.low + x.low * y.high))


def scaled(x: Pair, factor: Floats) -> Pair:
    """The product of x and a double."""
    product, error = two_product(x.high, factor)
    return _normal(product, error + x.low * factor)


def quotient(above: Floats, below: Floats) -> Pair:
    """The quotient above/below of doubles.

    >>> import numpy as np
    >>> third = quotient(np.ones(1), np.full(1, 3.0))
    >>> third.high[0], third.low[0]
    (np.float64(0.3333333333333333), np.float64(1.850371707708594e-17))
    """
    high = above / below
    product, error = two_product(high, below)
    return Pair(high, ((above - product) - error) / below)


def divided_by(x: Pair, below: Floats) -> Pair:
    """The quotient of x and a double."""
    high = x.high / below
    product, error = two_product(high, below)
    return _normal(high, (((x.high - product) - error) + x.low) / below)


def divided(x: Pair, y: Pair) -> Pair:
    """The quotient of two pairs, correct to 100 bits."""
    high = x.high / y.high
    product, error = two_product(high, y.high)
    remainder = ((x.high - product) - error) + (x.low - high * y.low)
    return _normal(high, remainder / y.high)


def whole(numbers: NDArray[np.int64]) -> Pair:
    """Integers as pairs, exact below 2**63 in size; numbers: int64, or objects if they are larger.

    >>> import numpy as np
    >>> pair = whole(np.array([2**62 + 1]))
    >>> int(pair.high[0]) + int(pair.low[0]) - 2**62
    1
    """
    if numbers.dtype == object:
        high = numbers.astype(np.float64)
        remainders = [n - int(h) for n, h in zip(numbers.tolist(), high.tolist(), strict=True)]
        return Pair(high, np.array(remainders, np.float64))
    below = numbers & 0xFFFFFFFF
    return Pair(*two_sum((numbers - below).astype(np.float64), below.astype(np.float64)))


def total(terms: Pair) -> Fraction:
    """The sum of terms [n] of one sign, correct to 96 of its bits; added pairwise, as in a tree."""
    if not len(terms.high):
        return Fraction()
    return fractions(tree_totals(terms, np.array([len(terms.high)])))[0]


def tree_totals(terms: Pair, sizes: NDArray[np.intp]) -> Pair:
    """The `total` of each of several runs of terms, one after another, each of at least one.

    >>> quarters = quotient(np.array([1.0, 1.0, 1.0, 3.0, 5.0]), np.full(5, 4.0))
    >>> tree_totals(quarters, np.array([2, 3])).high.tolist()
    [0.5, 2.25]
    """
    high, low = terms
    while int(sizes.max(initial=1)) > 1:
        # The first half of each run plus the second, and the odd term.
        half, left = sizes // 2, sizes - sizes // 2
        if len(sizes) == 1:
            first, second, odd = (
                slice(half[0]),
                slice(half[0], 2 * half[0]),
                slice(2 * half[0], None),
            )
            summed = add(Pair(high[first], low[first]), Pair(high[second], low[second]))
            high = np.concatenate([summed.high, high[odd]])
            low = np.concatenate([summed.low, low[odd]])
        else:
            starts, new_starts = np.cumsum(sizes) - sizes, np.cumsum(left) - left
            halves = np.repeat(half, left)
            positions = np.arange(len(halves)) - np.repeat(new_starts, left)
            sources = positions + np.repeat(starts, left)
            is_odd = positions == halves
            added = np.flatnonzero(~is_odd)
            sources[is_odd] += halves[is_odd]
            first, second = sources[added], sources[added] + halves[added]
            summed = add(terms.take(first), terms.take(second))
            high, low = high[sources], low[sources]
            high[added], low[added] = summed
        terms, sizes = Pair(high, low), left
    return terms


def fractions(numbers: Pair) -> list[Fraction]:
    """The numbers without rounding."""
    return list(map(_fraction, numbers.high.tolist(), numbers.low.tolist()))


def _fraction(high: float, low: float) -> Fraction:
    """The sum of both, whose denominators are powers of 2."""
    (a, a_unit), (b, b_unit) = high.as_integer_ratio(), low.as_integer_ratio()
    unit = max(a_unit, b_unit)
    return Fraction(a * (unit // a_unit) + b * (unit // b_unit), unit)


def totals(terms: Pair, owners: NDArray[np.intp], n: int) -> Pair:
    """The sum of each owner's terms, the same in any order; [n].

    terms: [h], below 2**27 in absolute value, as are their sums; owners: [h], below n. Terms are
    rounded to multiples of 2**-26, the remainders to multiples of 2**-61, and then of 2**-96; the
    sums of these are exact for up to 2**17 terms of an owner.
    """
    return totals_of_parts(parts(terms), owners, n)


def parts(terms: Pair) -> list[Floats]:
    """The parts into which `totals` splits terms; keep them for terms that are used again."""
    remainders, below = terms
    pieces = []
    for grid in _GRIDS:
        whole = np.rint(remainders * grid)
        whole /= grid
        pieces.append(whole)
        remainders, below = two_sum(remainders - whole, below)
    return pieces


def totals_of_parts(pieces: Iterable[Floats], owners: NDArray[np.intp], n: int) -> Pair:
    """The `totals` of terms from their `parts`."""
    sums = (np.bincount(owners, weights=part, minlength=n) for part in pieces)
    return joined([part.astype(np.float64, copy=False) for part in sums])


def running(terms: Pair) -> Pair:
    """0 and the sums of the first 1, 2, ... terms, exact as `totals` is; [h + 1]."""
    return joined([np.concatenate([[0.0], np.add.accumulate(part)]) for part in parts(terms)])


def joined(sums: Sequence[Floats]) -> Pair:
    """The sum of the three sums of `parts`, each of which is exact."""
    first, second, third = sums
    high, low = two_sum(first, second)
    return _normal(high, low + third)


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded sum and its error, exactly."""
    total = a + b
    part = total - a
    error = total - part
    np.subtract(a, error, out=error)
    error += np.subtract(b, part, out=part)
    return total, error


def _normal(high: Floats, low: Floats) -> Pair:
    """The same sum, with the rounded sum as `high`; |high| >= |low|."""
    total = high + low
    return Pair(total, low - (total - high))
