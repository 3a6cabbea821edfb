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
from typing import Final, cast

from streammetrics import Accumulator, JoinRows, LabelDelays, Panel, PerKey, Windows
from streammetrics_consumers.config.event import EventConfig, Field, Kind
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


def fields_of(event: EventConfig, metric_sets: Sequence[MetricSet]) -> tuple[Field, ...]:
    """Every field that a config needs: the time, the variant, slices, and those of metrics; each
    column once."""
    unit = cast("Kind", f"time_{event.time_unit or 'iso'}")
    found = [Field(event.time, unit, name="time")]
    if event.variant is not None:
        found.append(Field(event.variant, "variant", name="variant", texts=event.variants))
    for metric_set in metric_sets:
        for name, key in metric_set.columns.items():
            if key != EPOCH:
                found.append(Field(metric_set.paths[name], "slice", name=key))
            elif event.epoch is not None:
                found.append(Field(event.epoch, "variant", name=EPOCH))
    for metric_set in metric_sets:
        for metric in metric_set.metrics:
            # An outcome is no field of an event: [join] makes it.
            found += [one for one in metric.inputs.values() if one.kind != "outcome"]
    by_column: dict[str, Field] = {}
    for one in found:
        by_column.setdefault(one.column, one)
    return tuple(by_column.values())


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


def columns_to_keep(fields: Iterable[Field]) -> list[Field]:
    """Those of an impression that a join keeps, by column: all but its time."""
    return sorted((one for one in fields if one.column != "time"), key=lambda one: one.column)


def empty_rows(fields: Iterable[Field], join: JoinConfig) -> JoinRows:
    """No impression and no outcome yet. fields: all that are read of an event."""
    return JoinRows(
        columns={one.column: _TYPES[one.kind] for one in columns_to_keep(fields)},
        outcomes={one.name: one.counts for one in join.outcomes},
        label_window_ms=join.label_window_ms,
        attribution=join.attribution,
    )


def empty_delays(join: JoinConfig) -> LabelDelays:
    """No label delay yet."""
    names = tuple(one.name for one in join.outcomes)
    return LabelDelays(outcomes=names, label_window_ms=join.label_window_ms)


def describe_join(
    join: JoinConfig, event: EventConfig, windows: WindowsConfig, fields: Sequence[Field]
) -> dict[str, dict[str, object]]:
    """The descriptions of both states of a join, as `describe` makes those of metrics."""
    shared: dict[str, object] = {
        "time": [event.time, event.time_unit],
        "join": join.plan(windows),
        "pane_ms": join.pane_ms,
        **where_of(event),
        SHOWN: {"warn_cut": join.warn_cut},
    }
    inputs = {one.column: [one.path, one.kind] for one in columns_to_keep(fields)}
    rows, delays = empty_rows(fields, join), empty_delays(join)
    return {
        ROWS: {"type": rows.schema, "settings": settings_of(rows), "inputs": inputs, **shared},
        DELAYS: {"type": delays.schema, "settings": settings_of(delays), **shared},
    }
