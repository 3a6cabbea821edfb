"""The natural logarithm with the same bits on every processor, to about 67 bits.

The last bits of `np.log` differ between machines. This module uses only IEEE additions,
multiplications, comparisons and bit operations, in a fixed order, and a table made with `decimal`.
(Tang 1990, ACM Trans. Math. Softw. 16, 378-400, for the table; the split that makes the head exact
is ours.)
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import Pair, total, two_sum

Floats = NDArray[np.float64]

_PIECES: Final = 256  # of the numbers from 11/16 to 11/8, each with a table entry
_INDEX_BITS: Final = 44  # of the fraction, below the 8 bits that choose the piece
_LEAST: Final = int(np.float64(0.6875).view(np.int64))
_HALF: Final = 1 << 28
_HEAD: Final = -2 * _HALF  # keeps 23 of the 52 bits of a fraction
_GRID: Final = 1 << 42  # heads of logarithms are multiples of 2**-42
CHUNK: Final = 1 << 14  # rows whose temporaries stay in the cache
_NORMAL: Final = 2.0**-1022
_NORMAL_BITS: Final = 1 << 52
_EXPONENT: Final = -1 << 52
_INF_BITS: Final = 0x7FF << 52
_LIFT: Final = 64  # binary digits by which subnormals are made normal


def log(x: Floats, low: Floats | None = None) -> Pair:
    """The natural logarithm of x, or of x + low: a Pair within 2**-67 of its size.

    x, low: [n], |low| at most half the last place of x. So `high` alone is off by less than
    0.5001 of its last place. log(0) is -inf, log(inf) inf, and log(1) exactly 0; nan below 0.

    With x = 2**k m, m in [11/16, 11/8), and r near 1/m with ten binary digits,

        ln x = k ln 2 - ln r + ln(1 + z),    z = r m - 1,    |z| < 2**-8,
        ln(1 + z) = z - z²/2 + z³/3 - ...

    m = (m rounded to 23 binary places) + (the rest) makes z = head + tail exactly; head² is exact
    as well, and so is k ln 2 - ln r + head, in multiples of 2**-42. The terms rounded to 53 bits
    are at most 2**-16 of the value, or the second halves of ln 2 and ln r.

    >>> log(np.array([1.0, 2.0, 0.0])).high.tolist()
    [0.0, 0.6931471805599453, -inf]
    """
    if len(x) <= CHUNK:
        return _log(x, low)
    logs = Pair(np.empty_like(x), np.empty_like(x))
    for start in range(0, len(x), CHUNK):
        piece = slice(start, start + CHUNK)
        of_piece = _log(x[piece], None if low is None else low[piece])
        logs.high[piece], logs.low[piece] = of_piece.high, of_piece.low
    return logs


def _log(x: Floats, low: Floats | None) -> Pair:
    bits = x.view(np.int64)
    if len(x) and not _NORMAL_BITS <= bits[bits.argmin()] <= bits[bits.argmax()] < _INF_BITS:
        return _log_of_any(x, low)
    reciprocals, heads, tails, (two_head, two_tail) = _tables()
    # In place, as a pass over new arrays would take twice the time.
    power = bits - _LEAST
    piece = power >> _INDEX_BITS
    piece &= _PIECES - 1
    power &= _EXPONENT
    significand = bits - power
    k = power.astype(np.float64)  # times 2**52
    m = significand.view(np.float64)
    r, half, correction = (table.take(piece) for table in (reciprocals, heads, tails))
    head_bits = np.add(significand, _HALF, out=piece)
    head_bits &= _HEAD
    head = head_bits.view(np.float64)
    m -= head
    tail = m
    tail *= r
    head *= r
    head -= 1.0
    whole = k * (two_head / _NORMAL_BITS)
    whole += half
    whole += head
    k *= two_tail / _NORMAL_BITS
    correction += k
    if low is not None and low.any():
        scale = np.subtract(1023 << 52, power, out=power).view(np.float64)  # 2**-power
        scale *= low
        scale *= r
        tail, error = _sum_in_place(tail, scale, k)  # not larger than the tail, unless that is 0
        correction += error
    z = np.add(head, tail, out=r)
    series = _series(z)
    minus_half = np.multiply(head, head, out=half)
    minus_half *= -0.5
    second, error = two_sum(tail, minus_half)
    # The rest, + series - tail (head + tail / 2), and the errors.
    product = np.multiply(tail, 0.5, out=z)
    product += head
    product *= tail
    series -= product
    whole, error_of_whole = _sum_in_place(whole, second, product)
    error_of_whole += error
    series += error_of_whole
    correction += series
    total = np.add(whole, correction, out=tail)
    correction -= np.subtract(total, whole, out=whole)
    return Pair(total, correction)


def _sum_in_place(a: Floats, b: Floats, spare: Floats) -> tuple[Floats, Floats]:
    """The rounded sum of a and of b, if a is 0 or at least as large, and its error, exactly, in
    the places of `spare` and b; a is lost. (Dekker 1971.)"""
    total = np.add(a, b, out=spare)
    b -= np.subtract(total, a, out=a)
    return total, b


def _series(z: Floats) -> Floats:
    """z³/3 - z⁴/4 + ... + z⁹/9, |z| < 2**-8; the omitted terms are below 2**-75 z."""
    sum_ = z * (1 / 9)
    sum_ -= 1 / 8
    for term in (1 / 7, -1 / 6, 1 / 5, -1 / 4, 1 / 3):
        sum_ *= z
        sum_ += term
    sum_ *= z * z
    sum_ *= z
    return sum_


def _log_of_any(x: Floats, low: Floats | None) -> Pair:
    """As `_log`, for any numbers: 0, infinities, subnormals, negative ones and nan too."""
    small = (x > 0) & (x < _NORMAL)
    good = (x >= _NORMAL) & (x < np.inf)
    lifted = np.where(good, x, 1.0)
    lifted[small] = x[small] * float(1 << _LIFT)
    logs = _log(lifted, None if low is None else np.where(good, low, 0.0))
    _, _, _, (two_head, two_tail) = _tables()
    down = np.where(small, -float(_LIFT), 0.0)
    high, error = two_sum(logs.high, down * two_head)
    correction = (logs.low + down * two_tail) + error
    total = high + correction
    ends = np.where(x == 0, -np.inf, np.where(x == np.inf, np.inf, np.nan))
    fine = small | good
    return Pair(
        np.where(fine, total, ends),
        np.where(fine, correction - (total - high), 0.0),
    )


@cache
def _tables() -> tuple[Floats, Floats, Floats, tuple[float, float]]:
    """For each piece r, and -ln r as a multiple of 2**-42 and a remainder; and ln 2 likewise.

    r is the nearest multiple of 2**-10 to one over the middle of the piece, but 1 in the pieces
    next to 1, where the series alone then gives the logarithm. Takes 20 ms, once.
    """
    context = decimal.Context(prec=50)

    def parts(value: decimal.Decimal) -> tuple[float, float]:
        head = context.multiply(value, decimal.Decimal(_GRID)).to_integral_value()
        head = context.divide(head, decimal.Decimal(_GRID))
        return float(head), float(context.subtract(value, head))

    first = np.int64(_LEAST) + (np.arange(_PIECES + 1, dtype=np.int64) << _INDEX_BITS)
    # Piece i is the bits (above >> 44) & 255, which count from 11/16.
    edges = first.view(np.float64)
    middles = (edges[:-1] + edges[1:]) / 2
    reciprocals = np.rint(1024 / middles) / 1024
    reciprocals[(edges[:-1] == 1) | (edges[1:] == 1)] = 1.0
    logs = [parts(-context.ln(decimal.Decimal(r))) for r in reciprocals.tolist()]
    heads, tails = (np.array(column) for column in zip(*logs, strict=True))
    return reciprocals, heads + 0.0, tails + 0.0, parts(context.ln(decimal.Decimal(2)))


_DIGITS: Final = 60  # two counts below 2**63 may have logarithms that agree in 19 of them


def mean_self_information(counts: Mapping[int, int], lists: int) -> float:
    """Σ m c log2(lists / c) / Σ m c over m items that c of the lists show; nan for no items.

    counts: c -> m, with 0 < c <= lists. `decimal` rounds logarithms correctly, so the value is
    correctly rounded too (but for ties, which no known input gives). A count of all lists gives 0
    exactly.

    >>> mean_self_information({1: 2, 2: 1}, 4)  # (1·2 + 1·2 + 2·1) / 4
    1.5
    """
    shown = sum(count * items for count, items in counts.items())
    if not shown:
        return math.nan
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        whole = decimal.Decimal(lists).ln()
        nats = decimal.Decimal(0)
        for count, items in sorted(counts.items()):
            nats += count * items * (whole - decimal.Decimal(count).ln())
        return float(nats / (shown * decimal.Decimal(2).ln()))


_SURE: Final = Fraction(1, 1 << 60)  # above the relative error of a root by `log`


def geometric_mean(values: Sequence[Fraction]) -> float:
    """The n-th root of the product of n fractions in [0, 1], as the nearest float; nan of none.

    By `log`, unless a float's neighbour could be as near; then by `decimal`. (A root half-way
    between two floats is one of the two.)

    >>> geometric_mean([Fraction(1, 2), Fraction(2, 9)]), geometric_mean([])
    (0.3333333333333333, nan)
    """
    n = len(values)
    if not n or 0 in values:
        return 0.0 if n else math.nan
    high = [float(value) for value in values]
    low = [float(v - Fraction(h)) for v, h in zip(values, high, strict=True)]
    logs = log(np.array(high), np.array(low))
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        mean = total(Pair(-logs.high, -logs.low)) / n
        near = Fraction((-decimal.Decimal(mean.numerator) / mean.denominator).exp())
        least, most = float(near * (1 - _SURE)), float(min(near * (1 + _SURE), Fraction(1)))
        if least == most:
            return most
        exact = (decimal.Decimal(v.numerator) / v.denominator for v in values)
        return float((sum((v.ln() for v in exact), decimal.Decimal(0)) / n).exp())
