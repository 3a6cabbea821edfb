"""Products of doubles, also times whole weights, without rounding, of any size.

A product of two doubles has 106 bits, which lie anywhere between 2**-2148 and 2**2048 and so
beyond both ends of the floats. Products are returned in parts. Each part has one of three `SCALES`,
and represents its value times that power of two. The scale depends on the factors alone, so that
sums of parts do not depend on the other rows of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import Pair, two_product

Floats = NDArray[np.float64]

SCALES: Final = (0, -1200, 1200)  # powers of two: ordinary, tiny, huge
_POWER: Final = 960  # ordinary products are within 2**±960: the last of 106 bits is a float
_LARGE: Final = 2.0**480
_LEAST: Final = 2.0**-480
_EXACT: Final = 1 << 53  # integers up to this are floats
_SHORT: Final = 1 << 26
_FIRST_HALF: Final = ~((1 << 27) - 1)  # sign, exponent and the first bits of a float64


def ordinary(x: Floats) -> bool:
    """Whether all products of two of these, and their remainders, are floats; x: [n].

    >>> ordinary(np.array([0.0, 1e-100, -1e100])), ordinary(np.array([1.0, 1e-200]))
    (True, False)
    """
    size = np.abs(x)
    if not float(size.max(initial=0.0)) < _LARGE:
        return False
    return float(size.min(initial=1.0)) >= _LEAST or not ((size < _LEAST) & (size > 0)).any()


def exact_parts(
    a: Floats, b: Floats | None, units: NDArray[np.int64] | None, *, far: bool
) -> Iterator[tuple[int, Floats]]:
    """The exact products of a, b and the weights of rows: parts [n], with their index in SCALES.

    a, b: [n], finite; b None: 1. units: [n], at least 1; None: 1 each. far: False if a and b are
    `ordinary`, which gives the same parts in less time, all at the first scale.

    >>> x = np.array([1e-200])
    >>> [(scale, part[0]) for scale, part in exact_parts(x, x, None, far=True)]
    [(1, np.float64(1.721847945638575e-39)), (1, np.float64(5.978794284674481e-56))]
    """
    if not far:
        for part in weighted([a] if b is None else two_product(a, b), units):
            yield 0, part
        return
    a, power = np.frexp(a)
    found: Iterable[Floats] = [a]
    if b is not None:
        b, more = np.frexp(b)
        power = power + more
        found = two_product(a, b)
    scale = (power < -_POWER) + 2 * (power > _POWER)
    of_each = [(i, scale == i) for i in range(len(SCALES))]
    for part in weighted(found, units):
        for i, here in of_each:
            some = part * here
            if some.any():
                yield i, np.ldexp(some, power - SCALES[i])


def of_scales(sums: Iterable[Fraction]) -> Fraction:
    """The total of the sums at each of the first SCALES.

    >>> of_scales([Fraction(1), Fraction(2**1200), Fraction(0)])
    Fraction(2, 1)
    """
    near, *far = sums  # others are rare
    return near + sum(x * Fraction(2) ** s for x, s in zip(far, SCALES[1:], strict=False) if x)


def product(a: Floats, b: Floats) -> Pair:
    """The product of a and b, [n] each; exact if it is 0 or from 2**-960 up to the largest float.

    It is infinite above that; smaller ones are exact as far as their bits are floats.

    >>> high, low = product(np.array([0.1]), np.array([0.1]))
    >>> high[0], low[0]
    (np.float64(0.010000000000000002), np.float64(-8.326672684688674e-19))
    """
    if _moderate(a) and (b is a or _moderate(b)):
        return Pair(*two_product(a, b))
    (a_part, a_power), (b_part, b_power) = np.frexp(a), np.frexp(b)
    power = a_power + b_power
    with np.errstate(all="ignore"):  # infinite numbers have no second half
        high, low = two_product(a_part, b_part)
        high, low = np.ldexp(high, power), np.ldexp(low, power)
    return Pair(high, np.where(np.isfinite(high), low, 0.0))


def weighted(parts: Iterable[Floats], units: NDArray[np.int64] | None) -> list[Floats]:
    """Each part [n] times the weights of the rows, at least 1, as further parts; None: 1 each.

    Exact, but infinite above the largest float; infinite parts stay infinite.
    """
    if units is None:
        return list(parts)
    most = int(units.max(initial=0))
    if most <= _EXACT:
        factors = [units.astype(np.float64)]
    else:
        low = units & 0xFFFFFFFF
        factors = [(units - low).astype(np.float64), low.astype(np.float64)]
    found: list[Floats] = []
    for part in parts:
        if most <= _SHORT and _moderate(part):
            # Halves of 26 and 27 bits times 26 bits are floats: a third of the work of `product`.
            half = (part.view(np.int64) & _FIRST_HALF).view(np.float64)
            found += half * factors[0], (part - half) * factors[0]
            continue
        for factor in factors:
            # The first product holds an infinite part in full.
            whole = part if factor is factors[0] else np.where(np.isfinite(part), part, 0.0)
            found += product(whole, factor)
    return [part for part in found if part.any()]


def _moderate(x: Floats) -> bool:
    return float(x.min(initial=0.0)) > -_LARGE and float(x.max(initial=0.0)) < _LARGE
