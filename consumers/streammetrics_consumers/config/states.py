"""The states that a config counts, and whether two configs may add to the same state.

A family is a set of metrics that are counted by the same groupings: the metrics of the config by
its slices are one, those of an experiment by epoch and variant another. Whatever counts, stores,
compares or drops states does so for each family alike. A [join] has states of its own: impressions
and outcomes of open windows, and how long outcomes came after their impressions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from streammetrics import Accumulator, JoinRows, LabelDelays, Panel, PerKey, Windows
from streammetrics_consumers.config.event import EventConfig
from streammetrics_consumers.config.join import JoinConfig
from streammetrics_consumers.config.metrics import MetricConfig
from streammetrics_consumers.config.tables import SlicesConfig, WindowsConfig
from streammetrics_consumers.model.generation import SHOWN

ALL_KEYS: Final = 1 << 31
EPOCH: Final = "epoch"  # the column of allocation epochs
JOIN_PREFIX: Final = "join/"  # no metric of a config has such a name
ROWS: Final = JOIN_PREFIX + "rows"
DELAYS: Final = JOIN_PREFIX + "delays"
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


@dataclass(frozen=True, slots=True)
class EventColumn:
    """One column that a config reads of an event: its name, the path of its field, and what it is
    read as. width: how many values a row of a table has, else 0."""

    name: str
    path: str
    kind: str
    width: int = 0

    @property
    def is_key(self) -> bool:
        """Whether rows are sliced by it, rather than measured."""
        return self.kind in ("variant", "slice")


@dataclass(frozen=True)
class MetricSet:
    """Some metrics and their groupings.

    columns: by name of the groupings, the decoder's column of its values. paths: where these come
    from in an event. declared: what else decides what the metrics' states mean. shown: what else is
    kept for those who show results.
    """

    slices: SlicesConfig
    metrics: tuple[MetricConfig, ...]
    event: EventConfig
    windows: WindowsConfig
    paths: Mapping[str, str]
    columns: Mapping[str, str]
    declared: Mapping[str, object] = field(default_factory=dict)
    shown: Mapping[str, object] = field(default_factory=dict)

    def panel(self) -> Panel:
        """The empty panel of all metrics; its columns are `Field.column` of what they read."""
        return Panel(
            {metric.name: metric.empty for metric in self.metrics},
            inputs={metric.name: metric.columns for metric in self.metrics},
        )

    def per_key(self) -> PerKey:
        """The empty state of one grouping: keys are (grouping, value, ...). All are kept apart:
        coarser groupings follow from these, and only what is stored is bounded by `max_keys`."""
        return self._per_key.empty()

    def empty(self) -> Windows:
        """The empty state of one grouping by window. Each grouping has one of its own, so that
        the keys of one never push those of another into (other)."""
        return self._windows.empty()

    @cached_property
    def takes(self) -> frozenset[str]:
        """The columns that its metrics read."""
        return frozenset(self._per_key.metric.arguments())

    @cached_property
    def _per_key(self) -> PerKey:
        return PerKey(self.panel(), max_keys=ALL_KEYS)

    @cached_property
    def _windows(self) -> Windows:
        # Checking the settings of nested metrics takes half a millisecond; empty() takes none.
        return Windows(self._per_key, size_s=self.windows.size_s, slide_s=self.windows.slide_s)

    @property
    def descriptions(self) -> dict[str, dict[str, object]]:
        """For each metric, all that decides which rows it counts and how, in plain values.

        What changes only when rows are committed, dropped or shown (lateness, retention, commits,
        size limits) is not in it, but for what stands under `shown`: it is there for those who
        show results, and the fingerprint leaves it out.
        """
        event, windows = self.event, self.windows
        by = [[[name, self.paths[name]] for name in names] for names in self.slices.by]
        shown = {"variants": list(event.variants or ()), "idle_timeout_s": windows.idle_timeout_s}
        return {
            made.name: {
                "type": made.empty.schema,
                "settings": settings_of(made.empty),
                "inputs": {
                    former.get(name, name): field.column
                    for former in (made.empty.former_arguments(),)
                    for name, field in sorted(made.inputs.items())
                },
                "time": [event.time, event.time_unit],
                "variant": [event.variant, sorted(event.variants) if event.variants else None],
                "windows": {"size_s": windows.size_s, "slide_s": windows.slide_s},
                "max_ahead_s": windows.max_ahead_s,
                **where_of(event),
                "slices": by,
                "max_keys": self.slices.max_keys,
                SHOWN: {**shown, **self.shown},
                **self.declared,
            }
            for made in self.metrics
        }


def slice_column(event: EventConfig, name: str) -> str:
    """The column that holds the values of a name of [slices] by."""
    return "variant" if event.path(name) == event.variant else f"slice {name}"


def event_columns(event: EventConfig, metric_sets: Sequence[MetricSet]) -> tuple[EventColumn, ...]:
    """Every column that a config needs: the time, the variant, slices, and metrics' fields."""
    found = [EventColumn("time", event.time, f"time_{event.time_unit or 'iso'}")]
    if event.variant is not None:
        found.append(EventColumn("variant", event.variant, "variant"))
    for metric_set in metric_sets:
        for name, key in metric_set.columns.items():
            if key != EPOCH:
                found.append(EventColumn(key, metric_set.paths[name], "slice"))
            elif event.epoch is not None:
                found.append(EventColumn(EPOCH, event.epoch, "variant"))
    for metric_set in metric_sets:
        for metric in metric_set.metrics:
            for one in metric.inputs.values():
                if one.kind != "outcome":  # no field of an event: [join] makes it
                    found.append(EventColumn(one.column, one.path, one.kind, one.width))
    by_name: dict[str, EventColumn] = {}
    for column in found:
        by_name.setdefault(column.name, column)
    return tuple(by_name.values())


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


def columns_to_keep(columns: Iterable[EventColumn]) -> list[EventColumn]:
    """Those of an impression that a join keeps, by name: all but its time."""
    return sorted((one for one in columns if one.name != "time"), key=lambda one: one.name)


def empty_rows(columns: Iterable[EventColumn], join: JoinConfig) -> JoinRows:
    """No impression and no outcome yet. columns: all that are read of an event."""
    return JoinRows(
        columns={one.name: _TYPES[one.kind] for one in columns_to_keep(columns)},
        outcomes={one.name: one.counts for one in join.outcomes},
        label_window_ms=join.label_window_ms,
        attribution=join.attribution,
    )


def empty_delays(join: JoinConfig) -> LabelDelays:
    """No label delay yet."""
    names = tuple(one.name for one in join.outcomes)
    return LabelDelays(outcomes=names, label_window_ms=join.label_window_ms)


def describe_join(
    join: JoinConfig, event: EventConfig, windows: WindowsConfig, columns: Sequence[EventColumn]
) -> dict[str, dict[str, object]]:
    """The descriptions of both states of a join, as `describe` makes those of metrics."""
    shared: dict[str, object] = {
        "time": [event.time, event.time_unit],
        "join": join.plan(windows),
        "pane_ms": join.pane_ms,
        **where_of(event),
        SHOWN: {"warn_cut": join.warn_cut},
    }
    inputs = {one.name: [one.path, one.kind] for one in columns_to_keep(columns)}
    rows, delays = empty_rows(columns, join), empty_delays(join)
    return {
        ROWS: {"type": rows.schema, "settings": settings_of(rows), "inputs": inputs, **shared},
        DELAYS: {"type": delays.schema, "settings": settings_of(delays), **shared},
    }
