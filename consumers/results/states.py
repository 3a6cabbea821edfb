"""From the states of panes to those that a query asks for, and to the rows of its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from consumers.model.commit import JOIN_START, Snapshot
from consumers.model.generation import Pane
from consumers.results.query import OTHER, Query, Slice, Span, iso_utc
from consumers.results.read_plan import Wanted
from consumers.results.results import (
    SINCE_THE_START,
    ResultRow,
    Results,
    Window,
    in_order,
    rows_of,
)
from consumers.results.spans import state_of
from consumers.results.watermark import watermark_ms
from streammetrics import Accumulator, PerKey

MAX_HOLES: Final = 5  # that a sentence names


@dataclass(frozen=True, slots=True)
class SliceState:
    """The state of one metric in one slice of one window."""

    window: Window
    slice: Slice
    metric: str
    state: Accumulator


def states_of(
    query: Query,
    snapshot: Snapshot,
    planned: Mapping[str, Wanted],
    state: tuple[str, int],
    panes: Mapping[int | None, PerKey],
) -> Iterator[SliceState]:
    """What a query asks of one metric and grouping, from the state of each of its panes by its
    start, None for the total."""
    name, grouping = state
    wanted = planned[name]
    for span in wanted.spans:
        total = sum_over(span, panes)
        if total is None:
            continue
        window = window_of(span, snapshot)
        for slice_, one in slices_of(total, wanted.layout.groupings[grouping]):
            if query.takes(slice_):
                yield SliceState(window, slice_, name, one)


def results_of(
    snapshot: Snapshot, states: Iterable[SliceState], *, headlines: bool = False
) -> Results:
    """The rows of these states, with how far the log was read when they were taken; `headlines`:
    only those that a metric is known by."""
    rows: list[ResultRow] = []
    for found in states:
        state = found.window, found.slice, found.metric, found.state
        rows.extend(rows_of(*state, headlines=headlines))
    counters = snapshot.counters
    return Results(
        generation=snapshot.generation.id,
        offsets=snapshot.offsets,
        incomplete=snapshot.incomplete,
        rows_read=counters.rows,
        quarantined=counters.quarantined,
        late=counters.late,
        future=counters.future,
        expired=counters.expired,
        repeated=counters.repeated,
        skipped=counters.skipped,
        watermark_ms=snapshot.greatest_event_ms,
        rows=in_order(rows),
        notes=tuple(hole_notes(snapshot)),
        variants=next((m.variants for m in snapshot.generation.metrics if m.variants), ()),
    )


def hole_notes(seen: Snapshot) -> Iterator[str]:
    """A sentence for each metric that came back after it had been dropped, and what it missed."""
    heads = {head.id: head for head in seen.heads}
    for metric in seen.generation.metrics:
        missed = [
            f"offsets {start} to {end - 1} of {heads[of].partition}"
            if not heads[of].is_join
            else f"impressions {_since(start)}before {iso_utc(end)}"
            for of, some in sorted(metric.holes.items())
            for start, end in some
        ]
        if missed and not metric.ended:
            more = f", and {len(missed) - MAX_HOLES} more" if len(missed) > MAX_HOLES else ""
            yield (
                f"Metric {metric.name} was dropped and came back: it did not count "
                f"{', '.join(missed[:MAX_HOLES])}{more}."
            )


def _since(start_ms: int) -> str:
    return "" if start_ms == JOIN_START else f"from {iso_utc(start_ms)} on and "


def chosen(seen: Snapshot, planned: Mapping[str, Wanted]) -> list[Pane]:
    """The panes that a plan needs."""
    return [
        size.pane
        for size in seen.panes
        if (wanted := planned.get(size.pane.metric)) and wanted.wants(size.pane)
    ]


def window_of(span: Span | None, snapshot: Snapshot) -> Window:
    """A span with how far it is; see watermark.py."""
    if span is None:
        return SINCE_THE_START
    least = watermark_ms(snapshot)
    state = state_of(span.end_ms, least, snapshot.generation.lateness_ms)
    return Window(span.start_ms, span.end_ms, state)


def sum_over(span: Span | None, panes: Mapping[int | None, PerKey]) -> PerKey | None:
    """The state of a window: the sum of its panes. None where nothing was counted."""
    if span is None:
        return panes.get(None)
    found = [state for start, state in panes.items() if start is not None and span.holds(start)]
    if len(found) < 2:
        return found[0] if found else None
    return sum(found[1:], found[0])


def slices_of(state: PerKey, names: tuple[str, ...]) -> Iterator[tuple[Slice, Accumulator]]:
    """Each slice of a grouping with its state, and the sum of the keys past `max_keys`."""
    for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
        values = key[1:] if isinstance(key, tuple) else ()
        yield dict(zip(names, values, strict=True)), state.state(key)
    overflow = state.overflow_state()
    if overflow is not None:
        yield {OTHER: names}, overflow
