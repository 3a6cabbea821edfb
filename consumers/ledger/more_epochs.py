"""Starts of allocations that are appended to an experiment while it goes on: a ramp that was not
foreseen.

It is the same experiment then, and its looks go on: what was counted keeps its epochs, and how a
part of the future is dealt out may be decided by all that was seen. Nothing that the looks so far
rest on may move: neither an epoch that has events, nor what a horizon was tuned to.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, cast

from sqlalchemy import Connection, func, select

from consumers.ledger.schema import delta, head, retry

EXPERIMENT: Final = "experiment"  # of a description: the plan
_FOLLOW: Final = ("epochs", "shares")  # keys of a plan to which some may be appended

Weights = Mapping[str, float]
Description = Mapping[str, object]


def more_epochs(was: Description, now: Description) -> tuple[str, ...]:
    """The starts that a plan has more than another one of the same metric, after those that both
    have; none where it deals out otherwise what both have, or moves what a horizon was tuned to."""
    before, after = was.get(EXPERIMENT), now.get(EXPERIMENT)
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return ()
    known, starts = (cast("list[str]", one["epochs"]) for one in (before, after))
    dealt, deals = _weights(before), _weights(after)
    if starts[: len(known)] != known or deals[: len(dealt)] != dealt:
        return ()
    if after["horizon"] is not None and any(one != dealt[-1] for one in deals[len(dealt) :]):
        return ()
    return tuple(starts[len(known) :])


def as_before(now: Description, was: Description) -> dict[str, object]:
    """A description with the epochs of an earlier one."""
    plan, earlier = (cast("Description", one[EXPERIMENT]) for one in (now, was))
    return {**now, EXPERIMENT: {**plan, **{name: earlier[name] for name in _FOLLOW}}}


def plan_that_stays(plan: Description) -> dict[str, object]:
    """A plan without what may be appended: what the looks at an experiment are known by."""
    return {name: value for name, value in plan.items() if name not in _FOLLOW}


def counted_to_ms(connection: Connection, generation: int) -> int | None:
    """No event of this time or later was counted before; None where none was."""
    times = [
        connection.scalar(
            select(func.max(head.c.greatest_event_ms)).where(head.c.generation == generation)
        )
    ]
    tried = select(func.count()).select_from(retry).where(retry.c.generation == generation)
    if connection.scalar(tried):  # heads do not know the times of what a retry counted
        ends = select(func.max(delta.c.window_end_ms)).where(delta.c.generation == generation)
        times.append(connection.scalar(ends))
    return max((int(ms) for ms in times if ms is not None), default=None)


def starts_after(start: str, counted_ms: int | None) -> bool:
    """Whether all that was counted lies before this start, in ISO UTC."""
    since = datetime.fromisoformat(start).timestamp()
    return counted_ms is None or round(1000 * since) > counted_ms


def _weights(plan: Description) -> list[dict[str, float]]:
    """The shares of each epoch, which sum to 1."""
    epochs = len(cast("list[str]", plan["epochs"])) + 1
    given = cast("list[Weights]", plan["shares"])
    each = given or [dict.fromkeys(cast("list[str]", plan["variants"]), 1.0)]
    found = [{name: w / sum(one.values()) for name, w in one.items()} for one in each]
    return found if len(found) > 1 else found * epochs
