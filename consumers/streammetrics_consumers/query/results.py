"""Results: a row for each window, slice, metric and view, and how far the logs were read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import count
from typing import Final, TypeAlias

from msgspec import UNSET

from streammetrics import StreamMetricsError
from streammetrics.present import ValueRow
from streammetrics.results import is_exact, views_of
from streammetrics_consumers.model.commit import COUNTED, JOIN_START, Counters, Snapshot
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.query.answers import ResultsAnswer, TableLayout
from streammetrics_consumers.query.experiment_plan import experiments_of, variants_of
from streammetrics_consumers.query.lines import (
    FirstLines,
    all_views,
    headline_views,
    states_together,
)
from streammetrics_consumers.query.query import Query, Slice, slice_key
from streammetrics_consumers.query.rows import SliceRow, Window
from streammetrics_consumers.query.slices import Choice, FirstBlocks, KeyedState, window_key
from streammetrics_consumers.query.state_cells import CellCache, CellForm, Range
from streammetrics_consumers.query.turns import checkpoint, expect_slices

NO_CELLS: Final = CellCache(0)
MAX_HOLES: Final = 5  # that a note names
MAX_ALARMS: Final = 5  # of metrics, each a note; as many doubts

_Place: TypeAlias = tuple[str, tuple[int, int, int], tuple[object, ...]]  # metric, window, slice


def results_of(
    snapshot: Snapshot,
    states: Iterable[KeyedState],
    query: Query,
    keep: Callable[[Sequence[SliceRow]], Sequence[SliceRow]] = tuple,
    cache: CellCache = NO_CELLS,
) -> ResultsAnswer:
    """The rows of these states, and how far the logs were read at that moment. keep: takes the rows
    of one state, in order, and returns those that the results hold. cache: of their cells."""
    rows: list[SliceRow] = []
    n_slices = 0
    metric_headlines: dict[tuple[str, str], None] = {}
    ranges: dict[tuple[str, str], Range] = {}
    notes = dict.fromkeys(hole_notes(snapshot))
    # By their texts, the places by which they are ordered: states come in ranges of keys, or whole.
    alarms: dict[str, _Place] = {}
    doubts: dict[str, _Place] = {}
    config_views = {entry.name: entry.views for entry in snapshot.generation.metrics}
    users = {
        entry.name: entry.users
        for entry in snapshot.generation.metrics
        if query.experiment is None  # which counts by its unit, also where a slice does not
    }
    first: FirstBlocks | FirstLines = FirstBlocks(query.blocks)
    if query.lines is not None:
        first = FirstLines(query.lines, config_views, cache.tables)
    elif query.rows is not None:
        entries = snapshot.generation.metrics
        metrics = sum(not entry.metric_set and not entry.ended for entry in entries)
        first = FirstBlocks(query.rows // max(metrics, 1) + 1, each_slice=True)
    lines = first if isinstance(first, FirstLines) else None
    form = CellForm("all", all_views)
    if lines is not None:
        form = CellForm(lines.name, lines.views)
    elif query.headlines:
        form = CellForm("headlines", headline_views)
    chosen = _chosen(states, first, notes) if lines is None else _chosen_lines(states, lines, notes)
    for state, slices, with_other in chosen:
        window, metric = state.window, state.metric
        n_slices += len(slices)
        expect_slices(n_slices)
        try:
            metric_views = tuple(config_views.get(metric, ()))
            state_form = CellForm(form.name, form.views, metric_views, bool(users.get(metric)))
            cells = cache.cells(state, slices, state_form, with_other=with_other)
            headlines: tuple[str, ...] = ()
            for slice_, cell in cells:
                checkpoint()
                if cell.alarm or cell.doubts:
                    place = metric, window_key(window), slice_key(slice_)
                    name = _name(metric, slice_, window)
                    if cell.alarm:
                        alarms[f"{name}: alarm: {cell.alarm}"] = place
                    for why in cell.doubts:
                        doubts[f"{name}: doubts about {why}"] = place
                state_rows = [
                    SliceRow(window, slice_, metric, cell.kind, cell.digest, value, band)
                    for value, band in cell.values
                ]
                rows.extend(keep(state_rows))
                if cell.headlines is not headlines:
                    headlines = cell.headlines
                    metric_headlines.update(dict.fromkeys((metric, view) for view in headlines))
                for view, (low, high) in cell.ranges:
                    least, greatest = ranges.get((metric, view), (low, high))
                    ranges[metric, view] = min(least, low), max(greatest, high)
        except StreamMetricsError as error:
            _note_drift(state, error, notes)
        slices = []
        del state  # before the next states are read
    declared = snapshot.generation.metrics
    positions = {drift.name: len(declared) for entry in declared for drift in entry.drifts}
    positions |= {entry.name: entry.position for entry in declared}
    return ResultsAnswer(
        generation=snapshot.generation.id,
        offsets=snapshot.offsets,
        incomplete=snapshot.incomplete,
        **counted(snapshot.counters),
        watermark_ms=snapshot.greatest_event_ms,
        rows=ordered_rows(row for row in rows if first.shows(row)),
        comparisons=(),
        recommendation=None,
        contamination=None,
        srm=None,
        notes=(
            *notes,
            *_first(alarms, "alarm{} of metrics"),
            *_first(doubts, "reason{} to doubt metrics"),
        ),
        join=None,
        slices=UNSET if lines is None else lines.counts,
        experiments=UNSET,
        exposures=UNSET,
        exposed=UNSET,
        tables=TableLayout(
            *variants_of(snapshot.generation, query.experiment),
            tuple(sorted(metric_headlines, key=lambda key: (positions.get(key[0], 0), key[0]))),
            ranges,
            first.groupings,
            first.left_out,
            experiments_of(snapshot.generation),
        ),
    )


def _chosen(
    states: Iterable[KeyedState], first: FirstBlocks | FirstLines, notes: dict[str, None]
) -> Iterator[Choice]:
    """What is needed of each state."""
    for state in states:
        try:
            choice = state, *first.choose(state)
        except StreamMetricsError as error:
            _note_drift(state, error, notes)
            continue
        del state  # before the next states are read
        yield choice
        del choice


def _chosen_lines(
    states: Iterable[KeyedState], lines: FirstLines, notes: dict[str, None]
) -> Iterator[Choice]:
    """The same of lines. Those of one metric are chosen in all of its windows before a value of
    them is computed."""
    for group in states_together(states):
        choices = list(_chosen(group, lines, notes))
        group.clear()
        while choices:
            yield lines.kept(*choices.pop(0))


def _note_drift(state: KeyedState, error: StreamMetricsError, notes: dict[str, None]) -> None:
    """Note a drift that is not computed; raises the error if the state is of none."""
    if state.against is None:
        raise error
    notes[f"drift {state.metric} is not computed: {error}"] = None


def _first(places: Mapping[str, _Place], label: str) -> list[str]:
    """The first of these notes, and how many more there are; label: their name, {} of a plural."""
    left_out = len(places) - MAX_ALARMS
    return [
        *nsmallest(MAX_ALARMS, places, key=lambda note: (places[note], note)),
        *([f"{left_out} more {label.format('s' * (left_out > 1))}"] if left_out > 0 else []),
    ]


def _name(metric: str, slice_: Slice, window: Window) -> str:
    """A metric, the values of its slice and the start of its window, in words."""
    since = () if window.start_ms is None else (f"from {iso_utc(window.start_ms)}",)
    return ", ".join((metric, *(f"{name} {slice_[name]}" for name in sorted(slice_)), *since))


def counted(counters: Counters) -> dict[str, int]:
    """The fields of results and of health that count the events read."""
    return {"rows_read": counters.rows, **{name: getattr(counters, name) for name in COUNTED}}


def hole_notes(snapshot: Snapshot) -> Iterator[str]:
    """A sentence for each metric that was dropped and came back, with what it missed."""
    heads = {head.id: head for head in snapshot.heads}
    for metric in snapshot.generation.metrics:
        missed = [
            f"offsets {start} to {end - 1} of {heads[head_id].partition}"
            if not heads[head_id].is_join
            else f"impressions {_start_text(start)}before {iso_utc(end)}"
            for head_id, ranges in sorted(metric.holes.items())
            for start, end in ranges
        ]
        missed += [
            entries.text(heads[head_id].partition)
            for head_id, entries in sorted(metric.missed.items())
        ]
        if missed and not metric.ended:
            suffix = f", and {len(missed) - MAX_HOLES} more" if len(missed) > MAX_HOLES else ""
            yield (
                f"Metric {metric.name} was dropped and later resumed: it did not count "
                f"{', '.join(missed[:MAX_HOLES])}{suffix}."
            )


def _start_text(start_ms: int) -> str:
    return "" if start_ms == JOIN_START else f"from {iso_utc(start_ms)} on and "


def value_rows(result: object) -> Iterator[ValueRow]:
    """Each view of a result, without its interval."""
    for view, value in views_of(result).items():
        yield ValueRow(view, value, exact=is_exact(result, view))


def ordered_rows(rows: Iterable[SliceRow]) -> tuple[SliceRow, ...]:
    """The rows by window (the total first, then in time order), slice, metric and view."""
    places: dict[tuple[int, int], tuple[object, ...]] = {}  # rows of one state share both objects
    all_rows = list(rows)
    for row in all_rows:
        place = id(row.window), id(row.slice)
        if place not in places:
            places[place] = window_key(row.window), slice_key(row.slice)
    ranks = dict(zip(sorted(set(places.values())), count(), strict=False))  # numbers sort sooner

    def key(row: SliceRow) -> tuple[int, str, str]:
        return ranks[places[id(row.window), id(row.slice)]], row.metric, row.view

    return tuple(sorted(all_rows, key=key))
