"""What results say of areas: floats, or `Bounded` where scores or weights are not quite known."""

from __future__ import annotations

import math

from streammetrics.kernels.fraction_mean import ExactArea, rounded
from streammetrics.kernels.rela_impr import improvement
from streammetrics.kernels.rounding import rounded_down, rounded_up
from streammetrics.results.bounded import Bounded


def as_float(area: ExactArea) -> float | Bounded:
    """The area, correctly rounded, and its ends, rounded outwards; nan where it is undefined, and
    the value alone where only that is unknown."""
    if not area.defined:
        return Bounded(math.nan, math.nan, math.nan) if area.bounded else math.nan
    value = rounded(area.value) if area.value.total else math.nan
    if not area.bounded:
        return value
    return Bounded(value, rounded(area.low, rounded_down), rounded(area.high, rounded_up))


def relative(measured: ExactArea, base: ExactArea) -> float | Bounded:
    """RelaImpr of two areas."""
    value, low, high = improvement(measured, base)
    return Bounded(value, low, high) if measured.bounded or base.bounded else value
