"""The incremental view of a query: an answer that is kept up to date by reading only new rows.

Its cursor is the next offset of every head. A delta row counts the offsets [start, end) of its
head, so it is new if start is at or after the cursor, and known if end is at or before it. A row
that spans the cursor was compacted from known and new rows: its pane is then read again from the
beginning. Row ids do not help, because a store may reuse them.

Rows of a retry count offsets far below the cursor. They are few, are never compacted, and are
deleted only with their pane, so the view remembers which of them it has read. A store that went
back may have lost a retry and nothing else: then, too, everything is read again.

The query cache keeps the views of a server. A page that asks every second costs one read of the
heads while nothing is counted, and a read of the new rows otherwise.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from sys import maxsize
from threading import Lock
from typing import Final, TypeVar

from streammetrics import Accumulator, PerKey
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, states_each
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge
from streammetrics_consumers.ledger.store_view import StoreVersion, StoreView, view
from streammetrics_consumers.ledger.witness import identity, went_back
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.generation import Pane
from streammetrics_consumers.query.answers import ExperimentsAnswer, ResultsAnswer
from streammetrics_consumers.query.comparisons import ComparisonReader, ExperimentProgress
from streammetrics_consumers.query.experiment_index import ExperimentIndex, indexed
from streammetrics_consumers.query.experiment_totals import Totals
from streammetrics_consumers.query.exposed_reading import ExposedAnswers
from streammetrics_consumers.query.exposures_status import PendingReaders
from streammetrics_consumers.query.moments import Last, Moment, moment_of
from streammetrics_consumers.query.query import Query, Slice, Span, require_generation
from streammetrics_consumers.query.query_plan import MetricPlan, chosen, plan
from streammetrics_consumers.query.reader import (
    is_over,
    read_results,
    states_of,
    sum_over,
    with_pending,
    with_states,
)
from streammetrics_consumers.query.results import NO_CELLS, results_of
from streammetrics_consumers.query.rows import Window
from streammetrics_consumers.query.slices import Key, KeyedState, slice_of
from streammetrics_consumers.query.state_cells import CellCache
from streammetrics_consumers.query.turns import (
    Queue,
    TooHeavy,
    Turn,
    checkpoint,
    current_turn,
    expect_slices,
    expect_work,
)

T = TypeVar("T")

MAX_DELTA_BYTES: Final = 512 << 20  # of the stored states that a view reads at once
MAX_STATE_BYTES: Final = 2 << 30  # of the merged states that it keeps
CACHED: Final = 256  # views; a page asks repeatedly for a few of each metric
ANSWERS: Final = 8  # of one view, for different parts of its rows
CACHED_BYTES: Final = 1 << 30  # of their states and answers
ROW_BYTES: Final = 1000  # of a row of an answer
LOCK_S: Final = 0.1  # how long an answer waits for another one before it looks for its client


@dataclass(frozen=True, slots=True)
class _News:
    """The findings of one transaction: new rows of kept panes, and all rows of reloaded panes."""

    version: StoreVersion
    snapshot: Snapshot
    planned: Mapping[str, MetricPlan]
    wanted: frozenset[Pane]
    reloaded: frozenset[Pane]
    rows: Sequence[tuple[DeltaMetadata, bytes]]


class IncrementalView:
    """The answer to a query, kept up to date. One thread may use it.

    Its rows equal those of `read_results` at the same moment. `rows_read` counts the delta rows
    that it has read, `reloads` the known panes that it had to read again from the beginning.
    """

    def __init__(
        self,
        ledger: Ledger,
        query: Query,
        max_bytes: int = MAX_STATE_BYTES,
        cells: CellCache = NO_CELLS,
    ) -> None:
        """max_bytes: of the states that it keeps; larger ones are read for each answer. cells: of
        states, which other views may share."""
        self._cells = cells
        self._ledger, self._query = ledger, query
        self._max_bytes = min(max_bytes, MAX_STATE_BYTES)
        self._version: StoreVersion | None = None  # of the answers
        self._answers: dict[Query, ResultsAnswer] = {}
        self._heavy: set[Query] = set()  # queries that were too heavy for a light turn
        self._taken: _News | None = None  # the last news in `_panes`, without its rows
        self._panes: dict[Pane, PerKey] = {}
        self._retries: dict[Pane, set[int]] = {}
        # By metric and grouping, for each window: the digests of the states that answers showed.
        self._digests: dict[tuple[str, int], dict[Span | None, dict[Key, str]]] = {}
        self._sizes: dict[Pane, int] = {}  # the approximate bytes of each pane
        self.rows_read = self.reloads = 0

    def results(self, query: Query | None = None) -> ResultsAnswer:
        """The current answer; see `reader.with_states` for the errors. query: one with the same
        `whole`, for another part of the rows."""
        query = query or self._query
        version = self._update()
        if query not in self._answers:
            if query in self._heavy:
                expect_work(maxsize)  # no second time until it is found out
            if len(self._answers) >= ANSWERS:
                self._answers.clear()
                self._heavy.clear()
            if self._taken is not None and query.is_of_all_slices:
                expect_slices(self._least_slices(self._taken))
            # Read after `version`, so the answer kept under it may be newer, never older.
            try:
                self._answers[query] = self._answer(query)
            except TooHeavy:
                self._heavy.add(query)
                raise
        self._version = version
        return self._answers[query]

    def _answer(self, query: Query) -> ResultsAnswer:
        news = self._taken
        if news is None:
            return read_results(self._ledger, query)
        return results_of(news.snapshot, self._states(news), query, cache=self._cells)

    def states(self) -> list[tuple[Slice, Accumulator]]:
        """The states behind the rows of the answer, by slice. They belong to the view: the next
        call changes them."""
        self._version = self._update()
        if self._taken is None:
            return with_states(
                self._ledger, self._query, lambda _1, _2, states: _slice_states(states)
            )
        return _slice_states(self._states(self._taken))

    def _update(self) -> StoreVersion:
        """Read what was counted since the last version, unless it is too large; returns the version
        of the states that are held."""
        generation_id = self._query.generation
        if generation_id is not None:
            require_generation(
                generation_id, [generation.id for generation in self._ledger.generations()]
            )
        version = view(self._ledger, lambda now: now.version, generation=generation_id)
        if self._version == version:
            return version
        try:
            news = view(self._ledger, self._news, generation=generation_id)
            self._take(news)
        except TooLarge:
            self._forget()
            return version
        return news.version

    def _least_slices(self, news: _News) -> int:
        """A number of slices that the answer with all rows reaches, without its sums of panes."""
        counts: dict[tuple[str, int], dict[int | None, int]] = defaultdict(dict)
        for pane, state in self._panes.items():
            metric_plan = news.planned[pane.metric]
            names = metric_plan.layout.groupings[pane.grouping]
            keys = state.keys() if metric_plan.experiment is None else ()  # a few arms
            counts[pane.metric, pane.grouping][pane.start_ms] = (
                sum(self._query.takes(slice_of(key, names)) for key in keys)
                if self._query.where
                else len(keys)
            )
        return sum(
            max((count for start, count in panes.items() if is_over(span, start)), default=0)
            for (metric, _), panes in counts.items()
            if news.planned[metric].plain
            for span in news.planned[metric].spans
        )

    @property
    def nbytes(self) -> int:
        """The approximate bytes of its query, and of the states and answers that it holds."""
        answers = self._answers.items()
        rows = sum(query.nbytes + ROW_BYTES * len(answer.rows) for query, answer in answers)
        return self._query.nbytes + sum(self._sizes.values()) + rows

    def _news(self, now: StoreView) -> _News:
        """The data of this transaction that was not taken yet. Does not change the view."""
        snapshot = now.snapshot
        planned = plan(snapshot, self._query)
        panes = frozenset(chosen(snapshot, planned))
        cursor, kept_panes = self._cursor(now), self._panes.keys()
        if not cursor:
            kept_panes = {}.keys()
        delta_metadata = now.delta_metadata(panes)
        around = {
            row.pane for row in delta_metadata if row.pane in kept_panes and _is_around(row, cursor)
        }
        reloaded = frozenset(panes - kept_panes) | around
        new = [row for row in delta_metadata if row.pane in reloaded or self._is_new(row, cursor)]
        size = sum(row.nbytes for row in new)
        if size > min(MAX_DELTA_BYTES, self._max_bytes):
            raise TooLarge(f"{size} bytes of new states exceed the limit of the cache")
        return _News(now.version, snapshot, planned, panes, reloaded, list(now.states(new)))

    def _cursor(self, now: StoreView) -> dict[int, int]:
        """The next offset of each head at the last read; empty if that is of no use: it was of
        another generation, or the store went back."""
        if self._version is None or self._version.generation.token != now.version.generation.token:
            return {}
        if not now.has_retry_of(self._version):
            return {}
        old_heads, new_heads = self._version.heads, {head.id: head for head in now.version.heads}
        for head in old_heads:
            new_head = new_heads.get(head.id)
            if (
                new_head is None
                or identity(new_head) != identity(head)
                or went_back(head, new_head)
            ):
                return {}
        return {head.id: head.next_offset for head in old_heads}

    def _is_new(self, row: DeltaMetadata, cursor: Mapping[int, int]) -> bool:
        if row.retry is not None:
            return row.id not in self._retries.get(row.pane, ())
        return row.start_offset >= cursor.get(row.head, row.start_offset)

    def _take(self, news: _News) -> None:
        self.reloads += sum(pane in self._panes for pane in news.reloaded)
        self.rows_read += len(news.rows)
        # Forget first: a failure below must not leave a half-updated view.
        panes = {pane: state for pane, state in self._panes.items() if pane in news.wanted}
        retries = {pane: ids for pane, ids in self._retries.items() if pane in news.wanted}
        sizes = {pane: size for pane, size in self._sizes.items() if pane in news.wanted}
        digests = self._digests
        for pane in news.reloaded | (self._panes.keys() - panes.keys()):
            digests.pop((pane.metric, pane.grouping), None)
        self._forget()
        for pane in news.reloaded:
            panes.pop(pane, None)
            retries.pop(pane, None)
        for row, state in states_each(sorted(news.rows, key=_stored_bytes)):
            checkpoint()
            keys = state.keys()
            for span, span_digests in digests.get((row.pane.metric, row.pane.grouping), {}).items():
                if is_over(span, row.pane.start_ms):
                    for key in keys:
                        span_digests.pop(key, None)
            sizes.pop(row.pane, None)
            if row.pane in panes:
                panes[row.pane].merge(state)
            else:
                panes[row.pane] = state
            if row.retry is not None:
                retries.setdefault(row.pane, set()).add(row.id)
        sizes |= {pane: panes[pane].nbytes for pane in panes.keys() - sizes.keys()}
        nbytes = sum(sizes.values())
        if nbytes > self._max_bytes:
            raise TooLarge(f"{nbytes} bytes of states exceed the limit of the cache")
        self._panes, self._retries, self._sizes = panes, retries, sizes
        self._digests = digests
        # An answer that was too heavy for its turn begins again, and reads nothing twice.
        self._taken, self._version = replace(news, rows=()), news.version

    def _states(self, news: _News) -> Iterator[KeyedState]:
        by_state: dict[tuple[str, int], dict[int | None, PerKey]] = defaultdict(dict)
        for pane, state in self._panes.items():
            by_state[pane.metric, pane.grouping][pane.start_ms] = state
        for key in sorted(by_state):
            total_of = partial(sum_over, panes=by_state[key])
            digests = self._digests.setdefault(key, {})
            keyed = states_of(self._query, news.snapshot, news.planned, key, total_of)
            if self._query.experiment is not None:  # other keys than those of the stored states
                yield from keyed
                continue
            for states in keyed:
                yield states.remembering(digests.setdefault(_span_of(states.window), {}))

    def _forget(self) -> None:
        self._version = self._taken = None
        self._answers = {}
        self._panes, self._retries, self._digests, self._sizes = {}, {}, {}, {}


def _slice_states(states: Iterable[KeyedState]) -> list[tuple[Slice, Accumulator]]:
    return [pair for state in states if state.against is None for pair in state.each()]


def _stored_bytes(row: tuple[DeltaMetadata, bytes]) -> tuple[bytes, int]:
    return row[1], row[0].nbytes


def _span_of(window: Window) -> Span | None:
    if window.start_ms is None or window.end_ms is None:
        return None
    return Span(window.start_ms, window.end_ms)


def _is_around(row: DeltaMetadata, cursor: Mapping[int, int]) -> bool:
    if row.retry is not None:
        return False
    return row.start_offset < cursor.get(row.head, row.start_offset) < row.end_offset


class _Cached:
    """One view of a query, and the experiment beside it."""

    def __init__(self, following: IncrementalView, experiment: ComparisonReader) -> None:
        self.following, self.experiment = following, experiment
        self.joined: Last[ResultsAnswer] = Last()
        self.indexed: Last[ResultsAnswer] = Last()
        self.nbytes = following.nbytes  # at the last measurement: who reads it awaits no answer
        self._documents: dict[tuple[Query, str], tuple[ResultsAnswer, bytes]] = {}
        self._lock = Lock()
        self._turn: Turn | None = None  # of the answer that uses them now

    def measure(self) -> None:
        """Note how much is held."""
        documents = sum(len(document) for _, document in [*self._documents.values()])
        self.nbytes = self.following.nbytes + self.experiment.nbytes + documents

    def document(
        self,
        query: Query,
        form: str,
        results: ResultsAnswer,
        write: Callable[[ResultsAnswer], bytes],
    ) -> bytes:
        """What `write` makes of these results, kept for the same object. Others may use the view
        meanwhile."""
        entry = self._documents.get((query, form))
        if entry is None or entry[0] is not results:
            if len(self._documents) >= ANSWERS:
                self._documents.clear()
            entry = self._documents[query, form] = results, write(results)
        return entry[1]

    @contextmanager
    def taken(self, turn: Turn | None) -> Iterator[None]:
        """Nobody else uses them within the block. Raises TooHeavy if a heavy answer does and this
        one has a light turn, and Abandoned if its client goes."""
        while not self._lock.acquire(timeout=-1 if turn is None else LOCK_S):
            assert turn is not None
            turn.require_awaited()
            holder = self._turn
            if turn.light is not None and holder is not None and holder.is_heavy:
                raise TooHeavy
        try:
            self._turn = turn
            yield
        finally:
            self._turn = None
            self._lock.release()


class QueryCache:
    """Reads a ledger. Thread-safe. A repeated query reads only the rows counted since.

    queue: that of the answers with a turn; all others come first. max_bytes: of the states and
    answers that it keeps. is_full: whether the process has no memory for them; emptied: called
    when some of them were removed."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue | None = None,
        *,
        max_bytes: int = CACHED_BYTES,
        is_full: Callable[[], bool] = lambda: False,
        emptied: Callable[[], None] = lambda: None,
    ) -> None:
        self._ledger, self._queue = ledger, queue or Queue()
        self.max_bytes, self._is_full, self._emptied = max_bytes, is_full, emptied
        self._cached: OrderedDict[Query, _Cached] = OrderedDict()
        self._totals: Totals = {}
        self._exposed_answers: ExposedAnswers = {}
        self._cells = CellCache()
        self._pending = PendingReaders(ledger)
        self._index = ExperimentIndex(ledger, self._totals)
        self._lock = Lock()

    def results(self, query: Query) -> ResultsAnswer:
        """As `read_results`; the same object as long as nothing changes."""
        return self._with(query, partial(self._results, query))

    def document(self, query: Query, form: str, write: Callable[[ResultsAnswer], bytes]) -> bytes:
        """What `write` makes of the results, kept as long as nothing changes. form: its name."""
        cached, results = self._with(query, lambda cached: (cached, self._results(query, cached)))
        return cached.document(query, form, results, write)

    def index(self, generation: int | None = None) -> ExperimentsAnswer:
        """The index of experiments; the same object as long as nothing changes."""
        return self._index.answer(generation)

    def moment(self) -> Moment:
        """What determines the present results of the current generation."""
        return view(self._ledger, moment_of)

    def _results(self, query: Query, cached: _Cached) -> ResultsAnswer:
        read = partial(cached.following.results, query)
        shown = partial(cached.experiment.with_experiment, read)
        results = with_pending(self._ledger, query, self._pending, cached.joined, shown)
        return indexed(self._index, query, cached.indexed, results)

    def rows(self, query: Query) -> ResultsAnswer:
        """As `read_results`, without the experiment and the join."""
        return self._with(query, lambda cached: cached.following.results(query))

    def experiment(self, query: Query) -> ResultsAnswer:
        """As `read_results`, without rows, exposed units and the join."""
        return self._experiment(query, exposed=False)[0]

    def experiment_so_far(self, query: Query) -> tuple[ResultsAnswer, ExperimentProgress]:
        """The same with exposed units, and how far the experiment is."""
        return self._experiment(query, exposed=True)

    def _experiment(
        self, query: Query, *, exposed: bool
    ) -> tuple[ResultsAnswer, ExperimentProgress]:
        def read() -> ResultsAnswer:
            bare = view(self._ledger, lambda now: now.bare, generation=query.generation)
            return results_of(bare, (), query)

        def work(cached: _Cached) -> tuple[ResultsAnswer, ExperimentProgress]:
            experiment = cached.experiment
            return experiment.with_experiment(read, exposed=exposed), experiment.progress

        return self._with(query, work)

    def states(self, query: Query, take: Callable[[Sequence[tuple[Slice, Accumulator]]], T]) -> T:
        """The result of `take` on the states behind the rows, by slice; it must not keep them."""
        return self._with(query, lambda cached: take(cached.following.states()))

    def _with(self, query: Query, work: Callable[[_Cached], T]) -> T:
        whole = query.whole
        with self._lock:
            cached = self._cached.pop(whole, None) or self._begin(whole)
            self._cached[whole] = cached  # as the most recent one
        turn = current_turn()
        gives_way = turn is not None and turn.gives_way
        try:
            with cached.taken(turn), nullcontext() if gives_way else self._queue.first():
                try:
                    return work(cached)
                finally:
                    cached.measure()
        finally:  # the view stays also where its query was refused
            self._trim()

    @property
    def nbytes(self) -> int:
        """The approximate bytes of what it keeps."""
        with self._lock:
            views = sum(cached.nbytes for cached in self._cached.values())
            return views + self._cells.nbytes + self._totals_nbytes

    def _trim(self) -> None:
        """Remove the views that were asked for longest ago, if they are too many or too large, and
        before them the cells, if these take more than a quarter."""
        removed = []
        with self._lock:
            size = sum(cached.nbytes for cached in self._cached.values())
            most = 0 if self._is_full() else self.max_bytes
            are_too_many = self._cells.nbytes > most // 4
            if are_too_many:
                self._cells.clear()
            size += self._cells.nbytes + self._totals_nbytes
            while self._cached and (len(self._cached) > CACHED or size > most):
                removed.append(self._cached.popitem(last=False)[1])
                size -= removed[-1].nbytes
            if size > most:
                self._totals.clear()
        if are_too_many or any(cached.nbytes for cached in removed):
            removed.clear()
            self._emptied()

    @property
    def _totals_nbytes(self) -> int:
        """The approximate bytes of the totals of experiments, which answers share."""
        return sum(total.nbytes for total in [*self._totals.values()])

    def _begin(self, query: Query) -> _Cached:
        following = IncrementalView(self._ledger, query, self.max_bytes, self._cells)
        experiment = ComparisonReader(self._ledger, query, self._totals, self._exposed_answers)
        return _Cached(following, experiment)
