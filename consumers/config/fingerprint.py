"""Whether two configs may add to the same state of a metric, and if not, why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from consumers.model.generation import SHOWN

if TYPE_CHECKING:
    from consumers.config.event import EventConfig
    from consumers.config.metrics import MetricConfig
    from consumers.config.tables import WindowsConfig
    from streammetrics import Accumulator


def describe(
    made: MetricConfig,
    event: EventConfig,
    windows: WindowsConfig,
    by: Sequence[Sequence[tuple[str, str]]],
    max_keys: int,
) -> dict[str, object]:
    """All that decides which rows a metric counts, and how, in plain values.

    by: its groupings, each of which has names, and for each name a path in an event.

    What changes only when rows are committed, dropped or shown (lateness, retention, commits,
    size limits) is not in it, but for what stands under `shown`: it is there for those who show
    results, and the fingerprint leaves it out.
    """
    return {
        "type": made.empty.schema,
        "settings": settings_of(made.empty),
        "inputs": {name: field.column for name, field in sorted(made.inputs.items())},
        "time": [event.time, event.time_unit],
        "variant": [event.variant, sorted(event.variants) if event.variants else None],
        "windows": {"size_s": windows.size_s, "slide_s": windows.slide_s},
        "max_ahead_s": windows.max_ahead_s,
        **where_of(event),
        "slices": [[list(named) for named in grouping] for grouping in by],
        "max_keys": max_keys,
        SHOWN: {
            "variants": list(event.variants or ()),
            "idle_timeout_s": windows.idle_timeout_s,
        },
    }


def where_of(event: EventConfig) -> dict[str, object]:
    """Which events are meant, in plain values; nothing where all are, as before there was such a
    setting."""
    return {"where": [one.plain for one in event.where]} if event.where else {}


def settings_of(empty: Accumulator) -> dict[str, str]:
    """The settings of a state in plain values, by name."""
    return {name: str(value) for name, value in sorted(empty.settings().items())}


def fingerprint(description: Mapping[str, object]) -> str:
    """sha256 (hex) of a description's canonical JSON, without what is for display."""
    meant = {name: value for name, value in description.items() if name != SHOWN}
    text = json.dumps(meant, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
