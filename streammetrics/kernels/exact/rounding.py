"""Ratios of integers as floats, rounded once: to nearest, or to the side that keeps a bound."""

from __future__ import annotations

import math
import sys
from fractions import Fraction


def ratio(numerator: int | Fraction, denominator: int | Fraction) -> float:
    """The nearest float, infinite past the largest; nan where the denominator is 0.

    >>> ratio(1, 3), ratio(0, 0)
    (0.3333333333333333, nan)
    """
    if not denominator:
        return math.nan
    try:
        return numerator / denominator + 0.0  # not -0.0
    except OverflowError:
        return math.inf if (numerator < 0) == (denominator < 0) else -math.inf


def rounded_down(numerator: int, denominator: int) -> float:
    """The greatest float that is not above the ratio; denominator > 0."""
    try:
        nearest = numerator / denominator
    except OverflowError:
        return sys.float_info.max if numerator > 0 else -math.inf
    top, bottom = nearest.as_integer_ratio()
    over = top * denominator > numerator * bottom
    return math.nextafter(nearest, -math.inf) if over else nearest


def rounded_up(numerator: int, denominator: int) -> float:
    """The least float that is not below the ratio; denominator > 0."""
    return 0.0 - rounded_down(-numerator, denominator)  # not -0.0


def over_root(numerator: int, square: int) -> float:
    """A ratio to a root, numerator / √square: the nearest float; nan where the square is 0.

    >>> over_root(-3, 36), over_root(1, 2)
    (-0.5, 0.7071067811865476)
    """
    if not square:
        return math.nan
    top = numerator * numerator
    # Binary digits, so that the root below has 64 of them or more: more than a float holds.
    digits = max(0, 64 + (square.bit_length() - top.bit_length()) // 2 + 1)
    scaled = top << 2 * digits
    root = math.isqrt(scaled // square)
    # One digit more says whether anything was cut off, which is all that rounding asks.
    exact = root * root * square == scaled
    nearest = ratio(2 * root + (not exact), 1 << digits + 1)
    return -nearest if numerator < 0 else nearest
