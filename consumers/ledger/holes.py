"""Offsets that a metric did not count, since it had been taken out of the config for a while.

They are stated with the metric for good: results say so, and `verify` expects nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from sqlalchemy import Connection, func, select

from consumers.ledger.failures import Damaged
from consumers.ledger.schema import delta, head
from consumers.model.commit import JOIN, JOIN_START
from consumers.model.generation import Metric

Holes: TypeAlias = "Mapping[int, tuple[tuple[int, int], ...]]"  # by head: [from, to)

HOLES: Final = "holes"  # of a description as it is stored: not of what the fingerprint hashes


def with_holes(description: Mapping[str, object], holes: Holes) -> dict[str, object]:
    """A description as it is stored."""
    if not holes:
        return dict(description)
    return {**description, HOLES: {str(of): [list(one) for one in found]
                                   for of, found in holes.items()}}  # fmt: skip


def without_holes(stored: Mapping[str, object]) -> tuple[dict[str, object], Holes]:
    """A stored description, and the holes in it. Raises Damaged where they are none."""
    description = dict(stored)
    found = cast("Mapping[str, list[tuple[int, int]]]", description.pop(HOLES, {}))
    try:
        holes = {int(of): tuple((int(a), int(b)) for a, b in some) for of, some in found.items()}
    except (AttributeError, TypeError, ValueError):
        raise Damaged(f"expected the holes of a metric by head, came {str(found)[:40]!r}") from None
    return description, holes


def more_holes(connection: Connection, of: int, metric: Metric) -> Holes:
    """The holes of a metric that goes on where the heads of generation `of` stand now: from where
    its last totals end. Records without an event that it counts may lie at their beginnings."""
    totals = connection.execute(
        select(delta.c.head, func.max(delta.c.end_offset))
        .where(
            delta.c.generation == of,
            delta.c.metric == metric.name,
            delta.c.window_start_ms.is_(None),
            delta.c.retry.is_(None),
        )
        .group_by(delta.c.head)
    )
    ends = {int(number): int(end) for number, end in totals}
    found = dict(metric.holes)
    heads = connection.execute(
        select(head.c.id, head.c.start_offset, head.c.next_offset, head.c.topic).where(
            head.c.generation == of
        )
    ).all()
    # Where events are joined, metrics count impressions alone, by the head of the join.
    joins = [one for one in heads if one.topic == JOIN.topic]
    for number, first, now, _ in joins or heads:
        known = found.get(number, ())
        start = max(metric.start_offsets.get(number, first), *(end for _, end in known), first)
        start = max(ends.get(number, start), start)
        if now > JOIN_START and start < now:
            found[number] = (*known, (start, now))
    return found
