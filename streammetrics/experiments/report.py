"""The conclusions of an experiment: findings in sentences, the recommendation and the notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, Literal

from streammetrics.combine.units import UnitsResult
from streammetrics.core.errors import SettingsError, shown
from streammetrics.experiments.assignment import (
    Contamination,
    SampleRatioFound,
    in_several_variants,
)
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.monitor import Reading, Watched, reading_of
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.rows_per_unit import RowsPerUnit
from streammetrics.experiments.sentence import (
    DISTRUSTED,
    more_units,
    on_rows,
    planned,
    sentence_of,
    why_distrusted,
)
from streammetrics.experiments.verdict import (
    Action,
    Recommendation,
    Verdict,
    cannot_start,
    has_faded,
    verdict_of,
    why_not_started,
)
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, rows_of
from streammetrics.present.views import EVERY_VIEW, NONE, Direction

# Multiple comparisons, by name: adjusted p-values, and rejections by e-values.


def adjust_fwer(
    pvalues: Mapping[str, float], method: Literal["holm", "bonferroni"] = "holm"
) -> dict[str, float]:
    """p-values adjusted so that the probability of any false rejection is at most alpha.

    "bonferroni": min(1, m p) (Dunn 1961, J. Am. Stat. Assoc. 56, 52-64). "holm": the i-th smallest,
    from 0, is max over j <= i of (m - j) p_(j), at most 1 (Holm 1979, Scand. J. Stat. 6, 65-70).
    A p-value that is nan stays so. For anytime p-values (`Watched.p_value`) this holds at all looks
    together. Raises SettingsError for another method.

    >>> adjust_fwer({"ctr": 0.01, "auc": 0.04})
    {'ctr': 0.02, 'auc': 0.04}
    """
    m = len(pvalues)
    if method == "bonferroni":
        return {name: p if math.isnan(p) else min(1.0, m * p) for name, p in pvalues.items()}
    if method != "holm":
        raise SettingsError(
            expected='"holm" or "bonferroni"',
            got=shown(method),
            where="method",
            hint='pass "holm", which rejects at least as much',
        )
    adjusted, worst = dict.fromkeys(pvalues, math.nan), 0.0
    known = {name: p for name, p in pvalues.items() if not math.isnan(p)}
    for rank, name in enumerate(sorted(known, key=known.__getitem__)):
        worst = max(worst, (m - rank) * pvalues[name])
        adjusted[name] = min(1.0, worst)
    return adjusted


def adjust_fdr(*, e_values: Mapping[str, float], alpha: float = 0.05) -> dict[str, bool]:
    """Which comparisons are rejected, with a false discovery rate of at most alpha (e-BH).

    e_values: of this look, never the largest so far. The k largest of m are rejected, for the
    largest k with e_(k) >= m / (alpha k). Compared as rational numbers, with alpha as written
    (0.05 is 1/20), so that equality counts. (Wang and Ramdas 2022, J. R. Stat. Soc. B 84, 822-852.)

    >>> adjust_fdr(e_values={"ctr": 60.0, "auc": 1.5})
    {'ctr': True, 'auc': False}
    """
    # Equal e-values are all rejected or all kept, so that the order does not matter.
    m, level, least = len(e_values), Fraction(repr(float(alpha))), math.nan
    for rank, e in enumerate(sorted(e_values.values(), reverse=True), start=1):
        if e == math.inf or (e > 0 and Fraction(e) >= Fraction(m, rank) / level):
            least = e
    return {name: e >= least for name, e in e_values.items()}


# The recommendation, from all findings together.

_ORDER: Final[tuple[Action, ...]] = ("ship", "decide", "wait", "check_setup", "do_not_ship")
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
    plan: Plan, findings: Sequence[Finding], against: str, warning: str, *, blocks: bool = True
) -> Recommendation:
    """The recommendation. against: why nothing can be trusted, or ""; warning: on units of several
    variants, or ""; blocks: whether the warning prevents shipping."""
    if against:
        why = f"Check the setup: {against.removeprefix(DISTRUSTED)}"
        return Recommendation("check_setup", why, (), plan.treatments)
    each = {
        name: _unless_warned(
            _advice_on([one for one in findings if one.contrast.treatment_variant == name]),
            warning if blocks else "",
        )
        for name in plan.treatments
    }
    action = next(one for one in _ORDER if any(found.action == one for found in each.values()))
    chosen = {name: one for name, one in each.items() if one.action == action}
    others = {name: one for name, one in each.items() if one.action != action}
    sentences = [_sentence(name, one, len(each) == 1) for name, one in {**chosen, **others}.items()]
    if warning and not any(warning[:-1] in one for one in sentences):
        sentences.append(warning)
    return Recommendation(
        action,
        " ".join(sentences),
        tuple(one.contrast.name for found in chosen.values() for one in found.of),
        tuple(chosen),
    )


def _unless_warned(advice: _Advice, warning: str) -> _Advice:
    """Nothing is shipped while more than a few units are in several variants."""
    if not warning or advice.action not in ("ship", "decide"):
        return advice
    otherwise = f"Otherwise: {_VERBS[advice.action][0].lower()}, because {advice.reason}."
    return _Advice("check_setup", warning.removesuffix("."), advice.of, otherwise)


def _sentence(name: str, advice: _Advice, alone: bool) -> str:
    verb = _VERBS[advice.action][0 if alone else 1].format(name)
    return " ".join(filter(None, (f"{verb}: {advice.reason}.", advice.after)))


def _advice_on(findings: Sequence[Finding]) -> _Advice:
    """The advice on one treatment: the first action that has a reason."""
    decisions = [one for one in findings if one.contrast.safeguard is None]
    rails = [one for one in findings if one.contrast.safeguard is not None]
    drifting = _with(findings, "disbelieved")
    if drifting:
        why = f"the always-valid intervals of {_names(drifting)} exclude one another"
        return _Advice("check_setup", why, drifting)
    broken, worse = _with(rails, "broken"), _with(decisions, "worse")
    if broken or worse:
        reasons = [_is(broken, "broken", guardrails=True), _is(worse, "worse")]
        return _Advice("do_not_ship", _joined(reasons), (*broken, *worse))
    rails = [one for one in rails if _must_be_kept(one)]  # the others have stopped nothing
    needed = (*decisions, *rails)
    blocked = tuple(one for one in _with(needed, "not_started") if cannot_start(one.contrast))
    if blocked:
        why = f"there is no always-valid interval of {_with_reasons(blocked)}"
        return _Advice("check_setup", why, blocked)
    better, kept = _with(decisions, "better"), _with(rails, "kept")
    undirected = tuple(filter(_is_undirected, decisions))
    settled = (*better, *undirected, *_with(decisions, "no_difference_yet"))
    ready = len(kept) == len(rails) and len(settled) == len(decisions)
    if ready and undirected:
        known = _joined([_is(better, "better"), _each(undirected)])
        why = f"{known}, but {_why_undirected(undirected)}"
        return _Advice("decide", why, (*better, *undirected))
    if ready and (better or (kept and not decisions)):
        reasons = [_is(better, "better"), _is(kept, "kept", guardrails=True)]
        return _Advice("ship", _joined(reasons), (*better, *kept))
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
    for one in findings:
        by_reason.setdefault(one.contrast.rows_differ, []).append(one)
    none = by_reason.pop("", [])
    return _joined(
        [
            f"no direction of {_names(none)} is declared as better" if none else "",
            *(f"{rows}: the effect on {_names(of)} is one on rows, not on units"
              for rows, of in by_reason.items()),
        ]
    )  # fmt: skip


def _each(findings: Sequence[Finding]) -> str:
    return _joined(f"{one.contrast.watched} is {one.verdict}" for one in findings)


def _waiting(
    decisions: Sequence[Finding],
    rails: Sequence[Finding],
    better: tuple[Finding, ...],
    undirected: tuple[Finding, ...],
) -> _Advice:
    faded, early = _with(decisions, "faded"), _with((*decisions, *rails), "not_started")
    nothing, unknown = _with(decisions, "no_difference_yet"), _with(rails, "open")
    nearer = [one for one in _with(decisions, "higher", "lower") if not _is_undirected(one)]
    decided = (*better, *undirected)
    reasons = [
        _is(better, "better"),
        _each(undirected),
        f"the effect on {_names(faded)} may have faded" if faded else "",
        f"it is uncertain which is nearer to the target of {_names(nearer)}" if nearer else "",
        f"no difference in {_names(nothing)} is shown yet" if nothing and not decided else "",
        f"it is not shown yet that {_is(unknown, 'kept', guardrails=True)}" if unknown else "",
        f"it is too early to judge {_with_reasons(early)}" if early else "",
    ]
    why = "; ".join(filter(None, reasons)) or "no metric has been compared yet"
    rests = (*decided, *faded, *nearer, *(() if decided else nothing), *unknown, *early)
    sizes = [
        found
        for one in nothing
        if (found := more_units(one.contrast, one.anytime_lower, one.anytime_upper))
    ]
    need = max(sizes, key=lambda one: (one.more, not one.excluded), default=None)
    if need is None or decided:
        return _Advice("wait", why, rests)
    ends = len(nothing) == len(decisions) == len(sizes) and not (unknown or early)
    if ends and (not need.more or all(one.excluded for one in sizes)):
        why = f"no difference in {_names(nothing)} is shown"
        return _Advice("decide", why, rests, planned(need))
    return _Advice("wait", why, rests, planned(need) if need.more else "")


def _with(findings: Iterable[Finding], *verdicts: str) -> tuple[Finding, ...]:
    return tuple(one for one in findings if one.verdict in verdicts)


def _is(findings: Sequence[Finding], what: str, *, guardrails: bool = False) -> str:
    if not findings:
        return ""
    several = len(findings) > 1
    kind = ("guardrails " if several else "guardrail ") if guardrails else ""
    return f"{kind}{_names(findings)} {'are' if several else 'is'} {what}"


def _names(findings: Sequence[Finding]) -> str:
    return _joined(dict.fromkeys(one.contrast.watched for one in findings))


def _with_reasons(findings: Sequence[Finding]) -> str:
    """The metrics, each reason in parentheses after those that it applies to."""
    by_reason: dict[str, list[Finding]] = {}
    for one in findings:
        by_reason.setdefault(one.reason, []).append(one)
    return _joined(f"{_names(some)} ({reason})" for reason, some in by_reason.items())


def _joined(parts: Iterable[str]) -> str:
    """The parts as a list in a sentence: a, b and c."""
    known = [one for one in parts if one]
    return " and ".join(filter(None, (", ".join(known[:-1]), *known[-1:])))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Finding(Shown):
    """One contrast, read with all the looks at it.

    anytime_lower, anytime_upper, anytime_pvalue: of all looks together, or of this reading if there
    are none. e_value: of the last look. gated: before the burn-in; reason: why there is no
    always-valid interval, or "". verdict: one word, see `verdict.verdict_of`; direction: in which
    the metric is better; faded: the last look alone shows less than the looks together. holm: the
    anytime p-value, adjusted among the decisions; e_bh: whether e-BH rejects it among them; both
    None for guardrails, and if only some decisions were requested. distrusted: the finding must not
    be trusted, whatever its numbers. sentence: the conclusion, or the reason for the distrust.
    """

    estimates: ClassVar[frozenset[str]] = EVERY_VIEW
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

    @property
    def rows_per_unit(self) -> RowsPerUnit | None:
        """Rows per unit of both arms, of a mean or a rate per row; None if units are not known."""
        return self.contrast.rows_per_unit

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        row = self.contrast.effect_row(self.anytime_lower, self.anytime_upper, self.reason)
        more = {"pvalue": self.anytime_pvalue, "holm": self.holm, "verdict": self.verdict}
        yield replace(row, counts={**more, **row.counts})

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

    estimates: ClassVar[frozenset[str]] = EVERY_VIEW
    name: str
    findings: tuple[Finding, ...]
    srm: SampleRatioFound
    in_several: UnitsResult | None
    notes: tuple[str, ...]
    recommendation: Recommendation
    contamination: Contamination | None = None

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """A row for each effect, with its always-valid interval, whatever `level` is."""
        for one in self.findings:
            yield from rows_of(one, level=level)

    def _notes(self) -> Iterator[str]:
        yield self.recommendation.sentence
        yield from (one.sentence for one in self.findings)
        yield from self.notes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcome(Shown):
    """Everything read from the states of an experiment; `report` adds the looks so far."""

    estimates: ClassVar[frozenset[str]] = EVERY_VIEW
    plan: Plan
    contrasts: tuple[Contrast, ...]
    srm: SampleRatioFound
    in_several: UnitsResult | None
    contamination: Contamination | None = None
    same_rows: tuple[str, ...] = ()  # what says that arms share their rows or users

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        for one in self.contrasts:
            yield from rows_of(one, level=level)

    def report(self, watched: Mapping[str, Watched] | None = None) -> Report:
        """The report in words; watched: the looks so far, `Monitor.watched` by contrast name."""
        watched = watched or {}
        plan, contrasts = self.plan, self.contrasts
        decisions = [one for one in contrasts if one.safeguard is None]
        readings = {one.name: reading_of(one, watched.get(one.name)) for one in contrasts}
        family = decisions if {one.watched for one in decisions} == set(plan.decision) else ()
        holm = adjust_fwer({one.name: readings[one.name].pvalue for one in family})
        e_values = {one.name: one.e_value(readings[one.name].last) for one in family}
        e_bh = adjust_fdr(e_values=e_values, alpha=1.0 - plan.level)
        against = why_distrusted(plan, self.srm, self.in_several)
        warning = self.contamination.sentence if self.contamination else ""
        findings = tuple(
            _finding(
                one, readings[one.name], against, warning, holm.get(one.name), e_bh.get(one.name)
            )
            for one in contrasts
        )
        return Report(
            name=plan.name,
            findings=findings,
            srm=self.srm,
            in_several=self.in_several,
            notes=tuple(_notes(self)),
            recommendation=recommendation_of(
                plan, findings, against, warning, blocks=plan.on_several_variants != "drop"
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
    last = reading.last
    return Finding(
        contrast=contrast,
        anytime_lower=reading.lower,
        anytime_upper=reading.upper,
        anytime_pvalue=reading.pvalue,
        e_value=contrast.e_value(last),
        gated=last.gated,
        reason=why_not_started(contrast, reading) if verdict == "not_started" else last.reason,
        verdict=verdict,
        direction=contrast.direction,
        faded=faded,
        holm=holm,
        e_bh=e_bh,
        distrusted=verdict == "disbelieved",
        sentence=f"{sentence} {warning}" if warning and not against else sentence,
    )


def _notes(found: Outcome) -> list[str]:
    plan, contrasts, srm = found.plan, found.contrasts, found.srm
    notes, mixed = [*found.same_rows], found.contamination
    if srm.reason:
        notes.append(f"The sample ratio is not checked: {srm.reason}.")
    elif srm.alarm:
        notes.append(why_distrusted(plan, srm, found.in_several))
    if mixed is not None and mixed.units and not mixed.warning:
        seen = in_several_variants(mixed.units, estimated=mixed.estimated)
        dropped = " and dropped" if mixed.dropped else ""
        notes.append(f"{seen[0].upper()}{seen[1:]}{dropped}.")
    compared = [one.comparison for one in contrasts if one.comparison.epochs]
    left_out = sorted({epoch for one in compared for epoch in one.left_out})
    if left_out:
        names = ", ".join(epoch or "events without an epoch" for epoch in left_out)
        notes.append(
            "Epochs left out of a comparison, because an arm has too little data or no finite "
            f"estimate in them: {names}."
        )
    known = [one.comparison for one in contrasts if one.comparison.n and not one.is_of_units]
    if any(one.groups is None for one in known) or (
        not known and plan.cluster == "none" and not any(one.is_of_units for one in contrasts)
    ):
        notes.append("Rows are taken as independent, which is right only if no unit has several.")
    notes += [
        f"{name} is adjusted for the pre-exposure covariate {one.metric}, with the slope "
        f"{one.theta:.6g} (CUPED)."
        for name, one in plan.covariates.items()
    ]
    unfit = dict.fromkeys(
        one.watched
        for one in contrasts
        if one.comparison.kind not in ("rate", "quantile")
        and one.comparison.least_count  # without rows the kind is unknown
        and plan.is_for_rates(one.watched)
    )
    if unfit:
        notes.append(
            "The horizon is that of an unweighted rate, which does not fit "
            f"{_joined(unfit)}: the always-valid interval may be far wider than necessary. Before "
            "the data, declare the least effect that matters: mdes in a config, horizons in a Plan."
        )
    return notes
