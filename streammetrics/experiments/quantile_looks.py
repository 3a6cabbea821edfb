"""Two arms of a quantile at all looks together: their difference, and a guardrail of it."""

from __future__ import annotations

import math

from streammetrics.estimators.quantile_evidence import QuantileArms
from streammetrics.experiments.horizon import Horizon
from streammetrics.experiments.one_look import Anytime, Guarded
from streammetrics.kernels.inference.quantile_effect import (
    Sided,
    difference_of_quantiles,
    log_e_of_at_most,
    log_e_of_equality,
)


def anytime_of_quantiles(arms: QuantileArms, horizon: Horizon, alpha: float) -> Anytime:
    """The always-valid reading of treatment - control."""
    control, treatment = _evidence(arms, horizon, alpha)
    lower, upper = difference_of_quantiles(control, treatment, -math.log(alpha))
    return Anytime(lower, upper, log_e_of_equality(control, treatment))


def guarded_of_quantiles(
    arms: QuantileArms, horizon: Horizon, alpha: float, margin: float, higher_is_better: bool
) -> Guarded:
    """The verdict of a guardrail: the bound on the side of harm, and the evidence against harm by
    the margin or more."""
    control, treatment = _evidence(arms, horizon, alpha)
    if not higher_is_better:  # the same of the opposite values
        control, treatment = control.mirrored(), treatment.mirrored()
    worst = difference_of_quantiles(control, treatment, -math.log(alpha))[0]
    evidence = log_e_of_at_most(control, treatment, -margin)
    bound = worst if higher_is_better else -worst
    return Guarded(bound, worst > -margin, evidence)


def _evidence(arms: QuantileArms, horizon: Horizon, alpha: float) -> tuple[Sided, Sided]:
    planned = horizon.planned_rows
    assert planned is not None
    a, b = (
        arm.evidence(rows, horizon.deff, alpha) for arm, rows in zip(arms, planned, strict=True)
    )
    return a, b
