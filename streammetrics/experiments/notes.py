"""The notes of a report: sentences on the whole experiment, and whether it can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streammetrics.combine.units import UnitsResult
from streammetrics.experiments.assignment import SampleRatioFound, in_several_variants, why_unknown
from streammetrics.experiments.plan import Plan
from streammetrics.present.numerals import joined, plain

if TYPE_CHECKING:
    from streammetrics.experiments.report import Outcome

DISTRUSTED: Final = "Not trustworthy: "
_LARGE_E: Final = 1e6  # above it the exact e-value does not matter


def notes_of(outcome: Outcome) -> list[str]:
    """Sentences on the sample ratio, units of several variants, epochs left out, guardrails that do
    not fit or have no direction, exposed units, independent rows, covariates and horizons."""
    plan, contrasts, srm = outcome.plan, outcome.contrasts, outcome.srm
    notes, mixed = [*outcome.same_rows], outcome.contamination
    if srm.reason:
        notes.append(f"The sample ratio is not checked: {srm.reason}.")
    elif srm.blocks:
        notes.append(why_distrusted(plan, srm, outcome.in_several))
    elif srm.alarm:
        notes.append(
            "Units are not split between the variants as planned "
            f"({evidence(srm)}). This was acknowledged: {srm.acknowledged.rstrip('.')}."
        )
    if srm.earlier:
        notes.append(
            "Units were not split as planned in an earlier epoch, whose rows still count: "
            f"{', '.join(srm.earlier)}."
        )
    if mixed is not None and mixed.units and not mixed.warning:
        clause = in_several_variants(mixed.units, estimated=mixed.estimated)
        dropped = " and dropped" if mixed.dropped else ""
        notes.append(f"{clause[0].upper()}{clause[1:]}{dropped}.")
    compared = [contrast.comparison for contrast in contrasts if contrast.comparison.epochs]
    left_out = sorted({epoch for comparison in compared for epoch in comparison.left_out})
    if left_out:
        names = ", ".join(epoch or "events without an epoch" for epoch in left_out)
        notes.append(
            "Epochs left out of a comparison, because an arm has too little data or no finite "
            f"estimate in them: {names}."
        )
    notes += outcome.not_watched
    notes += _exposed_unit_notes(outcome)
    undirected = dict.fromkeys(
        contrast.watched
        for contrast in contrasts
        if contrast.safeguard is not None
        and contrast.direction.better == "none"
        and contrast.comparison.n
    )
    if undirected:
        notes.append(
            f"No direction is declared for {joined(undirected)}: a fall is taken as harm. If a "
            "rise is, pass higher_is_better=False in the Safeguard."
        )
    comparisons = [
        contrast.comparison
        for contrast in contrasts
        if contrast.comparison.n and not contrast.is_of_units
    ]
    if any(comparison.groups is None for comparison in comparisons) or (
        not comparisons
        and plan.cluster == "none"
        and not any(contrast.is_of_units for contrast in contrasts)
    ):
        notes.append("Rows are taken as independent, which is right only if no unit has several.")
    notes += [
        f"{name} is adjusted for the pre-exposure covariate {covariate.metric}, with the slope "
        f"{covariate.theta:.6g} (CUPED)."
        for name, covariate in plan.covariates.items()
    ]
    unfit = dict.fromkeys(
        contrast.watched
        for contrast in contrasts
        if contrast.comparison.kind not in ("rate", "quantile")
        and contrast.comparison.least_count  # without rows the kind is unknown
        and plan.is_for_rates(contrast.watched)
    )
    if unfit:
        notes.append(
            "The horizon is that of an unweighted rate, which does not fit "
            f"{joined(unfit)}: the always-valid interval may be far wider than necessary. Before "
            "the data, declare the least effect that matters: mdes in a config, horizons in a Plan."
        )
    return notes


def _exposed_unit_notes(outcome: Outcome) -> list[str]:
    """Of which exposed units the means and rates of units are, and what that leaves open."""
    names = dict.fromkeys(
        contrast.watched for contrast in outcome.contrasts if contrast.counts_units
    )
    if not names or outcome.plan.unit_view == "seen":
        return []
    if outcome.plan.unit_view == "closed":
        return [
            f"{joined(names)}: of the units whose window after the exposure is over, each with its "
            "final value; units that were exposed later are not compared yet."
        ]
    rails = any(
        contrast.safeguard is not None and contrast.safeguard.margin > 0
        for contrast in outcome.contrasts
        if contrast.so_far
    )
    return [
        f"{joined(names)}: of all exposed units, each with what it did so far. Where an arm only "
        "delays what units do, such an effect is not the final one."
        + " Harm is smaller so far than at the end: a guardrail that is kept may still break."
        * rails
    ]


def why_distrusted(plan: Plan, srm: SampleRatioFound, several: UnitsResult | None) -> str:
    """Why this experiment must not be trusted; "" if nothing is known against it."""
    if srm.blocks:
        return f"{DISTRUSTED}units are not split between the variants as planned ({evidence(srm)})."
    if plan.on_several_variants == "error" and several is not None and several.sampled:
        count = in_several_variants(several.units, estimated=several.share < 1)
        return f"{DISTRUSTED}{count}, and the plan allows none."
    why = why_unknown(several) if plan.on_several_variants == "drop" else ""
    if why:
        return f"{DISTRUSTED}the units to drop, seen in several variants, are not all known: {why}."
    return ""


def evidence(srm: SampleRatioFound) -> str:
    """The e-value of a sample-ratio alarm, and the units of its epoch."""

    def text(e: float) -> str:
        return f"above {plain(_LARGE_E)}" if e > _LARGE_E else plain(e)

    since = f" since {srm.epoch}" if srm.epoch and srm.counts != srm.epoch_counts else ""
    counts = ", ".join(f"{arm} {n:,}" for arm, n in srm.epoch_counts or srm.counts)
    clause = f"sample-ratio e-value {text(srm.greatest_e_value)}"
    if srm.log_e < srm.greatest:
        clause += f" at an earlier look, {text(srm.e_value)} now"
    return f"{clause}: {counts}{since}"
