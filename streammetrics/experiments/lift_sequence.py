"""The lift of a treatment over the control, at all looks together.

For each ratio r the difference treatment - r · control has a confidence sequence of its own, on
the clock v = 1 / (V_t + r² V_c). The lifts r - 1 whose sequence holds 0 are an interval that holds
the true lift at all looks together. Its ends are Fieller's at the multiplier that belongs to them,
and are found by putting one into the other.
"""

from __future__ import annotations

import math
from typing import Final

from streammetrics.experiments.arm import Arm
from streammetrics.experiments.contrast import Contrast
from streammetrics.kernels.gaussianised import as_t
from streammetrics.kernels.lift import fieller_ends
from streammetrics.kernels.normal_mixture import multiplier, tuned
from streammetrics.kernels.t_interval import EVERYTHING, Ends, welch_df

_STEPS: Final = 60


def anytime_lift(contrast: Contrast) -> Ends:
    """The always-valid interval of treatment / control - 1; infinite where there is none."""
    pair, v_opt = contrast.pair, contrast.horizon.v_opt
    if pair is None or v_opt is None or contrast.anytime.gated or contrast.safeguard is not None:
        return EVERYTHING
    if contrast.comparison.resolution:
        return EVERYTHING
    return lift_ends(pair.control, pair.treatment, v_opt, contrast.alpha)


def lift_ends(control: Arm, treatment: Arm, v_opt: float, alpha: float) -> Ends:
    """Of two independent arms, with v_opt of their difference; the last step for each end."""
    rho = tuned(v_opt, alpha)
    return _end(control, treatment, rho, alpha, 0), _end(control, treatment, rho, alpha, 1)


def _end(a: Arm, b: Arm, rho: float, alpha: float, side: int) -> float:
    ratio, found = 1.0, EVERYTHING[side]
    for _ in range(_STEPS):
        scaled = ratio * ratio * a.variance
        variance, df = scaled + b.variance, welch_df(scaled, a.df, b.variance, b.df)
        if not variance > 0:
            return EVERYTHING[side]
        q = as_t(multiplier(1.0 / variance, rho, alpha), df)
        following = fieller_ends(a.estimate, a.variance, b.estimate, b.variance, q)[side]
        if not math.isfinite(following):
            return EVERYTHING[side]
        if following == found:
            break
        found, ratio = following, 1.0 + following
    return found
