"""What an experiment may conclude: findings with their sentences, and what to check first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streammetrics.combine.units import UnitsResult
from streammetrics.experiments.assignment import why_unknown
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.monitor import Watched
from streammetrics.experiments.multiplicity import adjust_fdr, adjust_fwer
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.sample_ratio import SampleRatioFound
from streammetrics.experiments.sentence import Reading, disbelief, sentence_of
from streammetrics.results.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One contrast, read with all the looks at it.

    anytime_lower, anytime_upper, anytime_pvalue: of the looks together, or of this one where none
    was taken. e_value: of the last look. gated: before the burn-in; reason: why there is no
    always-valid interval, or "". holm: the anytime p-value, adjusted among the decisions; e_bh:
    whether e-BH rejects it among them; both None of guardrails, and where only some decisions
    were asked for. distrusted: that nothing of it is to be
    believed, whatever the numbers are. sentence: what may be concluded, or why it is distrusted.
    """

    contrast: Contrast
    anytime_lower: float
    anytime_upper: float
    anytime_pvalue: float
    e_value: float
    gated: bool
    reason: str
    holm: float | None
    e_bh: bool | None
    distrusted: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Shown):
    """All findings of an experiment, decisions first, and what comes before them.

    notes: sentences of the whole: sample ratio, units seen in several variants, epochs left out,
    what is taken as independent, and metrics whose horizon is that of a rate though they are none.
    """

    name: str
    findings: tuple[Finding, ...]
    srm: SampleRatioFound
    in_several: UnitsResult | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is read of the states of an experiment; what was looked at so far comes to it."""

    plan: Plan
    contrasts: tuple[Contrast, ...]
    srm: SampleRatioFound
    in_several: UnitsResult | None

    def report(self, watched: Mapping[str, Watched] | None = None) -> Report:
        """It in words; watched: what the looks so far say, `Monitor.watched` by name."""
        return report_of(self.plan, self.contrasts, self.srm, self.in_several, dict(watched or {}))


def report_of(
    plan: Plan,
    contrasts: Sequence[Contrast],
    srm: SampleRatioFound,
    several: UnitsResult | None,
    watched: Mapping[str, Watched],
) -> Report:
    """The report; watched: what the looks at a contrast say together, by its name."""
    decisions = [one for one in contrasts if one.safeguard is None]
    readings = {one.name: _reading(one, watched.get(one.name)) for one in contrasts}
    e_values = {one.name: _e_value(one, watched.get(one.name)) for one in contrasts}
    family = decisions if {one.watched for one in decisions} == set(plan.decision) else ()
    holm = adjust_fwer({one.name: readings[one.name].pvalue for one in family})
    chosen = {one.name: e_values[one.name] for one in family}
    e_bh = adjust_fdr(e_values=chosen, alpha=1.0 - plan.level)
    against = disbelief(plan, srm, several)
    findings = tuple(
        Finding(
            contrast=one,
            anytime_lower=readings[one.name].lower,
            anytime_upper=readings[one.name].upper,
            anytime_pvalue=readings[one.name].pvalue,
            e_value=e_values[one.name],
            gated=readings[one.name].gated,
            reason=readings[one.name].reason,
            holm=holm.get(one.name),
            e_bh=e_bh.get(one.name),
            distrusted=bool(against) or not readings[one.name].consistent,
            sentence=sentence_of(plan, one, readings[one.name], against),
        )
        for one in contrasts
    )
    notes = tuple(_notes(plan, contrasts, srm, several))
    return Report(name=plan.name, findings=findings, srm=srm, in_several=several, notes=notes)


def _reading(contrast: Contrast, seen: Watched | None) -> Reading:
    if seen is None or seen.latest is None:
        now = contrast.anytime
        return Reading(
            lower=now.lower,
            upper=now.upper,
            pvalue=now.p_value,
            gated=now.gated,
            reason=now.reason,
            consistent=now.lower <= now.upper,
        )
    return Reading(
        lower=seen.lower,
        upper=seen.upper,
        pvalue=seen.p_value,
        gated=seen.latest.gated,
        reason=seen.latest.reason,
        consistent=seen.consistent,
    )


def _e_value(contrast: Contrast, seen: Watched | None) -> float:
    latest = contrast.anytime if seen is None or seen.latest is None else seen.latest
    return latest.e_value


def _notes(
    plan: Plan,
    contrasts: Sequence[Contrast],
    srm: SampleRatioFound,
    several: UnitsResult | None,
) -> list[str]:
    notes = []
    if srm.reason:
        notes.append(f"The sample ratio is not checked: {srm.reason}.")
    elif srm.alarm:
        notes.append(disbelief(plan, srm, several))
    if several is not None and several.sampled:
        drops = plan.on_several_variants == "drop" and not why_unknown(several)
        dropped = ", and are dropped" if drops else ""
        notes.append(f"{several.units:.6g} units were seen in several variants{dropped}.")
    left_out = sorted({epoch for one in contrasts for epoch in one.comparison.left_out})
    if left_out:
        names = ", ".join(epoch or "(unnamed)" for epoch in left_out)
        notes.append(f"Epochs left out of a comparison, as an arm has too little in them: {names}.")
    known = [one.comparison for one in contrasts if one.comparison.n]
    if any(one.groups is None for one in known) or (not known and plan.cluster == "none"):
        notes.append("Rows are taken as independent: right only if no unit has several.")
    notes += [
        f"{name} is adjusted for {one.metric}, known before the exposure: less "
        f"{one.theta:.6g} times it (CUPED)."
        for name, one in plan.covariates.items()
    ]
    unfit = dict.fromkeys(
        one.watched
        for one in contrasts
        if one.comparison.kind != "rate"
        and one.comparison.least_count  # without rows it is not known what it is
        and plan.is_for_rates(one.watched)
    )
    if unfit:
        notes.append(
            f"The horizon and baseline are those of a rate, which {', '.join(unfit)} is not: its "
            "always-valid interval may be far wider than it need be; before the data, declare the "
            "least effect on it that matters, in mdes of the config or horizons of a Plan."
        )
    return notes
