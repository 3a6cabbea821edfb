"""What an experiment may conclude: findings with their sentences, and what to check first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streammetrics.combine.units import UnitsResult
from streammetrics.experiments.assignment import Contamination
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.monitor import Watched
from streammetrics.experiments.multiplicity import adjust_fdr, adjust_fwer
from streammetrics.experiments.numerals import plain
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.reasons import why_nothing
from streammetrics.experiments.recommendation import recommendation_of
from streammetrics.experiments.running import Reading, reading_of
from streammetrics.experiments.sample_ratio import SampleRatioFound
from streammetrics.experiments.sentence import contaminated, disbelief, sentence_of
from streammetrics.experiments.verdict import Recommendation, Verdict, has_faded, verdict_of
from streammetrics.results.direction import NONE, Direction
from streammetrics.results.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One contrast, read with all the looks at it.

    anytime_lower, anytime_upper, anytime_pvalue: of the looks together, or of this one where none
    was taken. e_value: of the last look. gated: before the burn-in; reason: why there is no
    always-valid interval, or "". verdict: one word, see `verdict.verdict_of`; direction: in which
    the metric is better; faded: that the last look alone says less than the looks together. holm:
    the anytime p-value, adjusted among the decisions; e_bh: whether e-BH rejects it among them;
    both None of guardrails, and where only some decisions were asked for. distrusted: that nothing
    of it is to be believed, whatever the numbers are. sentence: what may be concluded, or why it
    is distrusted.
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
    verdict: Verdict = "not_started"
    direction: Direction = NONE
    faded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Shown):
    """All findings of an experiment, decisions first, and what comes before them.

    recommendation: what to do now, by all of it together. contamination: the units seen in several
    variants beside all, None where units are not counted. notes: sentences of the whole: sample
    ratio, units seen in several variants where they are few, epochs left out, what is taken as
    independent, and metrics whose horizon is that of a rate though they are none.
    """

    name: str
    findings: tuple[Finding, ...]
    srm: SampleRatioFound
    in_several: UnitsResult | None
    notes: tuple[str, ...]
    recommendation: Recommendation
    contamination: Contamination | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is read of the states of an experiment; what was looked at so far comes to it."""

    plan: Plan
    contrasts: tuple[Contrast, ...]
    srm: SampleRatioFound
    in_several: UnitsResult | None
    contamination: Contamination | None = None

    def report(self, watched: Mapping[str, Watched] | None = None) -> Report:
        """It in words; watched: what the looks so far say, `Monitor.watched` by name."""
        return report_of(self, dict(watched or {}))


def report_of(found: Outcome, watched: Mapping[str, Watched]) -> Report:
    """The report; watched: what the looks at a contrast say together, by its name."""
    plan, contrasts = found.plan, found.contrasts
    decisions = [one for one in contrasts if one.safeguard is None]
    readings = {one.name: reading_of(one, watched.get(one.name)) for one in contrasts}
    e_values = {one.name: _e_value(one, watched.get(one.name)) for one in contrasts}
    family = decisions if {one.watched for one in decisions} == set(plan.decision) else ()
    holm = adjust_fwer({one.name: readings[one.name].pvalue for one in family})
    chosen = {one.name: e_values[one.name] for one in family}
    e_bh = adjust_fdr(e_values=chosen, alpha=1.0 - plan.level)
    against = disbelief(plan, found.srm, found.in_several)
    doubt = contaminated(found.contamination)
    findings = tuple(
        _finding(
            one,
            readings[one.name],
            against,
            doubt,
            e_value=e_values[one.name],
            holm=holm.get(one.name),
            e_bh=e_bh.get(one.name),
        )
        for one in contrasts
    )
    return Report(
        name=plan.name,
        findings=findings,
        srm=found.srm,
        in_several=found.in_several,
        notes=tuple(_notes(found)),
        recommendation=recommendation_of(
            plan, findings, against, doubt, stops=plan.on_several_variants != "drop"
        ),
        contamination=found.contamination,
    )


def _finding(
    contrast: Contrast,
    reading: Reading,
    against: str,
    doubt: str,
    *,
    e_value: float,
    holm: float | None,
    e_bh: bool | None,
) -> Finding:
    verdict, faded = verdict_of(contrast, reading, against), has_faded(contrast, reading)
    sentence = against or sentence_of(contrast, reading, verdict, faded)
    return Finding(
        contrast=contrast,
        anytime_lower=reading.lower,
        anytime_upper=reading.upper,
        anytime_pvalue=reading.pvalue,
        e_value=e_value,
        gated=reading.gated,
        reason=why_nothing(contrast, reading) if verdict == "not_started" else reading.reason,
        verdict=verdict,
        direction=contrast.direction,
        faded=faded,
        holm=holm,
        e_bh=e_bh,
        distrusted=verdict == "disbelieved",
        sentence=f"{sentence} {doubt}" if doubt and not against else sentence,
    )


def _e_value(contrast: Contrast, seen: Watched | None) -> float:
    latest = contrast.anytime if seen is None or seen.latest is None else seen.latest
    return latest.e_value


def _notes(found: Outcome) -> list[str]:
    plan, contrasts, srm = found.plan, found.contrasts, found.srm
    notes, mixed = [], found.contamination
    if srm.reason:
        notes.append(f"The sample ratio is not checked: {srm.reason}.")
    elif srm.alarm:
        notes.append(disbelief(plan, srm, found.in_several))
    if mixed is not None and mixed.units and not mixed.warning:
        dropped = ", and are dropped" if mixed.dropped else ""
        verb = "unit was" if mixed.units == 1 else "units were"
        notes.append(f"{plain(mixed.units, 6)} {verb} seen in several variants{dropped}.")
    compared = [one.comparison for one in contrasts if one.comparison.epochs]
    left_out = sorted({epoch for one in compared for epoch in one.left_out})
    if left_out:
        names = ", ".join(epoch or "of events without an epoch" for epoch in left_out)
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
