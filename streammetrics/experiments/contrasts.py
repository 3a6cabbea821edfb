"""The contrast of one treatment on one metric, from the arms of all epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from streammetrics.experiments.arms import UNITS, Arm, Arms
from streammetrics.experiments.confidence_sequence import ConfidenceSequence, Guardrail
from streammetrics.experiments.contrast import Contrast, Names
from streammetrics.experiments.difference import compared
from streammetrics.experiments.one_look import Anytime
from streammetrics.experiments.plan import Plan, Safeguard
from streammetrics.experiments.strata import epoch_strata
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.present.view import NONE


def contrast_of(
    plan: Plan,
    watched: str,
    metric: str,
    view: str,
    treatment: str,
    arms: Mapping[str, tuple[Arm, Arm]],
    units: Mapping[str, int],
    guardrail: Safeguard | None = None,
    decides: bool = False,
) -> Contrast:
    """The contrast of one treatment on one metric. arms, units: as in `epoch_strata`. guardrail:
    of the plan, if the contrast is of one; decides: whether the plan decides by its view as well.
    """
    pair = epoch_strata(arms, units)
    assert pair is not None
    successes = _successes(plan, treatment, pair, arms)
    names = Names(
        watched=watched,
        metric=metric,
        view=view,
        control=plan.control,
        treatment=treatment,
        decides=decides,
    )
    variants = plan.control, treatment
    comparison = compared(pair, plan.level, successes=successes, names=variants)
    comparison = replace(comparison, both=replace(comparison.both, view=view))
    safeguard = guardrail
    horizon = plan.horizon_of(watched, treatment)
    alpha = plan.alpha_of(safeguard)
    default = next(
        (arm.traits.direction for arm in (pair.treatment, pair.control) if arm.counts.rows), NONE
    )
    direction_of = plan.direction_of if safeguard else plan.direction_of_decision
    direction = direction_of(watched, metric, view, default)
    if safeguard is not None:
        safeguard = replace(safeguard, higher_is_better=direction.better != "lower")
    is_of_units = any(arm.counts.unit == UNITS for arm in (pair.control, pair.treatment))
    so_far = plan.unit_view == "so_far" and is_of_units
    sequence = ConfidenceSequence(alpha=alpha, horizon=horizon)
    if so_far:  # whatever was planned of final values
        sequence = ConfidenceSequence(alpha=alpha, kind="growing")
    contrast = Contrast(
        names=names,
        comparison=comparison,
        anytime=sequence.at(comparison),
        alpha=alpha,
        direction=direction,
        pair=pair,
        horizon=horizon,
        so_far=so_far,
    )
    if safeguard is None:
        return contrast
    rail = Guardrail(
        margin=safeguard.margin,
        horizon=None if so_far else horizon,
        kind="growing" if so_far else "asymptotic",
        higher_is_better=safeguard.higher_is_better is not False,
        alpha=alpha,
    )
    guarded, anytime = rail.at(comparison), contrast.anytime
    ends = (
        (guarded.bound, anytime.upper)
        if safeguard.higher_is_better
        else (anytime.lower, guarded.bound)
    )
    reading = Anytime(*ends, guarded.log_e, guarded.gated, guarded.reason)
    return replace(contrast, anytime=reading, safeguard=safeguard, guarded=guarded)


def _successes(
    plan: Plan, treatment: str, pair: Arms, arms: Mapping[str, tuple[Arm, Arm]]
) -> tuple[Successes, ...] | None:
    """The successes of a rate of independent rows, with the planned share, by epoch, or the rows
    that each variant won; else None."""
    successes = []
    for epoch in pair.used:
        sides = arms[epoch][1].sides
        if sides is not None and arms[epoch][0].known:
            successes.append(sides)
            continue
        weights, (a, b) = plan.weights(epoch), arms[epoch]
        control, treated = Fraction(weights[plan.control]), Fraction(weights[treatment])
        if a.counts.share is None or b.counts.share is None or not (control and treated):
            return None
        successes.append(
            Successes(a.counts.share[0], b.counts.share[0], treated / (control + treated))
        )
    return tuple(successes) or None
