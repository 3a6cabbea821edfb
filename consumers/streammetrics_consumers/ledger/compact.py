"""The compactor: merges old delta rows into fewer. No reader can see it.

The rows to merge are planned from offsets, key ranges and sizes alone. The rows of one pane and one
head are extents: a range of keys times a range of offsets. Extents that share keys follow each
other in offsets. A group of neighbours becomes one extent (or a few, if one would be too large)
with the same counts, since sums are exact. Rows grow as they are merged, so an old row is merged
again only once the rows after it are together half as large: each byte is written a number of times
that grows with the logarithm of the state.

Rows are read and merged outside of any transaction. Then one write transaction deletes them and
writes the resulting rows, and is rolled back unless it has deleted exactly the merged rows. So any
number of compactors, workers, retentions and readers may run at once: of two compactors that chose
the same row, the second finds that it is gone and changes nothing.

A merged row counts the offsets from its first row's start to its last row's end, of one head. It
stands for the states of coarser groupings if all its rows do and it still can; otherwise these get
rows of their own, for the offsets of each row that stood for them. Two rows stay apart if a row of
a finer grouping between them counts for their pane. Rows of a retry are not the log's own and are
not merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, insert, select

from streammetrics import PerKey, StateError, load
from streammetrics_consumers.ledger.delta_metadata import (
    SHARD_BYTES,
    DeltaMetadata,
    Groupings,
    bases,
    can_stand_for_coarser,
    drop_rows,
    finest,
    groupings_of,
    read_rows,
    read_states,
    split,
    state_bytes,
    summed,
)
from streammetrics_consumers.ledger.merge_plan import ABOVE, LEAVE, MERGE_BYTES, MergeGroup, plan
from streammetrics_consumers.ledger.read import generation_of, read_heads
from streammetrics_consumers.ledger.schema import delta, generation, head
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import delta_row, is_same
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Pane, StateShard

_HOPELESS: Final = 1000  # groups that are remembered


@dataclass(frozen=True, slots=True)
class Compacted:
    """The numbers of merged rows and of resulting rows, and their bytes."""

    rows_before: int = 0
    rows_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    def __add__(self, other: Compacted) -> Compacted:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Compacted(*(first + second for first, second in pairs))


@dataclass(frozen=True, slots=True)
class MergeRun:
    """The delta rows of one pane that belong to one head."""

    generation: int
    pane: Pane
    head: int


@dataclass(frozen=True, slots=True)
class _Merged:
    """A shard of the new state, for the offsets [start, end)."""

    shard: StateShard
    start: int
    end: int


class _NotAsRead(Exception):
    """The stored rows are no longer those that were merged: roll back."""


class Compactor:
    """Merges delta rows of a store, a group at a time.

    above: how many rows a head may have for one key of a pane; 1 merges everything mergeable. A
    group holds at most `merge_bytes` in memory, as bytes of rows. until: by head, the offset up to
    which rows are merged, so that it ends while others count; None for all.
    """

    def __init__(
        self,
        store: Store,
        *,
        above: int = ABOVE,
        leave: int = LEAVE,
        merge_bytes: int = MERGE_BYTES,
        row_bytes: int = SHARD_BYTES,
        until: Mapping[int, int] | None = None,
    ) -> None:
        self._store, self._until = store, until
        self._above, self._leave = above, leave
        self._merge_bytes, self._row_bytes = merge_bytes, row_bytes
        self._hopeless: set[frozenset[DeltaMetadata]] = set()  # merging them gave as many rows
        self._known: dict[tuple[int, str], Groupings] = {}

    def runs(self, heads: Collection[int] | None = None) -> list[MergeRun]:
        """The merge runs that may have rows to merge, of these heads or of all."""

        def work(connection: Connection) -> list[MergeRun]:
            query = _merge_runs(*_RUN, above=self._above)
            if heads is not None:
                query = query.where(delta.c.head.in_(sorted(heads)))
            # Windows before totals, which have the states of the newest rows of windows.
            is_total = delta.c.window_start_ms.is_(None)
            rows = connection.execute(query.order_by(*_RUN[:3], is_total, *_RUN[3:])).all()
            return [MergeRun(row[0], Pane(*row[1:5]), row[5]) for row in rows]

        return self._store.read(work)

    def plan(self, run: MergeRun) -> list[MergeGroup]:
        """The groups of a merge run to merge now."""
        base = bases(self._groupings(run)).get(run.pane.grouping)

        def work(connection: Connection) -> tuple[list[DeltaMetadata], list[int]]:
            cuts = [] if base is None else _stood_for(connection, run, base)
            return list(read_rows(connection, *_run_conditions(run))), cuts

        extents, cuts = self._store.read(work)
        if self._until is not None:
            end = self._until.get(run.head, 0)
            extents = [extent for extent in extents if extent.end_offset <= end]
        groups = plan(
            extents,
            above=self._above,
            leave=self._leave,
            merge_bytes=self._merge_bytes,
            cuts=cuts,
        )
        return [group for group in groups if frozenset(group.extents) not in self._hopeless]

    def merge(self, run: MergeRun, group: MergeGroup) -> Compacted | None:
        """Merge one group; None if another process was first or the group cannot become smaller."""
        stored = self._store.read(lambda connection: _states(connection, run, group))
        if stored is None:
            return None
        log_head, states = stored
        groupings = (
            self._groupings(run) if any(extent.for_coarser for extent in group.extents) else ()
        )
        try:
            rows = self._fold(run.pane, group, states, groupings)
        except StateError:
            if self._is_counted(run):
                raise
            self._give_up(group)  # another version wrote them, and this one need not read them
            return None
        rows_after = sum(row.shard.pane == run.pane for row in rows)
        is_cut = any(extent.key_ranges < group.ranges for extent in group.extents)
        if rows_after >= len(group.extents) and not is_cut:
            self._give_up(group)
            return None
        try:
            self._store.write(
                lambda connection, _: _exchange(connection, log_head, run, group, rows)
            )
        except _NotAsRead:
            return None
        return Compacted(
            len(group.extents),
            len(rows),
            sum(extent.nbytes for extent in group.extents),
            sum(len(row.shard.state) for row in rows),
        )

    def steps(self, heads: Collection[int] | None = None) -> Iterator[Compacted]:
        """Merge until nothing is left to merge, one transaction at a time."""
        has_progress = True
        while has_progress:  # rows of a finest grouping may become rows of coarser ones to merge
            has_progress = False
            for run in self.runs(heads):
                run_has_progress = True
                while run_has_progress:
                    run_has_progress = False
                    for group in self.plan(run):
                        merged = self.merge(run, group)
                        if merged is not None:
                            run_has_progress = has_progress = True
                            yield merged

    def _give_up(self, group: MergeGroup) -> None:
        """Remember that merging this group does not help."""
        if len(self._hopeless) >= _HOPELESS:
            self._hopeless.clear()
        self._hopeless.add(frozenset(group.extents))

    def _is_counted(self, run: MergeRun) -> bool:
        """Whether the run's metric is still counted: not ended, in the current generation."""
        stored = self._store.read(
            lambda connection: generation_of(connection, self._store.name, run.generation)
        )
        return stored.current and any(
            metric.name == run.pane.metric and not metric.ended for metric in stored.metrics
        )

    def _groupings(self, run: MergeRun) -> Groupings:
        """The groupings of the run's metric."""
        key = run.generation, run.pane.metric
        if key not in self._known:
            stored = self._store.read(
                lambda connection: generation_of(connection, self._store.name, key[0])
            )
            self._known.update(
                ((key[0], name), groupings) for name, groupings in groupings_of(stored).items()
            )
        return self._known[key]

    def _fold(
        self, pane: Pane, group: MergeGroup, states: list[bytes], groupings: Groupings
    ) -> list[_Merged]:
        """The rows that a group becomes. Where one key would be too large for a row, the older and
        the newer half of the rows stay apart."""
        total = load(states[0])
        for state in states[1:]:
            total.merge(load(state))
        shards = list(split(pane, total, self._row_bytes, group.ranges))
        extents = group.extents
        if len(extents) > 1 and any(len(shard.state) > self._row_bytes for shard in shards):
            middle = len(extents) // 2
            older, newer = (replace(group, extents=b) for b in (extents[:middle], extents[middle:]))
            return [
                *self._fold(pane, older, states[:middle], groupings),
                *self._fold(pane, newer, states[middle:], groupings),
            ]
        start = min(extent.start_offset for extent in extents)
        end = max(extent.end_offset for extent in extents)
        if (
            all(extent.for_coarser for extent in extents)
            and isinstance(total, PerKey)
            and can_stand_for_coarser(shards, total)
        ):
            shards = [replace(shards[0], for_coarser=True)]
            return [_Merged(shards[0], start, end)]
        rows = [_Merged(shard, start, end) for shard in shards]
        return rows + self._apart(pane, extents, states, groupings)

    def _apart(
        self,
        pane: Pane,
        extents: Sequence[DeltaMetadata],
        states: list[bytes],
        groupings: Groupings,
    ) -> list[_Merged]:
        """The rows of coarser groupings that these rows stand for."""
        rows = []
        for extent, data in zip(extents, states, strict=True):
            if not extent.for_coarser:
                continue
            state = PerKey.from_bytes(data)
            for place in finest(groupings)[pane.grouping]:
                coarser_state = summed(state, groupings, pane.grouping, place)
                rows += [
                    _Merged(shard, extent.start_offset, extent.end_offset)
                    for shard in split(pane.regrouped(place), coarser_state, self._row_bytes)
                ]
        return rows


def compact(
    store: Store, report: Callable[[Compacted], None] = lambda totals: None, *, above: int = 1
) -> Compacted:
    """Merge all mergeable delta rows of the events that are counted now. `report` gets the totals
    so far after every transaction."""
    total = Compacted()
    until = {log_head.id: log_head.next_offset for log_head in store.read(read_heads)}
    for step in Compactor(store, above=above, until=until).steps():
        total += step
        report(total)
    return total


def _run_conditions(run: MergeRun) -> list[ColumnElement[bool]]:
    pane = run.pane
    start = delta.c.window_start_ms
    return [
        delta.c.generation == run.generation,
        delta.c.metric == pane.metric,
        delta.c.grouping == pane.grouping,
        start.is_(None) if pane.start_ms is None else start == pane.start_ms,
        delta.c.head == run.head,
        delta.c.retry.is_(None),  # the log's own
    ]


# An id alone is not enough: SQLite reuses those of deleted rows.
_NAMES: Final = (
    "id",
    "key_range",
    "key_ranges",
    "start_offset",
    "end_offset",
    "nbytes",
    "for_coarser",
)


def _stood_for(connection: Connection, run: MergeRun, base: int) -> list[int]:
    """The start offsets of the rows of grouping `base` that also stand for this run's pane. No such
    row is ever added between two rows that have none between them: new ones are at the end."""
    of_base = _run_conditions(replace(run, pane=run.pane.regrouped(base)))
    query = select(delta.c.start_offset).where(*of_base, delta.c.for_coarser.is_(True))
    return sorted(connection.scalars(query))


def _states(
    connection: Connection, run: MergeRun, group: MergeGroup
) -> tuple[Head, list[bytes]] | None:
    """The head of these rows, and their states in their order; None if one of them is gone."""
    heads = read_heads(connection, head.c.id == run.head)
    if not heads or not set(read_rows(connection, *_run_conditions(run))).issuperset(group.extents):
        return None
    stored = {row.id: data for row, data in read_states(connection, group.extents)}
    return heads[0], [state_bytes(extent, stored[extent.id]) for extent in group.extents]


def _exchange(
    connection: Connection,
    log_head: Head,
    run: MergeRun,
    group: MergeGroup,
    merged: Collection[_Merged],
) -> None:
    """Delete the merged rows and write the resulting rows, or roll back."""
    # Raising the floor changes the row of the generation: while it is locked, no pane is dropped.
    generation_row = select(generation.c.id).where(generation.c.id == run.generation)
    connection.execute(generation_row.with_for_update(read=True)).one_or_none()
    if not read_heads(connection, *is_same(log_head)):
        raise _NotAsRead
    deleted = 0
    for extent in group.extents:
        same = [delta.c[name] == getattr(extent, name) for name in _NAMES]
        deleted += drop_rows(connection, *same, *_run_conditions(run))
    if deleted != len(group.extents):
        raise _NotAsRead
    if merged:
        rows = [delta_row(log_head, row.shard, row.start, row.end) for row in merged]
        connection.execute(insert(delta), rows)


def count_mergeable(store: Store) -> int:
    """The number of delta rows that share their pane and head with another. The resulting rows may
    be merged again, so this is the work known beforehand, not the whole."""

    rows = _merge_runs(func.count().label("rows"), above=1).subquery()
    return store.read(lambda connection: int(connection.scalar(select(func.sum(rows.c.rows))) or 0))


_RUN: Final = (
    delta.c.generation,
    delta.c.metric,
    delta.c.grouping,
    delta.c.window_start_ms,
    delta.c.window_end_ms,
    delta.c.head,
)


def _merge_runs(*columns: ColumnElement[Any], above: int) -> Select[Any]:
    """Columns of each merge run of more than `above` rows."""
    query = select(*columns).where(delta.c.retry.is_(None))
    return query.group_by(*_RUN).having(func.count() > above)
