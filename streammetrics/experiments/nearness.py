"""Which of two arms is nearer to a target, where that is certain at all looks together.

Near is meant on the logarithmic scale, |ln(value / target)|, so that a ratio and its reciprocal
agree on it: predicted over observed clicks and observed over predicted ones have the target 1. Of
the target 0 it is |value|. Each arm has a confidence sequence of its own at half of alpha; that
both hold has a probability of 1 - alpha.
"""

from __future__ import annotations

import math

from streammetrics.experiments.arm import Arm
from streammetrics.experiments.contrast import Contrast
from streammetrics.kernels.gaussianised import as_t
from streammetrics.kernels.normal_mixture import multiplier, tuned

Ends = tuple[float, float]


def treatment_is_nearer(contrast: Contrast) -> bool | None:
    """Whether the treatment is nearer to the target than the control; None where nobody knows."""
    pair, target, v_opt = contrast.pair, contrast.direction.target, contrast.horizon.v_opt
    if pair is None or target is None or v_opt is None:
        return None
    # Each of two arms that are known equally well has twice the information of their difference.
    control, treatment = (
        distances(arm, target, 2.0 * v_opt, contrast.alpha / 2.0)
        for arm in (pair.control, pair.treatment)
    )
    if treatment[1] < control[0]:
        return True
    return False if control[1] < treatment[0] else None


def distances(arm: Arm, target: float, v_opt: float, alpha: float) -> Ends:
    """The least and the greatest distance of an arm from its target that is not excluded."""
    value, error = arm.estimate, math.sqrt(arm.variance) if arm.variance > 0 else math.nan
    value, resolution = value - (0.0 if target else target), arm.resolution
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
    reach = as_t(multiplier(information, tuned(v_opt, alpha), alpha), arm.df) * error + resolution
    if not reach < math.inf:
        return 0.0, math.inf
    return max(0.0, abs(value) - reach), abs(value) + reach
