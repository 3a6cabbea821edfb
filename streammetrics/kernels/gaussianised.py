"""A t-statistic as the normal one of the same tail, and back.

Where a variance comes from few groups, z = effect / standard error is a t-statistic. Sequential
formulas want a normal one, so z is moved to the same tail of the normal before them, and their
multiples of the standard error are moved back after them.
"""

from __future__ import annotations

import math
import sys

from streammetrics.kernels.tails import normal_isf, normal_sf, t_isf, t_sf


def gaussianised(z: float, df: float) -> float:
    """The z of the normal with the tail of z under Student's t; z itself where df is infinite.

    Its size is at most |z|. nan where df is not above 0. Past the smallest tail that a float
    holds the least z that is certain, about 38, stands for all.

    >>> round(gaussianised(2.364624251592785, 7.0), 9), gaussianised(-1.5, math.inf)
    (1.959963985, -1.5)
    """
    if df == math.inf or math.isnan(z) or z == 0:
        return z
    tail = t_sf(abs(z), df)
    moved = normal_isf(max(tail, sys.float_info.min)) if df > 0 else math.nan
    return math.copysign(min(moved, abs(z)), z) if moved == moved else math.nan


def as_t(c: float, df: float) -> float:
    """The multiple of a standard error of df degrees of freedom with the normal tail of c.

    The inverse of `gaussianised`: infinite where the tail is below what a float holds (c > 38),
    so that an interval is wider and never narrower. nan where df is not above 0.

    >>> round(as_t(1.9599639845400545, 7.0), 9), as_t(3.0, math.inf)
    (2.364624252, 3.0)
    """
    if df == math.inf or math.isnan(c) or c == 0:
        return c
    if not df > 0:
        return math.nan
    tail = normal_sf(abs(c))
    moved = t_isf(tail, df) if tail >= sys.float_info.min else math.inf
    return math.copysign(moved, c)
