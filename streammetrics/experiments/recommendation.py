"""One recommendation for an experiment, by its decisions, guardrails, units and sample ratio.

A treatment is to be shipped where at least one decision metric is better, none is worse and every
guardrail is kept: so the error of shipping needs no correction for the guardrails, and that of the
decisions has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streammetrics.experiments.plan import Plan
from streammetrics.experiments.planned_size import more_units
from streammetrics.experiments.reasons import never
from streammetrics.experiments.sentence import planned
from streammetrics.experiments.verdict import Action, Recommendation

if TYPE_CHECKING:
    from streammetrics.experiments.report import Finding

_DISBELIEVED: Final = "Not to be believed: "
_ORDER: Final[tuple[Action, ...]] = ("ship", "decide", "wait", "check_setup", "do_not_ship")
_VERBS: Final[dict[Action, tuple[str, str]]] = {  # alone, and of one of several treatments
    "ship": ("Ship", "Ship {}"),
    "do_not_ship": ("Do not ship", "Do not ship {}"),
    "decide": ("Decide", "Decide on {}"),
    "wait": ("Wait", "Wait for {}"),
    "check_setup": ("Check the setup", "Check the setup of {}"),
}


@dataclass(frozen=True, slots=True)
class _Advice:
    """On one treatment: reason completes "Ship: ...", after: whole sentences behind it."""

    action: Action
    reason: str
    of: tuple[Finding, ...] = ()
    after: str = ""


def recommendation_of(
    plan: Plan, findings: Sequence[Finding], against: str, doubt: str, *, stops: bool = True
) -> Recommendation:
    """against: why nothing is to be believed, or ""; doubt: on units of several variants, or "";
    stops: whether nothing is shipped for that."""
    if against:
        why = f"Check the setup: {against.removeprefix(_DISBELIEVED)}"
        return Recommendation("check_setup", why, (), plan.treatments)
    each = {
        name: _doubted(
            _on([one for one in findings if one.contrast.treatment_variant == name]),
            doubt if stops else "",
        )
        for name in plan.treatments
    }
    action = next(one for one in _ORDER if any(found.action == one for found in each.values()))
    chosen = {name: one for name, one in each.items() if one.action == action}
    others = {name: one for name, one in each.items() if one.action != action}
    told = [_sentence(name, one, len(each) == 1) for name, one in {**chosen, **others}.items()]
    return Recommendation(
        action,
        " ".join(told if not doubt or any(doubt[:-1] in one for one in told) else [*told, doubt]),
        tuple(one.contrast.name for found in chosen.values() for one in found.of),
        tuple(chosen),
    )


def _doubted(advice: _Advice, doubt: str) -> _Advice:
    """Nothing is shipped while more than a few units are in several variants."""
    if not doubt or advice.action not in ("ship", "decide"):
        return advice
    but = f"But for that: {_VERBS[advice.action][0].lower()}, since {advice.reason}."
    return _Advice("check_setup", doubt.removesuffix("."), advice.of, but)


def _sentence(name: str, advice: _Advice, alone: bool) -> str:
    verb = _VERBS[advice.action][0 if alone else 1].format(name)
    return " ".join(filter(None, (f"{verb}: {advice.reason}.", advice.after)))


def _on(findings: Sequence[Finding]) -> _Advice:
    """What to do with one treatment: the first of these that there is a reason for."""
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
    blocked = tuple(one for one in _with(findings, "not_started") if never(one.contrast))
    if blocked:
        why = f"there will be no always-valid interval of {_names(blocked)}: {blocked[0].reason}"
        return _Advice("check_setup", why, blocked)
    better, kept = _with(decisions, "better"), _with(rails, "kept")
    undirected = tuple(filter(_is_undirected, decisions))
    told = (*better, *undirected, *_with(decisions, "no_difference_yet"))
    ready = len(kept) == len(rails) and len(told) == len(decisions)
    if ready and undirected:
        why = f"{_each(undirected)}, and it is not declared which direction is better"
        return _Advice("decide", _joined([_is(better, "better"), why]), (*better, *undirected))
    if ready and (better or (kept and not decisions)):
        reasons = [_is(better, "better"), _is(kept, "kept", guardrails=True)]
        return _Advice("ship", _joined(reasons), (*better, *kept))
    return _waiting(decisions, rails, better, undirected)


def _is_undirected(finding: Finding) -> bool:
    return finding.verdict in ("higher", "lower") and finding.direction.better == "none"


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
    shown = (*better, *undirected)
    reasons = [
        _is(better, "better"),
        _each(undirected),
        f"the effect on {_names(faded)} may have faded" if faded else "",
        f"which is nearer to the target of {_names(nearer)} is not certain" if nearer else "",
        f"no difference of {_names(nothing)} is shown yet" if nothing and not shown else "",
        f"it is not shown yet that {_is(unknown, 'kept', guardrails=True)}" if unknown else "",
        f"it is too early to say of {_names(early)} ({early[0].reason})" if early else "",
    ]
    why = "; ".join(filter(None, reasons)) or "no variant can be compared with the control yet"
    rests = (*shown, *faded, *nearer, *(() if shown else nothing), *unknown, *early)
    sizes = [
        found
        for one in nothing
        if (found := more_units(one.contrast, one.anytime_lower, one.anytime_upper))
    ]
    need = max(sizes, key=lambda one: (one.more, not one.excluded), default=None)
    if need is None or shown:
        return _Advice("wait", why, rests)
    ends = len(nothing) == len(decisions) == len(sizes) and not (unknown or early)
    if ends and (not need.more or all(one.excluded for one in sizes)):
        why = f"no difference of {_names(nothing)} is shown"
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


def _joined(parts: Iterable[str]) -> str:
    """As one says it: a, b and c."""
    told = [one for one in parts if one]
    return " and ".join(filter(None, (", ".join(told[:-1]), *told[-1:])))
