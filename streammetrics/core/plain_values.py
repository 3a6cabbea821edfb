"""Single values as people have them, numpy's scalars among them, as plain Python ones.

What is kept of them, in settings and in results, has one form, whoever gave it.
"""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from typing import Final, SupportsIndex

import numpy as np

FLOAT64: Final = "a number within the range of float64, and if whole one that it holds exactly"


def plain(value: object) -> object:
    """Integers, floats, bools and strings of numpy as Python's, exactly; all else as it is.

    Those of tuples and lists too. A longdouble is no float, and a time difference no integer.

    >>> plain(np.float32(0.5)), plain(np.int64(3)), plain((np.float64(1), 2))
    (0.5, 3, (1.0, 2))
    """
    if isinstance(value, np.generic):
        known = isinstance(value, (np.bool_, np.integer, np.floating, np.str_))
        return value.item() if known and not isinstance(value, np.timedelta64) else value
    if type(value) is tuple or type(value) is list:
        return type(value)(map(plain, value))
    return value


def whole(value: object) -> int | None:
    """A whole number of any integer type, or None for anything else; True is none.

    >>> whole(np.int64(3)), whole(3.0)
    (3, None)
    """
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several numbers
        return None


def exact(value: object) -> Fraction | None:
    """A finite number as the fraction that it is, or None for anything else; True is none.

    >>> exact(np.float32(0.5)), exact("1/2")
    (Fraction(1, 2), None)
    """
    found = plain(value)
    if isinstance(found, bool) or not isinstance(found, (int, float, Fraction, Decimal)):
        return None
    try:
        return Fraction(found)
    except (OverflowError, ValueError):  # infinite, or nan
        return None


def as_float(value: object) -> float | None:
    """A number as the nearest float, infinities included; None for what is no number, for nan,
    for an integer that no float is, and for a fraction past every float.

    >>> as_float(np.float32(0.5)), as_float(10**400), as_float(2**53 + 1)
    (0.5, None, None)
    """
    found = plain(value)
    if isinstance(found, bool) or not isinstance(found, (int, float, Fraction, Decimal)):
        return None
    try:
        number = float(found)
    except (OverflowError, ValueError):  # a Decimal may be a signalling nan
        return None
    if number != number or (isinstance(found, int) and int(number) != found):
        return None
    return number + 0.0  # -0.0 is 0.0
