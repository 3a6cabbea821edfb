"""How far all partitions are together: what says whether a window is open, closing or closed.

It is for display, and in no value and no digest. A partition without new events must not hold the
windows of all others open, so one whose newest event is more than `windows.idle_timeout_s` older
than the newest of all is idle, and passed over. Both are event times: what is shown follows from
what was counted, never from a clock, and is the same for whoever asks. While a backlog is read, a
partition that is read later than the others counts as idle; its events are counted all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from consumers.model.commit import Head, Snapshot
from consumers.model.generation import SHOWN


def watermark_ms(seen: Snapshot) -> int | None:
    """The event time that every partition has reached that is not idle; None before any event.
    Where events are joined, up to which label windows are closed."""
    idle = idle_heads(seen)
    times = [
        head.greatest_event_ms
        for head in seen.logs
        if head.greatest_event_ms is not None and not head.closed and head.id not in idle
    ]
    if len(seen.logs) < len(seen.heads):
        return seen.closed_ms  # what is later waits to be joined
    return min(times, default=None)


def idle_heads(seen: Snapshot) -> frozenset[int]:
    """The ids of the open heads whose newest event is old beside that of the others."""
    limit_ms = _idle_timeout_ms(seen)
    if limit_ms is None:
        return frozenset()
    return frozenset(_behind([head for head in seen.logs if not head.closed], limit_ms))


def _behind(heads: Sequence[Head], limit_ms: int) -> list[int]:
    times = [head.greatest_event_ms for head in heads if head.greatest_event_ms is not None]
    newest = max(times, default=0)
    return [
        head.id
        for head in heads
        if head.greatest_event_ms is None or head.greatest_event_ms < newest - limit_ms
    ]


def _idle_timeout_ms(seen: Snapshot) -> int | None:
    """What the last config says; None where a store has none written down."""
    for metric in seen.generation.metrics:
        shown = metric.description.get(SHOWN)
        found = shown.get("idle_timeout_s") if isinstance(shown, dict) else None
        if isinstance(found, int) and not metric.ended:
            return found * 1000
    return None
