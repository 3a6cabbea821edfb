"""The lift at all looks together, and which arm is nearer to a target."""

from __future__ import annotations

import math
from typing import Final

from streammetrics.experiments.arms import Arm, Arms
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.spread import not_surer, spread_of
from streammetrics.kernels.inference.normal_mixture import as_t, multiplier, tuned
from streammetrics.kernels.inference.t_interval import EVERYTHING, fieller_bounds

_STEPS: Final = 60  # three are usual
_EXACT: Final = 1e-6


def anytime_lift(contrast: Contrast, side: int) -> float:
    """The lower (side 0) or upper (side 1) end of the always-valid interval of treatment / control
    - 1; infinite if there is none."""
    pair, v_opt = contrast.pair, contrast.horizon.v_opt
    if pair is None or v_opt is None or contrast.anytime.gated or contrast.safeguard is not None:
        return EVERYTHING[side]
    if contrast.comparison.resolution or contrast.so_far:  # which has another clock
        return EVERYTHING[side]
    return _end(pair, tuned(v_opt, contrast.alpha), contrast.alpha, side)


def _end(pair: Arms, rho: float, alpha: float, side: int) -> float:
    a, b = pair.control.estimate, pair.treatment.estimate
    spread, farther = spread_of(pair), (min, max)[side]
    ratio, end = 1.0, EVERYTHING[side]
    for _ in range(_STEPS):
        variance = spread.variance(ratio)
        if not variance > 0:
            return EVERYTHING[side]
        q = as_t(multiplier(1.0 / variance, rho, alpha), spread.df(ratio))
        # Excluded is what each form of the variance excludes.
        following = farther(fieller_bounds(a, c, b, t, q)[side] for c, t in spread.parts)
        if not math.isfinite(following):
            return EVERYTHING[side]
        near = abs(following - end) <= _EXACT * (1.0 + abs(following))
        end, ratio = following, 1.0 + following
        if near:
            break
    return end


def treatment_is_nearer(contrast: Contrast) -> bool | None:
    """Whether the treatment is nearer to the target than the control; None if uncertain."""
    pair, target, v_opt = contrast.pair, contrast.direction.target, contrast.horizon.v_opt
    if pair is None or target is None or v_opt is None or contrast.so_far:
        return None
    # Each of two equally precise arms has twice the information of their difference.
    control, treatment = (
        distances(arm, target, 2.0 * v_opt, contrast.alpha / 2.0) for arm in not_surer(pair)
    )
    if treatment[1] < control[0]:
        return True
    return False if control[1] < treatment[0] else None


def distances(arm: Arm, target: float, v_opt: float, alpha: float) -> tuple[float, float]:
    """The least and the greatest distance of an arm from its target that are not excluded."""
    value, error = (
        arm.estimate,
        math.sqrt(arm.precision.variance) if arm.precision.variance > 0 else math.nan,
    )
    value, resolution = value - (0.0 if target else target), arm.precision.resolution
    if not (math.isfinite(value) and error > 0):
        return 0.0, math.inf
    if target:
        if not value / target > 0:
            return 0.0, math.inf
        value, error, resolution = (
            math.log(value / target),
            error / abs(value),
            resolution / abs(value),
        )
        v_opt *= target * target
    information = 1.0 / error / error
    reach = (
        as_t(multiplier(information, tuned(v_opt, alpha), alpha), arm.precision.df) * error
        + resolution
    )
    if not reach < math.inf:
        return 0.0, math.inf
    return max(0.0, abs(value) - reach), abs(value) + reach
