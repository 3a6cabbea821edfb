"""Descriptions of metrics, compared: what a config adds to a stored one, and what it changes.

Epochs may be appended to a running experiment, as for an unforeseen ramp. It stays the same
experiment, and its looks continue: counted events keep their epochs, and the future allocation may
depend on everything seen so far. Nothing that earlier looks depend on may change: neither an epoch
that has events, nor the allocation that a horizon was tuned to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, cast

from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.model.generation import EXPERIMENT, SHOWN, WATCH_RATES

_FOLLOW: Final = ("epochs", "shares", "end")  # keys of a plan that may change while it runs

Weights = Mapping[str, float]
Description = Mapping[str, object]


def more_epochs(earlier_description: Description, now: Description) -> tuple[str, ...]:
    """The epoch starts that a plan appends to an earlier one of the same metric; none if it
    changes the allocation of their common epochs, or one that a horizon was tuned to."""
    before, after = earlier_description.get(EXPERIMENT), now.get(EXPERIMENT)
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return ()
    old_starts, starts = (cast("list[str]", plan["epochs"]) for plan in (before, after))
    allocated, allocations = _weights(before), _weights(after)
    if starts[: len(old_starts)] != old_starts or allocations[: len(allocated)] != allocated:
        return ()
    if after["horizon"] is not None and any(
        allocation != allocated[-1] for allocation in allocations[len(allocated) :]
    ):
        return ()
    return tuple(starts[len(old_starts) :])


def moved_end(
    earlier_description: Description, now: Description
) -> tuple[int | None, int | None] | None:
    """The ends of an experiment in an earlier description and in this one, None for no end; None if
    they are equal."""
    before, after = earlier_description.get(EXPERIMENT), now.get(EXPERIMENT)
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return None
    ends = cast("tuple[int | None, int | None]", (before.get("end"), after.get("end")))
    return None if ends[0] == ends[1] else ends


def end_refused(ends: tuple[int | None, int | None], counted_ms: int | None) -> str:
    """Why an end cannot be declared or moved so, and what to do; "" if it can."""
    before, after = ends
    if counted_ms is None:
        return ""
    if before is not None and before <= counted_ms:
        return (
            f"it ended at {iso_utc(before)}, and events since are not its events; its end stays, "
            "and another name begins another experiment"
        )
    if after is not None and after <= counted_ms:
        return (
            f"its end {iso_utc(after)} is too early: events up to {iso_utc(counted_ms)} are "
            "counted, and only a later end can be declared; to end it now, take it out of the "
            "config and drop it"
        )
    return ""


def as_before(now: Description, earlier_description: Description, *names: str) -> dict[str, object]:
    """A description with these parts of the plan of an earlier one."""
    plan, earlier = (
        cast("Description", description[EXPERIMENT]) for description in (now, earlier_description)
    )
    other_parts = {name: value for name, value in plan.items() if name not in names}
    earlier_parts = {name: earlier[name] for name in names if name in earlier}
    return {**now, EXPERIMENT: {**other_parts, **earlier_parts}}


def plan_that_stays(plan: Description) -> dict[str, object]:
    """A plan without what may change while it runs: the identity of an experiment's looks."""
    return {name: value for name, value in plan.items() if name not in _FOLLOW}


def starts_after(start: str, counted_ms: int | None) -> bool:
    """Whether all counted events are before this start, in ISO UTC."""
    since = datetime.fromisoformat(start).timestamp()
    return counted_ms is None or round(1000 * since) > counted_ms


def _weights(plan: Description) -> list[dict[str, float]]:
    """The shares of each epoch, which sum to 1."""
    epochs = len(cast("list[str]", plan["epochs"])) + 1
    weights = cast("list[Weights]", plan["shares"])
    allocations = weights or [dict.fromkeys(cast("list[str]", plan["variants"]), 1.0)]
    shares = [
        {name: w / sum(allocation.values()) for name, w in allocation.items()}
        for allocation in allocations
    ]
    return shares if len(shares) > 1 else shares * epochs


def as_started(earlier_description: Description, now: Description) -> Description:
    """A description with the plan as it was when the experiment began: without the guardrails that
    a later version declares by default, whose rows of before are not counted. Where the earlier
    config switched them off, the description as it is.
    """
    before, after = earlier_description.get(EXPERIMENT), now.get(EXPERIMENT)
    shown = earlier_description.get(SHOWN, {})
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return now
    rail_names = {rail[0] for rail in _rails(before)}
    later = [rail[0] for rail in _rails(after) if rail[3:] == [False] and rail[0] not in rail_names]
    if not later or (isinstance(shown, Mapping) and WATCH_RATES in shown):
        return now
    mdes = {n: mde for n, mde in cast("Weights", after.get("mdes", {})).items() if n not in later}
    plan = {name: value for name, value in after.items() if name != "mdes"}
    plan["guardrails"] = [rail for rail in _rails(after) if rail[0] not in later]
    return {**now, EXPERIMENT: {**plan, **({"mdes": mdes} if mdes else {})}}


def _rails(plan: Description) -> list[list[object]]:
    """The guardrails: name, margin, whether higher is better, and False if it is only watched."""
    return cast("list[list[object]]", plan["guardrails"])


KEPT_NO_LATE: Final = (
    "[join]: an older version counted this store. It discarded events that were too late to be "
    "joined. This version puts them into quarantine, and no setting changes that"
)


def kept_no_late(earlier_description: Mapping[str, object], now: Mapping[str, object]) -> bool:
    """Whether the older description is of a version that dropped events too late to be joined: a
    difference that no config can undo."""
    joins = earlier_description.get("join"), now.get("join")
    if not all(isinstance(plan, Mapping) for plan in joins):
        return False
    before, after = (cast("Mapping[str, object]", plan) for plan in joins)
    return "late" in after and "late" not in before


def more_arms(earlier_description: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The variants that are added to a running experiment."""
    plans = earlier_description.get(EXPERIMENT), now.get(EXPERIMENT)
    if not all(isinstance(plan, Mapping) for plan in plans):
        return []
    before, after = (cast("Mapping[str, list[str]]", plan)["variants"] for plan in plans)
    return sorted(set(after) - set(before)) if set(before) < set(after) else []


def arms_refused(arms: Sequence[str], name: str = "") -> str:
    """Why these variants cannot be added to an experiment, and what to do."""
    if name:
        return (
            f"experiment {name}: {', '.join(arms)} cannot be added while it runs, since its "
            "comparisons share one level and its shares were planned without it. To compare the "
            "added variant, declare an experiment with another name; to continue without it, leave "
            "it out of the variants: its events are counted beside those of the declared ones"
        )
    return (
        f"experiment: {', '.join(arms)} cannot be added while it runs, since its comparisons "
        "share one level and its shares were planned without it. To compare the added variant, "
        "restart the experiment from its beginning: --new-generation, with --from for that time. "
        "To continue without it, leave it out of [event] variants: its events stay in quarantine "
        "as unknown_variant"
    )


def differences(earlier_value: object, now: object, path: str = "") -> Iterator[str]:
    """Each setting that was added, removed or changed, with its values."""
    if isinstance(earlier_value, Mapping) and isinstance(now, Mapping):
        for key in sorted({*earlier_value, *now} - {SHOWN}):
            inner = f"{path}.{key}" if path else key
            if key not in earlier_value:
                yield f"{inner} is new ({_shown(now[key])})"
            elif key not in now:
                yield f"{inner} was removed (it was {_shown(earlier_value[key])})"
            else:
                yield from differences(earlier_value[key], now[key], inner)
    elif earlier_value != now:
        yield f"{path} was {_shown(earlier_value)}, is {_shown(now)}"


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:79] + "…"


def more_variants(
    earlier_description: Mapping[str, object], now: Mapping[str, object]
) -> frozenset[str] | None:
    """The variants that a description adds to an earlier one of the same metric. None where it
    lacks one of the earlier variants, so that the states could not be continued.

    Events of an undeclared variant are in quarantine, so to declare it changes no count, and a
    retry can count them. To remove a variant is not allowed.
    """
    before, after = _declared(earlier_description), _declared(now)
    if before is None or after is None:
        return frozenset() if before == after else None
    return after - before if before <= after else None


def _declared(description: Mapping[str, object]) -> frozenset[str] | None:
    """None where any variant is counted."""
    variant = description.get("variant")
    names = variant[1] if isinstance(variant, list | tuple) and len(variant) == 2 else None
    return None if names is None else frozenset(map(str, names))
