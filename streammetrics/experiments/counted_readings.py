"""Readings from counts alone: of two rates by their events, of two quantiles by their ranks."""

from __future__ import annotations

import math
from typing import Final

from streammetrics.estimators.quantile_evidence import QuantileArms
from streammetrics.experiments.evidence import Evidence
from streammetrics.experiments.horizon import Horizon
from streammetrics.experiments.one_look import Anytime, Guarded
from streammetrics.kernels.inference.dirichlet_multinomial import log_e_of_successes, relative_rates
from streammetrics.kernels.inference.quantile_effect import (
    Sided,
    difference_of_quantiles,
    log_e_of_at_most,
    log_e_of_equality,
)

PRIOR: Final = 100.0  # the weight of the prior, in events
# Only lists that two variants drafted have users and successes. If each draft is random, a coin
# decides for whom a click counts, whoever clicks; another share of wins may depend on the user.
_SEVERAL: Final = "users may have several lists, for which only equal shares can be tested"


def reading_of_events(evidence: Evidence, alpha: float, prior: float = PRIOR) -> Anytime:
    """The interval of the treatment's rate divided by the control's, and the evidence."""
    if evidence.successes is None:
        hint = "compare rates of independent rows in an Experiment"
        return Anytime(reason=f"no events with planned shares: {hint}")
    log_e = log_e_of_successes(evidence.successes, prior)
    if evidence.groups is not None:
        return Anytime(log_e=log_e, reason=_SEVERAL)
    return Anytime(*relative_rates(evidence.successes, alpha, prior), log_e)


def evidence_of_events(evidence: Evidence, prior: float) -> float:
    """The evidence of the events alone, which needs no burn-in, of a rate of independent rows
    with planned shares; 0 for others."""
    if evidence.successes is None or evidence.kind != "rate" or evidence.groups is not None:
        return 0.0
    return log_e_of_successes(evidence.successes, prior)


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
