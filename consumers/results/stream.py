"""An answer whose states are too large to be in memory together: one range of keys at a time.

Ranges of keys nest and each key lies in one, so a range is merged, answered and let go of before
the next. All is read in one transaction, which lasts as long as that takes. It is over before
anything is sent, so no client, however slow, makes it last longer.

Which keys are kept apart and which are summed into `(other)` is decided as in a whole state: the
`max_keys` keys with the smallest hash are kept, and ranges come in the order of the hash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from consumers.ledger.ledger import Ledger
from consumers.ledger.outline import MAX_RANGES, Outline, state_of
from consumers.ledger.view import View, view
from consumers.model.commit import Snapshot
from consumers.model.generation import Pane
from consumers.results.query import OTHER, Query, QueryError, Slice, SliceValue, Span
from consumers.results.read_plan import Wanted, plan
from consumers.results.results import Results
from consumers.results.states import SliceState, chosen, results_of, sum_over, window_of
from streammetrics import Accumulator, PerKey, Ratio

T = TypeVar("T")
Tell = Callable[[int, int], None]  # bytes of stored states: how many are read, of how many
_Key = SliceValue | tuple[SliceValue, ...]

RANGE_BYTES: Final = 64 << 20  # of the rows of one range of keys, as they are stored
MAX_RANGE_BYTES: Final = 2 << 30  # of the merged states of one range, in memory


def silent(done: int, total: int) -> None:
    """Tell nobody."""


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


def streamed_results(ledger: Ledger, query: Query, tell: Tell = silent) -> Results:
    """As `read_results`, in the memory of one range of keys.

    Raises QueryError where even that is too much: one key alone is too large then.
    """
    return streamed(ledger, query, lambda seen, _, states: results_of(
        seen, states, headlines=query.headlines), tell)  # fmt: skip


def streamed(
    ledger: Ledger,
    query: Query,
    take: Callable[[Snapshot, Mapping[str, Wanted], Iterator[SliceState]], T],
    tell: Tell = silent,
) -> T:
    """What `take` makes of the states that a query asks for, one range of keys after the other."""

    def look(now: View) -> T:
        planned = plan(now.snapshot, query)
        return take(now.snapshot, planned, _states(now, query, planned, tell))

    return view(ledger, look, generation=query.generation)


def _states(
    now: View, query: Query, planned: Mapping[str, Wanted], tell: Tell
) -> Iterator[SliceState]:
    by_state: dict[tuple[str, int], list[Pane]] = defaultdict(list)
    panes = chosen(now.snapshot, planned)
    sizes = {size.pane: size.nbytes for size in now.snapshot.panes}
    whole, done = sum(sizes[pane] for pane in panes), 0
    for pane in panes:
        by_state[pane.metric, pane.grouping].append(pane)
    for (name, grouping), panes in sorted(by_state.items()):
        names = planned[name].layout.groupings[grouping]
        rows = now.outlines(panes)
        keys: dict[Span | None, _Keys] = {}
        ranges = _how_many(rows)
        size = sum(sizes[pane] for pane in panes)
        for at in range(ranges):
            tell(done + size * at // ranges, whole)
            states = _merged(now, _over(rows, at, ranges), at, ranges)
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


def _how_many(rows: Sequence[Outline]) -> int:
    size = sum(row.nbytes for row in rows)
    ranges = 1
    while size > RANGE_BYTES * ranges and ranges < MAX_RANGES:
        ranges *= 2
    return ranges


def _over(rows: Iterable[Outline], at: int, ranges: int) -> list[Outline]:
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


def _merged(now: View, rows: Sequence[Outline], at: int, ranges: int) -> dict[int | None, PerKey]:
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
                came=f"more than that for {row.pane.metric}",
                where="the merged states",
                todo="ask for fewer windows with --window, or give the metric a smaller max_rows "
                "or a grid",
            )
    return panes
