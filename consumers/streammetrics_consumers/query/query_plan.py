"""The metrics, groupings and windows that a query reads, and the state of each window.

The watermark is for display only, and part of no value and no digest. A partition without new
events must not hold the windows of all others open. So a partition is idle, and ignored, if its
newest event is more than `windows.idle_timeout_s` older than the newest of all. Both are event
times: the watermark depends on the counted events, never on a clock, and is the same for every
reader. While a backlog is read, a partition that is read later than the others counts as idle; its
events are counted anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.generation import (
    ACTIVE,
    SHOWN,
    UNITS,
    DeclaredDrift,
    Metric,
    Pane,
)
from streammetrics_consumers.query.drifts import declared_drift, reference_spans
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment, declared
from streammetrics_consumers.query.query import Query, QueryError, Span, WindowGrid, state_of
from streammetrics_consumers.query.rows import SINCE_THE_START, Window
from streammetrics_consumers.query.slices import VARIANT


@dataclass(frozen=True, slots=True)
class MetricLayout:
    """The layout of a metric's states: the names of each grouping, and the windows."""

    groupings: tuple[tuple[str, ...], ...]
    windows: WindowGrid

    @staticmethod
    def from_metric(metric: Metric) -> MetricLayout:
        """The layout in the description that the ledger keeps of a metric."""
        slices = cast("Sequence[Sequence[tuple[str, str]]]", metric.description["slices"])
        windows = cast("Mapping[str, int]", metric.description["windows"])
        return MetricLayout(
            tuple(tuple(name for name, _ in grouping) for grouping in slices),
            WindowGrid(windows["size_s"] * 1000, windows["slide_s"] * 1000),
        )


@dataclass(frozen=True)
class MetricPlan:
    """What a query reads of one metric: groupings by position, and spans; None is the total.

    drifts: the comparisons of these spans that are asked for. plain: whether the metric itself is.
    experiment: the one that counts it, if the query names one; then the slices are its arms.
    """

    layout: MetricLayout
    groupings: frozenset[int]
    spans: tuple[Span | None, ...]
    drifts: tuple[DeclaredDrift, ...] = ()
    plain: bool = True
    experiment: DeclaredExperiment | None = None

    def name_of(self, metric: str) -> str:
        """The name that rows have of a metric of the ledger."""
        return metric if self.experiment is None else metric.removeprefix(self.experiment.prefix)

    def wants(self, pane: Pane) -> bool:
        """Whether the answer needs this pane."""
        if pane.grouping not in self.groupings:
            return False
        if pane.start_ms is None:
            return None in self.spans
        # Spans are in time order, so the first and the last give the range of all of them. A pane
        # between two spans is read in vain, which costs time and does not change the answer.
        spans = [span for span in (self.spans[:2] + self.spans[-1:]) if span is not None]
        inside = bool(spans) and spans[0].start_ms <= pane.start_ms < spans[-1].end_ms
        return inside or any(span.holds(pane.start_ms) for span in self._references)

    @cached_property
    def _references(self) -> frozenset[Span]:
        """The windows that are read only because others are compared with them."""
        return reference_spans(self.spans, self.drifts)


def plan(snapshot: Snapshot, query: Query) -> dict[str, MetricPlan]:
    """What the query reads of each of its metrics. Raises QueryError if that is nothing."""
    planned = {}
    design = None if query.experiment is None else declared(snapshot.generation, query.experiment)
    query_snapshot = asked_snapshot(snapshot, query)
    for metric in metrics_of(snapshot, query):
        variants = metric.variants if design is None else design.plan.variants
        _require_variants(variants, query)
        layout = MetricLayout.from_metric(metric)
        if design is not None:
            layout = replace(layout, groupings=((VARIANT,),))
        groupings = groupings_of(layout, query)
        spans = spans_of(query_snapshot, query, layout.windows)
        plain = query.metric in (None, metric.name) or design is not None
        drifts = tuple(drift for drift in metric.drifts if query.metric in (None, drift.name))
        planned[metric.name] = MetricPlan(layout, groupings, spans, drifts, plain, design)
    return planned


def asked_snapshot(snapshot: Snapshot, query: Query) -> Snapshot:
    """A snapshot; with only the panes of an experiment if the query names one."""
    if query.experiment is None:
        return snapshot
    design = declared(snapshot.generation, query.experiment)
    names = () if design is None else design.metrics
    return replace(
        snapshot, panes=tuple(size for size in snapshot.panes if size.pane.metric in names)
    )


def _require_variants(variants: Sequence[str], query: Query) -> None:
    """Refuse a variant that is not declared, if variants are declared."""
    for name, value in query.where:
        if name == VARIANT and variants and value not in variants:
            raise QueryError(
                expected=f"a variant of this store ({', '.join(variants)})",
                got=repr(value[:80]),
                where="--where",
                hint="correct the name",
            )


def metrics_of(snapshot: Snapshot, query: Query) -> list[Metric]:
    """The metric that the query names, itself or by a drift of it, or all that the config still
    has; of an experiment those that it counts. Raises QueryError."""
    if query.experiment is not None:
        return _metrics_of_experiment(snapshot, query)
    metrics = [metric for metric in snapshot.generation.metrics if not metric.metric_set]
    if query.metric is None:
        return [metric for metric in metrics if not metric.ended]
    matches = [metric for metric in metrics if metric.name == query.metric]
    drift = declared_drift(snapshot, query.metric)
    if not matches and drift is not None:
        return [drift[0]]
    if not matches:
        names = [metric.name for metric in metrics]
        names += [drift.name for metric in metrics for drift in metric.drifts]
        raise QueryError(
            expected=f"a metric of this store ({', '.join(sorted(names))})",
            got=repr(query.metric[:80]),
            where="--metric",
            hint="correct the name",
        )
    return matches


def _metrics_of_experiment(snapshot: Snapshot, query: Query) -> list[Metric]:
    design = declared(snapshot.generation, query.experiment)
    assert design is not None
    by_name = {name.removeprefix(design.prefix): metric for name, metric in design.metrics.items()}
    for name in (UNITS, *([ACTIVE] if design.is_exposed else [])):
        by_name.pop(name, None)
    if query.metric is None:
        return [*by_name.values()]
    if query.metric not in by_name:
        raise QueryError(
            expected=f"a metric of this experiment ({', '.join(sorted(by_name))})",
            got=repr(query.metric[:80]),
            where="--metric",
            hint="correct the name",
        )
    return [by_name[query.metric]]


def groupings_of(layout: MetricLayout, query: Query) -> frozenset[int]:
    """The positions of the groupings that equal `by` and contain every name of `where`."""
    groupings = [frozenset(names) for names in layout.groupings]
    if query.by is not None and query.by not in groupings:
        raise QueryError(
            expected=f"a grouping of this store ({_listed(layout.groupings)})",
            got=repr(",".join(sorted(query.by))[:80]),
            where="--by",
            hint="choose one of these, or add yours to [slices] by and start a new generation",
        )
    names = {name for name, _ in query.where}
    positions = [
        i
        for i, has in enumerate(groupings)
        if names <= has and (query.by is None or query.by == has)
    ]
    if not positions:
        raise QueryError(
            expected=f"names that a grouping of this store has ({_listed(layout.groupings)})",
            got=repr(",".join(sorted(names))[:80]),
            where="--where",
            hint="correct the names, or choose a --by that has them",
        )
    return frozenset(positions)


def spans_of(snapshot: Snapshot, query: Query, windows: WindowGrid) -> tuple[Span | None, ...]:
    """The spans of the answer, in time order; None, the total, comes first."""
    floor_ms = snapshot.generation.floor_ms
    if isinstance(query.window, Span):
        windows.require(query.window, floor_ms)
        return (query.window,)
    if query.window == "total":
        return (None,)
    starts = {size.pane.start_ms for size in snapshot.panes}
    spans = windows.windows_over((start for start in starts if start is not None), floor_ms)
    return spans[-1:] if query.window == "latest" else (None, *spans)


def _listed(groupings: Iterable[tuple[str, ...]]) -> str:
    return "; ".join(",".join(names) or "'' for all rows" for names in groupings)


def chosen(snapshot: Snapshot, planned: Mapping[str, MetricPlan]) -> list[Pane]:
    """The panes that a plan needs."""
    return [
        size.pane
        for size in snapshot.panes
        if (metric_plan := planned.get(size.pane.metric)) and metric_plan.wants(size.pane)
    ]


def window_of(span: Span | None, snapshot: Snapshot) -> Window:
    """A span with its state."""
    if span is None:
        return SINCE_THE_START
    least = watermark_ms(snapshot)
    state = state_of(span.end_ms, least, snapshot.generation.lateness_ms)
    return Window(span.start_ms, span.end_ms, state)


def watermark_ms(snapshot: Snapshot) -> int | None:
    """The event time that every partition has reached that is not idle; None before any event.
    With joined events, the time up to which label windows are closed."""
    idle = idle_heads(snapshot)
    times = [
        head.greatest_event_ms
        for head in snapshot.logs
        if head.greatest_event_ms is not None and not head.closed and head.id not in idle
    ]
    if len(snapshot.logs) < len(snapshot.heads):
        return snapshot.closed_ms  # later events are not joined yet
    return min(times, default=None)


def idle_heads(snapshot: Snapshot) -> frozenset[int]:
    """The ids of the open heads whose newest event is much older than the newest of all."""
    limit_ms = _idle_timeout_ms(snapshot)
    if limit_ms is None:
        return frozenset()
    newest = {h.id: h.greatest_event_ms for h in snapshot.logs if not h.closed}
    latest = max((ms for ms in newest.values() if ms is not None), default=0)
    return frozenset(
        head_id for head_id, ms in newest.items() if ms is None or ms < latest - limit_ms
    )


def _idle_timeout_ms(snapshot: Snapshot) -> int | None:
    """The idle timeout in the last config; None if the store does not have it."""
    for metric in snapshot.generation.metrics:
        shown = metric.description.get(SHOWN)
        timeout_s = shown.get("idle_timeout_s") if isinstance(shown, dict) else None
        if isinstance(timeout_s, int) and not metric.ended:
            return timeout_s * 1000
    return None
