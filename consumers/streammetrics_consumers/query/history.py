"""One view of one metric over time: its value in each window, and the effect look by look.

Arrays run parallel to the windows, so that a month of ten variants is a few lines and not rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from streammetrics.experiments import Comparison, Contrast
from streammetrics_consumers.ledger.ledger import Ledger, View, view
from streammetrics_consumers.ledger.looks import Point
from streammetrics_consumers.query import answers
from streammetrics_consumers.query.answers import Number, Window, number
from streammetrics_consumers.query.catalogue import Catalogue, watched_by
from streammetrics_consumers.query.experiment_plan import Declared, declared
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Query, Slice
from streammetrics_consumers.query.results import ComparisonRow, ResultRow, Results, slice_key

T = TypeVar("T")
Effects = Literal["none", "total", "all"]  # compared over no window, since the start, or over all

MAX_WINDOWS: Final = 400  # the newest
MAX_SERIES: Final = 40
MAX_POINTS: Final = 500  # looks at one comparison


@dataclass(frozen=True, slots=True)
class Series:
    """One slice, with its row in each window; None where nothing was counted."""

    slice: Slice
    rows: tuple[ResultRow | None, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """One comparison: the looks at it since the start, and what each window says by itself."""

    contrast: Contrast
    looks: tuple[Point, ...]
    windows: tuple[ComparisonRow | None, ...]


@dataclass(frozen=True, slots=True)
class History:
    """What is shown over time; `more` windows and `more_series` were left out. variants: as
    they are declared."""

    metric: str
    view: str
    windows: tuple[Window, ...]
    series: tuple[Series, ...]
    effects: tuple[Effect, ...]
    more: int
    more_series: int
    variants: tuple[str, ...] = ()


def history_of(
    results: Results,
    metric: str,
    view: str,
    comparisons: Sequence[ComparisonRow],
    points: Callable[[str], Sequence[Point]],
) -> History:
    """The history of a view, from an answer over all windows.

    comparisons: of this metric, over all windows; points: the looks at a comparison by its name.
    """
    rows = [r for r in results.rows if r.view == view and r.window.start_ms is not None]
    windows = tuple(dict.fromkeys(row.window for row in rows))
    shown = windows[-MAX_WINDOWS:]
    positions = {window: i for i, window in enumerate(shown)}
    found: dict[tuple[object, ...], tuple[Slice, list[ResultRow | None]]] = {}
    for row in rows:
        if row.window in positions:
            _, cells = found.setdefault(slice_key(row.slice), (row.slice, [None] * len(shown)))
            cells[positions[row.window]] = row
    slices = _in_order([slice_ for slice_, _ in found.values()], results.variants)
    series = tuple(Series(one, tuple(found[slice_key(one)][1])) for one in slices)
    return History(
        metric=metric,
        view=view,
        windows=shown,
        series=series[:MAX_SERIES],
        effects=_effects(comparisons, positions, points),
        more=len(windows) - len(shown),
        more_series=max(len(series) - MAX_SERIES, 0),
        variants=results.variants,
    )


def history_json(results: Results, history: History) -> bytes:
    """The bytes of `GET /api/history`."""
    return answers.dumps(
        answers.History(
            generation=results.generation,
            offsets=results.offsets,
            metric=history.metric,
            view=history.view,
            windows=history.windows,
            more=history.more,
            series=tuple(_series(one) for one in history.series),
            more_series=history.more_series,
            effects=tuple(_effect(one) for one in history.effects),
        )
    )


def thinned(points: Sequence[T], most: int = MAX_POINTS) -> list[T]:
    """At most `most` of them, evenly, with the first and the last.

    >>> thinned(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(points) <= most:
        return list(points)
    return [points[i * (len(points) - 1) // (most - 1)] for i in range(most)]


def _in_order(slices: list[Slice], variants: Sequence[str]) -> list[Slice]:
    """Variants as they are declared, and other values in order."""
    positions: dict[object, int] = {name: i for i, name in enumerate(variants)}
    return sorted(
        slices, key=lambda one: (positions.get(one.get("variant"), len(positions)), slice_key(one))
    )


def _effects(
    comparisons: Sequence[ComparisonRow],
    positions: dict[Window, int],
    points: Callable[[str], Sequence[Point]],
) -> tuple[Effect, ...]:
    found: dict[str, tuple[Contrast, list[ComparisonRow | None]]] = {}
    for row in comparisons:
        contrast = row.finding.contrast
        _, cells = found.setdefault(contrast.name, (contrast, [None] * len(positions)))
        if row.window in positions:
            cells[positions[row.window]] = row
    return tuple(
        Effect(contrast, tuple(thinned(points(name))), tuple(cells))
        for name, (contrast, cells) in found.items()
    )


def _series(series: Series) -> answers.HistorySeries:
    def column(cell: Callable[[ResultRow], float]) -> tuple[Number, ...]:
        return tuple(None if row is None else number(cell(row)) for row in series.rows)

    return answers.HistorySeries(
        slice=series.slice,
        value=column(lambda row: row.value),
        low=column(lambda row: row.low),
        high=column(lambda row: row.high),
        lower=column(lambda row: math.nan if row.interval is None else row.interval.lower),
        upper=column(lambda row: math.nan if row.interval is None else row.interval.upper),
        rows=tuple(None if row is None else row.counts.get("rows") for row in series.rows),
    )


def _effect(effect: Effect) -> answers.HistoryEffect:
    cells = [None if row is None else row.finding.contrast.comparison for row in effect.windows]

    def column(cell: Callable[[Comparison], float]) -> tuple[Number, ...]:
        return tuple(None if one is None else number(cell(one)) for one in cells)

    contrast, looks = effect.contrast, effect.looks
    return answers.HistoryEffect(
        metric=contrast.metric,
        view=contrast.view,
        control_variant=contrast.control_variant,
        treatment_variant=contrast.treatment_variant,
        guardrail=contrast.safeguard is not None,
        looks=answers.EffectLooks(
            watermark_ms=tuple(one.watermark_ms for one in looks),
            effect=tuple(number(one.effect) for one in looks),
            lower=tuple(number(one.reading.lower) for one in looks),
            upper=tuple(number(one.reading.upper) for one in looks),
            gated=tuple(one.reading.gated for one in looks),
        ),
        windows=answers.EffectWindows(
            effect=column(lambda one: one.effect_size),
            lower=column(lambda one: one.effect_size_ci_lower),
            upper=column(lambda one: one.effect_size_ci_upper),
        ),
    )


class HistoryReader:
    """Reads what a view was over time, for any number of threads."""

    def __init__(self, ledger: Ledger, answers: QueryCache, catalogue: Catalogue) -> None:
        self._ledger, self._answers, self._catalogue = ledger, answers, catalogue

    def read(
        self, query: Query, metric: str, asked: str | None = None, *, effects: Effects = "all"
    ) -> tuple[Results, History]:
        """The history of one view, the first by default, and the answer that it is made of.

        query: which slices; its window is not looked at. With `where` there are no effects, which
        are of all rows. Raises QueryError for a metric or view that is not there.
        """
        known = self._catalogue.known(metric, query.generation)
        shown = known.view(asked)
        headlines = shown in known.headlines
        rows = replace(query, window="all", metric=metric, headlines=headlines)
        results = self._answers.rows(rows)
        of = declared(self._ledger.generation(results.generation))
        compared = [] if query.where else self._compared(query, of, metric, effects)
        return results, history_of(
            results,
            metric,
            shown,
            [row for row in compared if row.finding.contrast.view == shown],
            lambda name: self._points(query, of, name),
        )

    def _compared(
        self, query: Query, of: Declared | None, metric: str, effects: Effects
    ) -> list[ComparisonRow]:
        if of is None or effects == "none" or metric not in watched_by(of):
            return []
        asked = Query(generation=query.generation)  # of the total, all metrics are read together
        if effects == "all":
            asked = replace(asked, window="all", metric=metric)
        rows = self._answers.experiment(asked).comparisons
        return [row for row in rows if row.finding.contrast.metric == metric]

    def _points(self, query: Query, of: Declared | None, name: str) -> Sequence[Point]:
        def read(now: View) -> list[Point]:
            return [] if of is None else now.points(of.fingerprint, name)

        return view(self._ledger, read, generation=query.generation)
