"""One view of one metric over time: its value in each window, and the effect look by look.

Arrays are parallel to the windows, so that a month of ten variants takes few arrays, not many rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeVar

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import Point, thinned
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.catalogue import Catalogue, watched_by
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment, declared
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.json_kinds import Answer, Count, Counts, Names, Number, Time
from streammetrics_consumers.query.query import Query, Slice, slice_key
from streammetrics_consumers.query.rows import SliceRow, Window, WindowFinding

T = TypeVar("T")
Effects = Literal["none", "total", "all"]  # over no window, over the total, or over all windows

MAX_WINDOWS: Final = 400  # the newest
MAX_SERIES: Final = 40


class HistorySeries(Answer, frozen=True):
    """One slice, its arrays parallel to the windows; rows are null where nothing was counted."""

    slice: Names
    value: tuple[Number, ...]
    low: tuple[Number, ...]
    high: tuple[Number, ...]
    lower: tuple[Number, ...]
    upper: tuple[Number, ...]
    rows: tuple[int | None, ...]


class EffectLooks(Answer, frozen=True):
    """The looks at one comparison since the start, in parallel arrays."""

    watermark_ms: tuple[Time | None, ...]
    effect: tuple[Number, ...]
    lower: tuple[Number, ...]
    upper: tuple[Number, ...]
    gated: tuple[bool, ...]


class EffectWindows(Answer, frozen=True):
    """The effect in each single window, in arrays parallel to the windows."""

    effect: tuple[Number, ...]
    lower: tuple[Number, ...]
    upper: tuple[Number, ...]


class HistoryEffect(Answer, frozen=True):
    """One comparison over time."""

    metric: str
    view: str
    control_variant: str
    treatment_variant: str
    guardrail: bool
    looks: EffectLooks
    windows: EffectWindows


class History(Answer, frozen=True, tag_field="format", tag="streammetrics-history/1"):
    """One view of one metric by window; `more` windows and `more_series` are left out."""

    generation: Count
    offsets: Counts
    metric: str
    view: str
    windows: tuple[Window, ...]
    more: Count
    series: tuple[HistorySeries, ...]
    more_series: Count
    effects: tuple[HistoryEffect, ...]


def history_of(
    results: ResultsAnswer,
    metric: str,
    view: str,
    comparisons: Sequence[WindowFinding],
    points: Callable[[str], Sequence[Point]],
    most: int = MAX_SERIES,
) -> History:
    """The history of a view, from an answer over all windows, with at most `most` series.

    comparisons: of this metric, over all windows; points: the looks at a comparison by its name.
    """
    rows = [r for r in results.rows if r.view == view and r.window.start_ms is not None]
    windows = tuple(dict.fromkeys(row.window for row in rows))
    shown = dict.fromkeys(windows[-MAX_WINDOWS:])
    by_slice: dict[tuple[object, ...], dict[Window, SliceRow]] = {}
    for row in rows:
        if row.window in shown:
            by_slice.setdefault(slice_key(row.slice), {})[row.window] = row
    ordered = sorted(
        by_slice.values(),
        key=lambda rows: side_by_side(next(iter(rows.values())).slice, results.tables.variants),
    )
    by_name: dict[str, dict[Window, WindowFinding]] = defaultdict(dict)
    for finding in comparisons:
        by_name[finding.name][finding.window] = finding
    return History(
        generation=results.generation,
        offsets=results.offsets,
        metric=metric,
        view=view,
        windows=tuple(shown),
        more=len(windows) - len(shown),
        series=tuple(_series([by_window.get(w) for w in shown]) for by_window in ordered[:most]),
        more_series=max(len(ordered) - most, 0),
        effects=tuple(
            _effect(
                [by_window.get(w) for w in shown],
                next(iter(by_window.values())),
                thinned(points(name)),
            )
            for name, by_window in by_name.items()
        ),
    )


def side_by_side(slice_: Slice, variants: Sequence[str]) -> tuple[object, ...]:
    """The sort key by which the variants of each slice stand together, in their order.

    >>> slices = [{"variant": v, "phase": p} for v in ("new", "old") for p in (1, 2)]
    >>> [" ".join(map(str, one.values())) for one in
    ...  sorted(slices, key=lambda slice_: side_by_side(slice_, ("old", "new")))]
    ['old 1', 'new 1', 'old 2', 'new 2']
    """
    common_slice = {name: value for name, value in slice_.items() if name != "variant"}
    order: dict[object, int] = {name: i for i, name in enumerate(variants)}
    variant = slice_.get("variant")
    return slice_key(common_slice), order.get(variant, len(order)), slice_key(slice_)


def _series(cells: Sequence[SliceRow | None]) -> HistorySeries:
    """One slice in each window; nan where nothing was counted."""

    def column(cell: Callable[[SliceRow], float]) -> tuple[Number, ...]:
        return tuple(math.nan if row is None else cell(row) for row in cells)

    return HistorySeries(
        slice=next(row for row in cells if row is not None).slice,
        value=column(lambda row: row.value),
        low=column(lambda row: row.low),
        high=column(lambda row: row.high),
        lower=column(lambda row: math.nan if row.interval is None else row.interval.lower),
        upper=column(lambda row: math.nan if row.interval is None else row.interval.upper),
        rows=tuple(None if row is None else row.counts.get("rows") for row in cells),
    )


def _effect(
    cells: Sequence[WindowFinding | None], finding: WindowFinding, looks: Sequence[Point]
) -> HistoryEffect:
    """One comparison: its looks since the start, and the effect of each window by itself."""

    def column(cell: Callable[[WindowFinding], float]) -> tuple[Number, ...]:
        return tuple(math.nan if row is None else cell(row) for row in cells)

    contrast = finding.contrast
    return HistoryEffect(
        metric=contrast.metric,
        view=contrast.view,
        control_variant=contrast.control_variant,
        treatment_variant=contrast.treatment_variant,
        guardrail=finding.guardrail,
        looks=EffectLooks(
            watermark_ms=tuple(look.watermark_ms for look in looks),
            effect=tuple(look.effect for look in looks),
            lower=tuple(look.reading.lower for look in looks),
            upper=tuple(look.reading.upper for look in looks),
            gated=tuple(look.reading.gated for look in looks),
        ),
        windows=EffectWindows(
            effect=column(lambda row: row.comparison.effect_size),
            lower=column(lambda row: row.comparison.effect_size_ci_lower),
            upper=column(lambda row: row.comparison.effect_size_ci_upper),
        ),
    )


class HistoryReader:
    """Reads the history of a view. Thread-safe."""

    def __init__(self, ledger: Ledger, answers: QueryCache, catalogue: Catalogue) -> None:
        self._ledger, self._answers, self._catalogue = ledger, answers, catalogue

    def read(
        self,
        query: Query,
        metric: str,
        view_name: str | None = None,
        *,
        effects: Effects = "all",
        most: int = MAX_SERIES,
    ) -> tuple[ResultsAnswer, History]:
        """The history of one view, the first by default, and the answer that it is made of.

        query: its window is ignored. most: the number of series. With `where` there are no effects,
        because effects compare all rows. Raises QueryError for an unknown metric or view.
        """
        entry = self._catalogue.known(metric, query.generation, query.experiment)
        shown = entry.view(view_name)
        headlines = shown in entry.headlines
        rows = replace(query, window="all", metric=metric, headlines=headlines)
        results = self._answers.rows(rows)
        design = declared(self._ledger.generation(results.generation), query.experiment)
        compared = [] if query.where else self._compared(query, design, metric, effects)
        return results, history_of(
            results,
            metric,
            shown,
            [row for row in compared if row.contrast.view == shown],
            lambda name: self._points(query, design, name),
            most,
        )

    def _compared(
        self, query: Query, design: DeclaredExperiment | None, metric: str, effects: Effects
    ) -> list[WindowFinding]:
        if design is None or effects == "none" or metric not in watched_by(design):
            return []
        # The total is read with all metrics.
        experiment_query = Query(generation=query.generation, experiment=query.experiment)
        if effects == "all":
            experiment_query = replace(experiment_query, window="all", metric=metric)
        rows = self._answers.experiment(experiment_query).comparisons
        return [row for row in rows if row.contrast.metric == metric]

    def _points(
        self, query: Query, design: DeclaredExperiment | None, name: str
    ) -> Sequence[Point]:
        def read(now: StoreView) -> list[Point]:
            return [] if design is None else now.points(design.fingerprint, name)

        return view(self._ledger, read, generation=query.generation)
