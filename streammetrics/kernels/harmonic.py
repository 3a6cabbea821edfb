"""Sums of j / (j + f) over runs of integers j, between certain ends, at one cost for any length.

Σ_{a<m<=b} f / m is f (H_b - H_a), and with x = n + 1/2 the harmonic numbers obey
ln x + γ + 1/(24 x²) - 7/(960 x⁴) < H_n < ln x + γ + 1/(24 x²)  (DeTemple 1993, "A quicker
convergence to Euler's constant", Amer. Math. Monthly 100, 468-470, and the next term of his
series). Short runs, and the first terms of long ones, are added one by one, so that what remains
between the ends is below a millionth of one term.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.double_double import (
    Floats,
    Pair,
    add,
    divided,
    minus,
    quotient,
    scaled,
    times,
    whole,
)

Ints = NDArray[np.int64]

_SHORT: Final = 64  # terms that are added one by one
_FIRST: Final = 32  # of a longer run
_LN2: Final = (0.6931471805599453, 2.3190468138462996e-17)
_TERMS: Final = 20  # of the series of ln; z² < 0.0295, so what is left is below 2**-100


def sums_of_shares(start: Ints, length: Ints, f: Ints) -> tuple[Pair, Pair]:
    """Lower and upper ends of Σ j / (j + f) for start < j <= start + length: [k] each.

    start, f: integers [k] of at least 0; length: of at least 1. The rounding of the arithmetic is
    below 2**-94 of `length`, and not in the ends.
    """
    long = length > _SHORT
    single = np.where(long, _FIRST, length).astype(np.int64)
    owners = np.repeat(np.arange(len(single)), single)
    places = np.arange(len(owners)) - np.repeat(np.cumsum(single) - single, single) + 1
    j = start[owners] + places
    low = _sums_by_owner(divided(whole(j), whole(j + f[owners])), single)
    at = np.flatnonzero(long)
    if not len(at):
        return low, low
    ends = _remainders(start[at] + _FIRST, length[at] - _FIRST, f[at])
    return _with(low, ends[0], at), _with(low, ends[1], at)


def _with(sums: Pair, more: Pair, at: NDArray[np.intp]) -> Pair:
    joined = add(sums.take(at), more)
    high, low = sums.high.copy(), sums.low.copy()
    high[at], low[at] = joined
    return Pair(high, low)


def _sums_by_owner(terms: Pair, lengths: Ints) -> Pair:
    """The sums of runs of these lengths, which are at least 1, in order."""
    first = np.cumsum(lengths) - lengths
    found = terms.take(first)
    for i in range(1, int(lengths.max(initial=1))):
        at = np.flatnonzero(lengths > i)
        found = _with(found, terms.take(first[at] + i), at)
    return found


def _remainders(start: Ints, length: Ints, f: Ints) -> tuple[Pair, Pair]:
    """The ends of the sums by logarithms: length - f (H_b - H_a)."""
    half = np.full(len(start), 0.5)
    first = add(whole(start + f), Pair(half, np.zeros(len(start))))
    last = add(first, whole(length))
    u_first, u_last = _over_square(first, 24), _over_square(last, 24)
    near = add(_log_of_ratio(first, last), minus(u_last, u_first))
    every, weight = whole(length), whole(f)
    v_first, v_last = (7 / (960 * x.high * x.high * x.high * x.high) for x in (first, last))
    # One more digit than the rounding of v itself can take.
    most = add(near, Pair(v_first * 1.001, np.zeros(len(start))))
    least = minus(near, Pair(v_last * 1.001, np.zeros(len(start))))
    return minus(every, times(weight, most)), minus(every, times(weight, least))


def _over_square(x: Pair, factor: int) -> Pair:
    one = Pair(np.ones(len(x.high)), np.zeros(len(x.high)))
    return divided(one, scaled(times(x, x), np.full(len(x.high), float(factor))))


def _log_of_ratio(below: Pair, above: Pair) -> Pair:
    """ln(above / below) to 98 bits of its own, for 0 < below <= above."""
    _, exponent = np.frexp(above.high / below.high * np.sqrt(0.5))
    power = np.ldexp(1.0, exponent)
    near = Pair(below.high * power, below.low * power)
    z = divided(minus(above, near), add(above, near))
    square = times(z, z)
    series = _inverse(2 * _TERMS + 1, square.high)
    for i in range(_TERMS - 1, -1, -1):
        series = add(times(series, square), _inverse(2 * i + 1, square.high))
    log = scaled(times(z, series), np.full(len(z.high), 2.0))
    twos = scaled(Pair(*(np.full(len(z.high), part) for part in _LN2)), exponent.astype(np.float64))
    return add(twos, log)


def _inverse(n: int, like: Floats) -> Pair:
    return quotient(np.ones(len(like)), np.full(len(like), float(n)))
