"""What `verify` reads of a ledger, in small transactions: the store may be at work meanwhile."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from consumers.ledger.groupings import coarser_of
from consumers.ledger.outline import Outline, read_outlines, read_states, state_of
from consumers.ledger.ranges import parts_of
from consumers.ledger.read import (
    generation_of,
    json_object,
    read_heads,
    read_panes,
    read_quarantine_of,
)
from consumers.ledger.schema import delta, head, quarantine, retry
from consumers.ledger.seen import seen_digests
from consumers.ledger.store import Store
from consumers.model.commit import Head, QuarantineRow
from consumers.model.generation import Generation, Pane
from streammetrics import Accumulator, StreamMetricsError, load


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why there is no state: its bytes are none, or not as many as the row says."""

    why: str


@dataclass(frozen=True, slots=True)
class Stand:
    """How a ledger stands: `retries` are the readings of the retries so far, by number, and `seen`
    the digests of the ids that each head remembers, by the start of their pane."""

    generation: Generation
    heads: tuple[Head, ...]
    retries: Mapping[int, str]
    seen: Mapping[int, Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class PaneRows:
    """The delta rows of some panes, with what stood around them at that moment."""

    floor_ms: int | None
    next_offsets: Mapping[int, int]
    rows: Mapping[Pane, Sequence[Outline]]


def stand(store: Store, generation: int | None = None) -> Stand:
    """All of one moment."""

    def work(connection: Connection) -> Stand:
        found = generation_of(connection, store.name, generation)
        heads = read_heads(connection, head.c.generation == found.id)
        rows = connection.execute(select(retry).where(retry.c.generation == found.id))
        return Stand(
            found,
            heads,
            {row.id: _reading(row.id, row.note) for row in rows},
            seen_digests(connection, [one.id for one in heads]),
        )

    return store.read(work)


def _reading(number: int, note: str) -> str:
    found = json_object(f"the note of retry {number}", note)
    return json.dumps(found.get("reading"), sort_keys=True, separators=(",", ":"))


def panes(store: Store, generation: Generation) -> dict[Pane, int]:
    """The panes that have rows, and how many bytes their rows have."""
    found = store.read(lambda connection: read_panes(connection, generation))
    return {one.pane: one.nbytes for one in found}


def pane_rows(store: Store, generation: Generation, some: Collection[Pane]) -> PaneRows:
    """The rows of these panes, without their states."""

    def work(connection: Connection) -> PaneRows:
        now = generation_of(connection, store.name, generation.id)
        heads = read_heads(connection, head.c.generation == generation.id)
        rows: dict[Pane, list[Outline]] = {pane: [] for pane in some}
        for row in read_outlines(connection, now, some):
            rows[row.pane].append(row)
        return PaneRows(now.floor_ms, {one.id: one.next_offset for one in heads}, rows)

    return store.read(work)


def merged(
    store: Store, sums: Sequence[Sequence[Outline]]
) -> list[Accumulator | Unreadable | None]:
    """The sum of each of these, which share no row; None where it has none, or one of them is not
    there any more (it was compacted)."""
    of = {(row.id, row.pane): i for i, rows in enumerate(sums) for row in rows}

    def work(connection: Connection) -> list[Accumulator | Unreadable | None]:
        totals: list[Accumulator | Unreadable | None] = [None] * len(sums)
        found = [0] * len(sums)
        for row, stored in read_states(connection, [row for rows in sums for row in rows]):
            i = of[row.id, row.pane]
            found[i] += 1
            total = totals[i]
            if isinstance(total, Unreadable):
                continue
            try:
                is_plain = row.sum_of is None and len(stored) == row.nbytes
                state = load(stored) if is_plain else state_of(row, stored)
                if row.key_ranges > 1 and parts_of(state, row.key_ranges).keys() - {row.key_range}:
                    totals[i] = Unreadable(
                        f"it holds keys outside of range {row.key_range} of {row.key_ranges}"
                    )
                    continue
                if total is None:
                    totals[i] = state
                else:
                    total.merge(state)
            except (StreamMetricsError, OverflowError) as error:
                totals[i] = Unreadable(str(error))
        return [
            total if isinstance(total, Unreadable) or found[i] == len(rows) else None
            for i, (total, rows) in enumerate(zip(totals, sums, strict=True))
        ]

    return store.read(work)


def cut_after(store: Store, of: Head, offset: int) -> int:
    """The first offset, not before this one, that no delta row of the head lies across."""
    return store.read(lambda connection: _cut(connection, of, offset, func.max(delta.c.end_offset)))


def cut_before(store: Store, of: Head, offset: int) -> int:
    """The last offset, not after this one, that no delta row of the head lies across."""
    return store.read(
        lambda connection: _cut(connection, of, offset, func.min(delta.c.start_offset))
    )


def _cut(connection: Connection, of: Head, offset: int, edge: ColumnElement[int]) -> int:
    at = offset
    while True:
        across = connection.scalar(
            select(edge).where(
                delta.c.head == of.id,
                delta.c.retry.is_(None),
                delta.c.start_offset < at,
                delta.c.end_offset > at,
            )
        )
        if across is None:
            return at
        at = int(across)


Covers = Mapping[tuple[str, int], Sequence[tuple[int, int]]]


def covers(store: Store, of: Head) -> Covers:
    """What offsets the delta rows of a head count, by metric and grouping: ranges in order, as few
    as there are. They are those of the totals, which have a row for each commit that counted
    something, and which no retention drops."""
    query = (
        select(
            delta.c.metric,
            delta.c.grouping,
            delta.c.start_offset,
            delta.c.end_offset,
            delta.c.for_coarser,
        )
        .where(
            delta.c.head == of.id,
            delta.c.generation == of.generation,
            delta.c.window_start_ms.is_(None),
            delta.c.retry.is_(None),
        )
        .order_by(delta.c.start_offset)
    )

    def work(connection: Connection) -> Covers:
        coarser = coarser_of(generation_of(connection, store.name, of.generation))
        found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for name, place, start, end, for_coarser in connection.execute(query):
            for each in (place, *(coarser.get((name, place), ()) if for_coarser else ())):
                ranges = found[name, each]
                if ranges and start <= ranges[-1][1]:
                    ranges[-1] = ranges[-1][0], max(end, ranges[-1][1])
                else:
                    ranges.append((start, end))
        return found

    return store.read(work)


def overlapping(rows: Sequence[Outline]) -> list[tuple[Outline, Outline]]:
    """Pairs of rows of one pane that count offsets of a head twice, for keys that both may hold.

    Each row is named with one other at most. Rows of one retry are one commit, those of another
    retry, or of the log itself, count other events.
    """
    found: list[tuple[Outline, Outline]] = []
    before: dict[tuple[int, int | None], list[Outline]] = {}
    for row in sorted(rows, key=lambda row: (row.start_offset, row.end_offset, row.id)):
        own = before.setdefault((row.head, row.retry), [])
        own[:] = [other for other in own if other.end_offset > row.start_offset]
        twin = next((other for other in own if _share_keys(other, row)), None)
        if twin is not None:
            found.append((twin, row))
        own.append(row)
    return found


def _share_keys(one: Outline, other: Outline) -> bool:
    ranges = min(one.key_ranges, other.key_ranges)
    return one.key_range * ranges // one.key_ranges == other.key_range * ranges // other.key_ranges


def retries_of(
    store: Store, of: Head, start: int, end: int
) -> tuple[frozenset[int], frozenset[int]]:
    """The retries whose events of this log all lie in [start, end), and those that have some there
    and some elsewhere: their states cannot be told apart."""
    query = (
        select(quarantine.c.retry, func.min(quarantine.c.offset), func.max(quarantine.c.offset))
        .where(quarantine.c.head == of.id, quarantine.c.retry.is_not(None))
        .group_by(quarantine.c.retry)
    )
    rows = store.read(lambda connection: connection.execute(query).all())
    inside = frozenset(number for number, first, last in rows if start <= first and last < end)
    outside = frozenset(number for number, first, last in rows if last < start or first >= end)
    return inside, frozenset(number for number, _, _ in rows) - inside - outside


def has_retry(store: Store, of: Head, number: int | None) -> bool:
    """Whether there is a retry of this number in the generation of a head."""
    query = select(retry.c.id).where(retry.c.id == number, retry.c.generation == of.generation)
    return store.read(lambda connection: connection.scalar(query) is not None)


def entries_between(store: Store, of: Head, start: int, end: int) -> Sequence[QuarantineRow]:
    """The refused events of the records [start, end) of a log, open or done, by place."""
    return store.read(lambda connection: read_quarantine_of(connection, of.id, start, end))
