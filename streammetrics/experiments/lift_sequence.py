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
from streammetrics.kernels.t_interval import EVERYTHING, welch_df

_STEPS: Final = 60  # three are usual
_EXACT: Final = 1e-6


def anytime_lift(contrast: Contrast, side: int) -> float:
    """The lower (side 0) or upper (side 1) end of the always-valid interval of treatment / control
    - 1; infinite where there is none."""
    pair, v_opt = contrast.pair, contrast.horizon.v_opt
    if pair is None or v_opt is None or contrast.anytime.gated or contrast.safeguard is not None:
        return EVERYTHING[side]
    if contrast.comparison.resolution:
        return EVERYTHING[side]
    return _end(pair.control, pair.treatment, tuned(v_opt, contrast.alpha), contrast.alpha, side)


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
        near = abs(following - found) <= _EXACT * (1.0 + abs(following))
        found, ratio = following, 1.0 + following
        if near:
            break
    return found
