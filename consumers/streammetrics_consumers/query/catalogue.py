"""The queryable contents of a store: metrics with their views, groupings, windows and variants."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from streammetrics import Accumulator, drift
from streammetrics.results import kinds_of, range_of
from streammetrics_consumers.ledger.delta_metadata import state_of
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.generation import Metric
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    declared,
    experiments_of,
    variants_of,
)
from streammetrics_consumers.query.json_kinds import Answer, Count, Number
from streammetrics_consumers.query.lines import all_views
from streammetrics_consumers.query.query import Query, QueryError, WindowGrid
from streammetrics_consumers.query.query_plan import (
    MetricLayout,
    asked_snapshot,
    metrics_of,
    window_of,
)
from streammetrics_consumers.query.rows import Window
from streammetrics_consumers.query.slices import VARIANT, kind_of, own_result

MAX_SPANS: Final = 1000  # listed windows, the newest ones
MAX_WRITTEN: Final = 100  # answers that are kept
OVER_TIME: Final = "history"  # a figure that every metric has
EFFECT: Final = "effect"  # a figure of metrics that an experiment compares


class StoreMetric(Answer, frozen=True):
    """A metric, its views, its headline views, and its figures. ranges: the least and the greatest
    value of views that have limits."""

    name: str
    type: str
    views: tuple[str, ...]
    headlines: tuple[str, ...]
    figures: tuple[str, ...]
    ranges: Mapping[str, tuple[Number, Number]]

    def view(self, view_name: str | None) -> str:
        """The view asked for, by default the first headline view; QueryError if there is none."""
        if view_name is None and self.headlines:
            return self.headlines[0]
        if view_name is None or view_name not in self.views:
            raise QueryError(
                expected="a view of this metric "
                f"({', '.join(self.views) or 'no rows are counted yet'})",
                got=repr(view_name if view_name is None else view_name[:80]),
                where="view",
                hint="correct the name, or leave it out for the first one",
            )
        return view_name


class WindowsAnswer(Answer, frozen=True):
    """The newest windows of a store. more: the number of windows that are not listed."""

    size_ms: Count
    slide_ms: Count
    spans: tuple[Window, ...]
    more: Count


class StoreAnswer(Answer, frozen=True, tag_field="format", tag="streammetrics-store/1"):
    """The contents of a store that queries can name. outline: changes when they do."""

    name: str
    outline: str
    generation: Count
    generations: tuple[int, ...]
    variants: tuple[str, ...]
    control: str | None
    groupings: tuple[tuple[str, ...], ...]
    metrics: tuple[StoreMetric, ...]
    windows: WindowsAnswer
    experiment: bool
    experiments: (
        Annotated[
            tuple[str, ...], Meta(description="the names of experiments; left out if none has one")
        ]
        | UnsetType
    ) = UNSET


def watched_by(design: DeclaredExperiment) -> set[str]:
    """The metrics that an experiment compares; its plan may name a view of one, after a dot."""
    return {design.metric_of(name) for name in design.plan.watched}


class Catalogue:
    """Reads the catalogue of a ledger. Thread-safe. Views are read from a stored state, once for
    each metric, because the settings alone do not give the names of measures."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger, self._name = ledger, name
        # By name and fingerprint: the views of a metric never change.
        self._known: dict[tuple[str, str, tuple[str, ...]], tuple[Accumulator, StoreMetric]] = {}

        # By generation and experiment: the last answer, and what it was made of.
        self._written: dict[tuple[int | None, str | None], tuple[object, bytes]] = {}

    def known(
        self, metric: str, generation: int | None = None, experiment: str | None = None
    ) -> StoreMetric:
        """The catalogue entry of one metric, as an experiment counts it if one is named."""

        def read(now: StoreView) -> StoreMetric:
            query = Query(metric=metric, experiment=experiment)
            counted_metric = metrics_of(now.bare, query)[0]
            return next(
                entry for entry in self._entries(now, counted_metric) if entry.name == metric
            )

        return view(self._ledger, read, generation=generation)

    def grouping(
        self, names: frozenset[str], generation: int | None = None, experiment: str | None = None
    ) -> frozenset[str]:
        """The smallest grouping that contains these names, else the smallest of all; of an
        experiment that by its arms."""
        if experiment is not None:
            return frozenset({VARIANT})

        def read(now: StoreView) -> frozenset[str]:
            metrics = metrics_of(now.bare, Query())
            groupings = [
                frozenset(grouping)
                for metric in metrics
                for grouping in MetricLayout.from_metric(metric).groupings
            ]
            ordered = sorted(
                groupings,
                key=lambda grouping: (not names <= grouping, len(grouping), sorted(grouping)),
            )
            return ordered[0] if ordered else names

        return view(self._ledger, read, generation=generation)

    def to_json(self, generation: int | None = None, experiment: str | None = None) -> bytes:
        """The bytes of `GET /api/store`; of an experiment, what it counts."""

        def read(now: StoreView) -> tuple[object, bytes]:
            generations = now.generation_ids
            made_of = now.version, generations
            cached_answer = self._written.get((generation, experiment))
            if cached_answer is not None and cached_answer[0] == made_of:
                return cached_answer
            query = Query(experiment=experiment)
            snapshot = asked_snapshot(now.snapshot, query)
            design = declared(snapshot.generation, experiment)
            names = experiments_of(snapshot.generation)
            compared = set() if design is None else watched_by(design)
            variants, control = variants_of(snapshot.generation, experiment)
            metrics = sorted(
                metrics_of(snapshot, query), key=lambda metric: (metric.position, metric.name)
            )
            store = StoreAnswer(
                name=self._name,
                outline="",
                generation=snapshot.generation.id,
                generations=generations,
                variants=variants,
                control=control or None,
                groupings=_groupings(metrics) if experiment is None else ((VARIANT,),),
                metrics=tuple(
                    _with_time(entry, compared)
                    for metric in metrics
                    for entry in self._entries(now, metric)
                ),
                windows=_windows(snapshot, metrics),
                experiment=design is not None,
                experiments=names if any(names) else UNSET,
            )
            outline = hashlib.sha256(dumps(store)).hexdigest()
            return made_of, dumps(replace(store, outline=outline))

        if len(self._written) >= MAX_WRITTEN:
            self._written.clear()
        written = view(self._ledger, read, generation=generation)
        self._written[generation, experiment] = written
        return written[1]

    def _entries(self, now: StoreView, metric: Metric) -> list[StoreMetric]:
        """A metric, then its drifts."""
        key = metric.name, metric.fingerprint, metric.views
        if key not in self._known:
            panes = [size for size in now.snapshot.panes if size.pane.metric == metric.name]
            if not panes:
                names = _name(metric), *(declaration.name for declaration in metric.drifts)
                return [StoreMetric(name, "", (), (), (), {}) for name in names]
            least = min(panes, key=lambda size: size.nbytes / size.rows)
            row = min(now.delta_metadata([least.pane]), key=lambda row: row.nbytes)
            [(_, stored)] = now.states([row])
            empty = state_of(row, stored).metric
            result = own_result(empty, empty.compute())
            entry = _entry(_name(metric), kind_of(empty), result, metric.views)
            self._known[key] = empty, entry
        empty, entry = self._known[key]
        drifts = (
            _entry(
                declaration.name,
                "Drift",
                drift(empty, empty, label=declaration.label, bins=declaration.bins),
            )
            for declaration in metric.drifts
        )
        return [entry, *drifts]


def _name(metric: Metric) -> str:
    """The name of a metric in the config."""
    return metric.name.removeprefix(f"{metric.metric_set}/")


def _entry(name: str, kind: str, result: object, config_views: Sequence[str] = ()) -> StoreMetric:
    """A metric with the views of its result without rows, and those that the config names."""
    views, headlines = all_views(result, config_views)
    figures = () if kind == "Drift" else kinds_of(result)
    return StoreMetric(name, kind, tuple(views), headlines, figures, dict(_limits(result, views)))


def _limits(result: object, views: Iterable[str]) -> Iterator[tuple[str, tuple[float, float]]]:
    """The range of each of these views that has one."""
    for name in views:
        limits = range_of(result, name)
        if any(map(math.isfinite, limits)):
            yield name, limits


def _with_time(entry: StoreMetric, compared: set[str]) -> StoreMetric:
    over_time = (OVER_TIME, EFFECT) if entry.name in compared else (OVER_TIME,)
    return replace(entry, figures=(*entry.figures, *over_time))


def _groupings(metrics: list[Metric]) -> tuple[tuple[str, ...], ...]:
    groupings = {
        names for metric in metrics for names in MetricLayout.from_metric(metric).groupings
    }
    return tuple(sorted(groupings, key=lambda names: (len(names), names)))


def _windows(snapshot: Snapshot, metrics: list[Metric]) -> WindowsAnswer:
    windows = MetricLayout.from_metric(metrics[0]).windows if metrics else WindowGrid(0, 0)
    starts = {size.pane.start_ms for size in snapshot.panes}
    pane_starts = (start for start in starts if start is not None)
    spans = windows.windows_over(pane_starts, snapshot.generation.floor_ms) if metrics else ()
    return WindowsAnswer(
        size_ms=windows.size_ms,
        slide_ms=windows.slide_ms,
        spans=tuple(window_of(span, snapshot) for span in spans[-MAX_SPANS:]),
        more=max(len(spans) - MAX_SPANS, 0),
    )
