"""RelaImpr = (a - 1/2) / (b - 1/2) - 1: how much further from chance one area is than another.

Yan et al. 2014, "Coupled Group Lasso for Web-Scale CTR Prediction in Display Advertising", ICML;
Zhou et al. 2018, "Deep Interest Network for Click-Through Rate Prediction", KDD, section 6.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from streammetrics.kernels.exact.fraction_mean import BITS, ExactArea, FractionMean, rounded
from streammetrics.kernels.exact.rounding import rounded_down, rounded_up


def improvement(measured: ExactArea, base: ExactArea) -> tuple[float, float, float]:
    """The value, correctly rounded, and its ends, rounded outwards.

    All are nan where an area is undefined or the base is 1/2. A base that may be 1/2 leaves the
    ends infinite.
    """
    if not (measured.defined and base.defined):
        return math.nan, math.nan, math.nan
    sides = {_side(end) for end in (base.low, base.high)}
    if sides == {0}:
        return math.nan, math.nan, math.nan
    value = math.nan
    if _side(base.value):
        value = rounded(_Improvement(measured.value, base.value))
    if not (measured.bounded or base.bounded):
        return value, value, value
    if len(sides) > 1 or 0 in sides:
        return value, -math.inf, math.inf
    # Monotone in each of the two, so that the extremes are at corners.
    corners = product((measured.low, measured.high), (base.low, base.high))
    bounds = [_Improvement(a, b) for a, b in corners]
    return (
        value,
        min(rounded(end, rounded_down) for end in bounds),
        max(rounded(end, rounded_up) for end in bounds),
    )


@dataclass(frozen=True, slots=True)
class _Improvement:
    """The rational number itself; `base` is not 1/2."""

    measured: FractionMean
    base: FractionMean

    def between(self, bits: int) -> list[tuple[int, int]]:
        bounds = self.base.between(bits)
        if _common_side(bounds) is None:
            return []
        return [_improved(a, b) for a, b in product(self.measured.between(bits), bounds)]

    def fraction(self) -> tuple[int, int]:
        return _improved(self.measured.fraction(), self.base.fraction())


def _improved(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    over, under = (2 * a[0] - a[1]) * b[1], (2 * b[0] - b[1]) * a[1]
    return (over - under, under) if under > 0 else (under - over, -under)


def _side(area: FractionMean) -> int:
    """1 where the area is above 1/2, 0 where it is 1/2, -1 where it is below."""
    for bits in BITS:
        side = _common_side(area.between(bits))
        if side is not None:
            return side
    numerator, denominator = area.fraction()
    return (2 * numerator > denominator) - (2 * numerator < denominator)


def _common_side(bounds: list[tuple[int, int]]) -> int | None:
    """The side of 1/2 that all of these are on, or None."""
    sides = {(2 * a > b) - (2 * a < b) for a, b in bounds}
    return sides.pop() if len(sides) == 1 else None
