"""Sums of integers that do not overflow; ratios and means of fractions that are rounded once.

Thousands of different denominators have no common one of a useful size. So a mean stays a sum of
fractions, and is divided in fixed point with as many bits as the rounding needs; only a mean that
lies on a float, or half-way between two, needs the common denominator.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.float_bits import Exact, IntegerRatio

Ints = NDArray[np.int64]


def exact_sum(values: Ints) -> int:
    """The sum of non-negative integers, however large."""
    if len(values) and int(values.max()) > ((1 << 63) - 1) // len(values):
        return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
    return int(values.sum())


def exact_dot(*factors: Ints) -> int:
    """The sum of the products of non-negative integers, however large; each factor is [n].

    >>> exact_dot(np.array([1 << 62, 1]), np.array([1 << 62, 2]), np.array([4, 5])) == 2**126 + 10
    True
    """
    if not len(factors[0]):
        return 0
    return _dot(list(factors), [int(factor.max()) for factor in factors])


def _dot(factors: list[Ints], tops: list[int]) -> int:
    """The same, where no integer is above its factor's top: the largest are cut into halves until
    all products and their sum fit int64."""
    if math.prod(tops) * len(factors[0]) < 1 << 63:
        first, *other_factors = factors
        for factor in other_factors:
            first = first * factor
        return int(first.sum())
    i = tops.index(max(tops))
    bits = tops[i].bit_length() // 2
    high, low = factors[i] >> bits, factors[i] & ((1 << bits) - 1)

    def cut(half: Ints, top: int) -> int:
        return _dot([*factors[:i], half, *factors[i + 1 :]], [*tops[:i], top, *tops[i + 1 :]])

    return (cut(high, tops[i] >> bits) << bits) + cut(low, (1 << bits) - 1)


def ratio(numerator: Exact | float, denominator: Exact | float) -> float:
    """The nearest float, infinite past the largest; nan where the denominator is 0. Floats are sums
    with infinities, and are divided as floats.

    >>> ratio(1, 3), ratio(0, 0), ratio(math.inf, 2)
    (0.3333333333333333, nan, inf)
    """
    if not denominator:
        return math.nan
    if type(numerator) in _QUOTIENTS or type(denominator) in _QUOTIENTS:
        numerator, denominator = _cleared(numerator, denominator)
    try:
        return numerator / denominator + 0.0  # type: ignore[operator] # not -0.0
    except OverflowError:
        return math.inf if (numerator < 0) == (denominator < 0) else -math.inf  # type: ignore[operator]


_QUOTIENTS: Final = frozenset({Fraction, IntegerRatio})


def _cleared(
    numerator: Exact | float, denominator: Exact | float
) -> tuple[Exact | float, Exact | float]:
    """The same ratio of integers, so that it is one division; of floats as it is."""
    if isinstance(numerator, float) or isinstance(denominator, float):
        return numerator, denominator
    (a, a_unit), (b, b_unit) = numerator.as_integer_ratio(), denominator.as_integer_ratio()
    return a * b_unit, a_unit * b


def rounded_down(numerator: int, denominator: int) -> float:
    """The greatest float that is not above the ratio; denominator > 0."""
    try:
        nearest = numerator / denominator
    except OverflowError:
        return sys.float_info.max if numerator > 0 else -math.inf
    top, bottom = nearest.as_integer_ratio()
    over = top * denominator > numerator * bottom
    return math.nextafter(nearest, -math.inf) if over else nearest


def rounded_up(numerator: int, denominator: int) -> float:
    """The least float that is not below the ratio; denominator > 0."""
    return 0.0 - rounded_down(-numerator, denominator)  # not -0.0


def quotient_by_root(numerator: int, square: int) -> float:
    """The nearest float to numerator / √square; nan if the square is 0.

    >>> quotient_by_root(-3, 36), quotient_by_root(1, 2)
    (-0.5, 0.7071067811865476)
    """
    if not square:
        return math.nan
    top = numerator * numerator
    # Binary digits, so that the root below has at least 64 of them: more than a float holds.
    digits = max(0, 64 + (square.bit_length() - top.bit_length()) // 2 + 1)
    scaled = top << 2 * digits
    root = math.isqrt(scaled // square)
    # One more digit records whether anything was cut off, which is all that rounding needs.
    exact = root * root * square == scaled
    nearest = ratio(2 * root + (not exact), 1 << digits + 1)
    return -nearest if numerator < 0 else nearest


# From numerator and positive denominator to a float; `ratio`, `rounded_down`, `rounded_up`.
Rounding: TypeAlias = Callable[[int, int], float]

BITS: Final = (192, 1024)  # of the fixed point


class Rational(Protocol):
    """A rational number that can be bounded in less time than computed."""

    def enclosing(self, bits: int) -> list[tuple[int, int]]:
        """Fractions that enclose it, with positive denominators; none if more bits are needed."""

    def fraction(self) -> tuple[int, int]:
        """Numerator and positive denominator, not in lowest terms; may take long."""


def rounded(value: Rational, rounding: Rounding = ratio) -> float:
    """The value as a float, rounded once."""
    for bits in BITS:
        floats = {rounding(*end) for end in value.enclosing(bits)}
        if len(floats) == 1:
            return floats.pop()
    return rounding(*value.fraction())


class FractionMean(NamedTuple):
    """Σ numerator / denominator / total.

    sums: by denominator, the numerator, of either sign. total: of the weights; 0 if the mean is
    undefined.

    >>> rounded(FractionMean({3: 1, 6: 4}, total=1))
    1.0
    """

    sums: Mapping[int, int]
    total: int

    def enclosing(self, bits: int) -> list[tuple[int, int]]:
        low = inexact = 0
        for denominator, numerator in self.sums.items():
            whole, remainder = divmod(numerator << bits, denominator)
            low += whole
            inexact += remainder > 0
        scale = self.total << bits
        return [(low, scale), (low + inexact, scale)]

    def fraction(self) -> tuple[int, int]:
        terms = [(numerator, denominator) for denominator, numerator in self.sums.items()]
        # Like sizes are multiplied and nothing is reduced: a hundred times as fast as in turn.
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            joined = [(a * d + c * b, b * d) for (a, b), (c, d) in pairs]
            terms = joined + terms[len(terms) - len(terms) % 2 :]
        numerator, denominator = terms[0] if terms else (0, 1)
        return numerator, denominator * self.total


UNDEFINED: Final = FractionMean({}, 0)


def mean_of(terms: Iterable[tuple[Fraction, int]]) -> FractionMean:
    """The mean of fractions, none negative, each with its weight.

    >>> rounded(mean_of([(Fraction(1, 2), 1), (Fraction(1), 3)]))
    0.875
    """
    sums: dict[int, int] = {}
    total = 0
    for value, weight in terms:
        top, bottom = value.as_integer_ratio()
        sums[bottom] = sums.get(bottom, 0) + weight * top
        total += weight
    return FractionMean(sums, total)


class ExactArea(NamedTuple):
    """An area, or a mean of areas, and its certain bounds; all without rounding.

    bounded: the bounds may differ from the value, since only the buckets of scores are known.
    """

    value: FractionMean = UNDEFINED
    low: FractionMean = UNDEFINED
    high: FractionMean = UNDEFINED
    bounded: bool = False

    @property
    def defined(self) -> bool:
        """Whether there is a pair to compare."""
        return self.value.total > 0
