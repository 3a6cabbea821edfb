"""Figures: a value and the ends between which it must be, whatever is not known."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, TypeAlias

from streammetrics.kernels.rounding import rounded_down, rounded_up

# A value, and the ends between which it must be; all the same where nothing is unknown.
Figure: TypeAlias = tuple[float, float, float]

UNDEFINED: Final[Figure] = (math.nan, math.nan, math.nan)


def widened(
    figure: Figure, by: Fraction | int, least: Fraction | int = 0, most: Fraction | int = 1
) -> Figure:
    """A figure whose ends are so much further out, within the range of such figures.

    One that is undefined may be anything in that range, if it is defined at all.

    >>> widened((0.5, 0.5, 0.5), Fraction(1, 4))
    (0.5, 0.25, 0.75)
    """
    if not by:
        return figure
    value, low, high = figure
    if math.isnan(low):
        return value, float(least), float(most)
    down, up = max(Fraction(low) - by, Fraction(least)), min(Fraction(high) + by, Fraction(most))
    return (
        value,
        rounded_down(down.numerator, down.denominator),
        rounded_up(up.numerator, up.denominator),
    )
