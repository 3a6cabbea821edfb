"""How much information an experiment will have when it ends, said before it has any data.

A confidence sequence is narrow about one amount of information, and that amount is no function of
the data. It comes from the planned units, or from the least effect that matters.
"""

from __future__ import annotations

import math

from streammetrics.kernels.tails import normal_isf


def at_horizon(
    units: float, variance: float, *, treatment_share: float = 0.5, deff: float = 1.0
) -> float:
    """1 / (σ² deff (1/n_A + 1/n_B)) at `units` of both arms together.

    variance: σ² of one unit, p (1 - p) for a rate p; deff: the design effect, from an earlier
    period. nan where this is no amount: units, variance or deff not above 0, a share not between.

    >>> at_horizon(10_000, 0.25)
    10000.0
    """
    good = 0 < units < math.inf and 0 < variance < math.inf and 0 < deff < math.inf
    if not (good and 0 < treatment_share < 1):
        return math.nan
    return units * treatment_share * (1.0 - treatment_share) / (variance * deff)


def for_effect(effect: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The information at which a fixed two-sided test finds this effect with this power.

    ((z_{1-α/2} + z_power) / effect)². (Lachin 1981, Control. Clin. Trials 2, 93-113.) nan where
    the effect is 0 or not finite.

    >>> round(for_effect(0.01), 3)
    78488.797
    """
    if not 0 < abs(effect) < math.inf:
        return math.nan
    root = (normal_isf(alpha / 2) + normal_isf(1 - power)) / effect
    return root * root
