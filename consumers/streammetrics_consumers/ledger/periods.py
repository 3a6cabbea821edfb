"""Which version of the program, with which settings, counted which offsets.

A period is a version, the schema that it writes, and what its config says of counting: a hash of
all that determines counts, and the settings that the metrics' descriptions leave out. A commit
notes the period of the offsets that it counts, where it is not that of the commit before, so the
history of a log is exact for any number of workers and restarts. Offsets that an older version of
the program counted have no period.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, select

from streammetrics_consumers.ledger.read import json_object, read_heads
from streammetrics_consumers.ledger.schema import head, period, period_start
from streammetrics_consumers.model.commit import Head


@dataclass(frozen=True, slots=True)
class Period:
    """The program, schema and config that count: `config` is the hash of all that determines
    counts, `settings` are those that the descriptions of metrics leave out."""

    version: str
    schema: int
    config: str
    settings: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CountedOffsets:
    """The offsets [start, end) of a log, and the period that counted them; None where no period
    was noted."""

    head: Head
    start: int
    end: int
    period: Period | None


def note_offsets(connection: Connection, log_head: Head, start: int, by: Period) -> None:
    """Note that a period counts the offsets of a head from `start` on."""
    last = (
        select(period_start.c.period)
        .where(period_start.c.head == log_head.id)
        .order_by(period_start.c.start_offset.desc())
        .limit(1)
    )
    number = _number_of(connection, log_head.generation, by)
    if connection.scalar(last) != number:
        connection.execute(
            insert(period_start).values(head=log_head.id, start_offset=start, period=number)
        )


def _number_of(connection: Connection, generation: int, new_period: Period) -> int:
    """The number of a period, which is written if the store does not have it."""
    values = {
        "generation": generation,
        "version": new_period.version,
        "schema_version": new_period.schema,
        "config": new_period.config,
        "settings": json.dumps(dict(new_period.settings), sort_keys=True),
    }
    same = [period.c[name] == value for name, value in values.items()]
    number = connection.scalar(select(func.min(period.c.id)).where(*same))
    if number is not None:
        return int(number)
    key = connection.execute(insert(period), values).inserted_primary_key
    assert key is not None
    return int(key[0])


def read_history(connection: Connection, generation: int) -> tuple[CountedOffsets, ...]:
    """The offsets that were counted of each log, in order, by period."""
    periods = {
        row.id: Period(
            row.version,
            row.schema_version,
            row.config,
            {
                name: value
                for name, value in json_object("the settings of a period", row.settings).items()
                if isinstance(value, int)
            },
        )
        for row in connection.execute(select(period).where(period.c.generation == generation))
    }
    history: list[CountedOffsets] = []
    for log_head in read_heads(connection, head.c.generation == generation):
        if not log_head.is_join:
            history += _head_periods(connection, log_head, periods)
    return tuple(history)


def _head_periods(
    connection: Connection, log_head: Head, periods: Mapping[int, Period]
) -> Sequence[CountedOffsets]:
    rows = connection.execute(
        select(period_start.c.start_offset, period_start.c.period)
        .where(period_start.c.head == log_head.id)
        .order_by(period_start.c.start_offset)
    ).all()
    edges: list[tuple[int, Period | None]] = [
        (row.start_offset, periods.get(row.period)) for row in rows
    ]
    if not edges or edges[0][0] > log_head.start_offset:
        edges.insert(0, (log_head.start_offset, None))
    ends = [start for start, _ in edges[1:]] + [log_head.next_offset]
    return [
        CountedOffsets(log_head, start, end, of_period)
        for (start, of_period), end in zip(edges, ends, strict=True)
        if start < end
    ]
