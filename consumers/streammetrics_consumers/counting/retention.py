"""What a shorter retention of a config would drop, before it is dropped."""

from __future__ import annotations

from typing import Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.housekeeping import floor_after
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.model.generation import JOIN_PREFIX

KEEP_WINDOWS: Final = (
    "Restore retention_s, or drop these windows with --drop-windows: no setting brings them back. "
    "Nothing was changed."
)


def windows_dropped(ledger: Ledger, config: Config) -> str:
    """The windows that a shorter retention of a config would drop from a store, in words; empty
    where the retention is not shorter, or no window is dropped."""
    generations = [generation for generation in ledger.generations() if generation.current]
    if not generations:
        return ""
    snapshot = ledger.snapshot()
    heads = [head for head in snapshot.heads if not head.is_join and not head.closed]
    closed_ms = next((head.next_offset for head in snapshot.heads if head.is_join), None)
    floor_ms = floor_after(config, heads, snapshot.generation.floor_ms, closed_ms)
    was_s = _former_retention_s(ledger, snapshot, config)
    if floor_ms is None or was_s is None or config.windows.retention_s >= was_s:
        return ""
    spans = {
        (pane.start_ms, pane.end_ms)
        for pane in (size.pane for size in snapshot.panes)
        if pane.start_ms is not None
        and pane.end_ms is not None
        and pane.start_ms < floor_ms
        and not pane.metric.startswith(JOIN_PREFIX)
    }
    if not spans:
        return ""
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    return (
        f"retention_s was {was_s}, is {config.windows.retention_s}: a run drops "
        f"{len(spans)} window{'s' if len(spans) > 1 else ''} of each metric, from "
        f"{iso_utc(first)} to {iso_utc(last)}; the totals since the start keep their events"
    )


def _former_retention_s(ledger: Ledger, snapshot: Snapshot, config: Config) -> int | None:
    """The retention with which a store was last counted; None where it cannot be known.

    Before schema version 8 a store does not have it. There it follows from the floor, which a
    worker raises after each commit.
    """
    last = [
        counted.period.settings["retention_s"]
        for counted in ledger.history(snapshot.generation.id)
        if counted.period is not None
        and counted.end == counted.head.next_offset
        and "retention_s" in counted.period.settings
    ]
    if last:
        return max(last)
    times = [head.greatest_event_ms for head in snapshot.heads if not head.is_join]
    known_times = [time for time in times if time is not None]
    floor_ms = snapshot.generation.floor_ms
    if floor_ms is None or not known_times:
        return None
    return (min(known_times) - floor_ms - config.windows.pane_ms) // 1000
