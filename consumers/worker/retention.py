"""How far windows may be dropped: what every partition has left behind for long enough."""

from __future__ import annotations

from collections.abc import Sequence

from consumers.config.config import Config
from consumers.ledger.ledger import Ledger
from consumers.model.commit import Head
from consumers.model.generation import Generation


def floor_after(
    config: Config, heads: Sequence[Head], lowest_ms: int | None, closed_ms: int | None
) -> int | None:
    """The floor that these heads allow, where it is higher than `lowest_ms`, that of now.

    closed_ms: what is later waits to be joined, and will be counted; None: nothing waits."""
    times = [head.greatest_event_ms for head in heads]
    known = [time for time in times if time is not None]
    if not known or len(known) < len(times):
        return None
    floor_ms = config.floor_ms(min(known))
    if closed_ms is not None:
        floor_ms = min(floor_ms, closed_ms // config.windows.pane_ms * config.windows.pane_ms)
    return floor_ms if lowest_ms is None or floor_ms > lowest_ms else None


def raised(
    config: Config,
    ledger: Ledger,
    of: Generation,
    ours: Sequence[Head],
    closed_ms: int | None,
) -> Generation | None:
    """Raise the floor of a generation if all of its heads allow it; None where they do not. Others
    are asked about only where `ours`, which are known, do."""
    if not ours or floor_after(config, ours, of.floor_ms, closed_ms) is None:
        return None
    floor_ms = floor_after(config, ledger.heads(of), of.floor_ms, closed_ms)
    return None if floor_ms is None else ledger.raise_floor(of, floor_ms)
