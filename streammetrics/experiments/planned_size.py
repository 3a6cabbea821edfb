"""How many more units would show a difference of the size that the plan declared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from streammetrics.experiments.contrast import Contrast
from streammetrics.kernels.gaussianised import as_t
from streammetrics.kernels.normal_mixture import multiplier, tuned
from streammetrics.kernels.tails import normal_isf

_STEPS: Final = 60  # four are usual
_EXACT: Final = 1e-3
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
    """The v with size √v = c(v) + z, by putting it in until it moves by less than a thousandth:
    c hardly depends on v, and units are said to two digits."""
    z, found = normal_isf(1.0 - power), 0.0
    v = -2.0 * math.log(alpha) / (size * size)  # c is at least √(2 ln(1/α))
    for _ in range(_STEPS):
        if abs(v - found) <= _EXACT * v or v == math.inf:
            break
        root = (as_t(multiplier(v, rho, alpha), df) + z) / size
        v, found = root * root, v
    return v
