"""What `verify` reads of a ledger, in small transactions: the store may be at work meanwhile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from consumers.ledger.outline import Outline, read_outlines, read_state_bytes
from consumers.ledger.read import generation_of, read_heads, read_panes, read_quarantine_of
from consumers.ledger.rows import Generation, Head, Pane, QuarantineRow
from consumers.ledger.schema import delta, head, retry
from consumers.ledger.store import Store
from streammetrics import PerKey, StreamMetricsError


class Unreadable(Exception):
    """A state whose bytes are none, or not as many as the row says."""


@dataclass(frozen=True, slots=True)
class Stand:
    """How a ledger stands: `retries` are the readings of the retries so far, by number."""

    generation: Generation
    heads: tuple[Head, ...]
    retries: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class PaneRows:
    """The delta rows of one pane, with what stood around them at that moment."""

    floor_ms: int | None
    next_offsets: Mapping[int, int]
    rows: Sequence[Outline]


def stand(store: Store, generation: int | None = None) -> Stand:
    """All of one moment."""

    def work(connection: Connection) -> Stand:
        found = generation_of(connection, store.name, generation)
        heads = read_heads(connection, head.c.generation == found.id)
        rows = connection.execute(select(retry).where(retry.c.generation == found.id))
        return Stand(found, heads, {row.id: _reading(row.note) for row in rows})

    return store.read(work)


def _reading(note: str) -> str:
    found = json.loads(note)
    return json.dumps(found["reading"], sort_keys=True, separators=(",", ":"))


def panes(store: Store, generation: Generation) -> list[Pane]:
    """The panes that have rows."""
    found = store.read(lambda connection: read_panes(connection, generation.id))
    return [one.pane for one in found]


def pane_rows(store: Store, generation: Generation, pane: Pane) -> PaneRows:
    """The rows of a pane, without their states."""

    def work(connection: Connection) -> PaneRows:
        now = generation_of(connection, store.name, generation.id)
        heads = read_heads(connection, head.c.generation == generation.id)
        rows = tuple(read_outlines(connection, generation.id, [pane]))
        return PaneRows(now.floor_ms, {one.id: one.next_offset for one in heads}, rows)

    return store.read(work)


def merged(store: Store, rows: Sequence[Outline]) -> PerKey | None:
    """The sum of these rows; None where one of them is not there any more (it was compacted).

    Raises Unreadable.
    """
    by_id = {row.id: row for row in rows}

    def work(connection: Connection) -> tuple[int, PerKey | None]:
        total: PerKey | None = None
        found = 0
        for id_, state in read_state_bytes(connection, list(by_id)):
            found += 1
            if len(state) != by_id[id_].nbytes:
                raise Unreadable(f"it has {len(state)} bytes, and says {by_id[id_].nbytes}")
            try:
                one = PerKey.from_bytes(state)
                if total is None:
                    total = one
                else:
                    total.merge(one)
            except (StreamMetricsError, OverflowError) as error:
                raise Unreadable(str(error)) from error
        return found, total

    found, total = store.read(work)
    return total if found == len(by_id) else None


def cut_after(store: Store, of: Head, offset: int) -> int:
    """The first offset, not before this one, that no delta row of the head lies across."""

    def work(connection: Connection) -> int:
        at = offset
        while True:
            end = connection.scalar(
                select(func.max(delta.c.end_offset)).where(
                    delta.c.head == of.id,
                    delta.c.retry.is_(None),
                    delta.c.start_offset < at,
                    delta.c.end_offset > at,
                )
            )
            if end is None:
                return at
            at = int(end)

    return store.read(work)


def entries_between(store: Store, of: Head, start: int, end: int) -> Sequence[QuarantineRow]:
    """The refused events of the records [start, end) of a log, open or done, by place."""
    return store.read(lambda connection: read_quarantine_of(connection, of.id, start, end))
