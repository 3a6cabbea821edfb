"""What two descriptions of one metric differ in, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from consumers.ledger.more_epochs import EXPERIMENT
from consumers.model.generation import SHOWN

KEPT_NO_LATE: Final = (
    "[join]: an older version counted this store. It kept nothing of events that are too late to "
    "be joined, this one puts them into quarantine, and no setting changes that"
)


def kept_no_late(was: Mapping[str, object], now: Mapping[str, object]) -> bool:
    """Whether the older description is of a version that dropped what was too late to be joined:
    a difference that no config can undo."""
    joins = was.get("join"), now.get("join")
    if not all(isinstance(plan, Mapping) for plan in joins):
        return False
    before, after = (cast("Mapping[str, object]", plan) for plan in joins)
    return "late" in after and "late" not in before


def more_arms(was: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The variants that a running experiment is given more."""
    plans = was.get(EXPERIMENT), now.get(EXPERIMENT)
    if not all(isinstance(plan, Mapping) for plan in plans):
        return []
    before, after = (cast("Mapping[str, list[str]]", plan)["variants"] for plan in plans)
    return sorted(set(after) - set(before)) if set(before) < set(after) else []


def arms_refused(arms: Sequence[str]) -> str:
    """Why these variants cannot be added, and what to do."""
    return (
        f"experiment: {', '.join(arms)} cannot be added while it runs, since its comparisons share "
        "one level and its shares were planned without. To compare the added variant, start the "
        "experiment anew from when it began: --new-generation, with --from for that time. To go on "
        "without, leave it out of [event] variants: its events wait in quarantine as "
        "unknown_variant"
    )


def differences(was: object, now: object, path: str = "") -> Iterator[str]:
    """Each setting that is new, gone or another one, with both values."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in sorted({*was, *now} - {SHOWN}):
            inner = f"{path}.{key}" if path else key
            if key not in was:
                yield f"{inner} is new ({_shown(now[key])})"
            elif key not in now:
                yield f"{inner} is gone (it was {_shown(was[key])})"
            else:
                yield from differences(was[key], now[key], inner)
    elif was != now:
        yield f"{path} was {_shown(was)}, is {_shown(now)}"


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:79] + "…"
