"""Delta rows without their states, and then the states of some of them: for readers that choose,
within one read transaction of the caller."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from sqlalchemy import ColumnElement, Connection, select

from consumers.ledger.rows import Pane
from consumers.ledger.schema import delta

_PARAMETERS: Final = 500  # of one query; SQLite takes at least 999


@dataclass(frozen=True, slots=True)
class Outline:
    """A delta row without its state. `retry` is None for the log's own events."""

    id: int
    pane: Pane
    key_range: int
    key_ranges: int
    head: int
    start_offset: int
    end_offset: int
    nbytes: int
    retry: int | None


def read_outlines(
    connection: Connection, generation: int, panes: Collection[Pane]
) -> Iterator[Outline]:
    """Those of the rows of these panes."""
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
            ).where(*which)
        )
        for row in found:
            yield Outline(row[0], Pane(*row[1:5]), *row[5:12])


def read_state_bytes(connection: Connection, ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """The id and state of each of these rows, one in memory at a time."""
    for at in range(0, len(ids), _PARAMETERS):
        some = delta.c.id.in_(ids[at : at + _PARAMETERS])
        query = select(delta.c.id, delta.c.state).where(some)
        with connection.execute(query.execution_options(yield_per=4)) as found:
            for row in found:
                yield row[0], row[1]


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
