"""The conclusions of an experiment: findings in sentences, the recommendation and the notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from streammetrics.combine.units import UnitsResult
from streammetrics.core.conversion import refused
from streammetrics.experiments.assignment import (
    ALARM,
    Contamination,
    SampleRatioFound,
    with_days,
)
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.finding import Finding
from streammetrics.experiments.horizon import number_of_days
from streammetrics.experiments.monitor import (
    Reading,
    Watched,
    reading_of,
    reading_of_changing_effect,
)
from streammetrics.experiments.multiplicity import adjust_fdr, adjust_fwer
from streammetrics.experiments.notes import notes_of, why_distrusted
from streammetrics.experiments.one_look import SINCE, Anytime
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.reasons import implausible, why_not_started
from streammetrics.experiments.recommendation import Recommendation, recommendation_of
from streammetrics.experiments.sentence import rows_sentence, sentence_of
from streammetrics.experiments.since_decision import readings_since
from streammetrics.experiments.verdict import has_faded, verdict_of
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, rows_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Report(Shown):
    """All findings of an experiment, decisions first, with the checks of the whole experiment.

    recommendation: from all findings together. contamination: the units seen in several variants
    and their share of all, None if unknown. notes: sentences on the whole experiment: sample ratio,
    units seen in several variants if they are few, epochs left out, the assumption of independent
    rows, covariates, and metrics that are no rates but have the horizon of a rate.
    """

    estimates: ClassVar[bool] = True
    name: str
    findings: tuple[Finding, ...]
    srm: SampleRatioFound
    in_several: UnitsResult | None
    notes: tuple[str, ...]
    recommendation: Recommendation
    contamination: Contamination | None = None

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """A row for each effect, with its always-valid interval, whatever `level` is."""
        for finding in self.findings:
            yield from rows_of(finding, level=level)

    def _notes(self) -> Iterator[str]:
        yield self.recommendation.sentence
        yield from (finding.sentence for finding in self.findings)
        yield from self.notes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcome(Shown):
    """Everything read from the states of an experiment; `report` adds the looks so far."""

    estimates: ClassVar[bool] = True
    plan: Plan
    contrasts: tuple[Contrast, ...]
    srm: SampleRatioFound
    in_several: UnitsResult | None
    contamination: Contamination | None = None
    same_rows: tuple[str, ...] = ()  # what says that arms share their rows or users
    not_watched: tuple[str, ...] = ()  # guardrails that do not fit the rows

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        for contrast in self.contrasts:
            yield from rows_of(contrast, level=level)

    @property
    def alphas(self) -> dict[str, float]:
        """The names under which looks store its readings, each with its significance level."""
        levels = {contrast.name: contrast.alpha for contrast in self.contrasts}
        since = {contrast.name + SINCE: contrast.alpha for contrast in self.contrasts}
        return {**levels, **since, **ratio_alphas(self.srm)}

    def readings(self, last: Mapping[str, Anytime] | None = None) -> dict[str, Anytime]:
        """See `Experiment.readings`."""
        hint = "pass the readings of the look before, Monitor.last"
        _require(last, Anytime, "readings(last)", "an Anytime for each name", hint)
        before = last or {}
        readings = {contrast.name: contrast.anytime for contrast in self.contrasts}
        for contrast in self.contrasts:
            readings |= {} if contrast.so_far else readings_since(contrast, before)
        readings |= ratio_readings(self.srm, before)
        return readings

    def report(
        self, watched: Mapping[str, Watched] | None = None, *, days: float | None = None
    ) -> Report:
        """See `Experiment.report`."""
        hint = "pass {name: monitor.watched(...)} for the names of Outcome.alphas"
        _require(watched, Watched, "report(watched)", "a Watched for each name", hint)
        watched, days = watched or {}, number_of_days(days, "report(days)")
        plan, contrasts, srm = self.plan, self.contrasts, with_looks(self.srm, watched)
        decisions = [contrast for contrast in contrasts if contrast.safeguard is None]
        readings = {contrast.name: _reading(contrast, watched) for contrast in contrasts}
        family = (
            decisions if {contrast.watched for contrast in decisions} == set(plan.decision) else ()
        )
        holm = adjust_fwer({contrast.name: readings[contrast.name].pvalue for contrast in family})
        e_values = {
            contrast.name: contrast.e_value(readings[contrast.name].last) for contrast in family
        }
        e_bh = adjust_fdr(e_values=e_values, alpha=1.0 - plan.level)
        against = why_distrusted(plan, srm, self.in_several)
        warning = self.contamination.sentence if self.contamination else ""
        findings = tuple(
            _finding(
                contrast,
                readings[contrast.name],
                against,
                warning,
                holm.get(contrast.name),
                e_bh.get(contrast.name),
            )
            for contrast in contrasts
        )
        return Report(
            name=plan.name,
            findings=findings,
            srm=srm,
            in_several=self.in_several,
            notes=tuple(notes_of(replace(self, srm=srm))),
            recommendation=recommendation_of(
                plan,
                findings,
                against,
                warning,
                blocks=plan.on_several_variants != "drop",
                days=days,
            ),
            contamination=self.contamination,
        )


def _require(records: object, kind: type, where: str, expected: str, hint: str) -> None:
    """InputError for what is neither None nor records of this class by name."""
    values = records.values() if isinstance(records, Mapping) else [records]
    if records is not None and not all(isinstance(value, kind) for value in values):
        raise refused(where, expected, records, hint)


def _reading(contrast: Contrast, watched: Mapping[str, Watched]) -> Reading:
    watched_contrast = watched.get(contrast.name)
    if contrast.so_far:
        return reading_of_changing_effect(contrast.anytime, watched_contrast)
    return reading_of(contrast.anytime, watched_contrast, watched.get(contrast.name + SINCE))


def _finding(
    contrast: Contrast,
    reading: Reading,
    against: str,
    warning: str,
    holm: float | None,
    e_bh: bool | None,
) -> Finding:
    verdict, faded = verdict_of(contrast, reading, against), has_faded(contrast, reading)
    sentence = against or sentence_of(contrast, reading, verdict, faded)
    sentence += "" if against else rows_sentence(contrast, verdict)
    reason = "" if reading.known else reading.last.reason
    if verdict == "not_started":
        reason = why_not_started(contrast, reading)
    elif not reading.consistent:
        reason = "the always-valid intervals of the looks exclude one another"
    return Finding(
        contrast=contrast,
        reading=reading,
        reason=reason,
        verdict=verdict,
        faded=faded,
        check_logging="" if against else implausible(contrast, reading),
        holm=holm,
        e_bh=e_bh,
        sentence=f"{sentence} {warning}" if warning and not against else sentence,
    )


# The sample ratio in the looks: its readings, and the greatest of them, which the alarm keeps.
# Units that balance later do not take an alarm back, so each look stores the e-value, by epoch: an
# alarm ends with a new epoch. The e-value of the days is stored beside it and repeated by later
# looks, for a time when the days are not known any more because their windows were dropped.
RATIO: Final = "(sample ratio)"
BY_DAY: Final = "(sample ratio by day)"


def ratio_alphas(ratio: SampleRatioFound) -> dict[str, float]:
    """The names of its readings, with the probability of a false alarm."""
    return {_ratio_name(RATIO, ratio): 1.0 / ALARM, _ratio_name(BY_DAY, ratio): 1.0 / ALARM}


def ratio_readings(
    ratio: SampleRatioFound, last: Mapping[str, Anytime]
) -> Iterator[tuple[str, Anytime]]:
    """What a look stores; last: the readings of the look before."""
    if ratio.reason:
        return
    before = last.get(_ratio_name(BY_DAY, ratio))
    now = _with_days(ratio, before)
    yield _ratio_name(RATIO, ratio), Anytime(log_e=now.log_e)
    if now.by_day is not None:
        yield _ratio_name(BY_DAY, ratio), Anytime(log_e=now.by_day)


def with_looks(ratio: SampleRatioFound, watched: Mapping[str, Watched]) -> SampleRatioFound:
    """The sample ratio with the looks at it: the greatest e-value, and that of the days."""
    if ratio.reason:
        return ratio
    looks, days = watched.get(_ratio_name(RATIO, ratio)), watched.get(_ratio_name(BY_DAY, ratio))
    now = _with_days(ratio, None if days is None else days.latest)
    return now if looks is None else replace(now, greatest=max(now.greatest, looks.log_e))


def _with_days(ratio: SampleRatioFound, stored: Anytime | None) -> SampleRatioFound:
    if ratio.by_day is not None or stored is None or math.isnan(stored.log_e):
        return ratio
    return with_days(ratio, stored.log_e)


def _ratio_name(name: str, ratio: SampleRatioFound) -> str:
    return f"{name} {ratio.epoch}" if ratio.epoch else name
