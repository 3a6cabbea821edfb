"""Reading a ledger for `verify`: a copy of it at one moment, and queries of the copy.

The copy has the rows of one generation unchanged, with their ids, in a SQLite store that nothing
else uses. Damaged rows are copied unchanged too, so the copy enforces no foreign keys.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    event,
    exists,
    func,
    insert,
    or_,
    select,
)

from streammetrics import Accumulator, StreamMetricsError, load
from streammetrics_consumers.ledger.delta_metadata import (
    DeltaMetadata,
    coarser_of,
    few,
    parts_of,
    read_metadata,
    read_states,
    state_bytes,
    state_of,
)
from streammetrics_consumers.ledger.periods import CountedOffsets, read_history
from streammetrics_consumers.ledger.read import (
    generation_of,
    json_object,
    read_heads,
    read_panes,
    read_quarantine,
)
from streammetrics_consumers.ledger.schema import (
    delta,
    generation,
    head,
    metric,
    metric_start,
    quarantine,
    retry,
    seen,
)
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import seen_digests
from streammetrics_consumers.model.commit import Head, QuarantineRow
from streammetrics_consumers.model.generation import Generation, Pane

_ROWS: Final = 100  # copied together
_BYTES: Final = 4 << 20  # of their states, unless it is one state

Covers = Mapping[tuple[str, int], Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a row gives no state: invalid bytes, a wrong number of them, or keys out of its range."""

    why: str


@dataclass(frozen=True, slots=True)
class Stand:
    """A ledger at one moment: `retries` has the reading settings of each retry, by number, `seen`
    the digests of the ids that each head remembers, by the start of their pane, and
    `inconsistencies` those between its rows."""

    generation: Generation
    heads: tuple[Head, ...]
    retries: Mapping[int, str]
    seen: Mapping[int, Mapping[int, str]]
    inconsistencies: Sequence[str]
    history: Sequence[CountedOffsets]


def copy_ledger(store: Store, copy: Store) -> Stand:
    """Copy the current generation of a ledger, at one moment, into an empty SQLite store, where it
    is not current."""
    event.listen(copy.engine, "connect", _without_checks)
    copy.engine.dispose()

    def work(connection: Connection) -> Stand:
        current = generation_of(connection, store.name, None)
        heads = read_heads(connection, head.c.generation == current.id)
        copy.write(lambda target, _: _clear(target))  # an earlier try may have failed
        head_ids = select(head.c.id).where(head.c.generation == current.id)
        for table, condition in (
            (generation, generation.c.id == current.id),
            (metric, metric.c.generation == current.id),
            (head, head.c.generation == current.id),
            (metric_start, metric_start.c.generation == current.id),
            (quarantine, quarantine.c.head.in_(head_ids)),
        ):
            _copy(connection, copy, table, condition)
        sizes = select(delta.c.id, delta.c.nbytes).where(delta.c.generation == current.id)
        sized_ids = [(int(id_), int(nbytes)) for id_, nbytes in connection.execute(sizes)]
        for ids in few(sized_ids, _ROWS, _BYTES):
            _copy(connection, copy, delta, delta.c.id.in_(ids))
        notes = select(retry.c.id, retry.c.note).where(retry.c.generation == current.id)
        readings = {row.id: _reading(row.id, row.note) for row in connection.execute(notes)}
        digests = seen_digests(connection, [log_head.id for log_head in heads])
        wrong = list(_inconsistencies(connection, current))
        history = read_history(connection, current.id)
        return Stand(current, heads, readings, digests, wrong, history)

    return store.read(work)


def _copy(
    connection: Connection, copy: Store, table: Table, condition: ColumnElement[bool]
) -> None:
    query = select(table).where(condition).execution_options(yield_per=_ROWS)
    with connection.execute(query) as result:
        for batch in result.mappings().partitions():
            rows = [dict(row) for row in batch]
            if table is generation:
                rows = [{**row, "current": False} for row in rows]
            copy.write(partial(_insert, table, rows))


def _insert(
    table: Table, rows: list[dict[str, object]], connection: Connection, is_repeated: bool
) -> None:
    connection.execute(insert(table), rows)


def _clear(connection: Connection) -> None:
    for table in (delta, quarantine, metric_start, head, metric, generation):
        connection.execute(delete(table))


def _without_checks(connection: sqlite3.Connection, _record: object) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA foreign_keys = OFF")
        cursor.execute("PRAGMA synchronous = OFF")


def _reading(number: int, note: str) -> str:
    fields = json_object(f"the note of retry {number}", note)
    return json.dumps(fields.get("reading"), sort_keys=True, separators=(",", ":"))


def _inconsistencies(connection: Connection, current: Generation) -> Iterator[str]:
    """The inconsistencies between the rows of a generation."""

    def has_head(table: Table, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
        return exists().where(head.c.id == table.c.head, *conditions)

    def generation_condition(table: Table) -> ColumnElement[bool]:
        return exists().where(generation.c.id == table.c.generation)

    of_generation = head.c.generation == current.id
    rows, entries = delta.c.generation == current.id, quarantine.c.generation == current.id
    unknown = delta.c.metric.not_in([counted_metric.name for counted_metric in current.metrics])
    outside = or_(delta.c.key_range < 0, delta.c.key_range >= delta.c.key_ranges)
    another = "belong to a log that the generation does not have"
    no_log, no_generation = (
        f"belong to a {owner} that does not exist" for owner in ("log", "generation")
    )
    for table, condition, description in (
        (delta, and_(rows, ~has_head(delta, of_generation)), f"delta rows {another}"),
        (
            quarantine,
            and_(entries, ~has_head(quarantine, of_generation)),
            f"refused events {another}",
        ),
        (
            quarantine,
            and_(~entries, has_head(quarantine, of_generation)),
            "refused events of its logs belong to another generation",
        ),
        (seen, ~has_head(seen), f"rows of ids {no_log}"),
        (metric_start, ~has_head(metric_start), f"starts of metrics {no_log}"),
        (head, ~generation_condition(head), f"logs {no_generation}"),
        (metric, ~generation_condition(metric), f"metrics {no_generation}"),
        (
            delta,
            and_(rows, unknown),
            "delta rows belong to a metric that the generation does not have",
        ),
        (delta, and_(rows, outside), "delta rows have an impossible range of keys"),
    ):
        lost = connection.scalar(select(func.count()).select_from(table).where(condition))
        if lost:
            yield f"{lost} {description}"
    heads = read_heads(connection, head.c.generation == current.id)
    for closed in heads:
        log = closed.partition
        if closed.closed and not any(
            later.id > closed.id
            and (later.partition.topic, later.partition.number) == (log.topic, log.number)
            for later in heads
        ):
            yield f"the head of {log} is closed, but no other head continues the log"


def panes(store: Store, generation: Generation) -> dict[Pane, int]:
    """The panes that have rows, and the size of their rows in bytes."""
    sizes = store.read(lambda connection: read_panes(connection, generation))
    return {size.pane: size.nbytes for size in sizes}


def pane_rows(
    store: Store, generation: Generation, chosen_panes: Collection[Pane]
) -> dict[Pane, list[DeltaMetadata]]:
    """The rows of each of these panes, without their states."""

    def work(connection: Connection) -> dict[Pane, list[DeltaMetadata]]:
        rows: dict[Pane, list[DeltaMetadata]] = {pane: [] for pane in chosen_panes}
        for row in read_metadata(connection, generation, chosen_panes):
            rows[row.pane].append(row)
        return rows

    return store.read(work)


def merged(
    store: Store,
    sums: Sequence[Sequence[DeltaMetadata]],
    key_range: tuple[int, int] | None = None,
) -> list[Accumulator | Unreadable | None]:
    """The sum of each of these sequences of rows, which share no row; None for an empty one.
    key_range: the place of a range of keys, of which alone the sum is, and the number of ranges."""
    indices = {(row.id, row.pane): i for i, rows in enumerate(sums) for row in rows}

    def work(connection: Connection) -> list[Accumulator | Unreadable | None]:
        totals: list[Accumulator | Unreadable | None] = [None] * len(sums)
        for row, stored in read_states(connection, [row for rows in sums for row in rows]):
            i = indices[row.id, row.pane]
            total = totals[i]
            if isinstance(total, Unreadable):
                continue
            try:
                is_plain = row.sum_of is None
                state = load(state_bytes(row, stored)) if is_plain else state_of(row, stored)
                if row.key_ranges > 1 and parts_of(state, row.key_ranges).keys() - {row.key_range}:
                    totals[i] = Unreadable(
                        f"it holds keys outside of range {row.key_range} of {row.key_ranges}"
                    )
                    continue
                if key_range is not None:
                    place, ranges = key_range
                    part = parts_of(state, ranges).get(place)
                    if part is None:
                        continue
                    state = part
                if total is None:
                    totals[i] = state
                else:
                    total.merge(state)
            except (StreamMetricsError, OverflowError) as error:
                totals[i] = Unreadable(str(error))
        return totals

    return store.read(work)


Rows = Sequence[DeltaMetadata]


def unequal_rows(store: Store, sides: Sequence[tuple[Rows, Rows]]) -> list[tuple[Rows, Rows]]:
    """Both sides without the rows that both have: of the same ranges, with the same bytes."""
    ranges = [{*map(_range, a)} & {*map(_range, b)} for a, b in sides]
    rows = [
        row
        for pair, common in zip(sides, ranges, strict=True)
        for side in pair
        for row in side
        if _range(row) in common
    ]

    def work(connection: Connection) -> dict[int, bytes]:
        states = read_states(connection, rows)
        return {row.id: hashlib.sha256(stored).digest() for row, stored in states}

    digests = store.read(work)
    unequal_sides: list[tuple[Rows, Rows]] = []
    for a, b in sides:
        rows_of_a, rows_of_b = (
            {(_range(row), digests.get(row.id)): row for row in side} for side in (a, b)
        )
        equal = {key for key in rows_of_a.keys() & rows_of_b.keys() if key[1] is not None}
        if len(rows_of_a) == len(a) and len(rows_of_b) == len(b):  # no row is there twice
            a = [row for key, row in rows_of_a.items() if key not in equal]
            b = [row for key, row in rows_of_b.items() if key not in equal]
        unequal_sides.append((a, b))
    return unequal_sides


def _range(row: DeltaMetadata) -> tuple[int, ...]:
    base = -1 if row.sum_of is None else row.sum_of.base
    return row.start_offset, row.end_offset, row.key_ranges, row.key_range, row.nbytes, base


def row_ends(store: Store, log_head: Head) -> list[int]:
    """The different offsets at which delta rows of a head end, ascending."""
    end = delta.c.end_offset
    query = select(end).where(delta.c.head == log_head.id, delta.c.retry.is_(None))
    return store.read(lambda connection: [*connection.scalars(query.distinct().order_by(end))])


def total_ends(store: Store, log_head: Head, metrics: Collection[str]) -> dict[str, int]:
    """The offset at which the last total of each of these metrics ends, of those that have one."""
    query = (
        select(delta.c.metric, func.max(delta.c.end_offset))
        .where(
            delta.c.head == log_head.id,
            delta.c.metric.in_(sorted(metrics)),
            delta.c.window_start_ms.is_(None),
            delta.c.retry.is_(None),
        )
        .group_by(delta.c.metric)
    )
    rows = store.read(lambda connection: connection.execute(query).all())
    return {str(name): int(end) for name, end in rows}


def cut(store: Store, log_head: Head, offset: int, *, after: bool) -> int:
    """With `after`, the first offset from this one on, else the last up to it, that no delta row
    of the head spans."""
    edge = func.max(delta.c.end_offset) if after else func.min(delta.c.start_offset)

    def work(connection: Connection) -> int:
        position = offset
        while True:
            across = connection.scalar(
                select(edge).where(
                    delta.c.head == log_head.id,
                    delta.c.retry.is_(None),
                    delta.c.start_offset < position,
                    delta.c.end_offset > position,
                )
            )
            if across is None:
                return position
            position = int(across)

    return store.read(work)


def covers(store: Store, log_head: Head) -> Covers:
    """The offsets that the delta rows of a head count, by metric and grouping: as few ranges as
    possible, in order. They are those of the totals, which have a row for each commit that counted
    an event, and which retention never drops."""
    query = (
        select(
            delta.c.metric,
            delta.c.grouping,
            delta.c.start_offset,
            delta.c.end_offset,
            delta.c.for_coarser,
        )
        .where(
            delta.c.head == log_head.id,
            delta.c.generation == log_head.generation,
            delta.c.window_start_ms.is_(None),
            delta.c.retry.is_(None),
        )
        .order_by(delta.c.start_offset)
    )

    def work(connection: Connection) -> Covers:
        coarser = coarser_of(generation_of(connection, store.name, log_head.generation))
        covered: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for name, place, start, end, for_coarser in connection.execute(query):
            for grouping in (place, *(coarser.get((name, place), ()) if for_coarser else ())):
                ranges = covered[name, grouping]
                if ranges and start <= ranges[-1][1]:
                    ranges[-1] = ranges[-1][0], max(end, ranges[-1][1])
                else:
                    ranges.append((start, end))
        return covered

    return store.read(work)


def overlapping(rows: Sequence[DeltaMetadata]) -> list[tuple[DeltaMetadata, DeltaMetadata]]:
    """Pairs of rows of one pane that count offsets of a head twice, for keys that both may hold.

    Each row is paired with at most one row before it. Rows of one retry are one commit; those of
    another retry, or of the log itself, count other events.
    """
    pairs: list[tuple[DeltaMetadata, DeltaMetadata]] = []
    before: dict[tuple[int, int | None], list[DeltaMetadata]] = {}
    for row in sorted(rows, key=lambda row: (row.start_offset, row.end_offset, row.id)):
        earlier = before.setdefault((row.head, row.retry), [])
        earlier[:] = [candidate for candidate in earlier if candidate.end_offset > row.start_offset]
        keys = row.key_range, row.key_ranges
        twin = next((candidate for candidate in earlier if candidate.may_share_keys(*keys)), None)
        if twin is not None:
            pairs.append((twin, row))
        earlier.append(row)
    return pairs


def retries_of(
    store: Store, log_head: Head, start: int, end: int
) -> tuple[frozenset[int], frozenset[int]]:
    """The retries whose events of this log all lie in [start, end), and those with events both
    inside and outside, whose states cannot be separated."""
    query = (
        select(quarantine.c.retry, func.min(quarantine.c.offset), func.max(quarantine.c.offset))
        .where(quarantine.c.head == log_head.id, quarantine.c.retry.is_not(None))
        .group_by(quarantine.c.retry)
    )
    rows = store.read(lambda connection: connection.execute(query).all())
    inside = frozenset(number for number, first, last in rows if start <= first and last < end)
    outside = frozenset(number for number, first, last in rows if last < start or first >= end)
    return inside, frozenset(number for number, _, _ in rows) - inside - outside


def entries_between(store: Store, log_head: Head, start: int, end: int) -> Sequence[QuarantineRow]:
    """The refused events of the records [start, end) of a log, open or done, by position."""
    column = quarantine.c.offset
    conditions = quarantine.c.head == log_head.id, column >= start, column < end
    entries = store.read(lambda connection: read_quarantine(connection, *conditions))
    return sorted(entries, key=lambda entry: (entry.offset, entry.index))
