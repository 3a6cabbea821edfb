"""Products and squares of doubles as Pairs that lose nothing, and times whole weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.double_double import Pair, two_product

Floats = NDArray[np.float64]

_LARGE: Final = 2.0**480
_EXACT: Final = 1 << 53  # integers up to this are floats


def product(a: Floats, b: Floats) -> Pair:
    """A times b, exactly; [n] each.

    Where the product is above the largest float it is infinite, and where it is below 2**-960 it
    is off by 2**-1073 at most, since floats end at 2**-1074.

    >>> high, low = product(np.array([0.1]), np.array([0.1]))
    >>> high[0], low[0]
    (np.float64(0.010000000000000002), np.float64(-8.326672684688674e-19))
    """
    if _moderate(a) and (b is a or _moderate(b)):
        return Pair(*two_product(a, b))
    (a_part, a_power), (b_part, b_power) = np.frexp(a), np.frexp(b)
    power = a_power + b_power
    with np.errstate(all="ignore"):  # of infinite numbers, which have no second half
        high, low = two_product(a_part, b_part)
        high, low = np.ldexp(high, power), np.ldexp(low, power)
    return Pair(high, np.where(np.isfinite(high), low, 0.0))


def squared(x: Pair) -> list[Floats]:
    """The square of x in parts [n] whose sum it is, exactly as far as `product` is.

    Parts that would all be 0 are left out, and an infinite square has no further parts, whatever
    the second half of x is there.
    """
    found = list(product(x.high, x.high))
    if x.low.any():
        fine = np.isfinite(found[0])
        high, low = np.where(fine, x.high, 0.0), np.where(fine, x.low, 0.0)
        found += product(2.0 * high, low)
        found += product(low, low)
    return [part for part in found if part.any()]


def weighted(parts: Iterable[Floats], units: NDArray[np.int64] | None) -> list[Floats]:
    """Each part [n] times the weights of the rows, at least 1, as further parts; None: 1 each.

    What `product` says of large and small products holds here too.
    """
    if units is None:
        return list(parts)
    if int(units.max(initial=0)) <= _EXACT:
        factors = [units.astype(np.float64)]
    else:
        low = units & 0xFFFFFFFF
        factors = [(units - low).astype(np.float64), low.astype(np.float64)]
    found: list[Floats] = []
    for part in parts:
        for factor in factors:
            # An infinite part is there in full in the first product.
            whole = part if factor is factors[0] else np.where(np.isfinite(part), part, 0.0)
            found += product(whole, factor)
    return [part for part in found if part.any()]


def _moderate(x: Floats) -> bool:
    return float(x.min(initial=0.0)) > -_LARGE and float(x.max(initial=0.0)) < _LARGE
