"""Products of doubles, also times whole weights, without rounding, of any size.

A product of two doubles has 106 bits, which lie anywhere between 2**-2148 and 2**2048 and so
beyond both ends of the floats; one of three has 159, between 2**-3222 and 2**3072. Products are
returned in parts. Each part has one of the `SCALES` of sums, and represents its value times that
power of two. The scale depends on the factors alone, so that sums of parts do not depend on the
other rows of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.exact_sums import SCALES
from streammetrics.core.parts.float_bits import two_product
from streammetrics.kernels.exact.double_double import Pair

Floats = NDArray[np.float64]

_POWER: Final = 960  # ordinary products are within 2**±960: the last of 106 bits is a float
_OF_THREE: Final = 900  # or above 2**-900: the last of 159 bits is one
_LARGE: Final = 2.0**480
_LEAST: Final = 2.0**-480
_LARGE_OF_THREE: Final = 2.0**300
_MOST_WEIGHTED: Final = 2.0**960  # times any weight it is below the largest float
_EXACT: Final = 1 << 53  # integers up to this are floats
_SHORT: Final = 1 << 26
_FIRST_HALF: Final = ~((1 << 27) - 1)  # sign, exponent and the first bits of a float64


def ordinary(x: Floats, factors: int = 2) -> bool:
    """Whether all products of two (or three) of these, and their remainders, are floats; x: [n].

    >>> ordinary(np.array([0.0, 1e-100, -1e100])), ordinary(np.array([1.0, 1e-200]))
    (True, False)
    """
    size = np.abs(x)
    most, least = (_LARGE, _LEAST) if factors == 2 else (_LARGE_OF_THREE, 1 / _LARGE_OF_THREE)
    if not float(size.max(initial=0.0)) < most:
        return False
    return float(size.min(initial=1.0)) >= least or not ((size < least) & (size > 0)).any()


def exact_parts(
    a: Floats,
    b: Floats | None,
    units: NDArray[np.int64] | None,
    *,
    far: bool,
    c: Floats | None = None,
) -> Iterator[tuple[int, Floats]]:
    """The exact products of a, b, c and the weights of rows: parts [n], with their index in SCALES.

    a, b, c: [n], finite; None: 1. units: [n], at least 1; None: 1 each. far: False if all of them
    are `ordinary`, which gives the same parts in less time, all at the first scale.

    >>> x = np.array([1e-200])
    >>> [(scale, part[0]) for scale, part in exact_parts(x, x, None, far=True)]
    [(1, np.float64(1.721847945638575e-39)), (1, np.float64(5.978794284674481e-56))]
    """
    factors = [factor for factor in (b, c) if factor is not None]
    if not far:
        for part in weighted(_times([a], factors), units):
            yield 0, part
        return
    (a, power), *splits = (np.frexp(factor) for factor in (a, *factors))
    for _, exponent in splits:
        power = power + exponent
    products = _times([a], [mantissa for mantissa, _ in splits])
    least = _POWER if c is None else _OF_THREE
    scale = (power < -least) + 2 * (power > _POWER)
    if c is not None:
        scale += 2 * ((power < -least + SCALES[1]) | (power > _POWER + SCALES[2]))
    of_each = [(i, scale == i) for i in range(len(SCALES))]
    for part in weighted(products, units):
        for i, mask in of_each:
            piece = part * mask
            if piece.any():
                yield i, np.ldexp(piece, power - SCALES[i])


def _times(parts: list[Floats], factors: Iterable[Floats]) -> list[Floats]:
    """The parts of a product after multiplication by each factor."""
    for factor in factors:
        parts = [half for part in parts for half in two_product(part, factor)]
    return parts


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
    products: list[Floats] = []
    for part in parts:
        if most <= _SHORT and _moderate(part):
            # Halves of 26 and 27 bits times 26 bits are floats: a third of the work of `product`.
            half = (part.view(np.int64) & _FIRST_HALF).view(np.float64)
            products += half * factors[0], (part - half) * factors[0]
            continue
        finite = np.isfinite(part)
        products.append(np.where(finite, 0.0, part))  # a factor may be 0, and infinity times 0 nan
        for factor in factors:
            products += product(np.where(finite, part, 0.0), factor)
    return [part for part in products if part.any()]


def weighted_values(
    values: Floats, units: NDArray[np.int64] | None
) -> Iterator[tuple[int, Floats]]:
    """Finite values [n] times the weights of rows, as in `weighted`, in parts for `add_parts`: a
    part is times 2 ** (32 limbs), since a large value times its weight may be above all floats.

    >>> [(limbs, part.tolist()) for limbs, part in weighted_values(np.array([3.0]), np.array([5]))]
    [(0, [15.0])]
    """
    large = np.abs(values) >= _MOST_WEIGHTED if units is not None else np.False_
    if large.any():
        for part in weighted([np.where(large, values * 2.0**-64, 0)], units):
            yield 2, part
        values = np.where(large, 0, values)
    for part in weighted([values], units):
        yield 0, part


def _moderate(x: Floats) -> bool:
    return float(x.min(initial=0.0)) > -_LARGE and float(x.max(initial=0.0)) < _LARGE
