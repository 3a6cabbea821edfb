"""How many more units would show a difference of the declared size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from streammetrics.experiments.contrast import Contrast
from streammetrics.kernels.inference.normal_mixture import as_t, multiplier, tuned
from streammetrics.kernels.inference.tails import normal_isf
from streammetrics.present.numerals import declared, rounded_text

_STEPS: Final = 60  # four are usual
_EXACT: Final = 1e-3
_MOST_UNITS: Final = 1e12  # more units than any experiment has


@dataclass(frozen=True, slots=True)
class MoreUnits:
    """The additional units that show a difference of the declared size.

    size: the declared absolute difference. more: units of both arms together, in addition to those
    counted, with which one look shows a true difference of that size with probability `power`; 0
    if there are enough. units: whether `more` is in units, else in rows. power: as declared.
    excluded: whether differences of this size and more are excluded.
    """

    size: float
    more: float
    units: bool
    power: float
    excluded: bool = False


def more_units(contrast: Contrast, lower: float, upper: float) -> MoreUnits | None:
    """The additional units, or None if the plan declares no size or the standard error is unknown.

    lower, upper: of the always-valid interval.

    Information v = 1 / V grows in proportion to the units if future units are like past ones. A
    true difference d is shown with this power once d √v = c(v) + z_power, c the multiplier.
    """
    size, v_opt, comparison = contrast.horizon.mde, contrast.horizon.v_opt, contrast.comparison
    error, df, pair = comparison.anytime_error, comparison.anytime_df, contrast.pair
    if size is None or v_opt is None or pair is None or not 0 < error < math.inf:
        return None
    counted = contrast.units or pair.control.counts.rows + pair.treatment.counts.rows
    power = contrast.horizon.power
    now = 1.0 / error / error
    needed = information_of_size(size, power, tuned(v_opt, contrast.alpha), contrast.alpha, df)
    extra_units = counted * (needed / now - 1.0)
    if not extra_units < _MOST_UNITS:
        return None
    excluded = -size < lower and upper < size
    return MoreUnits(size, max(0.0, extra_units), bool(contrast.units), power, excluded)


def information_of_size(size: float, power: float, rho: float, alpha: float, df: float) -> float:
    """The v with size √v = c(v) + z, by fixed-point iteration until it changes by less than 0.1 %:
    c hardly depends on v, and units are reported to two digits."""
    z, previous = normal_isf(1.0 - power), 0.0
    v = -2.0 * math.log(alpha) / (size * size)  # c is at least √(2 ln(1/α))
    for _ in range(_STEPS):
        if abs(v - previous) <= _EXACT * v or v == math.inf:
            break
        root = (as_t(multiplier(v, rho, alpha), df) + z) / size
        v, previous = root * root, v
    return v


def planned(more_units: MoreUnits) -> str:
    """A sentence on the planned size, for a difference that is not shown yet."""
    size = f"a difference of the planned size, {declared(more_units.size)},"
    if more_units.excluded:
        return f"{size.capitalize()} is excluded."
    likely = f"with a probability of {declared(100 * more_units.power)} %"
    if more_units.more:
        things = "units" if more_units.units else "rows"
        return f"About {rounded_text(more_units.more)} more {things} would show {size} {likely}."
    return f"{size.capitalize()} would have been shown by now {likely} or more."
