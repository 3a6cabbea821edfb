"""The states that a config counts, and whether two configs may add to the same state.

A metric set holds metrics that are counted by the same groupings: the metrics of the config by its
slices are one, those of an experiment by epoch and variant another. States of all metric sets are
counted, stored, compared and dropped in the same way. A [join] has its own states: impressions and
outcomes of open windows, and the delays of outcomes after their impressions. So have [exposures]:
events that wait for earlier exposures, and the first exposures of all units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, cast

from streammetrics import ExposedRows, JoinRows, LabelDelays, Panel
from streammetrics_consumers.config.closing import Closing
from streammetrics_consumers.config.column_expressions import (
    NO_COLUMNS,
    ColumnsConfig,
    computed_columns,
    operands_of,
)
from streammetrics_consumers.config.event import DERIVED, EventConfig, Field, Kind
from streammetrics_consumers.config.exposures import ExposuresConfig
from streammetrics_consumers.config.join import JoinConfig
from streammetrics_consumers.config.metrics import MetricConfig
from streammetrics_consumers.config.tables import SlicesConfig, WindowsConfig
from streammetrics_consumers.model.generation import (
    DELAYS,
    DRIFT,
    EXPOSED_ROWS,
    EXPOSED_UNITS,
    ROWS,
    SHOWN,
    USERS,
    VIEWS,
    DeclaredDrift,
    settings_of,
    type_of,
)

ALL_KEYS: Final = 1 << 31
EPOCH: Final = "epoch"  # the column of allocation epochs
_TYPES: Final[Mapping[str, str]] = {
    "variant": "key",
    "arm": "key",
    "slice": "key",
    "text_id": "key",
    "hashed_id": "hashed",
    "int_id": "int64",
    "count": "int64",
    "real": "float64",
    "label": "float64",
    "flag": "bool",
    "has_id": "bool",
    "condition": "bool",
}


# An exposure is the first of its unit to an experiment; a later one is the first of another arm.
RowKind = Literal["event", "exposure", "later_exposure"]
EVENTS: Final[tuple[RowKind, ...]] = ("event",)


@dataclass(frozen=True, slots=True)
class RowCondition:
    """Which rows a metric set counts: those with start_ms <= time < end_ms whose arm is not None
    and, of events, whose flags are all true.

    arm: the column of arms; None if each event has one. arms: those that are declared; events of
    another one are counted under the arm None. flags: columns of booleans. exposed: of an
    experiment whose arms come from exposures, its name in these, else None. kinds: events, new
    exposures (which have no other columns than the arm and the unit), or both.
    """

    start_ms: int | None = None
    end_ms: int | None = None
    arm: Field | None = None
    arms: tuple[str, ...] = ()
    flags: tuple[Field, ...] = ()
    exposed: str | None = None
    kinds: tuple[RowKind, ...] = EVENTS

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that it reads besides the time."""
        return self.flags if self.arm is None else (self.arm, *self.flags)


ALL_ROWS: Final = RowCondition()


@dataclass(frozen=True)
class MetricSet:
    """Some metrics and their groupings.

    keys: the field of each name in the groupings. declared: further settings that determine the
    meaning of the states. shown: further values that are stored for display. drifts: the
    comparisons of windows of these metrics. rows: the events that they count. epochs: where the
    epoch follows from the time, the start of each but the first and the names of all.
    """

    slices: SlicesConfig
    metrics: tuple[MetricConfig, ...]
    event: EventConfig
    windows: WindowsConfig
    keys: Mapping[str, Field]
    declared: Mapping[str, object] = field(default_factory=dict)
    shown: Mapping[str, object] = field(default_factory=dict)
    drifts: tuple[DeclaredDrift, ...] = ()
    rows: RowCondition = ALL_ROWS
    epochs: tuple[tuple[int, ...], tuple[str, ...]] | None = None

    @cached_property
    def panel(self) -> Panel:
        """The empty panel of all metrics; its columns are `Field.column` of their inputs."""
        return panel_of(self.metrics)

    @property
    def descriptions(self) -> dict[str, dict[str, object]]:
        """For each metric, in plain values: all that determines which rows it counts, and how.

        Settings that only affect when rows are committed, dropped or shown (lateness, retention,
        commits, size limits) are left out. Entries under `shown` are for display, and not part of
        the fingerprint.
        """
        event, windows = self.event, self.windows
        groupings = [[[name, self.keys[name].path] for name in names] for names in self.slices.by]
        groupings_fields = [self.keys[name] for name in self.slices.names]
        shown = {"variants": list(event.variants or ()), "idle_timeout_s": windows.idle_timeout_s}
        positions = {metric.name: metric.position for metric in self.metrics}
        return {
            metric.name: {
                "type": type_of(metric.empty),
                "settings": settings_of(metric.empty),
                "inputs": {
                    stored.get(name, name): field.column
                    for stored in (metric.empty.stored_names(),)
                    for name, field in sorted(metric.inputs.items())
                },
                "time": [event.time, event.time_unit],
                "variant": [event.variant, sorted(event.variants) if event.variants else None],
                "windows": {"size_s": windows.size_s, "slide_s": windows.slide_s},
                "max_ahead_s": windows.max_ahead_s,
                **where_of(event),
                **_expressions_of(metric, groupings_fields),
                "slices": groupings,
                "max_keys": self.slices.max_keys,
                SHOWN: {
                    **shown,
                    "position": positions[metric.name],
                    **({VIEWS: list(metric.views)} if metric.views else {}),
                    **self._drifts_of(metric.name),
                    **self._users_beside(metric),
                    **self.shown,
                },
                **self.declared,
            }
            for metric in self.metrics
        }

    def _users_beside(self, metric: MetricConfig) -> dict[str, object]:
        """The users that [event] names, if the metric of a slice does not use them."""
        user = self.event.user
        used = user is None or any(field.path == user for field in metric.inputs.values())
        return {} if used else {USERS: user}

    def _drifts_of(self, metric: str) -> dict[str, object]:
        drifts = [drift.plain for drift in self.drifts if drift.metric == metric]
        return {DRIFT: drifts} if drifts else {}


def panel_of(metrics: Sequence[MetricConfig]) -> Panel:
    """The empty panel of these metrics."""
    return Panel(
        {metric.name: metric.empty for metric in metrics},
        inputs={metric.name: metric.columns for metric in metrics},
    )


def split_by_condition(metric_set: MetricSet) -> tuple[MetricSet, ...]:
    """A metric set for each `where` of the metrics, the one without first: each counts only some
    of the events."""
    sets: dict[Field | None, list[MetricConfig]] = {None: []}
    for metric in metric_set.metrics:
        sets.setdefault(metric.where, []).append(metric)
    if len(sets) == 1:
        return (metric_set,)
    rows = metric_set.rows
    return tuple(
        replace(
            metric_set,
            metrics=tuple(metrics),
            rows=rows if where is None else replace(rows, flags=(*rows.flags, where)),
        )
        for where, metrics in sets.items()
        if metrics
    )


def _expressions_of(metric: MetricConfig, keys: Iterable[Field]) -> dict[str, object]:
    """The expressions that determine what a metric counts, in plain values; empty without any, as
    before they existed."""
    fields = [*metric.inputs.values(), *keys]
    where = metric.where
    columns = computed_columns([*fields, *(() if where is None else operands_of(where))])
    plain: dict[str, object] = {"columns": columns} if columns else {}
    if where is not None and where.computed is not None:
        plain["condition"] = where.computed.plain
    return plain


def slice_field(event: EventConfig, name: str, columns: ColumnsConfig = NO_COLUMNS) -> Field:
    """The field of a name in [slices] by."""
    path = columns.path(event.path(name))
    column = "variant" if path == event.variant else f"slice {name}"
    return columns.field(Field(path, "slice", name=column)) or Field(path, "slice", name=column)


def fields_of(event: EventConfig, metric_sets: Sequence[MetricSet]) -> tuple[Field, ...]:
    """The fields that a config needs: the time, the variant, slices, those of metrics, and those
    that say which events a metric set counts; each column once. A field is optional if nothing
    requires one of its path."""
    unit = cast("Kind", f"time_{event.time_unit or 'iso'}")
    fields = [Field(event.time, unit, name="time")]
    if event.variant is not None:
        fields.append(Field(event.variant, "variant", name="variant", texts=event.variants))
    for metric_set in metric_sets:
        # An epoch is a field of an event, or follows from the time.
        derived = set() if metric_set.epochs is None else {EPOCH}
        fields += [key for name, key in metric_set.keys.items() if name not in derived]
    for metric_set in metric_sets:
        conditions = tuple(flag.column for flag in metric_set.rows.flags if flag.computed)
        for metric in metric_set.metrics:
            fields += [replace(field, needed_where=conditions) for field in metric.inputs.values()]
    for metric_set in metric_sets:
        fields += metric_set.rows.fields
    fields = [field for field in fields if field.kind not in DERIVED]
    by_column: dict[str, Field] = {}
    for event_field in sorted(fields, key=lambda event_field: event_field.optional):
        earlier_field = by_column.setdefault(event_field.column, event_field)
        by_column[event_field.column] = _read_for_both(earlier_field, event_field)
    return tuple(by_column.values())


def _read_for_both(field: Field, other: Field) -> Field:
    """A field as two readers of one column need it: of the arms of either, and in the events of
    either."""
    if field == other:
        return field
    texts = field.texts
    if field.kind == "arm":  # of experiments with other arms
        texts = tuple(dict.fromkeys((*(field.texts or ()), *(other.texts or ()))))
    is_always_needed = not field.needed_where or not other.needed_where
    needed = tuple(dict.fromkeys((*field.needed_where, *other.needed_where)))
    return replace(field, texts=texts, needed_where=() if is_always_needed else needed)


def where_of(event: EventConfig) -> dict[str, object]:
    """The conditions of [event] where, in plain values; empty without conditions, as before the
    setting existed."""
    return {"where": [condition.plain for condition in event.where]} if event.where else {}


def columns_to_keep(fields: Iterable[Field]) -> list[Field]:
    """The fields of an impression that a join keeps, sorted by column: all but the time."""
    return sorted(
        (field for field in fields if field.column != "time"), key=lambda field: field.column
    )


def empty_rows(fields: Iterable[Field], join: JoinConfig) -> JoinRows:
    """The empty state of impressions and outcomes. fields: all that are read of an event."""
    return JoinRows(
        columns={field.column: _TYPES[field.kind] for field in columns_to_keep(fields)},
        outcomes={outcome.name: outcome.counts for outcome in join.outcomes},
        label_window_ms=join.label_window_ms,
        attribution=join.attribution,
    )


def empty_delays(join: JoinConfig) -> LabelDelays:
    """The empty state of label delays."""
    names = tuple(outcome.name for outcome in join.outcomes)
    return LabelDelays(outcomes=names, label_window_ms=join.label_window_ms)


def describe_join(
    join: JoinConfig, event: EventConfig, windows: WindowsConfig, fields: Sequence[Field]
) -> dict[str, dict[str, object]]:
    """The descriptions of both states of a join, like `MetricSet.descriptions` for metrics."""
    shared: dict[str, object] = {
        "time": [event.time, event.time_unit],
        "join": join.plan(windows),
        "pane_ms": join.pane_ms,
        **where_of(event),
        SHOWN: {"warn_cut": join.warn_cut},
    }
    inputs, expressions = _kept(columns_to_keep(fields))
    rows, delays = empty_rows(fields, join), empty_delays(join)
    shared |= expressions
    return {
        ROWS: {"type": rows.schema, "settings": settings_of(rows), "inputs": inputs, **shared},
        DELAYS: {"type": delays.schema, "settings": settings_of(delays), **shared},
    }


def _kept(fields: Sequence[Field]) -> tuple[dict[str, object], dict[str, object]]:
    """The inputs and the expressions of the columns of pending rows, in plain values."""
    inputs: dict[str, object] = {field.column: [field.path, field.kind] for field in fields}
    expressions = {
        field.column: field.computed.plain for field in fields if field.computed is not None
    }
    columns = computed_columns(operand for field in fields for operand in operands_of(field))
    return inputs, {"expressions": expressions, "columns": columns} if expressions else {}


def is_unit(field: Field, unit: str) -> bool:
    """Whether a column has the hashes of the units that are exposed, by which pending events are
    kept anyway. unit: the field of the unit."""
    return field.path == unit and field.kind == "hashed_id" and field.computed is None


def exposed_columns(fields: Iterable[Field], unit: str, *, is_joined: bool) -> list[Field]:
    """The fields of an event that are kept until it is closed, sorted by column. Where events are
    joined, none is: their impressions are kept by the join. unit: the field of the unit."""
    kept_fields = () if is_joined else columns_to_keep(fields)
    return [field for field in kept_fields if not is_unit(field, unit)]


def empty_exposed(columns: Iterable[Field], exposures: ExposuresConfig) -> ExposedRows:
    """The empty state of exposures, and of other events with these columns."""
    kinds = {field.column: _TYPES[field.kind] for field in columns}
    return ExposedRows(kinds, exposures.window_ms)


def describe_exposures(
    exposures: ExposuresConfig,
    closing: Closing,
    event: EventConfig,
    windows: WindowsConfig,
    columns: Sequence[Field],
) -> dict[str, dict[str, object]]:
    """The descriptions of pending events and exposures, and of closed exposures. columns: those
    that are kept of events."""
    shared: dict[str, object] = {
        "time": [event.time, event.time_unit],
        "exposures": exposures.plan(windows),
        "pane_ms": closing.pane_ms,
        **where_of(event),
    }
    inputs, expressions = _kept(columns)
    rows = empty_exposed(columns, exposures)
    described = {"type": rows.schema, "settings": settings_of(rows), **shared}
    return {EXPOSED_ROWS: {**described, "inputs": inputs, **expressions}, EXPOSED_UNITS: described}
