"""Delta rows without their states, and then the states of some of them: for readers that choose,
within one read transaction of the caller.

A row of a finest grouping that stands for the coarser ones is read as a row of each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, select

from consumers.ledger.groupings import Groupings, bases, groupings_of, summed
from consumers.ledger.schema import delta
from consumers.model.generation import Generation, Pane
from streammetrics import PerKey, StateError

_PARAMETERS: Final = 500  # of one query; SQLite takes at least 999
_BYTES: Final = 1 << 20  # of the states that one query reads, unless it is one state

T = TypeVar("T")


class SumOf(NamedTuple):
    """That a row is the sum, over keys, of the state of grouping `base`."""

    by: Groupings
    base: int


@dataclass(frozen=True, slots=True)
class Outline:
    """A delta row without its state. `retry` is None for the log's own events. `nbytes` is what is
    stored: of a row of a finer grouping, where it is a `sum_of` that."""

    id: int
    pane: Pane
    key_range: int
    key_ranges: int
    head: int
    start_offset: int
    end_offset: int
    nbytes: int
    retry: int | None
    sum_of: SumOf | None = None


def read_outlines(
    connection: Connection, of: Generation, panes: Collection[Pane]
) -> Iterator[Outline]:
    """Those of the rows of these panes."""
    yield from _outlines(connection, of.id, panes)
    by = groupings_of(of)
    finer: dict[Pane, list[Pane]] = defaultdict(list)
    for pane in panes:
        base = bases(by[pane.metric]).get(pane.grouping) if pane.metric in by else None
        if base is not None:
            finer[pane.of_grouping(base)].append(pane)
    for row in _outlines(connection, of.id, finer, delta.c.for_coarser.is_(True)):
        sum_of = SumOf(by[row.pane.metric], row.pane.grouping)
        for pane in finer[row.pane]:
            yield replace(row, pane=pane, sum_of=sum_of)


def _outlines(
    connection: Connection, generation: int, panes: Collection[Pane], *more: ColumnElement[bool]
) -> Iterator[Outline]:
    for which in of_panes(generation, panes):
        found = connection.execute(
            select(
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
            ).where(*which, *more)
        )
        for row in found:
            yield Outline(row[0], Pane(*row[1:5]), *row[5:12])


def read_states(connection: Connection, rows: Iterable[Outline]) -> Iterator[tuple[Outline, bytes]]:
    """Each of these rows with what is stored of it, in no certain order, a few in memory at a
    time; see `state_of`."""
    by_id: dict[int, list[Outline]] = defaultdict(list)
    for row in rows:
        by_id[row.id].append(row)
    sizes = ((id_, held[0].nbytes) for id_, held in by_id.items())
    for ids in few(sizes, _PARAMETERS, _BYTES):
        some = select(delta.c.id, delta.c.state).where(delta.c.id.in_(ids))
        with connection.execute(some) as found:
            for id_, stored in found:
                for row in by_id[id_]:
                    yield row, stored


def state_of(row: Outline, stored: bytes) -> PerKey:
    """The state of a row. Raises StateError where it cannot be read."""
    if len(stored) != row.nbytes:
        raise StateError(
            expected=f"{row.nbytes} bytes, as it says",
            came=f"{len(stored)}",
            where=f"the state of a delta row of {row.pane.metric}",
            todo="restore the store from a copy, or start a new generation",
        )
    state = PerKey.from_bytes(stored)
    return state if row.sum_of is None else summed(state, *row.sum_of, row.pane.grouping)


def few(sized: Iterable[tuple[T, int]], count: int, nbytes: int) -> Iterator[list[T]]:
    """All of these, each with its bytes, some at a time: at most so many and so many bytes, but one
    at least."""
    some: list[T] = []
    held = 0
    for one, size in sized:
        if some and (len(some) == count or held + size > nbytes):
            yield some
            some, held = [], 0
        some.append(one)
        held += size
    if some:
        yield some


def of_panes(generation: int, panes: Collection[Pane]) -> Iterator[tuple[ColumnElement[bool], ...]]:
    """Conditions that the rows of these panes meet, as few as queries can hold."""
    for (name, place), group in groupby(sorted(panes, key=pane_order), key=lambda pane: pane[:2]):
        of_metric = (
            delta.c.generation == generation,
            delta.c.metric == name,
            delta.c.grouping == place,
        )
        starts = [pane.start_ms for pane in group]
        if None in starts:
            yield (*of_metric, delta.c.window_start_ms.is_(None))
        spans = [start for start in starts if start is not None]
        for at in range(0, len(spans), _PARAMETERS):
            yield (*of_metric, delta.c.window_start_ms.in_(spans[at : at + _PARAMETERS]))


def pane_order(pane: Pane) -> tuple[str, int, bool, int]:
    """By metric and grouping; the total comes first, then panes in order of time."""
    return (pane.metric, pane.grouping, pane.start_ms is not None, pane.start_ms or 0)
