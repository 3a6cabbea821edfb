"""Tables by rank that are computed once and extended on demand."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import Pair, quotient, running

T = TypeVar("T", bound=tuple[NDArray[np.float64], NDArray[np.float64]])

_SHORTEST: Final = 128  # entries


class Growing(Generic[T]):
    """Two arrays with an entry for each rank; `make(n)` returns the first n, always the same."""

    def __init__(self, make: Callable[[int], T]) -> None:
        self._make = make
        self._held: T | None = None

    def __call__(self, n: int) -> T:
        """At least the first n entries, read-only."""
        tables = self._held
        if tables is None or len(tables[0]) < n:
            tables = self._make(max(n, _SHORTEST if tables is None else 2 * len(tables[0])))
            for table in tables:
                table.flags.writeable = False
            self._held = tables  # in one assignment: other threads see complete tables
        return tables


# 1/rank and its running sums, as double-double pairs.


def _reciprocals(n: int) -> Pair:
    return quotient(np.ones(n), np.arange(1, n + 1, dtype=np.float64))


def _harmonics(n: int) -> Pair:
    return running(_reciprocals(n - 1))


reciprocals: Final = Growing(_reciprocals)  # 1/(i + 1) for i = 0, 1, ...
harmonics: Final = Growing(_harmonics)  # the sum of the first i of them


# 1/log2(rank + 1) and the gains of grades, bit-identical on every machine.

Floats = NDArray[np.float64]

MAX_GRADE: Final = 15
GAINS: Final[dict[str, NDArray[np.int64]]] = {
    "exponential": (1 << np.arange(MAX_GRADE + 1, dtype=np.int64)) - 1,
    "linear": np.arange(MAX_GRADE + 1, dtype=np.int64),
}

_DIGITS: Final = 30  # binary digits of each of the two parts of a discount


def _discounts(n: int) -> tuple[Floats, Floats]:
    top = n + 1
    smallest = np.arange(top + 1)  # the smallest prime factor of each number
    for p in range(2, isqrt(top) + 1):
        if smallest[p] == p:
            multiples = smallest[p * p :: p]
            np.minimum(multiples, p, out=multiples)
    context = decimal.Context(prec=40)
    logs = [decimal.Decimal(0)] * (top + 1)
    for number, factor in enumerate(smallest.tolist()):
        if number < 2:
            continue
        # ln of a product is a sum; taking ln of primes alone is ten times faster
        logs[number] = (
            context.ln(decimal.Decimal(number))
            if factor == number
            else context.add(logs[factor], logs[number // factor])
        )
    exact = [context.divide(logs[2], logs[i]) for i in range(2, top + 1)]
    upper = [(x * (1 << _DIGITS)).to_integral_value() for x in exact]
    lower = [
        ((x * (1 << _DIGITS) - u) * (1 << _DIGITS)).to_integral_value()
        for x, u in zip(exact, upper, strict=True)
    ]
    return (
        np.array(upper, np.float64) / (1 << _DIGITS),
        np.array(lower, np.float64) / (1 << 2 * _DIGITS),
    )


def _totals(n: int) -> tuple[Floats, Floats]:
    upper, lower = (np.add.accumulate(table[: n - 1]) for table in discounts(n - 1))
    return np.concatenate([[0.0], upper]), np.concatenate([[0.0], lower])


# 1/log2(i + 2) for i = 0, 1, ..., as the sum of two tables: the upper holds multiples of 2**-30,
# the lower the remainder in multiples of 2**-60. So sums of integer gains times either table are
# exact in any order up to a total gain of 2**23, and a DCG is rounded once, for any length of list.
# Computed with `decimal`, because the last bit of `np.log2` depends on the processor; 128 entries
# take 1 ms, 100,000 take 0.3 s, once.
discounts: Final = Growing(_discounts)
discount_totals: Final = Growing(_totals)  # the sums of the first i of them, in the same two parts


# p^i for i = 0, 1, ..., the probability that a user reaches rank i + 1, and running sums.

_BITS: Final = 256  # of each power, however small it is


def _powers(p: Fraction, n: int) -> Pair:
    power, exponent = 1 << _BITS, _BITS  # power / 2**exponent
    high, low = np.zeros(n), np.zeros(n)
    for i in range(n):
        high[i] = power / (1 << exponent)
        if not high[i]:
            break
        top, bottom = float(high[i]).as_integer_ratio()
        low[i] = (power * bottom - (top << exponent)) / (bottom << exponent)
        power = power * p.numerator // p.denominator
        short = _BITS + 1 - power.bit_length()
        power, exponent = power << short, exponent + short
    return Pair(high, low)


def _sums(p: Fraction, n: int) -> Pair:
    return running(_powers(p, n - 1))


@lru_cache(maxsize=16)
def continuation(p: float) -> Growing[Pair]:
    """p^i; p is taken as its printed decimal, so that 0.8 is 4/5."""
    return Growing(partial(_powers, Fraction(repr(p))))


@lru_cache(maxsize=16)
def fading(alpha: float) -> Growing[Pair]:
    """(1 - alpha)^i; alpha is taken as its printed decimal."""
    return Growing(partial(_powers, 1 - Fraction(repr(alpha))))


@lru_cache(maxsize=16)
def expected_examined(p: float) -> Growing[Pair]:
    """The sum of the first i powers: the expected number of items, of i, that a user examines."""
    return Growing(partial(_sums, Fraction(repr(p))))


@lru_cache(maxsize=16)
def stop_probability(p: float) -> Pair:
    """1 - p, the probability that a user examines no further item; [1]."""
    exact = 1 - Fraction(repr(p))
    high = float(exact)
    return Pair(np.array([high]), np.array([float(exact - Fraction(high))]))
