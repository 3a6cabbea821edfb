"""The generation that a config may write to: fingerprints of its metrics, compared by name."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from sqlalchemy import Connection, delete, func, insert, select, update

from streammetrics_consumers.ledger.changes import compared, refuse_unasked
from streammetrics_consumers.ledger.delta_metadata import drop_rows
from streammetrics_consumers.ledger.descriptions import as_started
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.former_states import as_read_now
from streammetrics_consumers.ledger.read import (
    Gaps,
    missed_events,
    more_holes,
    read_generation,
    read_heads,
    with_gaps,
)
from streammetrics_consumers.ledger.schema import (
    delta,
    generation,
    head,
    metric,
    metric_start,
    retry,
    wait_for_turn,
)
from streammetrics_consumers.model.generation import (
    SHOWN,
    Begun,
    Changes,
    Generation,
    Requested,
    fingerprint,
)


def counted_to_ms(connection: Connection, generation: int) -> int | None:
    """A time that no counted event is later than; None where no event was counted."""
    times = [
        connection.scalar(
            select(func.max(head.c.greatest_event_ms)).where(head.c.generation == generation)
        )
    ]
    tried = select(func.count()).select_from(retry).where(retry.c.generation == generation)
    if connection.scalar(tried):  # heads do not have the times of events that a retry counted
        ends = select(func.max(delta.c.window_end_ms)).where(delta.c.generation == generation)
        times.append(connection.scalar(ends))
    return max((int(ms) for ms in times if ms is not None), default=None)


def require_accepted(
    connection: Connection,
    version: int,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    requested: Requested,
) -> None:
    """Raise SettingsChanged unless a config may go on with a store whose schema had this version.
    Writes nothing."""
    current = read_generation(connection)
    if current is None:
        return
    try:
        changes_of(connection, current, fingerprints, descriptions, requested)
    except SettingsChanged as error:
        raise SettingsChanged(
            error.differences,
            f"{error.hint} The store was not migrated: its schema still has version {version}, "
            "and the version of streammetrics that wrote it can go on with it.",
        ) from None


def begin(
    connection: Connection,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    new_generation: bool,
    before: list[int],
    requested: Requested,
) -> Begun:
    """See Ledger.begin. `before` keeps the current generation's id of the first try, so that a
    try whose answer was lost does not start two generations."""
    # Concurrent calls run one at a time; then commits are locked out, so that no head moves while
    # metrics start and end.
    wait_for_turn(connection)
    connection.execute(select(generation.c.id).where(generation.c.current).with_for_update()).all()
    current = read_generation(connection)
    if not before:
        before.append(current.id if current else 0)
    if current is None or (new_generation and current.id == before[0]):
        return Begun(_start(connection, fingerprints, descriptions), created=True)
    if new_generation:
        return Begun(current, created=True)
    changes = changes_of(connection, current, fingerprints, descriptions, requested)
    for name in changes.restarted:
        _forget(connection, current.id, name)
    _update_descriptions(connection, current, fingerprints, descriptions)
    if not changes:
        return Begun(current, created=False)
    connection.execute(
        update(generation)
        .where(generation.c.id == current.id)
        .values(revision=generation.c.revision + 1, token=secrets.token_hex(16))
    )
    added = {name: fingerprints[name] for name in (*changes.added, *changes.restarted)}
    _insert_metrics(connection, current.id, added, descriptions)
    heads = read_heads(connection, head.c.generation == current.id)
    for log_head in heads:
        start = {
            "generation": current.id,
            "head": log_head.id,
            "start_offset": log_head.next_offset,
        }
        for name in added:
            connection.execute(insert(metric_start).values(metric=name, **start))
    ends = {log_head.id: log_head.next_offset for log_head in heads if log_head.is_join}
    for stored_metric in current.metrics:
        if stored_metric.name in changes.resumed:
            holes = more_holes(connection, current.id, stored_metric)
            missed = missed_events(connection, current.id, stored_metric, holes)
            description = _stored(descriptions[stored_metric.name], Gaps(holes, missed, {}))
            _update_metric(
                connection,
                current,
                stored_metric.name,
                ended=False,
                description=description,
                fingerprint=fingerprints[stored_metric.name],
            )
        elif stored_metric.name in changes.ended:
            gaps = Gaps(stored_metric.holes, stored_metric.missed, ends)
            description = _stored(stored_metric.description, gaps)
            _update_metric(
                connection, current, stored_metric.name, ended=True, description=description
            )
    return Begun(_read(connection, current.id), False, changes)


def _forget(connection: Connection, number: int, name: str) -> None:
    """Delete a metric of a generation and its states."""
    drop_rows(connection, delta.c.generation == number, delta.c.metric == name)
    for table in (metric_start, metric):
        column = table.c.metric if table is metric_start else table.c.name
        connection.execute(delete(table).where(table.c.generation == number, column == name))


def _update_metric(
    connection: Connection, current: Generation, name: str, **values: object
) -> None:
    conditions = metric.c.generation == current.id, metric.c.name == name
    connection.execute(update(metric).where(*conditions).values(**values))


def changes_of(
    connection: Connection,
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    requested: Requested,
) -> Changes:
    """The changes that a config makes to a generation. Raises SettingsChanged where it may not."""
    counted_ms = counted_to_ms(connection, current.id)
    read = as_read_now(connection, current, fingerprints, descriptions)
    changes = compared(read, fingerprints, descriptions, counted_ms, requested)
    refuse_unasked(current, fingerprints, changes, requested)
    return changes


def _update_descriptions(
    connection: Connection,
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
) -> None:
    """Store the values of the last config: those for display, and added variants and epochs."""
    for stored_metric in current.metrics:
        now = descriptions.get(stored_metric.name)
        if stored_metric.name not in fingerprints or now is None or stored_metric.ended:
            continue
        name, before = stored_metric.name, stored_metric.description
        print_, started = fingerprints[name], as_started(before, now)
        if started is not now:
            print_, now = fingerprint(started), started
        if stored_metric.fingerprint != print_ or before.get(SHOWN) != now.get(SHOWN):
            text = _stored(now, Gaps(stored_metric.holes, stored_metric.missed, {}))
            _update_metric(connection, current, name, fingerprint=print_, description=text)


def _start(
    connection: Connection,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
) -> Generation:
    connection.execute(update(generation).where(generation.c.current).values(current=False))
    # Not PostgreSQL's own numbering, which skips the numbers of failed transactions.
    number = (connection.scalar(select(func.max(generation.c.id))) or 0) + 1
    connection.execute(
        insert(generation).values(id=number, current=True, revision=1, token=secrets.token_hex(16))
    )
    _insert_metrics(connection, number, fingerprints, descriptions)
    return _read(connection, number)


def _insert_metrics(
    connection: Connection,
    number: int,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
) -> None:
    for name, print_ in fingerprints.items():
        connection.execute(
            insert(metric).values(
                generation=number,
                name=name,
                fingerprint=print_,
                description=_stored(descriptions[name], Gaps({}, {}, {})),
                ended=False,
            )
        )


def _stored(description: Mapping[str, object], gaps: Gaps) -> str:
    return json.dumps(with_gaps(description, gaps), sort_keys=True)


def _read(connection: Connection, number: int) -> Generation:
    stored = read_generation(connection, number)
    assert stored is not None
    return stored
