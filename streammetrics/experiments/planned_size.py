"""How many more units would show a difference of the size that the plan declared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from streammetrics.experiments.contrast import Contrast
from streammetrics.kernels.gaussianised import as_t
from streammetrics.kernels.normal_mixture import multiplier, tuned
from streammetrics.kernels.tails import normal_isf

_STEPS: Final = 200  # halvings: more than a float has digits
_MANY: Final = 1e12  # units that nobody waits for


@dataclass(frozen=True, slots=True)
class MoreUnits:
    """size: the declared difference, absolute. more: units of both arms together, beside those
    that were counted, with which one look shows a true difference of that size with probability
    `power`; 0 where there are enough. units: whether they are units, or rows. power: as declared.
    excluded: whether differences of this size and more are excluded.
    """

    size: float
    more: float
    units: bool
    power: float
    excluded: bool = False


def more_units(contrast: Contrast, lower: float, upper: float) -> MoreUnits | None:
    """None where the plan declares no size, or nothing is known of how fast information comes.

    lower, upper: of the always-valid interval.

    Information v = 1 / V grows with the units, as long as they come as they came. A true
    difference d is shown with this power once d √v = c(v) + z_power, c the multiplier.
    """
    size, v_opt, found = contrast.horizon.mde, contrast.horizon.v_opt, contrast.comparison
    error, pair = found.std_error, contrast.pair
    if size is None or v_opt is None or pair is None or not 0 < error < math.inf:
        return None
    counted = contrast.units or pair.control.rows + pair.treatment.rows
    power = contrast.horizon.power
    now = 1.0 / error / error
    needed = _information(size, power, tuned(v_opt, contrast.alpha), contrast.alpha, found.df)
    more = counted * (needed / now - 1.0)
    if not more < _MANY:
        return None
    excluded = -size < lower and upper < size
    return MoreUnits(size, max(0.0, more), bool(contrast.units), power, excluded)


def _information(size: float, power: float, rho: float, alpha: float, df: float) -> float:
    """The least v with size √v >= c(v) + z; by halving, since the difference of both sides rises
    from where it is 0."""
    z = normal_isf(1.0 - power)

    def enough(v: float) -> bool:
        return size * math.sqrt(v) >= as_t(multiplier(v, rho, alpha), df) + z

    high = rho
    while not enough(high):
        high *= 2.0
        if high == math.inf:
            return math.inf
    low = high / 2.0
    while enough(low) and low > 0:
        low /= 2.0
    for _ in range(_STEPS):
        middle = low + (high - low) / 2.0
        if middle in (low, high):
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
