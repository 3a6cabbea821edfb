"""1/log2(rank + 1) and what a grade gains, the same bits on every machine."""

from __future__ import annotations

import decimal
from math import isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.growing import Growing

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


# 1/log2(i + 2) for i = 0, 1, ..., as the sum of two tables: the upper one holds multiples of
# 2**-30, the lower one what is left in multiples of 2**-60. So sums of whole gains times either
# are exact up to a total gain of 2**23, in any order, and a DCG is rounded once, however long the
# list. Made with `decimal`, because the last bit of `np.log2` depends on the processor; 128
# entries take 1 ms, 100,000 take 0.3 s, once.
discounts: Final = Growing(_discounts)
discount_totals: Final = Growing(_totals)  # the sums of the first i of them, in the same two parts
