"""From the deltas of a ledger to states: one metric and one grouping at a time, under a limit.

A reader never touches a worker. It takes one snapshot of heads and deltas, and merges: sums are
exact, so the order of the deltas, and how many there are, change nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consumers.ledger.ledger import Ledger
from consumers.ledger.rows import DeltaRow, Pane, Snapshot
from consumers.results.query import OTHER, Query, QueryError, Slice, Span, require_generation
from consumers.results.read_plan import Wanted, plan
from consumers.results.results import (
    SINCE_THE_START,
    ResultRow,
    Results,
    Window,
    in_order,
    rows_of,
)
from consumers.results.spans import state_of
from streammetrics import Accumulator, PerKey

MAX_DELTA_BYTES: Final = 512 << 20  # of the deltas of one answer, which one snapshot holds
MAX_STATE_BYTES: Final = 2 << 30  # of the merged states of one metric and grouping


@dataclass(frozen=True, slots=True)
class SliceState:
    """The state of one metric in one slice of one window."""

    window: Window
    slice: Slice
    metric: str
    state: Accumulator


@dataclass(frozen=True, slots=True)
class Selection:
    """A snapshot with the deltas that a query needs."""

    query: Query
    snapshot: Snapshot
    wanted: Mapping[str, Wanted]

    def states(self) -> Iterator[SliceState]:
        """Every state that the query asks for. Those of a metric and grouping are merged together
        and let go of before the next."""
        by_state: dict[tuple[str, int], dict[Pane, list[DeltaRow]]] = defaultdict(dict)
        for row in self.snapshot.deltas:
            pane = row.piece.pane
            by_state[pane.metric, pane.grouping].setdefault(pane, []).append(row)
        for name, grouping in sorted(by_state):
            wanted = self.wanted[name]
            names = wanted.layout.groupings[grouping]
            panes = _merged(by_state[name, grouping])
            for span in wanted.spans:
                state = _sum_over(span, panes)
                if state is None:
                    continue
                window = window_of(span, self.snapshot)
                for slice_, one in _slices(state, names):
                    if self.query.takes(slice_):
                        yield SliceState(window, slice_, name, one)

    def results(self) -> Results:
        """The rows of every state, with how far the log was read when they were taken."""
        rows: list[ResultRow] = []
        for found in self.states():
            rows.extend(rows_of(found.window, found.slice, found.metric, found.state))
        counters = self.snapshot.counters
        return Results(
            generation=self.snapshot.generation.id,
            offsets=self.snapshot.offsets,
            rows_read=counters.rows,
            quarantined=counters.quarantined,
            late=counters.late,
            future=counters.future,
            expired=counters.expired,
            watermark_ms=self.snapshot.greatest_event_ms,
            rows=in_order(rows),
            variants=next((m.variants for m in self.snapshot.generation.metrics if m.variants), ()),
        )


def select(ledger: Ledger, query: Query) -> Selection:
    """The deltas that a query needs, in one read transaction.

    Raises QueryError where the store has no such window, grouping, name or metric, and
    LedgerError where it cannot be read or the answer is over the memory limit.
    """
    planned: dict[str, Wanted] = {}

    def choose(seen: Snapshot) -> list[Pane]:
        planned.update(plan(seen, query))
        return [
            size.pane
            for size in seen.panes
            if (wanted := planned.get(size.pane.metric)) and wanted.wants(size.pane)
        ]

    if query.generation is not None:
        require_generation(query.generation, [one.id for one in ledger.generations()])
    snapshot = ledger.snapshot(choose, generation=query.generation, max_bytes=MAX_DELTA_BYTES)
    return Selection(query, snapshot, planned)


def read_results(ledger: Ledger, query: Query) -> Results:
    """The answer to a query; see `select` for what it raises."""
    return select(ledger, query).results()


def window_of(span: Span | None, snapshot: Snapshot) -> Window:
    """A span with how far it is: that of the partition that is behind all others."""
    if span is None:
        return SINCE_THE_START
    times = [head.greatest_event_ms for head in snapshot.heads if not head.closed]
    least = min((time for time in times if time is not None), default=None)
    state = state_of(span.end_ms, least, snapshot.generation.lateness_ms)
    return Window(span.start_ms, span.end_ms, state)


def _merged(rows: Mapping[Pane, Sequence[DeltaRow]]) -> dict[int | None, PerKey]:
    """The state of each pane by its start, None for the total."""
    panes: dict[int | None, PerKey] = {}
    nbytes = 0
    for pane, deltas in rows.items():
        state = PerKey.from_bytes(deltas[0].piece.state)
        for row in deltas[1:]:
            state.merge(PerKey.from_bytes(row.piece.state))
            if nbytes + state.nbytes > MAX_STATE_BYTES:
                raise QueryError(
                    expected=f"an answer that fits into {MAX_STATE_BYTES >> 20} MiB",
                    came=f"more than that for {pane.metric}",
                    where="the merged states",
                    todo="ask for fewer windows with --window, or lower [slices] max_keys",
                )
        nbytes += state.nbytes
        panes[pane.start_ms] = state
    return panes


def _sum_over(span: Span | None, panes: Mapping[int | None, PerKey]) -> PerKey | None:
    """The state of a window: the sum of its panes. None where nothing was counted."""
    if span is None:
        return panes.get(None)
    found = [state for start, state in panes.items() if start is not None and span.holds(start)]
    if len(found) < 2:
        return found[0] if found else None
    return sum(found[1:], found[0])


def _slices(state: PerKey, names: tuple[str, ...]) -> Iterator[tuple[Slice, Accumulator]]:
    """Each slice of a grouping with its state, and the sum of the keys past `max_keys`."""
    for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
        values = key[1:] if isinstance(key, tuple) else ()
        yield dict(zip(names, values, strict=True)), state.state(key)
    overflow = state.overflow_state()
    if overflow is not None:
        yield {OTHER: names}, overflow
