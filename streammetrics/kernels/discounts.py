"""Tables that ranking measures look ranks and grades up in, the same bits on every machine."""

from __future__ import annotations

import decimal
from math import isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_GRADE: Final = 15
GAINS: Final[dict[str, NDArray[np.int64]]] = {
    "exponential": (1 << np.arange(MAX_GRADE + 1, dtype=np.int64)) - 1,
    "linear": np.arange(MAX_GRADE + 1, dtype=np.int64),
}

_SHORTEST: Final = 128  # entries; a first table of these takes 1 ms
_DIGITS: Final = 30  # binary digits of each of the two parts of a discount
_Pair = tuple[Floats, Floats]
_discounts: _Pair = (np.empty(0), np.empty(0))
_totals: _Pair = (np.zeros(1), np.zeros(1))
_reciprocals: _Pair = (np.empty(0), np.empty(0))


def discounts(n: int) -> tuple[Floats, Floats]:
    """1/log2(i + 2) for i = 0, 1, ..., at least `n` of them, as the sum of two tables.

    The upper table holds multiples of 2**-30, the lower one what is left in multiples of 2**-60.
    So sums of whole gains times either are exact up to a total gain of 2**23, in any order, and
    a DCG is rounded once, however long the list. Made with `decimal`, because the last bit of
    `np.log2` depends on the processor; they grow on demand, 100,000 entries in 0.3 s, once.

    >>> upper, lower = discounts(3)
    >>> (upper + lower)[:3].tolist()
    [1.0, 0.6309297535714574, 0.5]
    """
    global _discounts
    tables = _discounts
    if len(tables[0]) < n:
        upper, lower = _discount_tables(max(n, 2 * len(tables[0]), _SHORTEST))
        tables = _discounts = (_read_only(upper), _read_only(lower))
    return tables


def discount_totals(n: int) -> tuple[Floats, Floats]:
    """The sums of the first i discounts for i = 0, 1, ..., at least `n`, in the same two parts."""
    global _totals
    tables = _totals
    if len(tables[0]) <= n:
        upper, lower = (np.concatenate([[0.0], np.add.accumulate(table)]) for table in discounts(n))
        tables = _totals = (_read_only(upper), _read_only(lower))
    return tables


def reciprocals(n: int) -> tuple[Floats, Floats]:
    """1/(i + 1) for i = 0, 1, ..., at least `n`, as a double and what it leaves out.

    The two together hold 106 bits, so that a mean of reciprocal ranks is the correctly rounded
    one.

    >>> high, low = reciprocals(3)
    >>> high[2], low[2]
    (np.float64(0.3333333333333333), np.float64(1.850371707708594e-17))
    """
    global _reciprocals
    table = _reciprocals
    if len(table[0]) < n:
        whole = np.arange(1, max(n, 2 * len(table[0]), _SHORTEST) + 1, dtype=np.float64)
        high, low = quotients(np.ones_like(whole), whole)
        table = _reciprocals = (_read_only(high), _read_only(low))
    return table


def quotients(above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """above/below for whole numbers under 2**26, as a double and what it leaves out.

    Veltkamp splits the quotient into two parts of 26 bits, so that both products with `below`
    are exact and so is the remainder (Dekker 1971, Numer. Math. 18, 224-242).
    """
    high = above / below
    big = high * 134217729.0  # 2**27 + 1
    head = big - (big - high)
    remainder = (above - head * below) - (high - head) * below
    return high, remainder / below


def _discount_tables(n: int) -> _Pair:
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


def _read_only(table: Floats) -> Floats:
    table.flags.writeable = False
    return table
