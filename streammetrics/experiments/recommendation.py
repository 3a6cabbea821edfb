"""The recommended action, from all findings of an experiment together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from streammetrics.experiments.finding import Action, Finding
from streammetrics.experiments.more_units import more_units, planned
from streammetrics.experiments.notes import DISTRUSTED
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.reasons import cannot_start, heavy_user
from streammetrics.present.numerals import joined


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended action, from all findings of the experiment together.

    action: "ship"; "do_not_ship"; "decide", if a person must judge: a metric has no declared
    direction, or no difference is shown and one of the planned size would be; "wait";
    "check_setup", if waiting would not help. sentence: the action and its reason. rests_on: the
    names of the contrasts that it follows from, none if it follows from the units. treatments: the
    variants that the action is about.
    """

    action: Action
    sentence: str
    rests_on: tuple[str, ...] = ()
    treatments: tuple[str, ...] = ()


_ORDER: Final[tuple[Action, ...]] = ("check_setup", "ship", "decide", "wait", "do_not_ship")
_VERBS: Final[dict[Action, tuple[str, str]]] = {  # for the only treatment, and for one of several
    "ship": ("Ship", "Ship {}"),
    "do_not_ship": ("Do not ship", "Do not ship {}"),
    "decide": ("Decide", "Decide on {}"),
    "wait": ("Wait", "Wait for {}"),
    "check_setup": ("Check the setup", "Check the setup of {}"),
}
_NOTHING: Final = "no metric that decides and no guardrail that must be kept has been compared yet"


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
    other_advices = {name: advice for name, advice in advices.items() if advice.action != action}
    sentences = [
        _sentence(name, advice, len(advices) == 1)
        for name, advice in {**chosen, **other_advices}.items()
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
    why = f"{advice.reason}, but {over} of the planned {min_days} days are certainly over"
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
    why = "; ".join(filter(None, reasons)) or _NOTHING
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


def _is(findings: Sequence[Finding], adjective: str, *, guardrails: bool = False) -> str:
    if not findings:
        return ""
    several = len(findings) > 1
    kind = ("guardrails " if several else "guardrail ") if guardrails else ""
    return f"{kind}{_names(findings)} {'are' if several else 'is'} {adjective}"


def _names(findings: Sequence[Finding]) -> str:
    return joined(dict.fromkeys(finding.contrast.watched for finding in findings))


def _with_reasons(findings: Sequence[Finding]) -> str:
    """The metrics, each reason in parentheses after those that it applies to."""
    by_reason: dict[str, list[Finding]] = {}
    for finding in findings:
        by_reason.setdefault(finding.reason, []).append(finding)
    return joined(f"{_names(members)} ({reason})" for reason, members in by_reason.items())
