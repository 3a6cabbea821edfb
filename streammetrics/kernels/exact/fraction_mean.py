"""Means of fractions that nothing rounds until a float is asked for, and then once.

Thousands of different denominators have no common one of a useful size. So a mean stays a sum of
fractions, and is divided in fixed point with as many bits as the rounding needs; only a mean that
lies on a float, or half-way between two, needs the common denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol, TypeAlias

from streammetrics.kernels.exact.rounding import ratio

# From numerator and positive denominator to a float; `ratio`, `rounded_down`, `rounded_up`.
Rounding: TypeAlias = Callable[[int, int], float]

BITS: Final = (192, 1024)  # of the fixed point


class Rational(Protocol):
    """A rational number that can be known in part."""

    def between(self, bits: int) -> list[tuple[int, int]]:
        """Fractions that have it between them, of positive denominators; none if more is needed."""

    def fraction(self) -> tuple[int, int]:
        """Numerator and positive denominator, not in lowest terms; may take long."""


def rounded(value: Rational, rounding: Rounding = ratio) -> float:
    """The value as a float, rounded once."""
    for bits in BITS:
        floats = {rounding(*end) for end in value.between(bits)}
        if len(floats) == 1:
            return floats.pop()
    return rounding(*value.fraction())


@dataclass(frozen=True, slots=True)
class FractionMean:
    """Σ numerator / denominator / total.

    sums: by denominator, what stands above it; non-negative. total: of the weights; 0 where the
    mean is undefined.

    >>> rounded(FractionMean({3: 1, 6: 4}, total=1))
    1.0
    """

    sums: Mapping[int, int]
    total: int

    def between(self, bits: int) -> list[tuple[int, int]]:
        low = inexact = 0
        for denominator, numerator in self.sums.items():
            whole, rest = divmod(numerator << bits, denominator)
            low += whole
            inexact += rest > 0
        scale = self.total << bits
        return [(low, scale), (low + inexact, scale)]

    def fraction(self) -> tuple[int, int]:
        terms = [(numerator, denominator) for denominator, numerator in self.sums.items()]
        # Like sizes are multiplied, and nothing is reduced: a hundred times as fast as in turn.
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
        numerator, denominator = value.as_integer_ratio()
        sums[denominator] = sums.get(denominator, 0) + weight * numerator
        total += weight
    return FractionMean(sums, total)


@dataclass(frozen=True, slots=True)
class ExactArea:
    """An area, or a mean of areas, and its certain bounds; all without rounding.

    bounded: the bounds may differ from the value, since scores are known by their buckets alone.
    """

    value: FractionMean = UNDEFINED
    low: FractionMean = UNDEFINED
    high: FractionMean = UNDEFINED
    bounded: bool = False

    @property
    def defined(self) -> bool:
        """Whether there is a pair to compare."""
        return self.value.total > 0
