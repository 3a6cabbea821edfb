"""Delta rows without their states, and the states of chosen rows, within one read transaction of
the caller.

A row holds a state of one window and one hash range of keys, of at most 8 MiB. A state by variant
is a sum of states by variant and segment. A grouping is a tuple of names, and its keys are (index
in `[slices] by`, value, ...). A grouping is *finest* if no other grouping has all of its names and
more. Every other grouping is *coarser* than a finest one, and each of its states is a sum, over
keys, of that one's. So a delta row of a finest grouping that keeps all its keys apart also stands
for those of the coarser groupings, which are computed when they are read. Where it cannot
(`max_keys`), they have their own rows. A row that stands for coarser groupings is read as a row of
each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar, cast

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

import streammetrics as sm
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.model.generation import Generation, Pane, StateShard

if TYPE_CHECKING:
    from streammetrics_consumers.ledger.packing import Array

SHARD_BYTES: Final = 8 << 20  # a reader holds one at a time, and megabytes suit a row of a store
MAX_RANGES: Final = 1 << 16
# The columns of a `DeltaMetadata`: its id, the four of its pane, and the rest in order.
METADATA: Final = (
    delta.c.id,
    delta.c.metric,
    delta.c.grouping,
    delta.c.window_start_ms,
    delta.c.window_end_ms,
    delta.c.key_range,
    delta.c.key_ranges,
    delta.c.head,
    delta.c.start_offset,
    delta.c.end_offset,
    delta.c.nbytes,
    delta.c.retry,
    delta.c.for_coarser,
)


def split(
    pane: Pane, state: sm.Accumulator, limit: int = SHARD_BYTES, at_least: int = 1
) -> Iterator[StateShard]:
    """One shard if it is small enough, else as few ranges of keys as needed, from `at_least` on.

    A single key whose state is larger than the limit stays whole.
    """
    whole = state.encoded()
    ranges = at_least
    while len(whole.data) > limit * ranges and ranges < MAX_RANGES:
        ranges *= 2
    if ranges == 1:
        yield _shard(pane, 0, 1, *whole)
        return
    while True:
        parts = parts_of(state, ranges)
        encodings = {i: part.encoded() for i, part in parts.items()}
        if ranges >= MAX_RANGES or all(
            len(data) <= limit or _is_one(parts[i]) for i, (data, _) in encodings.items()
        ):
            yield from (_shard(pane, i, ranges, *encoding) for i, encoding in encodings.items())
            return
        ranges *= 2


def shard_of(pane: Pane, key_range: int, key_ranges: int, state: sm.Accumulator) -> StateShard:
    """The state of one range of keys as a row of the store."""
    return _shard(pane, key_range, key_ranges, *state.encoded())


def _shard(
    pane: Pane, key_range: int, key_ranges: int, data: bytes, arrays: Sequence[Array]
) -> StateShard:
    from streammetrics_consumers.ledger.packing import packed  # numpy, which `status` does not need

    return StateShard(pane, key_range, key_ranges, data, packed=packed(data, arrays))


def parts_of(state: sm.Accumulator, ranges: int) -> dict[int, sm.Accumulator]:
    """The non-empty states of equal ranges of keys, or of ids. Delays have neither, and are in the
    first range."""
    if not hasattr(state, "split"):
        return {0: state}
    if not isinstance(state, sm.PerKey):  # events that are not closed, or known exposures
        sets = cast("sm.JoinRows | sm.ExposedRows", state)
        return {key_range: part for (_, key_range), part in sets.split(None, ranges).items()}
    return {
        key_range: part
        for key_range, part in enumerate(state.split(ranges))
        if len(part.keys()) or part.overflow_state() is not None
    }


def _is_one(part: sm.Accumulator) -> bool:
    if isinstance(part, sm.PerKey):
        return len(part.keys()) <= 1
    return not hasattr(part, "split")


def can_stand_for_coarser(shards: Sequence[StateShard], state: sm.PerKey) -> bool:
    """Whether the states of coarser groupings follow from these shards of a state: it is one row,
    and keeps all its keys apart."""
    return len(shards) == 1 and shards[0].key_ranges == 1 and state.overflow_state() is None


Groupings: TypeAlias = "Sequence[tuple[str, ...]]"
Key: TypeAlias = "str | int | tuple[str | int | None, ...] | None"


def finest(by: Groupings) -> dict[int, tuple[int, ...]]:
    """The index of each finest grouping, with those of the coarser ones derived from it. A grouping
    that could be derived from several is derived from the one with the fewest names.

    >>> finest([(), ("variant",), ("segment",), ("variant", "segment"), ("hour",)])
    {3: (1, 2), 4: (0,)}
    """
    names = [frozenset(grouping) for grouping in by]
    coarser: dict[int, list[int]] = {}
    follows: list[tuple[int, int]] = []
    for grouping, subset in enumerate(names):
        finer = [
            i
            for i, superset in enumerate(names)
            if subset < superset and not any(superset < larger for larger in names)
        ]
        if finer:
            follows.append((min(finer, key=lambda i: (len(names[i]), i)), grouping))
        else:
            coarser[grouping] = []
    for base, grouping in follows:
        coarser[base].append(grouping)
    return {base: tuple(groupings) for base, groupings in coarser.items()}


def bases(by: Groupings) -> dict[int, int]:
    """By the index of each coarser grouping, that of the finest one that it is derived from."""
    return {grouping: base for base, groupings in finest(by).items() for grouping in groupings}


def summed(state: sm.PerKey, by: Groupings, base: int, grouping: int) -> sm.PerKey:
    """The state of grouping `grouping`, derived from that of grouping `base`."""
    return state.rekeyed(_shorter(by, base, grouping))


def groupings_of(generation: Generation) -> Mapping[str, Groupings]:
    """The groupings of each metric of a generation, in their order."""
    groupings = {}
    for metric in generation.metrics:
        slices = cast("Sequence[Sequence[tuple[str, str]]]", metric.description.get("slices", ()))
        groupings[metric.name] = [tuple(name for name, _ in grouping) for grouping in slices]
    return groupings


def coarser_of(generation: Generation) -> Mapping[tuple[str, int], tuple[int, ...]]:
    """By metric name and index of a finest grouping, the indices of those derived from it."""
    return {
        (name, base): groupings
        for name, metric_groupings in groupings_of(generation).items()
        for base, groupings in finest(metric_groupings).items()
    }


def _shorter(groupings: Groupings, base: int, grouping: int) -> Callable[[Key], Key]:
    places = [1 + groupings[base].index(name) for name in groupings[grouping]]

    def key_of(key: Key) -> Key:
        assert isinstance(key, tuple)
        return (grouping, *(key[i] for i in places))

    return key_of


_PARAMETERS: Final = 500  # of one query; SQLite takes at least 999
_BYTES: Final = 1 << 20  # of the states that one query reads, unless it is one state

_TOTAL: Final = delta.alias()
_STORED: Final = select(
    delta.c.id, func.coalesce(_TOTAL.c.state, delta.c.state).label("state")
).outerjoin_from(delta, _TOTAL, _TOTAL.c.id == delta.c.same_as)

T = TypeVar("T")


class SumOf(NamedTuple):
    """Marks a row as the sum, over keys, of the state of grouping `base`."""

    by: Groupings
    base: int


@dataclass(frozen=True, slots=True)
class DeltaMetadata:
    """A delta row without its state: the offsets [start_offset, end_offset) of a head, times a
    range of keys. `retry` is None for the log's own events. `for_coarser`: see StateShard. `nbytes`
    is the size of the state: that of the finer grouping's row, where this is a `sum_of` it."""

    id: int
    pane: Pane
    key_range: int
    key_ranges: int
    head: int
    start_offset: int
    end_offset: int
    nbytes: int
    retry: int | None
    for_coarser: bool = False
    sum_of: SumOf | None = None

    def may_share_keys(self, key_range: int, ranges: int) -> bool:
        """Whether a key may be in this row and in range `key_range` of `ranges` equal ones."""
        common_ranges = min(self.key_ranges, ranges)
        return (
            self.key_range * common_ranges // self.key_ranges == key_range * common_ranges // ranges
        )


def read_metadata(
    connection: Connection, generation: Generation, panes: Collection[Pane]
) -> Iterator[DeltaMetadata]:
    """The metadata of the rows of these panes."""
    for conditions in pane_conditions(generation.id, panes):
        yield from read_rows(connection, *conditions)
    groupings = groupings_of(generation)
    finer: dict[Pane, list[Pane]] = defaultdict(list)
    for pane in panes:
        base = (
            bases(groupings[pane.metric]).get(pane.grouping) if pane.metric in groupings else None
        )
        if base is not None:
            finer[pane.regrouped(base)].append(pane)
    for conditions in pane_conditions(generation.id, finer):
        for row in read_rows(connection, *conditions, delta.c.for_coarser.is_(True)):
            sum_of = SumOf(groupings[row.pane.metric], row.pane.grouping)
            for pane in finer[row.pane]:
                yield replace(row, pane=pane, sum_of=sum_of)


def read_rows(connection: Connection, *conditions: ColumnElement[bool]) -> Iterator[DeltaMetadata]:
    """The rows that meet these conditions."""
    for row in connection.execute(select(*METADATA).where(*conditions)):
        yield DeltaMetadata(row[0], Pane(*row[1:5]), *row[5:13])


StoredStates: TypeAlias = Generator[tuple[DeltaMetadata, bytes], None, None]


def read_states(connection: Connection, rows: Iterable[DeltaMetadata]) -> StoredStates:
    """Each of these rows with its stored bytes, in no particular order, a few in memory at a time;
    see `state_bytes` and `state_of`."""
    by_id: dict[int, list[DeltaMetadata]] = defaultdict(list)
    for row in rows:
        by_id[row.id].append(row)
    sizes = ((id_, same_rows[0].nbytes) for id_, same_rows in by_id.items())
    for ids in few(sizes, _PARAMETERS, _BYTES):
        query = _STORED.where(delta.c.id.in_(ids))
        with connection.execute(query) as stored_states:
            for id_, stored in stored_states:
                for row in by_id[id_]:
                    yield row, stored


def state_bytes(row: DeltaMetadata, stored: bytes) -> bytes:
    """The bytes of the state in a row. Raises StateError where there is none of its size."""
    from streammetrics_consumers.ledger.packing import unpacked

    return unpacked(stored, row.nbytes, f"the state of a delta row of {row.pane.metric}")


def state_of(row: DeltaMetadata, stored: bytes) -> sm.PerKey:
    """The state of a row. Raises StateError where it cannot be decoded."""
    [(_, state)] = states_each([(row, stored)])
    return state


def states_each(
    rows: Iterable[tuple[DeltaMetadata, bytes]],
) -> Iterator[tuple[DeltaMetadata, sm.PerKey]]:
    """Each row with its state, as `state_of`, in no particular order. What one also stands for
    (coarser groupings, the total beside a window) is decoded once, if its rows come one after
    another; the states are separate."""
    for _, group in groupby(rows, key=lambda pair: (pair[1], pair[0].nbytes)):
        pairs = sorted(group, key=lambda pair: pair[0].sum_of is None)  # the states themselves last
        state = sm.PerKey.from_bytes(state_bytes(*pairs[0]))
        for row, _ in pairs[:-1]:
            sum_of = row.sum_of
            if sum_of is None:
                yield row, state.copy()
            else:
                yield row, summed(state, *sum_of, row.pane.grouping)
        row, sum_of = pairs[-1][0], pairs[-1][0].sum_of
        yield row, state if sum_of is None else summed(state, *sum_of, row.pane.grouping)


def drop_rows(connection: Connection, *conditions: ColumnElement[bool]) -> int:
    """Delete these delta rows; other rows that had their state from one of them get it. Returns
    their number."""
    gone = select(delta.c.id).where(*conditions).scalar_subquery()
    total = delta.alias()
    state = select(total.c.state).where(total.c.id == delta.c.same_as).scalar_subquery()
    connection.execute(
        update(delta).where(delta.c.same_as.in_(gone)).values(state=state, same_as=None)
    )
    return connection.execute(delete(delta).where(*conditions)).rowcount


def few(sized: Iterable[tuple[T, int]], count: int, nbytes: int) -> Iterator[list[T]]:
    """Batches of all of these values, each given with its bytes: within limits of number and bytes,
    but of at least one value."""
    batch: list[T] = []
    batch_bytes = 0
    for value, size in sized:
        if batch and (len(batch) == count or batch_bytes + size > nbytes):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(value)
        batch_bytes += size
    if batch:
        yield batch


def pane_conditions(
    generation: int, panes: Collection[Pane]
) -> Iterator[tuple[ColumnElement[bool], ...]]:
    """Conditions that select the rows of these panes, with as few queries as possible: metrics that
    have the same panes share them."""
    panes_of: dict[tuple[str, int], list[int | None]] = defaultdict(list)
    for pane in sorted(panes, key=pane_order):
        panes_of[pane.metric, pane.grouping].append(pane.start_ms)
    alike: dict[tuple[int, tuple[int | None, ...]], list[str]] = defaultdict(list)
    for (metric, grouping), of_metric in panes_of.items():
        alike[grouping, tuple(of_metric)].append(metric)
    most = _PARAMETERS // 2
    for (grouping, starts), metrics in alike.items():
        spans = [start for start in starts if start is not None]
        for place in range(0, len(metrics), most):
            of_metrics = (
                delta.c.generation == generation,
                delta.c.metric.in_(metrics[place : place + most]),
                delta.c.grouping == grouping,
            )
            if None in starts:
                yield (*of_metrics, delta.c.window_start_ms.is_(None))
            for first in range(0, len(spans), most):
                yield (*of_metrics, delta.c.window_start_ms.in_(spans[first : first + most]))


def pane_order(pane: Pane) -> tuple[str, int, bool, int]:
    """By metric and grouping; the total comes first, then panes in order of time."""
    return (pane.metric, pane.grouping, pane.start_ms is not None, pane.start_ms or 0)
