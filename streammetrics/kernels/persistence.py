"""p^i for i = 0, 1, ..., how likely a user comes to rank i + 1, and running sums.

The user of rank-biased precision goes from each item to the next with probability p (Moffat and
Zobel 2008, ACM TOIS 27(1), article 2).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from typing import Final

import numpy as np

from streammetrics.kernels.double_double import Pair, running
from streammetrics.kernels.growing import Growing

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
def comes(p: float) -> Growing[Pair]:
    """p^i; p is the decimal that it prints as, so that 0.8 is 4/5."""
    return Growing(partial(_powers, Fraction(repr(p))))


@lru_cache(maxsize=16)
def looks(p: float) -> Growing[Pair]:
    """The sum of the first i of them: how many items a user looks at, of i."""
    return Growing(partial(_sums, Fraction(repr(p))))


@lru_cache(maxsize=16)
def stops(p: float) -> Pair:
    """1 - p, how likely a user looks at no further item; [1]."""
    exact = 1 - Fraction(repr(p))
    high = float(exact)
    return Pair(np.array([high]), np.array([float(exact - Fraction(high))]))
