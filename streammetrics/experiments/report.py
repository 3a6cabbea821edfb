"""The conclusions of an experiment: findings in sentences, the recommendation and the notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from streammetrics.combine.units import UnitsResult
from streammetrics.experiments.assignment import (
    Contamination,
    SampleRatioFound,
)
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.monitor import Reading, Watched, reading_of
from streammetrics.experiments.multiplicity import adjust_fdr, adjust_fwer
from streammetrics.experiments.notes import notes_of
from streammetrics.experiments.one_look import Anytime
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.ratio_looks import (
    ratio_alphas,
    ratio_readings,
    with_looks,
)
from streammetrics.experiments.rows_per_unit import RowsPerUnit
from streammetrics.experiments.sentence import (
    DISTRUSTED,
    joined,
    more_units,
    on_rows,
    planned,
    sentence_of,
    why_distrusted,
)
from streammetrics.experiments.since_decision import SINCE, since_readings
from streammetrics.experiments.verdict import (
    Action,
    Recommendation,
    Verdict,
    cannot_start,
    has_faded,
    heavy_user,
    implausible,
    verdict_of,
    why_not_started,
)
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, rows_of
from streammetrics.present.view import NONE, Direction

# The recommendation, from all findings together.

_ORDER: Final[tuple[Action, ...]] = ("check_setup", "ship", "decide", "wait", "do_not_ship")
_VERBS: Final[dict[Action, tuple[str, str]]] = {  # for the only treatment, and for one of several
    "ship": ("Ship", "Ship {}"),
    "do_not_ship": ("Do not ship", "Do not ship {}"),
    "decide": ("Decide", "Decide on {}"),
    "wait": ("Wait", "Wait for {}"),
    "check_setup": ("Check the setup", "Check the setup of {}"),
}


@dataclass(frozen=True, slots=True)
class _Advice:
    """Advice on one treatment; reason: completes "Ship: ..."; after: sentences that follow."""

    action: Action
    reason: str
    of: tuple[Finding, ...] = ()
    after: str = ""


def recommendation_of(
    plan: Plan,
    findings: Sequence[Finding],
    against: str,
    warning: str,
    *,
    blocks: bool = True,
    days: float | None = None,
) -> Recommendation:
    """The recommendation. against: why nothing can be trusted, or ""; warning: on units of several
    variants, or ""; blocks: whether the warning prevents shipping; days: how long the experiment
    has run, None if unknown."""
    if against:
        why = f"Check the setup: {against.removeprefix(DISTRUSTED)}"
        return Recommendation("check_setup", why, (), plan.treatments)
    advices = {
        name: _unless_warned(
            _unless_odd(
                _unless_early(
                    _advice_on(
                        [
                            finding
                            for finding in findings
                            if finding.contrast.treatment_variant == name
                        ]
                    ),
                    plan.min_days,
                    days,
                )
            ),
            warning if blocks else "",
        )
        for name in plan.treatments
    }
    action = next(
        option for option in _ORDER if any(advice.action == option for advice in advices.values())
    )
    chosen = {name: advice for name, advice in advices.items() if advice.action == action}
    rest = {name: advice for name, advice in advices.items() if advice.action != action}
    sentences = [
        _sentence(name, advice, len(advices) == 1) for name, advice in {**chosen, **rest}.items()
    ]
    if warning and not any(warning[:-1] in sentence for sentence in sentences):
        sentences.append(warning)
    return Recommendation(
        action,
        " ".join(sentences),
        tuple(finding.contrast.name for advice in chosen.values() for finding in advice.of),
        tuple(chosen),
    )


def _unless_early(advice: _Advice, min_days: int | None, days: float | None) -> _Advice:
    """Nothing is decided before the planned days have passed."""
    early = min_days is not None and (days is None or days < min_days)
    if advice.action not in ("ship", "decide") or not early:
        return advice
    over = "it is unknown how many" if days is None else f"only {math.floor(max(0.0, days))}"
    why = f"{advice.reason}, but {over} of the planned {min_days} days are over"
    return replace(advice, action="wait", reason=why)


def _unless_odd(advice: _Advice) -> _Advice:
    """Nothing is decided for good on an effect that a fault of the logging explains more often."""
    odd = joined(dict.fromkeys(finding.check_logging for finding in advice.of))
    if not odd or advice.action == "check_setup":
        return advice
    if advice.action == "do_not_ship":
        return replace(advice, after=f"Check the logging first: {odd}. {advice.after}".rstrip())
    otherwise = f"Otherwise: {_VERBS[advice.action][0].lower()}, because {advice.reason}."
    return _Advice("check_setup", f"check the logging first, because {odd}", advice.of, otherwise)


def _unless_warned(advice: _Advice, warning: str) -> _Advice:
    """Nothing is shipped while more than a few units are in several variants."""
    if not warning or advice.action not in ("ship", "decide"):
        return advice
    otherwise = f"Otherwise: {_VERBS[advice.action][0].lower()}, because {advice.reason}."
    return _Advice("check_setup", warning.removesuffix("."), advice.of, otherwise)


def _sentence(name: str, advice: _Advice, is_only: bool) -> str:
    verb = _VERBS[advice.action][0 if is_only else 1].format(name)
    user = joined(dict.fromkeys(heavy_user(finding.contrast) for finding in advice.of))
    why = f"{user}; {advice.reason}" if user else advice.reason
    return " ".join(filter(None, (f"{verb}: {why}.", advice.after)))


def _advice_on(findings: Sequence[Finding]) -> _Advice:
    """The advice on one treatment: the first action that has a reason."""
    decisions = [finding for finding in findings if finding.contrast.safeguard is None]
    rails = [finding for finding in findings if finding.contrast.safeguard is not None]
    drifting = _with(findings, "disbelieved")
    if drifting:
        why = f"the always-valid intervals of {_names(drifting)} exclude one another"
        return _Advice("check_setup", why, drifting)
    broken, worse = _with(rails, "broken"), _with(decisions, "worse")
    if broken or worse:
        reasons = [_is(broken, "broken", guardrails=True), _is(worse, "worse")]
        return _Advice("do_not_ship", joined(reasons), (*broken, *worse))
    rails = [
        finding for finding in rails if _must_be_kept(finding)
    ]  # the others have stopped nothing
    needed = (*decisions, *rails)
    blocked = tuple(
        finding for finding in _with(needed, "not_started") if cannot_start(finding.contrast)
    )
    if blocked:
        why = f"there is no always-valid interval of {_with_reasons(blocked)}"
        return _Advice("check_setup", why, blocked)
    better, kept_rails = _with(decisions, "better"), _with(rails, "kept")
    undirected = tuple(filter(_is_undirected, decisions))
    settled = (*better, *undirected, *_with(decisions, "no_difference_yet"))
    ready = len(kept_rails) == len(rails) and len(settled) == len(decisions)
    if ready and undirected:
        summary = joined([_is(better, "better"), _each(undirected)])
        why = f"{summary}, but {_why_undirected(undirected)}"
        return _Advice("decide", why, (*better, *undirected))
    if ready and (better or (kept_rails and not decisions)):
        reasons = [_is(better, "better"), _is(kept_rails, "kept", guardrails=True)]
        return _Advice("ship", joined(reasons), (*better, *kept_rails))
    return _waiting(decisions, rails, better, undirected)


def _must_be_kept(finding: Finding) -> bool:
    rail = finding.contrast.safeguard
    return rail is not None and rail.required


def _is_undirected(finding: Finding) -> bool:
    none = finding.direction.better == "none" or finding.contrast.rows_differ
    return finding.verdict in ("higher", "lower") and bool(none)


def _why_undirected(findings: Sequence[Finding]) -> str:
    """Why the differences that are shown are neither better nor worse."""
    by_reason: dict[str, list[Finding]] = {}
    for finding in findings:
        by_reason.setdefault(finding.contrast.rows_differ, []).append(finding)
    none = by_reason.pop("", [])
    return joined(
        [
            f"no direction of {_names(none)} is declared as better" if none else "",
            *(f"{rows}: the effect on {_names(members)} is one on rows, not on units"
              for rows, members in by_reason.items()),
        ]
    )  # fmt: skip


def _each(findings: Sequence[Finding]) -> str:
    return joined(f"{finding.contrast.watched} is {finding.verdict}" for finding in findings)


def _waiting(
    decisions: Sequence[Finding],
    rails: Sequence[Finding],
    better: tuple[Finding, ...],
    undirected: tuple[Finding, ...],
) -> _Advice:
    faded, early = _with(decisions, "faded"), _with((*decisions, *rails), "not_started")
    nothing, unknown = _with(decisions, "no_difference_yet"), _with(rails, "open")
    nearer = [
        finding for finding in _with(decisions, "higher", "lower") if not _is_undirected(finding)
    ]
    decided = (*better, *undirected)
    reasons = [
        _is(better, "better"),
        _each(undirected),
        f"the effect on {_names(faded)} has changed since the decision" if faded else "",
        f"it is uncertain which is nearer to the target of {_names(nearer)}" if nearer else "",
        f"no difference in {_names(nothing)} is shown yet" if nothing and not decided else "",
        f"it is not shown yet that {_is(unknown, 'kept', guardrails=True)}" if unknown else "",
        f"it is too early to judge {_with_reasons(early)}" if early else "",
    ]
    why = "; ".join(filter(None, reasons)) or "no metric has been compared yet"
    rests = (*decided, *faded, *nearer, *(() if decided else nothing), *unknown, *early)
    sizes = [
        size
        for finding in nothing
        if (size := more_units(finding.contrast, finding.anytime_lower, finding.anytime_upper))
    ]
    need = max(sizes, key=lambda size: (size.more, not size.excluded), default=None)
    if need is None or decided:
        return _Advice("wait", why, rests)
    ends = len(nothing) == len(decisions) == len(sizes) and not (unknown or early)
    if ends and (not need.more or all(size.excluded for size in sizes)):
        why = f"no difference in {_names(nothing)} is shown"
        return _Advice("decide", why, rests, planned(need))
    return _Advice("wait", why, rests, planned(need) if need.more else "")


def _with(findings: Iterable[Finding], *verdicts: str) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.verdict in verdicts)


def _is(findings: Sequence[Finding], what: str, *, guardrails: bool = False) -> str:
    if not findings:
        return ""
    several = len(findings) > 1
    kind = ("guardrails " if several else "guardrail ") if guardrails else ""
    return f"{kind}{_names(findings)} {'are' if several else 'is'} {what}"


def _names(findings: Sequence[Finding]) -> str:
    return joined(dict.fromkeys(finding.contrast.watched for finding in findings))


def _with_reasons(findings: Sequence[Finding]) -> str:
    """The metrics, each reason in parentheses after those that it applies to."""
    by_reason: dict[str, list[Finding]] = {}
    for finding in findings:
        by_reason.setdefault(finding.reason, []).append(finding)
    return joined(f"{_names(members)} ({reason})" for reason, members in by_reason.items())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Finding(Shown):
    """One contrast, read with all the looks at it.

    anytime_lower, anytime_upper, anytime_pvalue: of all looks together, or of this reading if there
    are none; both infinite if the looks exclude one another. e_value: of the last look. gated:
    before the burn-in; reason: why there is no always-valid interval, or "". verdict: one word, see
    `verdict.verdict_of`; direction: in which the metric is better. since_effect, since_lower,
    since_upper: the effect since the decision, nan before there is one; faded: it lies apart from
    that of all looks together, nearer to no effect or beyond it. check_logging: why the logging
    must be checked before this effect is believed, or "". holm: the
    anytime p-value, adjusted among the decisions; e_bh: whether e-BH rejects it among them; both
    None for guardrails, and if only some decisions were requested. distrusted: the finding must not
    be trusted, whatever its numbers. sentence: the conclusion, or the reason for the distrust.
    """

    estimates: ClassVar[bool] = True
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
    since_effect: float = math.nan
    since_lower: float = math.nan
    since_upper: float = math.nan
    check_logging: str = ""

    @property
    def rows_per_unit(self) -> RowsPerUnit | None:
        """Rows per unit of both arms, of a mean or a rate per row; None if units are not known."""
        return self.contrast.rows_per_unit

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        row = self.contrast.effect_row(self.anytime_lower, self.anytime_upper, self.reason)
        figures = {"pvalue": self.anytime_pvalue, "holm": self.holm, "verdict": self.verdict}
        yield replace(row, counts={**figures, **row.counts})

    def _notes(self) -> Iterator[str]:
        yield self.sentence


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
        before = last or {}
        readings = {contrast.name: contrast.anytime for contrast in self.contrasts}
        for contrast in self.contrasts:
            readings |= since_readings(contrast, before)
        readings |= ratio_readings(self.srm, before)
        return readings

    def report(
        self, watched: Mapping[str, Watched] | None = None, *, days: float | None = None
    ) -> Report:
        """See `Experiment.report`."""
        watched = watched or {}
        plan, contrasts, srm = self.plan, self.contrasts, with_looks(self.srm, watched)
        decisions = [contrast for contrast in contrasts if contrast.safeguard is None]
        readings = {
            contrast.name: reading_of(
                contrast, watched.get(contrast.name), watched.get(contrast.name + SINCE)
            )
            for contrast in contrasts
        }
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
    sentence += "" if against else on_rows(contrast, verdict)
    last, since = reading.last, reading.since
    reason = "" if reading.known else last.reason
    if verdict == "not_started":
        reason = why_not_started(contrast, reading)
    elif not reading.consistent:
        reason = "the always-valid intervals of the looks exclude one another"
    return Finding(
        contrast=contrast,
        anytime_lower=reading.lower if reading.consistent else -math.inf,
        anytime_upper=reading.upper if reading.consistent else math.inf,
        anytime_pvalue=reading.pvalue,
        e_value=contrast.e_value(last),
        gated=last.gated,
        reason=reason,
        verdict=verdict,
        direction=contrast.direction,
        faded=faded,
        since_effect=math.nan if since is None else since.effect,
        since_lower=since.lower if since is not None and since.known else math.nan,
        since_upper=since.upper if since is not None and since.known else math.nan,
        check_logging="" if against else implausible(contrast, reading),
        holm=holm,
        e_bh=e_bh,
        distrusted=verdict == "disbelieved",
        sentence=f"{sentence} {warning}" if warning and not against else sentence,
    )
