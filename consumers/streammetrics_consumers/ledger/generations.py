"""The generation that a config may write to: fingerprints of its metrics, compared by name."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from sqlalchemy import Connection, delete, func, insert, select, update

from streammetrics_consumers.ledger.delta_metadata import drop_rows
from streammetrics_consumers.ledger.descriptions import (
    KEPT_NO_LATE,
    Description,
    arms_refused,
    as_before,
    as_started,
    differences,
    kept_no_late,
    more_arms,
    more_epochs,
    more_variants,
    starts_after,
)
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.former_states import UNREADABLE, as_read_now
from streammetrics_consumers.ledger.read import (
    Holes,
    more_holes,
    read_generation,
    read_heads,
    with_holes,
)
from streammetrics_consumers.ledger.schema import (
    delta,
    generation,
    head,
    meta,
    metric,
    metric_start,
    retry,
)
from streammetrics_consumers.model.generation import (
    EXPERIMENT,
    NOTHING_REQUESTED,
    SHOWN,
    Begun,
    Changes,
    Generation,
    Metric,
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


class SettingsChanged(LedgerError):
    """The settings are not those that the store was counted with. `differences` names each."""

    exit_code = 3

    def __init__(self, differences: Sequence[str], hint: str) -> None:
        self.differences, self.hint = tuple(differences), hint
        super().__init__("\n".join([*differences, hint]))


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


ENDS_EXPERIMENT: Final = (
    ", which ends the running experiment: it counts no event from then on, and its last verdict is "
    "that of the events so far"
)


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
    connection.execute(select(meta).where(meta.c.key == "schema_version").with_for_update())
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
    for log_head in read_heads(connection, head.c.generation == current.id):
        start = {
            "generation": current.id,
            "head": log_head.id,
            "start_offset": log_head.next_offset,
        }
        for name in added:
            connection.execute(insert(metric_start).values(metric=name, **start))
    for stored_metric in current.metrics:
        if stored_metric.name in changes.resumed:
            holes = more_holes(connection, current.id, stored_metric)
            description = _stored(descriptions[stored_metric.name], holes)
            _update_metric(
                connection,
                current,
                stored_metric.name,
                ended=False,
                description=description,
                fingerprint=fingerprints[stored_metric.name],
            )
    for name in changes.ended:
        _update_metric(connection, current, name, ended=True)
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
    _refuse_unasked(current, fingerprints, changes, requested)
    return changes


def compared(
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    counted_ms: int | None,
    requested: Requested = NOTHING_REQUESTED,
) -> Changes:
    """The changes that a config would make to a generation. Writes nothing.

    counted_ms: see `counted_to_ms`. Raises SettingsChanged where a metric differs from the counted
    one, or has ended and is not among those to resume.
    """
    counted = {stored_metric.name: stored_metric for stored_metric in current.metrics}
    restarted = sorted(
        name
        for name, stored_metric in counted.items()
        if name in requested.restart
        and name in fingerprints
        and stored_metric.fingerprint != fingerprints[name]
    )
    variants, epochs = _refuse_changes(
        replace(current, metrics=tuple(m for m in current.metrics if m.name not in restarted)),
        fingerprints,
        descriptions,
        counted_ms,
        requested.resume,
    )
    added = sorted(name for name in fingerprints if name not in counted)
    ended = sorted(
        n
        for n, stored_metric in counted.items()
        if n not in fingerprints and not stored_metric.ended
    )
    resumed = sorted(
        n
        for n, stored_metric in counted.items()
        if n in fingerprints and stored_metric.ended and n not in restarted
    )
    return Changes(
        tuple(added),
        tuple(ended),
        tuple(sorted(variants)),
        tuple(sorted(epochs)),
        tuple(resumed),
        tuple(restarted),
    )


def _refuse_unasked(
    current: Generation, fingerprints: Mapping[str, str], changes: Changes, requested: Requested
) -> None:
    """Raise SettingsChanged where a metric would end without a request, or where a request cannot
    be fulfilled. A metric that has already ended, or was already resumed, is no error: a restart
    repeats its requests."""
    counted = {stored_metric.name: stored_metric for stored_metric in current.metrics}
    problems = [
        f"metric {name}: the store counts it, but it is not in the config. Restore it there, or "
        f"end it with --drop-metric {counted[name].metric_set or name}"
        + (ENDS_EXPERIMENT if counted[name].metric_set == EXPERIMENT else "")
        for name in changes.ended
        if not _is_named(counted[name], requested.drop)
    ]
    for name in requested.restart:
        if name not in fingerprints or name not in counted or counted[name].metric_set:
            problems.append(
                f"--restart-metric {name}: expected a metric of [metrics] that the store counts; "
                "correct the name"
            )
    for flag, names in (("--drop-metric", requested.drop), ("--resume-metric", requested.resume)):
        for name in names:
            matches = [
                stored_metric
                for stored_metric in current.metrics
                if _is_named(stored_metric, [name])
            ]
            if not matches:
                problems.append(
                    f"{flag} {name}: the store does not count this metric; correct the name"
                )
            elif flag == "--drop-metric" and any(
                stored_metric.name in fingerprints for stored_metric in matches
            ):
                problems.append(f"{flag} {name}: it is still in the config; remove it there too")
            elif flag == "--resume-metric" and not any(
                stored_metric.name in fingerprints for stored_metric in matches
            ):
                problems.append(f"{flag} {name}: it is not in the config; add it there too")
    if problems:
        raise SettingsChanged(
            problems,
            "A metric that ends misses all events from then on. Nothing was changed.",
        )


def _is_named(metric: Metric, names: Collection[str]) -> bool:
    """Whether one of these names matches it: its own, or that of its metric set."""
    return metric.name in names or (bool(metric.metric_set) and metric.metric_set in names)


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
            text = _stored(now, stored_metric.holes)
            _update_metric(connection, current, name, fingerprint=print_, description=text)


def _unreadable(metric: Metric, now: Description) -> str:
    """Why a metric cannot go on with its stored states, and what to do."""
    name = metric.name
    text = (
        f"metric {name}: the store holds states of {metric.description.get('type')}, which this "
        f"version, with {now['type']}, cannot read"
    )
    if metric.metric_set == EXPERIMENT:
        return (
            f"{text}; to go on without the experiment, take [experiment] out of the config and end "
            f"it with --drop-metric {EXPERIMENT}"
        )
    if metric.metric_set:
        return text
    return (
        f"{text}; to count it anew from the offsets reached so far, without these states, add "
        f"--restart-metric {name}"
    )


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
                description=_stored(descriptions[name], {}),
                ended=False,
            )
        )


def _stored(description: Mapping[str, object], holes: Holes) -> str:
    return json.dumps(with_holes(description, holes), sort_keys=True)


def _read(connection: Connection, number: int) -> Generation:
    stored = read_generation(connection, number)
    assert stored is not None
    return stored


def _refuse_changes(
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    counted_ms: int | None,
    resume: Collection[str],
) -> tuple[set[str], set[str]]:
    """The added variants and epoch starts. Raises SettingsChanged for any other change."""
    problems: list[str] = []
    variants: set[str] = set()
    epochs: set[str] = set()
    is_older = False
    for stored_metric in current.metrics:
        if stored_metric.name not in fingerprints:
            continue
        if stored_metric.ended and not _is_named(stored_metric, resume):
            problems.append(
                f"metric {stored_metric.name}: it was removed from the config earlier and has "
                "missed events since. Resume it with --resume-metric "
                f"{stored_metric.metric_set or stored_metric.name} "
                "(results state what it missed), or give it another name"
            )
        elif stored_metric.fingerprint != fingerprints[stored_metric.name]:
            # Compared as they are stored, so that a tuple and a list are the same.
            now = json.loads(
                json.dumps(as_started(stored_metric.description, descriptions[stored_metric.name]))
            )
            if UNREADABLE in stored_metric.description:
                problems.append(_unreadable(stored_metric, now))
                continue
            added = more_variants(stored_metric.description, now) or frozenset()
            starts = more_epochs(stored_metric.description, now)
            left = now
            if added:
                names = cast("list[object]", stored_metric.description["variant"])[1]
                left = {**left, "variant": [now["variant"][0], names]}
            if starts and starts_after(starts[0], counted_ms):
                left = as_before(left, stored_metric.description)
            elif starts:
                hint = "only an epoch that starts after all counted events may be added"
                problems.append(
                    f"metric {stored_metric.name}: the epoch {starts[0]} starts too early; {hint}"
                )
            arms = more_arms(stored_metric.description, now)
            if arms:
                refusal = arms_refused(arms)
                problems += [] if refusal in problems else [refusal]
                continue
            if kept_no_late(stored_metric.description, now):
                is_older = True
                problems += [] if KEPT_NO_LATE in problems else [KEPT_NO_LATE]
                continue
            changes = ", ".join(differences(stored_metric.description, left))
            if (added or starts) and not changes:
                variants |= added
                epochs.update(starts)
                continue
            problems.append(f"metric {stored_metric.name}: {changes or 'its meaning changed'}")
    if is_older:
        raise SettingsChanged(
            problems,
            "Start over with --new-generation, or continue with the version that counted the "
            f"store; `results --generation {current.id}` still shows its results.",
        )
    if any(UNREADABLE in stored_metric.description for stored_metric in current.metrics):
        raise SettingsChanged(
            problems,
            "Or start over with --new-generation, which keeps the former states for the version "
            "that wrote them.",
        )
    if problems:
        raise SettingsChanged(
            problems,
            "The store was counted with the older settings. Restore them, give the metric "
            "another name, or start over with --new-generation; `results --generation "
            f"{current.id}` then shows the old results.",
        )
    return variants, epochs
