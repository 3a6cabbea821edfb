"""Merges the delta rows of a ledger into states and the rows of an answer, in limited memory.

A reader never affects a worker. It merges the delta rows of one moment: sums are exact, so the
order and the number of the rows do not matter. States stay in their stored bytes, and those of the
keys that are shown are read, some at a time. If these bytes are too many, they are merged one range
of keys at a time. Ranges nest and each key lies in one, so a range is merged, answered
and released before the next. The keys that are kept and those that are summed into `(other)` are
those of a whole state: the `max_keys` keys with the smallest hash are kept, and ranges come in the
order of the hash. Rows that fit into memory are read in one transaction and merged after it; more
rows are merged within it. It ends before anything is sent: no slow client prolongs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from streammetrics import Accumulator, PerKey, Ratio, StoredPerKey
from streammetrics_consumers.ledger.delta_metadata import (
    MAX_RANGES,
    DeltaMetadata,
    state_bytes,
    state_of,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.query.answers import Join, ResultsAnswer
from streammetrics_consumers.query.comparisons import ComparisonReader
from streammetrics_consumers.query.drifts import is_compared, span_of
from streammetrics_consumers.query.experiment_index import ExperimentIndex, indexed
from streammetrics_consumers.query.experiment_plan import arm_states
from streammetrics_consumers.query.experiment_totals import Totals
from streammetrics_consumers.query.exposed_answers import ExposureStatus
from streammetrics_consumers.query.exposures_status import PendingReaders
from streammetrics_consumers.query.moments import Last, read_at_same_offsets
from streammetrics_consumers.query.query import (
    Query,
    QueryError,
    Span,
    require_generation,
)
from streammetrics_consumers.query.query_plan import MetricPlan, chosen, plan, window_of
from streammetrics_consumers.query.results import results_of
from streammetrics_consumers.query.results_json import RowSpool
from streammetrics_consumers.query.rows import Window
from streammetrics_consumers.query.slices import Against, KeyedState, States, taken
from streammetrics_consumers.query.user_intervals import may_be_of_users

T = TypeVar("T")
Progress = Callable[[int, int], None]  # bytes of stored states: read so far, in total
# Rows, each with its stored bytes, in no particular order.
Stored = Callable[[Sequence[DeltaMetadata]], Iterator[tuple[DeltaMetadata, bytes]]]

HELD_BYTES: Final = 512 << 20  # of the rows of an answer that are held before they are merged
RANGE_BYTES: Final = 64 << 20  # of the stored rows of one range of keys
MAX_RANGE_BYTES: Final = 2 << 30  # of the merged states of one range, in memory


def no_report(n_done: int, total: int) -> None:
    """Report nothing."""


def states_of(
    query: Query,
    snapshot: Snapshot,
    planned: Mapping[str, MetricPlan],
    state: tuple[str, int],
    total_of: Callable[[Span | None], States | None],
) -> Iterator[KeyedState]:
    """The states that a query asks for, of one metric and grouping. total_of: the sum of the panes
    of a window; None if nothing was counted."""
    name, grouping = state
    metric_plan = planned[name]
    window = cache(total_of)
    for span in metric_plan.spans:
        total = window(span)
        if total is None:
            continue
        names, shown = metric_plan.layout.groupings[grouping], window_of(span, snapshot)
        if metric_plan.experiment is not None:
            arms = arm_states(metric_plan.experiment, total)
            yield taken(query, shown, names, metric_plan.name_of(name), arms, None)
        elif metric_plan.plain:
            yield taken(query, shown, names, name, total, total.overflow_state())
        yield from _drifts(query, metric_plan, span, shown, names, total, window)


def _drifts(
    query: Query,
    metric_plan: MetricPlan,
    span: Span | None,
    shown: Window,
    names: tuple[str, ...],
    states: States,
    window: Callable[[Span | None], States | None],
    *,
    is_part: bool = False,
) -> Iterator[KeyedState]:
    """The states of a window beside those that they are compared with, for each drift that is asked
    for. window: the states of another one."""
    for declared in metric_plan.drifts:
        if is_compared(declared, span):
            reference = span_of(declared, span)
            against = Against(declared, None if reference is None else window(reference))
            yield taken(
                query, shown, names, declared.name, states, None, is_part=is_part, against=against
            )


def sum_over(span: Span | None, panes: Mapping[int | None, PerKey]) -> PerKey | None:
    """The state of a window: the sum of its panes. None if nothing was counted."""
    states = [state for start, state in panes.items() if is_over(span, start)]
    if len(states) < 2:
        return states[0] if states else None
    return sum(states[1:], states[0])


def stored_over(
    rows: Iterable[tuple[DeltaMetadata, bytes]],
) -> Callable[[Span | None], StoredPerKey | None]:
    """The sum of these rows over a window, in their bytes: so only states of keys that are shown
    are read. A row that is summed up to a coarser grouping is read as a whole."""
    panes: dict[int | None, list[bytes]] = defaultdict(list)
    for row, data in rows:
        stored = state_bytes(row, data) if row.sum_of is None else state_of(row, data).to_bytes()
        panes[row.pane.start_ms].append(stored)

    def total_of(span: Span | None) -> StoredPerKey | None:
        window_states = [
            state for start, states in panes.items() if is_over(span, start) for state in states
        ]
        return StoredPerKey(window_states) if window_states else None

    return total_of


def is_over(span: Span | None, start_ms: int | None) -> bool:
    """Whether a window contains the pane that starts then; None: both are since the start."""
    return start_ms is None if span is None else start_ms is not None and span.holds(start_ms)


def read_results(
    ledger: Ledger, query: Query, report: Progress = no_report, *, digests: bool = True
) -> ResultsAnswer:
    """The answer to a query, with the experiment and the join; see `with_states` for the errors.
    digests: whether rows have those of their states, which a text does not show."""

    def read() -> ResultsAnswer:
        return with_states(ledger, query, answer, report)

    def answer(
        snapshot: Snapshot, planned: Mapping[str, MetricPlan], states: Iterator[KeyedState]
    ) -> ResultsAnswer:
        if not digests:
            states = (state.undigested() for state in states)
        return results_of(snapshot, states, query)

    totals: Totals = {}
    results = _compared(ledger, query, totals, read)
    return indexed(ExperimentIndex(ledger, totals), query, Last(), results)


def read_json(ledger: Ledger, query: Query, report: Progress = no_report) -> Iterator[bytes]:
    """The JSON of `read_results`, piece by piece: the rows are in a temporary file, so that memory
    is bounded. The store is read before the first piece."""
    totals: Totals = {}
    spool, results, _ = read_spooled(ledger, query, report, totals)
    return spool.pieces(indexed(ExperimentIndex(ledger, totals), query, Last(), results))


def read_spooled(
    ledger: Ledger, query: Query, report: Progress = no_report, totals: Totals | None = None
) -> tuple[RowSpool, ResultsAnswer, int]:
    """The answer of `read_results` without the index, most of its rows in a temporary file, and
    the revision of its generation. totals: those of experiments, which other readers may share."""
    spooled: list[tuple[RowSpool, int]] = []

    def read() -> ResultsAnswer:
        return with_states(ledger, query, answer, report)

    def answer(
        snapshot: Snapshot, _: Mapping[str, MetricPlan], states: Iterator[KeyedState]
    ) -> ResultsAnswer:
        for former, _revision in spooled:
            former.close()  # of another moment, or of a connection that failed
        spool = RowSpool(lambda slice_: not may_be_of_users(slice_))
        spooled[:] = [(spool, snapshot.generation.revision)]
        return results_of(snapshot, states, query, spool.keep)

    results = _compared(ledger, query, {} if totals is None else totals, read)
    [(spool, revision)] = spooled
    return spool, results, revision


def _compared(
    ledger: Ledger, query: Query, totals: Totals, read: Callable[[], ResultsAnswer]
) -> ResultsAnswer:
    """The results of `read` with the experiment, the join and the status of exposures."""
    shown = partial(ComparisonReader(ledger, query, totals).with_experiment, read)
    return with_pending(ledger, query, PendingReaders(ledger), Last(), shown)


def with_pending(
    ledger: Ledger,
    query: Query,
    pending: PendingReaders,
    last: Last[ResultsAnswer],
    read: Callable[[], ResultsAnswer],
) -> ResultsAnswer:
    """The results of `read`, with the join and the exposures of the same moment. (If others commit
    faster than we read, they may be of another one.) last: the answer before, which stays if
    nothing changed."""
    results, status = read_at_same_offsets(
        ledger, query, read, lambda: pending.read(query.generation)
    )
    return last.result(_add_status, results, *status)


def _add_status(
    results: ResultsAnswer, join: Join | None, exposures: ExposureStatus | None
) -> ResultsAnswer:
    if join is None and exposures is None:
        return results
    return replace(results, join=join, exposures=UNSET if exposures is None else exposures)


class _Keys:
    """The keys of one window: those that are kept, and the sum of all others so far."""

    def __init__(self, max_keys: int) -> None:
        self._seen = PerKey(Ratio(), max_keys)  # it keeps the same keys for any metric
        self.other: Accumulator | None = None

    def take(self, state: PerKey) -> PerKey:
        """The states of the kept keys of the next range."""
        keys = state.keys()
        if keys:
            self._seen.update(list(keys), numerators=[0] * len(keys))
        kept_keys = frozenset(self._seen.keys())
        for key in keys:
            if key not in kept_keys:
                self._add(state.state(key))
        overflow = state.overflow_state()
        if overflow is not None:
            self._add(overflow)
        return state.chosen(key for key in keys if key in kept_keys)

    def _add(self, state: Accumulator) -> None:
        if self.other is None:
            self.other = state
        else:
            self.other.merge(state)


def with_states(
    ledger: Ledger,
    query: Query,
    take: Callable[[Snapshot, Mapping[str, MetricPlan], Iterator[KeyedState]], T],
    report: Progress = no_report,
) -> T:
    """The result of `take` on the states that a query asks for, in one read transaction. `report`
    is called with the bytes of states that are read so far, and in total.

    Raises QueryError if the store has no such generation, window, grouping, name or metric, or if
    a single range of keys does not fit into memory; LedgerError if the store cannot be read.
    """

    def look(now: StoreView) -> Callable[[], T]:
        planned = plan(now.snapshot, query)
        rows = now.delta_metadata(chosen(now.snapshot, planned))
        is_held = sum(row.nbytes for row in rows) <= HELD_BYTES
        stored = _held(now, rows) if is_held else now.states
        states = _states(query, now.snapshot, planned, rows, stored, report)
        answer = partial(take, now.snapshot, planned, states)
        if is_held:
            return answer
        result = answer()
        return lambda: result

    if query.generation is not None:
        require_generation(query.generation, [generation.id for generation in ledger.generations()])
    return view(ledger, look, generation=query.generation)()


def _held(now: StoreView, rows: Sequence[DeltaMetadata]) -> Stored:
    """The stored bytes of these rows, in memory: the transaction ends before they are merged."""
    data_by_id = {row.id: data for row, data in now.states(rows)}
    return lambda chosen_rows: ((row, data_by_id[row.id]) for row in chosen_rows)


def _states(
    query: Query,
    snapshot: Snapshot,
    planned: Mapping[str, MetricPlan],
    rows: Sequence[DeltaMetadata],
    stored: Stored,
    report: Progress,
) -> Iterator[KeyedState]:
    by_state: dict[tuple[str, int], list[DeltaMetadata]] = defaultdict(list)
    whole = read_bytes = 0
    for row in rows:
        by_state[row.pane.metric, row.pane.grouping].append(row)
        whole += row.nbytes
    for state, state_rows in sorted(by_state.items(), key=lambda entry: entry[0]):
        size = sum(row.nbytes for row in state_rows)
        # The few keys of an experiment are summed over its epochs, which ranges would tear apart.
        ranges = _how_many(size) if planned[state[0]].experiment is None else 1
        if ranges == 1:
            report(read_bytes, whole)
            yield from states_of(query, snapshot, planned, state, stored_over(stored(state_rows)))
        else:
            steps = [read_bytes + size * index // ranges for index in range(ranges)]
            panes = _ranges_merged(stored, state_rows, steps, lambda now: report(now, whole))
            yield from _range_states(query, snapshot, planned, state, panes)
        read_bytes += size


def _range_states(
    query: Query,
    snapshot: Snapshot,
    planned: Mapping[str, MetricPlan],
    state: tuple[str, int],
    ranges: Iterable[Mapping[int | None, PerKey]],
) -> Iterator[KeyedState]:
    """As `states_of`, from the panes of one range of keys after another."""
    name, grouping = state
    metric_plan = planned[name]
    names = metric_plan.layout.groupings[grouping]
    keys: dict[Span | None, _Keys] = {}
    empty: dict[Span | None, PerKey] = {}

    def kept_of(panes: Mapping[int | None, PerKey], span: Span | None) -> PerKey | None:
        total = sum_over(span, panes)
        if total is None:
            return None
        kept_state = keys.setdefault(span, _Keys(total.max_keys)).take(total)
        empty[span] = kept_state.empty()
        return kept_state

    for panes in ranges:
        window = cache(partial(kept_of, panes))
        for span in metric_plan.spans:
            kept_state, shown = window(span), window_of(span, snapshot)
            if kept_state is None:
                continue
            if metric_plan.plain:
                yield taken(query, shown, names, name, kept_state, None, is_part=True)
            yield from _drifts(
                query, metric_plan, span, shown, names, kept_state, window, is_part=True
            )
    for span in metric_plan.spans if metric_plan.plain else ():
        other_state = keys[span].other if span in keys else None
        if other_state is not None:
            shown = window_of(span, snapshot)
            yield taken(query, shown, names, name, empty[span], other_state, is_part=True)


def _how_many(size: int) -> int:
    """The number of key ranges into which states of `size` bytes are divided."""
    ranges = 1
    while size > RANGE_BYTES * ranges and ranges < MAX_RANGES:
        ranges *= 2
    return ranges


def _rows_of_range(rows: Iterable[DeltaMetadata], index: int, ranges: int) -> list[DeltaMetadata]:
    """The rows that may hold keys of a range. The `(other)` sum of a row is in the last range."""
    unit = MAX_RANGES // ranges
    first, end = index * unit, (index + 1) * unit
    range_rows = []
    for row in rows:
        width = MAX_RANGES // row.key_ranges
        start = row.key_range * width
        if start < end and first < start + width:
            range_rows.append(row)
    return range_rows


def _ranges_merged(
    stored: Stored,
    rows: Sequence[DeltaMetadata],
    steps: Sequence[int],
    report: Callable[[int], None],
) -> Iterator[dict[int | None, PerKey]]:
    """The state of each pane, for one range of keys after another; a report before each."""
    for index, read_bytes in enumerate(steps):
        report(read_bytes)
        yield _range_merged(stored, rows, index, len(steps))


def _range_merged(
    stored: Stored, rows: Sequence[DeltaMetadata], index: int, ranges: int
) -> dict[int | None, PerKey]:
    """The state of each pane, for the keys of one range."""
    panes: dict[int | None, PerKey] = {}
    nbytes = 0
    for row, data in stored(_rows_of_range(rows, index, ranges)):
        state = state_of(row, data)
        if row.key_ranges < ranges:
            state = state.split(ranges)[index]
        start = row.pane.start_ms
        if start in panes:
            nbytes -= panes[start].nbytes
            panes[start].merge(state)
        else:
            panes[start] = state
        nbytes += panes[start].nbytes
        if nbytes > MAX_RANGE_BYTES:
            raise QueryError(
                expected=f"at most {MAX_RANGE_BYTES >> 20} MiB in each of {ranges} ranges of keys",
                got=f"more for {row.pane.metric}",
                where="the merged states",
                hint="ask for fewer windows with --window, or give the metric a smaller max_rows "
                "or a grid",
            )
    return panes
