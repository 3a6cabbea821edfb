"""What a plan may say: each slip is an error that names it, with the nearest name."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn

from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.nearest import nearest
from streammetrics.experiments.confidence_sequence import check_share
from streammetrics.results.direction import HIGHER, LOWER, NONE, Direction

if TYPE_CHECKING:
    from streammetrics.experiments.plan import Plan

_WORDS: Final = {"higher": HIGHER, "lower": LOWER, "none": NONE}


def direction_from(said: str | float) -> Direction:
    """The direction that a plan says in a word or as a target.

    >>> print(direction_from("lower"), direction_from(1))
    lower target 1
    """
    if isinstance(said, str):
        return _WORDS[said]
    return Direction("target", float(said))


def check_plan(plan: Plan) -> None:
    """Raise SettingsError for the first thing that is wrong with a plan."""
    check_share("level", plan.level)
    _one_of("correction", plan.correction, ("bonferroni", "none"))
    _one_of("cluster", plan.cluster, ("groups", "none"))
    _one_of("on_several_variants", plan.on_several_variants, ("keep", "drop", "error"))
    for where in ("variants", "decision", "epochs", "lower_is_better"):
        _names(where, getattr(plan, where))
    _check_safeguards(plan)
    if not plan.watched:
        refuse("decision", "a metric, or a guardrail", plan.decision, 'pass decision=("ctr",)')
    if plan.control not in plan.variants:
        todo = f"{nearest(plan.control, plan.variants)}, or name it in variants as well"
        refuse("control", "one of the variants", plan.control, todo)
    if len(set(plan.variants)) != len(plan.variants):
        refuse("variants", "each variant once", plan.variants, "leave out the repeated one")
    if not plan.treatments:
        refuse("variants", "the control and another", plan.variants, "name a treatment")
    if len(set(plan.watched)) != len(plan.watched):
        todo = "make it a decision metric or a guardrail, once"
        refuse("decision and guardrails", "each metric once", plan.watched, todo)
    for where in ("horizons", "covariates"):
        known(getattr(plan, where), plan.watched, where, "metrics of decision and guardrails")
    _check_directions(plan)
    for where, weights in (("shares", plan.shares), *plan.epoch_shares.items()):
        label = "shares" if where == "shares" else f"epoch_shares ({where})"
        known(weights, plan.variants, label, "weights of variants")
        if weights and not (min(weights.values()) >= 0 and 0 < sum(weights.values()) < math.inf):
            todo = "pass the planned share of units of each variant"
            refuse(label, "weights from 0, one above it", dict(weights), todo)


def known(names: Iterable[str], expected: Collection[str], where: str, what: str) -> None:
    """Refuse the first name that is not among those that are expected."""
    for name in names:
        if name not in expected:
            refuse(where, f"{what}: {', '.join(expected)}", name, nearest(name, expected))


def refuse(where: str, expected: str, came: object, todo: str) -> NoReturn:
    """Raise the SettingsError of these four parts."""
    raise SettingsError(expected=expected, came=shown(came), where=where, todo=todo)


def _names(where: str, given: object) -> None:
    if isinstance(given, str):
        refuse(where, "a tuple of names", given, f"write ({given!r},)")
    if not (isinstance(given, (tuple, list)) and all(isinstance(one, str) for one in given)):
        refuse(where, "a tuple of names", given, 'write them as in ("ctr", "auc")')


def _check_safeguards(plan: Plan) -> None:
    todo = 'write guardrails=(Safeguard("auc", margin=0.01),)'
    if not isinstance(plan.guardrails, (tuple, list)):
        refuse("guardrails", "a tuple of Safeguard", plan.guardrails, todo)
    for one in plan.guardrails:
        if not hasattr(one, "margin"):
            refuse("guardrails", "a tuple of Safeguard", one, todo)


def _check_directions(plan: Plan) -> None:
    """Names are those of the plan, or a metric of which it names a view, or a view of a metric."""
    for where, names in (("lower_is_better", plan.lower_is_better), ("better", plan.better)):
        strangers = [name for name in names if not _is_of(name, plan.watched)]
        known(strangers, plan.watched, where, "metrics of decision and guardrails")
    if not isinstance(plan.better, Mapping):
        refuse("better", "directions by metric", plan.better, 'write {"bounce": "lower"}')
    for name, said in plan.better.items():
        number = isinstance(said, (int, float)) and not isinstance(said, bool)
        if not (said in _WORDS if isinstance(said, str) else number and math.isfinite(said)):
            expected = '"higher", "lower", "none", or a number that it should be near to'
            todo = nearest(said, _WORDS) if isinstance(said, str) else "choose one of these"
            refuse(f"better ({name})", expected, said, todo)
        if name in plan.lower_is_better and said != "lower":
            todo = "remove it from one of the two"
            refuse(f"better ({name})", '"lower", as in lower_is_better', said, todo)
    for rail in plan.guardrails:
        if rail.higher_is_better and rail.metric in plan.lower_is_better:
            todo = "remove it from lower_is_better, or pass higher_is_better=False"
            refuse(f"guardrails ({rail.metric})", "one direction", "two", todo)


def _is_of(name: str, watched: Collection[str]) -> bool:
    return any(
        name == one or name.startswith(f"{one}.") or one.startswith(f"{name}.") for one in watched
    )


def _one_of(where: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        refuse(where, " or ".join(f'"{one}"' for one in allowed), value, nearest(value, allowed))
