"""From the deltas of a ledger to states and the rows of an answer, under a limit of memory.

A reader never touches a worker. It takes one snapshot of heads and deltas, and merges: sums are
exact, so the order of the deltas, and how many there are, change nothing.

States that are too large to be in memory together are read one range of keys at a time. Ranges of
keys nest and each key lies in one, so a range is merged, answered and released before the next. All
of it is one transaction, which is over before anything is sent, so a slow client does not prolong
it. Which keys are kept apart and which are summed into `(other)` is decided as in a whole state:
the `max_keys` keys with the smallest hash are kept, and ranges come in the order of the hash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from streammetrics import Accumulator, PerKey, Ratio
from streammetrics_consumers.ledger.delta_metadata import MAX_RANGES, DeltaMetadata, state_of
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge
from streammetrics_consumers.ledger.view import View, view
from streammetrics_consumers.model.commit import JOIN_START, Snapshot
from streammetrics_consumers.model.generation import DeltaRow, Pane
from streammetrics_consumers.query.answers import Window
from streammetrics_consumers.query.comparisons import ComparisonReader
from streammetrics_consumers.query.join_status import JoinReader
from streammetrics_consumers.query.query import (
    OTHER,
    Query,
    QueryError,
    Slice,
    SliceValue,
    Span,
    iso_utc,
    require_generation,
)
from streammetrics_consumers.query.query_plan import Wanted, chosen, plan, window_of
from streammetrics_consumers.query.results import ResultRow, Results, in_order, rows_of

T = TypeVar("T")
Progress = Callable[[int, int], None]  # bytes of stored states: read so far, and in all
_Key = SliceValue | tuple[SliceValue, ...]

MAX_DELTA_BYTES: Final = 512 << 20  # of the deltas of one answer, which one snapshot holds
MAX_STATE_BYTES: Final = 2 << 30  # of the merged states of one metric and grouping
RANGE_BYTES: Final = 64 << 20  # of the rows of one range of keys, as they are stored
MAX_RANGE_BYTES: Final = 2 << 30  # of the merged states of one range, in memory
TRIES: Final = 5  # to read rows and join of one moment, while others count
MAX_HOLES: Final = 5  # that a sentence names


def no_report(done: int, total: int) -> None:
    """Report to nobody."""


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


@dataclass(frozen=True, slots=True)
class Selection:
    """A snapshot with the deltas that a query needs."""

    query: Query
    snapshot: Snapshot
    wanted: Mapping[str, Wanted]
    report: Progress = no_report

    def states(self) -> Iterator[SliceState]:
        """Every state that the query asks for. Those of a metric and grouping are merged together
        and let go of before the next."""
        by_state: dict[tuple[str, int], dict[Pane, list[DeltaRow]]] = defaultdict(dict)
        total = done = 0
        for row in self.snapshot.deltas:
            pane = row.shard.pane
            by_state[pane.metric, pane.grouping].setdefault(pane, []).append(row)
            total += len(row.shard.state)
        for name, grouping in sorted(by_state):
            self.report(done, total)
            rows = by_state[name, grouping]
            panes = _merged(rows)
            done += sum(len(row.shard.state) for some in rows.values() for row in some)
            yield from states_of(self.query, self.snapshot, self.wanted, (name, grouping), panes)

    def results(self) -> Results:
        """The rows of every state, with how far the log was read when they were taken."""
        return results_of(self.snapshot, self.states(), headlines=self.query.headlines)


def select(ledger: Ledger, query: Query, report: Progress = no_report) -> Selection:
    """The deltas that a query needs, in one read transaction.

    Raises QueryError where the store has no such window, grouping, name or metric, and
    LedgerError where it cannot be read or the answer is over the memory limit.
    """
    planned: dict[str, Wanted] = {}

    def choose(seen: Snapshot) -> list[Pane]:
        planned.update(plan(seen, query))
        return chosen(seen, planned)

    if query.generation is not None:
        require_generation(query.generation, [one.id for one in ledger.generations()])
    snapshot = ledger.snapshot(choose, generation=query.generation, max_bytes=MAX_DELTA_BYTES)
    return Selection(query, snapshot, planned, report)


def select_states(
    ledger: Ledger, query: Query, report: Progress = no_report
) -> tuple[Selection, list[SliceState]]:
    """Every state of an answer of few, such as that of one slice; see `select` for what it raises.
    What it is cut out of may be too large to be in memory: see `read_results`."""
    try:
        selection = select(ledger, query, report)
        return selection, list(selection.states())
    except TooLarge:
        return streamed(ledger, query, lambda seen, wanted, states: (
            Selection(query, seen, wanted), list(states)), report)  # fmt: skip


def read_results(ledger: Ledger, query: Query, report: Progress = no_report) -> Results:
    """The answer to a query; see `select` for what it raises. `report` is called with the
    bytes of states that are read so far, and in all.

    An experiment of the store is read beside it, and how its join stands. Where the states are too
    large to be in memory together they are read one range of keys at a time, and QueryError says so
    where that does not help.
    """

    def read() -> Results:
        try:
            return select(ledger, query, report).results()
        except TooLarge:
            return streamed_results(ledger, query, report)

    experiment = ComparisonReader(ledger, query)
    return with_join(JoinReader(ledger), lambda: experiment.beside(read))


def with_join(joins: JoinReader, read: Callable[[], Results]) -> Results:
    """What `read` answers, with the join of the same moment. (If others commit faster than we
    read, it may be of a later one.)"""
    results = read()
    for _ in range(TRIES):
        found, offsets = joins.found(results.generation)
        if found is None or offsets == results.offsets:
            break
        results = read()
    return results if found is None else replace(results, join=found)


def _merged(rows: Mapping[Pane, Sequence[DeltaRow]]) -> dict[int | None, PerKey]:
    """The state of each pane by its start, None for the total."""
    panes: dict[int | None, PerKey] = {}
    nbytes = 0
    for pane, deltas in rows.items():
        state = PerKey.from_bytes(deltas[0].shard.state)
        for row in deltas[1:]:
            state.merge(PerKey.from_bytes(row.shard.state))
            if nbytes + state.nbytes > MAX_STATE_BYTES:
                raise TooLarge(
                    f"the merged states of {pane.metric}: expected at most {MAX_STATE_BYTES >> 20} "
                    "MiB, got more; ask for fewer windows with --window, or lower [slices] "
                    "max_keys"
                )
        nbytes += state.nbytes
        panes[pane.start_ms] = state
    return panes


class _Keys:
    """The keys of one window: which are kept apart, and the sum of all others so far."""

    def __init__(self, max_keys: int) -> None:
        self._seen = PerKey(Ratio(), max_keys)  # it keeps the keys that any metric would keep
        self.other: Accumulator | None = None

    def take(self, state: PerKey) -> Iterator[tuple[_Key, Accumulator]]:
        """The keys of the next range that are kept, each with its state."""
        keys = state.keys()
        if keys:
            self._seen.update(list(keys), numerators=[0] * len(keys))
        kept = frozenset(self._seen.keys())
        for key in keys:
            if key in kept:
                yield key, state.state(key)
            else:
                self._add(state.state(key))
        overflow = state.overflow_state()
        if overflow is not None:
            self._add(overflow)

    def _add(self, state: Accumulator) -> None:
        if self.other is None:
            self.other = state
        else:
            self.other.merge(state)


def streamed_results(ledger: Ledger, query: Query, report: Progress = no_report) -> Results:
    """As `read_results`, in the memory of one range of keys.

    Raises QueryError where even that is too much: one key alone is too large then.
    """
    return streamed(ledger, query, lambda seen, _, states: results_of(
        seen, states, headlines=query.headlines), report)  # fmt: skip


def streamed(
    ledger: Ledger,
    query: Query,
    take: Callable[[Snapshot, Mapping[str, Wanted], Iterator[SliceState]], T],
    report: Progress = no_report,
) -> T:
    """What `take` makes of the states that a query asks for, one range of keys after the other."""

    def look(now: View) -> T:
        planned = plan(now.snapshot, query)
        return take(now.snapshot, planned, _states(now, query, planned, report))

    return view(ledger, look, generation=query.generation)


def _states(
    now: View, query: Query, planned: Mapping[str, Wanted], report: Progress
) -> Iterator[SliceState]:
    by_state: dict[tuple[str, int], list[Pane]] = defaultdict(list)
    panes = chosen(now.snapshot, planned)
    sizes = {size.pane: size.nbytes for size in now.snapshot.panes}
    whole, done = sum(sizes[pane] for pane in panes), 0
    for pane in panes:
        by_state[pane.metric, pane.grouping].append(pane)
    for (name, grouping), panes in sorted(by_state.items()):
        names = planned[name].layout.groupings[grouping]
        rows = now.delta_metadata(panes)
        keys: dict[Span | None, _Keys] = {}
        ranges = _how_many(rows)
        size = sum(sizes[pane] for pane in panes)
        for at in range(ranges):
            report(done + size * at // ranges, whole)
            states = _range_merged(now, _over(rows, at, ranges), at, ranges)
            for span in planned[name].spans:
                total = sum_over(span, states)
                if total is None:
                    continue
                mine = keys.setdefault(span, _Keys(total.max_keys))
                for key, state in mine.take(total):
                    values = key[1:] if isinstance(key, tuple) else ()
                    slice_: Slice = dict(zip(names, values, strict=True))
                    if query.takes(slice_):
                        yield SliceState(window_of(span, now.snapshot), slice_, name, state)
        done += size
        for span, mine in keys.items():
            if mine.other is not None and query.takes({OTHER: names}):
                yield SliceState(window_of(span, now.snapshot), {OTHER: names}, name, mine.other)


def _how_many(rows: Sequence[DeltaMetadata]) -> int:
    size = sum(row.nbytes for row in rows)
    ranges = 1
    while size > RANGE_BYTES * ranges and ranges < MAX_RANGES:
        ranges *= 2
    return ranges


def _over(rows: Iterable[DeltaMetadata], at: int, ranges: int) -> list[DeltaMetadata]:
    """The rows that may hold keys of a range. What a row sums into `(other)` goes with the last."""
    unit = MAX_RANGES // ranges
    first, end = at * unit, (at + 1) * unit
    found = []
    for row in rows:
        width = MAX_RANGES // row.key_ranges
        start = row.key_range * width
        if start < end and first < start + width:
            found.append(row)
    return found


def _range_merged(
    now: View, rows: Sequence[DeltaMetadata], at: int, ranges: int
) -> dict[int | None, PerKey]:
    """The state of each pane, of the keys of one range."""
    panes: dict[int | None, PerKey] = {}
    for row, data in now.states(rows):
        state = state_of(row, data)
        if row.key_ranges < ranges:
            state = state.split(ranges)[at]
        start = row.pane.start_ms
        if start in panes:
            panes[start].merge(state)
        else:
            panes[start] = state
        if sum(pane.nbytes for pane in panes.values()) > MAX_RANGE_BYTES:
            raise QueryError(
                expected=f"keys of which {ranges} ranges fit into {MAX_RANGE_BYTES >> 20} MiB each",
                got=f"more than that for {row.pane.metric}",
                where="the merged states",
                hint="ask for fewer windows with --window, or give the metric a smaller max_rows "
                "or a grid",
            )
    return panes
