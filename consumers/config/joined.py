"""What waits to be joined, as the ledger counts it: impressions and outcomes of open windows, and
how long outcomes came after their impressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from consumers.config.fingerprint import settings_of, where_of
from consumers.events.fields import Use, uses
from consumers.model.generation import SHOWN
from streammetrics import JoinRows, LabelDelays

if TYPE_CHECKING:
    from consumers.config.config import Config
    from consumers.config.join import JoinConfig

PREFIX: Final = "join/"  # no metric of a config has such a name
ROWS: Final = PREFIX + "rows"
DELAYS: Final = PREFIX + "delays"
_TYPES: Final[Mapping[str, str]] = {
    "variant": "key",
    "slice": "key",
    "text_id": "key",
    "hashed_id": "hashed",
    "int_id": "int64",
    "count": "int64",
    "real": "float64",
    "label": "float64",
    "flag": "bool",
}


def columns_to_keep(config: Config) -> tuple[Use, ...]:
    """The columns of an impression, by name, without its time and id."""
    return tuple(sorted((u for u in uses(config) if u.name != "time"), key=lambda u: u.name))


def empty_rows(config: Config, join: JoinConfig) -> JoinRows:
    """No impression and no outcome yet."""
    return JoinRows(
        columns={use.name: _TYPES[use.kind] for use in columns_to_keep(config)},
        outcomes={one.name: one.counts for one in join.outcomes},
        label_window_ms=join.label_window_ms,
        attribution=join.attribution,
    )


def empty_delays(join: JoinConfig) -> LabelDelays:
    """No label delay yet."""
    names = tuple(one.name for one in join.outcomes)
    return LabelDelays(outcomes=names, label_window_ms=join.label_window_ms)


def describe_join(config: Config, join: JoinConfig) -> dict[str, dict[str, object]]:
    """The descriptions of both, as `fingerprint.describe` makes those of metrics."""
    event = config.event
    shared: dict[str, object] = {
        "time": [event.time, event.time_unit],
        "join": join.plan(config.windows),
        "pane_ms": join.pane_ms,
        **where_of(event),
        SHOWN: {"warn_cut": join.warn_cut},
    }
    inputs = {use.name: [use.path, use.kind] for use in columns_to_keep(config)}
    rows, delays = empty_rows(config, join), empty_delays(join)
    return {
        ROWS: {"type": rows.schema, "settings": settings_of(rows), "inputs": inputs, **shared},
        DELAYS: {"type": delays.schema, "settings": settings_of(delays), **shared},
    }
