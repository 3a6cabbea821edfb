"""Ratios of many numbers, each rounded once: the bits of `rounding`, side by side.

A quotient is computed with twice the digits of a double, and with a bound of its error. Where the
bound leaves open how to round, the number is marked, and the caller has to compute it exactly.
(Ziv 1991, ACM Trans. Math. Softw. 17, 410-423.)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.float_bits import two_product
from streammetrics.kernels.exact.double_double import Pair, two_sum

Floats = NDArray[np.float64]

_ERROR: Final = 2.0**-49  # exceeds the relative error of a correction


class Rounded(NamedTuple):
    """Numbers as floats [k]. sure: where these are certainly rounded right."""

    floats: Floats
    sure: NDArray[np.bool_]


class Quotients(NamedTuple):
    """Numbers as float + correction [k]; the latter may be off by `_ERROR` of itself."""

    near: Floats
    correction: Floats

    def nearest(self) -> Rounded:
        """The nearest floats."""
        less, larger_correction = (1.0 - _ERROR) * self.correction, (1.0 + _ERROR) * self.correction
        return Rounded(self.near + less, self.near + less == self.near + larger_correction)

    def rounded_down(self, slack: float) -> Rounded:
        """The greatest floats that are not above the numbers less `slack`, at least 0."""
        floats, remainder = two_sum(self.near, self.correction - slack)
        error = _ERROR * (np.abs(self.correction) + slack)
        below = np.where(remainder < 0, np.nextafter(floats, -np.inf), floats)
        return Rounded(np.where(below > 0, below, 0.0), np.abs(remainder) > error)

    def rounded_up(self, slack: float) -> Rounded:
        """The least floats that are not below the numbers plus `slack`, at most 1."""
        floats, remainder = two_sum(self.near, self.correction + slack)
        error = _ERROR * (np.abs(self.correction) + slack)
        above = np.where(remainder > 0, np.nextafter(floats, np.inf), floats)
        return Rounded(np.minimum(above, 1.0), np.abs(remainder) > error)


def quotients(above: Pair, below: Floats) -> Quotients:
    """Pairs over whole numbers from 1 to 2**53; the former are 0 or from 2**-300 to 2**300.

    >>> third = quotients(Pair(np.array([1.0]), np.array([0.0])), np.array([3.0]))
    >>> third.nearest().floats.tolist(), third.rounded_up(0.0).floats.tolist()
    ([0.3333333333333333], [0.33333333333333337])
    """
    near = above.high / below
    product, error = two_product(near, below)
    return Quotients(near, (((above.high - product) - error) + above.low) / below)


def share_bounds(
    least: NDArray[np.int64], most: NDArray[np.int64], below: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """`rounded_down` of least / below and `rounded_up` of most / below, of whole numbers of up to
    2**53 in size; below > 0.

    >>> low, high = share_bounds(*np.array([[1, 0], [1, 2], [3, 2]]))
    >>> low.tolist(), high.tolist()
    ([0.3333333333333333, 0.0], [0.33333333333333337, 1.0])
    """
    size = below.astype(np.float64)
    low, high = least / size, most / size
    over = _rest(least, low, size) < 0
    under = _rest(most, high, size) > 0
    return (
        np.where(over, np.nextafter(low, -np.inf), low),
        np.where(under, np.nextafter(high, np.inf), high),
    )


def _rest(above: NDArray[np.int64], near: Floats, below: Floats) -> Floats:
    """What `above` is more than near * below, exactly."""
    product, error = two_product(near, below)
    remainder: Floats = (above - product) - error
    return remainder
