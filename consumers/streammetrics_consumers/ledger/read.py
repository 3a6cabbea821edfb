"""From rows of the tables to plain values, within a transaction of the caller.

Offsets that a metric did not count, because it was not in the config for a while, are holes. They
stay with the metric for good: results report them, and `verify` expects nothing there. So do the
numbers of the refused events that retries counted meanwhile, at offsets before a hole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, cast

from sqlalchemy import BindParameter, ColumnElement, Connection, Row, bindparam, func, or_, select

from streammetrics_consumers.ledger.delta_metadata import coarser_of, pane_order
from streammetrics_consumers.ledger.failures import Damaged, NotAStore
from streammetrics_consumers.ledger.schema import (
    delta,
    generation,
    head,
    metric,
    metric_start,
    quarantine,
    retry,
)
from streammetrics_consumers.model.commit import (
    JOIN,
    JOIN_START,
    Counters,
    Head,
    QuarantineRow,
    Refused,
)
from streammetrics_consumers.model.generation import Generation, Metric, Missed, Pane, PaneSize
from streammetrics_consumers.model.partition import Partition

Holes: TypeAlias = "Mapping[int, tuple[tuple[int, int], ...]]"  # by head: [from, to)

# Keys of a stored description, and not of the fingerprint's input.
HOLES: Final = "holes"
MISSED: Final = "missed"
ENDS: Final = "ends"


class Gaps(NamedTuple):
    """What a metric does not count: see `Metric`."""

    holes: Holes
    missed: Mapping[int, Missed]
    ends: Mapping[int, int]


def with_gaps(description: Mapping[str, object], gaps: Gaps) -> dict[str, object]:
    """A description as stored."""
    holes, missed, ends = gaps
    stored = dict(description)
    if holes:
        stored[HOLES] = {str(head_id): [*map(list, ranges)] for head_id, ranges in holes.items()}
    if missed:
        stored[MISSED] = {str(head_id): list(entries) for head_id, entries in missed.items()}
    if ends:
        stored[ENDS] = {str(head_id): end for head_id, end in ends.items()}
    return stored


def without_gaps(stored: Mapping[str, object]) -> tuple[dict[str, object], Gaps]:
    """A stored description, and the gaps in it. Raises Damaged where they are invalid."""
    description = dict(stored)
    missed_by_head = cast("Mapping[str, list[int]]", description.pop(MISSED, {}))
    try:
        missed = {int(head_id): Missed(*map(int, n)) for head_id, n in missed_by_head.items()}
    except (AttributeError, TypeError, ValueError):
        raise Damaged(
            f"expected the missed events of a metric by head, got {str(missed_by_head)[:40]!r}"
        ) from None
    by_head = cast("Mapping[str, list[tuple[int, int]]]", description.pop(HOLES, {}))
    try:
        holes = {
            int(head_id): tuple((int(a), int(b)) for a, b in ranges)
            for head_id, ranges in by_head.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise Damaged(
            f"expected the holes of a metric by head, got {str(by_head)[:40]!r}"
        ) from None
    ends_by_head = cast("Mapping[str, int]", description.pop(ENDS, {}))
    try:
        ends = {int(head_id): int(end) for head_id, end in ends_by_head.items()}
    except (AttributeError, TypeError, ValueError):
        raise Damaged(
            f"expected the end of a metric by head, got {str(ends_by_head)[:40]!r}"
        ) from None
    return description, Gaps(holes, missed, ends)


def more_holes(connection: Connection, generation_id: int, metric: Metric) -> Holes:
    """The holes of a metric that resumes where the heads of a generation stand now. The new ones
    begin where it ended, or where its last totals end if the store does not say: possibly with
    records without an event that it counts."""
    totals = connection.execute(
        select(delta.c.head, func.max(delta.c.end_offset))
        .where(
            delta.c.generation == generation_id,
            delta.c.metric == metric.name,
            delta.c.window_start_ms.is_(None),
            delta.c.retry.is_(None),
        )
        .group_by(delta.c.head)
    )
    ends = {int(number): int(end) for number, end in totals} | {**metric.ends}
    holes = dict(metric.holes)
    heads = connection.execute(
        select(head.c.id, head.c.start_offset, head.c.next_offset, head.c.topic).where(
            head.c.generation == generation_id
        )
    ).all()
    # Where events are joined, metrics count only impressions, by the head of the join.
    joins = [row for row in heads if row.topic == JOIN.topic]
    for number, first, now, _ in joins or heads:
        head_holes = holes.get(number, ())
        start = max(metric.start_offsets.get(number, first), *(end for _, end in head_holes), first)
        start = max(ends.get(number, start), start)
        if now > JOIN_START and start < now:
            holes[number] = (*head_holes, (start, now))
    return holes


def missed_events(
    connection: Connection, generation_id: int, metric: Metric, holes: Holes
) -> dict[int, Missed]:
    """By head, the refused events that retries counted while a metric was ended, without those in
    its holes. Retries say in their notes which metrics they read."""
    notes = connection.execute(
        select(retry.c.id, retry.c.note).where(retry.c.generation == generation_id)
    )
    retries = [number for number, note in notes if not _reads(number, note, metric.name)]
    heads = read_heads(connection, head.c.generation == generation_id) if retries else ()
    if any(log_head.is_join for log_head in heads):
        return {}  # a retry adds to the pending events, which metrics count when they are closed
    entries = quarantine.c.generation == generation_id, quarantine.c.retry.in_(retries)
    offset = quarantine.c.offset
    missed = {}
    for log_head in heads:
        offsets = [
            offset >= metric.start_offsets.get(log_head.id, 0),
            *(or_(offset < start, offset >= end) for start, end in holes.get(log_head.id, ())),
        ]
        numbers = select(func.count(), func.min(offset), func.max(offset))
        conditions = (*entries, *offsets, quarantine.c.head == log_head.id)
        count, *ends = connection.execute(numbers.where(*conditions)).one()
        if count:
            missed[log_head.id] = Missed(int(count), *map(int, ends))
    return missed


def _reads(number: int, note: str, metric: str) -> bool:
    reading = json_object(f"the note of retry {number}", note).get("reading")
    inputs = reading.get("inputs") if isinstance(reading, dict) else None
    return not isinstance(inputs, dict) or metric in inputs


# Every answer reads these, so they are built once.
_NUMBER: Final[BindParameter[int]] = bindparam("number")
_CURRENT: Final = select(generation).where(generation.c.current)
_WANTED: Final = select(generation).where(generation.c.id == _NUMBER)
_STARTS: Final = select(metric_start).where(metric_start.c.generation == _NUMBER)
_METRICS: Final = (
    select(metric.c.name, metric.c.fingerprint, metric.c.ended, metric.c.description)
    .where(metric.c.generation == _NUMBER)
    .order_by(metric.c.name)
)
_LAST_RETRY: Final = (
    select(retry.c.id, retry.c.note)
    .where(retry.c.generation == _NUMBER)
    .order_by(retry.c.id.desc())
    .limit(1)
)


def read_generation(
    connection: Connection, generation_number: int | None = None
) -> Generation | None:
    """A generation by its id; the current one for None."""
    statement = _CURRENT if generation_number is None else _WANTED
    rows = connection.execute(
        statement, {"number": generation_number} if generation_number is not None else {}
    ).all()
    if not rows:
        return None
    if len(rows) > 1:
        numbers = ", ".join(str(row.id) for row in rows)
        raise Damaged(f"expected one current generation, got {len(rows)} ({numbers})")
    row = rows[0]
    return Generation(
        row.id,
        row.revision,
        bool(row.current),
        row.floor_ms,
        _read_metrics(connection, row.id),
        row.lateness_ms,
        row.token,
    )


def generation_of(connection: Connection, store: str, generation_number: int | None) -> Generation:
    """As `read_generation`, or NotAStore with the store's name."""
    stored = read_generation(connection, generation_number)
    if stored is None:
        content = (
            "nothing yet" if generation_number is None else f"no generation {generation_number}"
        )
        raise NotAStore(f"store {store}: it holds {content}; run a config first")
    return stored


def generation_ids(connection: Connection) -> tuple[int, ...]:
    """The numbers of all generations, oldest first."""
    return tuple(connection.scalars(select(generation.c.id).order_by(generation.c.id)))


def read_generations(connection: Connection) -> tuple[Generation, ...]:
    """All generations, oldest first."""
    generations = (read_generation(connection, number) for number in generation_ids(connection))
    return tuple(stored for stored in generations if stored is not None)


def _read_metrics(connection: Connection, number: int) -> tuple[Metric, ...]:
    starts: dict[str, dict[int, int]] = {}
    for row in connection.execute(_STARTS, {"number": number}):
        starts.setdefault(row.metric, {})[row.head] = row.start_offset
    rows = connection.execute(_METRICS, {"number": number})
    ordered = tuple((name, tuple(heads.items())) for name, heads in starts.items())
    return _metrics(tuple(map(tuple, rows)), ordered)


@lru_cache(maxsize=8)  # they change with the config, and are read for each answer
def _metrics(
    rows: tuple[tuple[str, str, int, str], ...],
    starts: tuple[tuple[str, tuple[tuple[int, int], ...]], ...],
) -> tuple[Metric, ...]:
    start_offsets = {name: dict(heads) for name, heads in starts}
    metrics = []
    for name, fingerprint, ended, text in rows:
        description, gaps = without_gaps(_description(name, text))
        start = start_offsets.get(name, {})
        metrics.append(Metric(name, fingerprint, description, bool(ended), start, *gaps))
    return tuple(metrics)


def json_object(subject: str, text: str) -> dict[str, object]:
    """A JSON object stored in a column. Raises Damaged where it is not one."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise Damaged(f"expected {subject} as a JSON object, got {text[:40]!r}")
    return parsed


def _description(name: str, text: str) -> Mapping[str, object]:
    description = json_object(f"the description of metric {name}", text)
    slices = description.get("slices", [])
    if not isinstance(slices, list) or not all(map(_is_grouping, slices)):
        raise Damaged(f"expected the groupings of metric {name}, got {str(slices)[:40]!r}")
    return description


def _is_grouping(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in value
    )


# The columns of a head that hold its counters, in the order of the fields of Counters.
COUNTERS: Final = (
    head.c.rows,
    head.c.late,
    head.c.future,
    head.c.expired,
    head.c.quarantined,
    head.c.tombstones,
    head.c.late_outcomes,
    head.c.skipped,
    head.c.closed_rows,
    head.c.conflicts,
    head.c.repeated,
)


def read_heads(connection: Connection, *conditions: ColumnElement[bool]) -> tuple[Head, ...]:
    """Heads, in the order of their creation."""
    rows = connection.execute(select(head).where(*conditions).order_by(head.c.id))
    return tuple(_head(row) for row in rows)


def _head(row: Row[tuple[object, ...]]) -> Head:
    return Head(
        row.id,
        row.generation,
        Partition(row.cluster, row.topic, row.topic_id, row.partition),
        bool(row.closed),
        row.start_offset,
        row.next_offset,
        row.greatest_event_ms,
        Counters(*(getattr(row, column.name) for column in COUNTERS)),
        row.lost,
        row.incarnation,
        row.digest,
        row.known_offset,
    )


def last_retry(connection: Connection, generation: int) -> tuple[int, str]:
    """The number of the last retry of refused events and its note, which no other retry has; 0 and
    "" before the first."""
    row = connection.execute(_LAST_RETRY, {"number": generation}).one_or_none()
    return (0, "") if row is None else (int(row.id), row.note)


def has_retry(connection: Connection, number: int, note: str) -> bool:
    """Whether the retry of this number still is the one with this note: a store that went back has
    lost it, and may give its number to another one."""
    return connection.scalar(select(retry.c.note).where(retry.c.id == number)) == note


def read_panes(connection: Connection, current: Generation) -> tuple[PaneSize, ...]:
    """The panes of a generation with the number and size of their rows; reads no state."""
    key = (delta.c.metric, delta.c.grouping, delta.c.window_start_ms, delta.c.window_end_ms)
    rows = connection.execute(
        select(*key, delta.c.for_coarser, func.count(), func.sum(delta.c.nbytes))
        .where(delta.c.generation == current.id)
        .group_by(*key, delta.c.for_coarser)
    )
    coarser = coarser_of(current)
    sizes: dict[Pane, list[int]] = {}
    for *where, for_coarser, count, nbytes in rows:
        pane = Pane(*where)
        places = coarser.get((pane.metric, pane.grouping), ()) if for_coarser else ()
        for place in (pane.grouping, *places):
            size = sizes.setdefault(pane.regrouped(place), [0, 0, 0, 0])
            figures = count, int(nbytes)  # a sum of integers is a Decimal in PostgreSQL
            for i, n in enumerate(figures * 2 if place == pane.grouping else figures):
                size[i] += n
    return tuple(PaneSize(pane, *sizes[pane]) for pane in sorted(sizes, key=pane_order))


def read_size(connection: Connection, current: Generation) -> tuple[int, int]:
    """The number and the bytes of the delta rows of a generation; reads no state."""
    total = select(func.count(), func.sum(delta.c.nbytes)).where(delta.c.generation == current.id)
    count, nbytes = connection.execute(total).one()
    return count, int(nbytes or 0)


# The columns of an entry that hold the refused event, in the order of the fields of Refused.
REFUSED: Final = tuple(quarantine.c[field.name] for field in fields(Refused))
_LOG: Final = (head.c.cluster, head.c.topic, head.c.topic_id, head.c.partition)


def read_quarantine(
    connection: Connection, *conditions: ColumnElement[bool], limit: int | None = None
) -> tuple[QuarantineRow, ...]:
    """Refused events, in the order in which they were written."""
    query = select(quarantine, head).join(head, head.c.id == quarantine.c.head).where(*conditions)
    rows = connection.execute(query.order_by(quarantine.c.id).limit(limit)).mappings()
    return tuple(
        QuarantineRow(
            *(row[column] for column in REFUSED),
            id=row[quarantine.c.id],
            partition=Partition(*(row[column] for column in _LOG)),
            head=row[quarantine.c.head],
            done=bool(row[quarantine.c.done]),
            retry=row[quarantine.c.retry],
        )
        for row in rows
    )
