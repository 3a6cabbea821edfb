"""The generation that a config may write to: fingerprints of its metrics, compared by name.

Epochs may be appended to a running experiment, as for an unforeseen ramp. It stays the same
experiment, and its looks continue: counted events keep their epochs, and the future allocation may
depend on everything seen so far. Nothing that earlier looks depend on may change: neither an epoch
that has events, nor the allocation that a horizon was tuned to.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, cast

from sqlalchemy import Connection, func, insert, select, update

from streammetrics_consumers.ledger.failures import LedgerError
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
    NOTHING_REQUESTED,
    SHOWN,
    Begun,
    Changes,
    Generation,
    Metric,
    Requested,
)

EXPERIMENT: Final = "experiment"  # a key of a description: the plan
_FOLLOW: Final = ("epochs", "shares")  # keys of a plan whose lists may be appended to

Weights = Mapping[str, float]
Description = Mapping[str, object]


def more_epochs(was: Description, now: Description) -> tuple[str, ...]:
    """The epoch starts that a plan appends to an earlier one of the same metric; none if it
    changes the allocation of their common epochs, or one that a horizon was tuned to."""
    before, after = was.get(EXPERIMENT), now.get(EXPERIMENT)
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return ()
    known, starts = (cast("list[str]", one["epochs"]) for one in (before, after))
    allocated, allocations = _weights(before), _weights(after)
    if starts[: len(known)] != known or allocations[: len(allocated)] != allocated:
        return ()
    if after["horizon"] is not None and any(
        one != allocated[-1] for one in allocations[len(allocated) :]
    ):
        return ()
    return tuple(starts[len(known) :])


def as_before(now: Description, was: Description) -> dict[str, object]:
    """A description with the epochs of an earlier one."""
    plan, earlier = (cast("Description", one[EXPERIMENT]) for one in (now, was))
    return {**now, EXPERIMENT: {**plan, **{name: earlier[name] for name in _FOLLOW}}}


def plan_that_stays(plan: Description) -> dict[str, object]:
    """A plan without the lists that may be appended to: the identity of an experiment's looks."""
    return {name: value for name, value in plan.items() if name not in _FOLLOW}


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


def starts_after(start: str, counted_ms: int | None) -> bool:
    """Whether all counted events are before this start, in ISO UTC."""
    since = datetime.fromisoformat(start).timestamp()
    return counted_ms is None or round(1000 * since) > counted_ms


def _weights(plan: Description) -> list[dict[str, float]]:
    """The shares of each epoch, which sum to 1."""
    epochs = len(cast("list[str]", plan["epochs"])) + 1
    given = cast("list[Weights]", plan["shares"])
    each = given or [dict.fromkeys(cast("list[str]", plan["variants"]), 1.0)]
    found = [{name: w / sum(one.values()) for name, w in one.items()} for one in each]
    return found if len(found) > 1 else found * epochs


KEPT_NO_LATE: Final = (
    "[join]: an older version counted this store. It discarded events that were too late to be "
    "joined. This version puts them into quarantine, and no setting changes that"
)


def kept_no_late(was: Mapping[str, object], now: Mapping[str, object]) -> bool:
    """Whether the older description is of a version that dropped events too late to be joined: a
    difference that no config can undo."""
    joins = was.get("join"), now.get("join")
    if not all(isinstance(plan, Mapping) for plan in joins):
        return False
    before, after = (cast("Mapping[str, object]", plan) for plan in joins)
    return "late" in after and "late" not in before


def more_arms(was: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The variants that are added to a running experiment."""
    plans = was.get(EXPERIMENT), now.get(EXPERIMENT)
    if not all(isinstance(plan, Mapping) for plan in plans):
        return []
    before, after = (cast("Mapping[str, list[str]]", plan)["variants"] for plan in plans)
    return sorted(set(after) - set(before)) if set(before) < set(after) else []


def arms_refused(arms: Sequence[str]) -> str:
    """Why these variants cannot be added, and what to do."""
    return (
        f"experiment: {', '.join(arms)} cannot be added while it runs, since its comparisons "
        "share one level and its shares were planned without it. To compare the added variant, "
        "restart the experiment from its beginning: --new-generation, with --from for that time. "
        "To continue without it, leave it out of [event] variants: its events stay in quarantine "
        "as unknown_variant"
    )


def differences(was: object, now: object, path: str = "") -> Iterator[str]:
    """Each setting that was added, removed or changed, with its values."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in sorted({*was, *now} - {SHOWN}):
            inner = f"{path}.{key}" if path else key
            if key not in was:
                yield f"{inner} is new ({_shown(now[key])})"
            elif key not in now:
                yield f"{inner} was removed (it was {_shown(was[key])})"
            else:
                yield from differences(was[key], now[key], inner)
    elif was != now:
        yield f"{path} was {_shown(was)}, is {_shown(now)}"


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:79] + "…"


class SettingsChanged(LedgerError):
    """The settings are not those that the store was counted with. `differences` names each."""

    exit_code = 3

    def __init__(self, differences: Sequence[str], hint: str) -> None:
        self.differences = tuple(differences)
        super().__init__("\n".join([*differences, hint]))


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
    found = changes_of(connection, current, fingerprints, descriptions, requested)
    _update_descriptions(connection, current, fingerprints, descriptions)
    if not found:
        return Begun(current, created=False)
    connection.execute(
        update(generation)
        .where(generation.c.id == current.id)
        .values(revision=generation.c.revision + 1, token=secrets.token_hex(16))
    )
    added = {name: fingerprints[name] for name in found.added}
    _insert_metrics(connection, current.id, added, descriptions)
    for one in read_heads(connection, head.c.generation == current.id):
        start = {"generation": current.id, "head": one.id, "start_offset": one.next_offset}
        for name in added:
            connection.execute(insert(metric_start).values(metric=name, **start))
    for known in current.metrics:
        if known.name in found.resumed:
            holes = more_holes(connection, current.id, known)
            description = _stored(descriptions[known.name], holes)
            _update_metric(connection, current, known.name, ended=False, description=description,
                           fingerprint=fingerprints[known.name])  # fmt: skip
    for name in found.ended:
        _update_metric(connection, current, name, ended=True)
    return Begun(_read(connection, current.id), False, found)


def _update_metric(connection: Connection, of: Generation, name: str, **values: object) -> None:
    mine = metric.c.generation == of.id, metric.c.name == name
    connection.execute(update(metric).where(*mine).values(**values))


def changes_of(
    connection: Connection,
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    requested: Requested,
) -> Changes:
    """The changes that a config makes to a generation. Raises SettingsChanged where it may not."""
    counted_ms = counted_to_ms(connection, current.id)
    found = compared(current, fingerprints, descriptions, counted_ms, requested)
    _refuse_unasked(current, fingerprints, found, requested)
    return found


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
    variants, epochs = _refuse_changes(
        current, fingerprints, descriptions, counted_ms, requested.resume
    )
    known = {one.name: one for one in current.metrics}
    added = sorted(name for name in fingerprints if name not in known)
    ended = sorted(n for n, one in known.items() if n not in fingerprints and not one.ended)
    resumed = sorted(n for n, one in known.items() if n in fingerprints and one.ended)
    return Changes(
        tuple(added), tuple(ended), tuple(sorted(variants)), tuple(sorted(epochs)), tuple(resumed)
    )


def _refuse_unasked(
    current: Generation, fingerprints: Mapping[str, str], found: Changes, requested: Requested
) -> None:
    """Raise SettingsChanged where a metric would end without a request, or where a request cannot
    be fulfilled. A metric that has already ended, or was already resumed, is no error: a restart
    repeats its requests."""
    known = {one.name: one for one in current.metrics}
    problems = [
        f"metric {name}: the store counts it, but it is not in the config. Restore it there, or "
        f"end it with --drop-metric {known[name].metric_set or name}"
        for name in found.ended
        if not _is_named(known[name], requested.drop)
    ]
    for flag, names in (("--drop-metric", requested.drop), ("--resume-metric", requested.resume)):
        for name in names:
            of = [one for one in current.metrics if _is_named(one, [name])]
            if not of:
                problems.append(
                    f"{flag} {name}: the store does not count this metric; correct the name"
                )
            elif flag == "--drop-metric" and any(one.name in fingerprints for one in of):
                problems.append(f"{flag} {name}: it is still in the config; remove it there too")
            elif flag == "--resume-metric" and not any(one.name in fingerprints for one in of):
                problems.append(f"{flag} {name}: it is not in the config; add it there too")
    if problems:
        raise SettingsChanged(
            problems,
            "A metric that ends misses all events from then on. Nothing was changed.",
        )


def _is_named(metric: Metric, names: Collection[str]) -> bool:
    """Whether one of these names matches it: its own, or that of its metric set."""
    return metric.name in names or (bool(metric.metric_set) and metric.metric_set in names)


def more_variants(was: Mapping[str, object], now: Mapping[str, object]) -> frozenset[str] | None:
    """The variants that a description adds to an earlier one of the same metric. None where it
    lacks one of the earlier variants, so that the states could not be continued.

    Events of an undeclared variant are in quarantine, so to declare it changes no count, and a
    retry can count them. To remove a variant is not allowed.
    """
    before, after = _declared(was), _declared(now)
    if before is None or after is None:
        return frozenset() if before == after else None
    return after - before if before <= after else None


def _declared(description: Mapping[str, object]) -> frozenset[str] | None:
    """None where any variant is counted."""
    found = description.get("variant")
    names = found[1] if isinstance(found, list | tuple) and len(found) == 2 else None
    return None if names is None else frozenset(map(str, names))


def _update_descriptions(
    connection: Connection,
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
) -> None:
    """Store the values of the last config: those for display, and added variants and epochs."""
    for one in current.metrics:
        now = descriptions.get(one.name)
        if one.name not in fingerprints or now is None or one.ended:
            continue
        print_ = fingerprints[one.name]
        if one.fingerprint != print_ or one.description.get(SHOWN) != now.get(SHOWN):
            stored = _stored(now, one.holes)
            _update_metric(connection, current, one.name, fingerprint=print_, description=stored)


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
    for name, fingerprint in fingerprints.items():
        connection.execute(
            insert(metric).values(
                generation=number,
                name=name,
                fingerprint=fingerprint,
                description=_stored(descriptions[name], {}),
                ended=False,
            )
        )


def _stored(description: Mapping[str, object], holes: Holes) -> str:
    return json.dumps(with_holes(description, holes), sort_keys=True)


def _read(connection: Connection, number: int) -> Generation:
    found = read_generation(connection, number)
    assert found is not None
    return found


def _refuse_changes(
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    counted_ms: int | None,
    resume: Collection[str],
) -> tuple[set[str], set[str]]:
    """The added variants and epoch starts. Raises SettingsChanged for any other change."""
    found: list[str] = []
    variants: set[str] = set()
    epochs: set[str] = set()
    is_older = False
    for one in current.metrics:
        if one.name not in fingerprints:
            continue
        if one.ended and not _is_named(one, resume):
            found.append(
                f"metric {one.name}: it was removed from the config earlier and has missed "
                f"events since. Resume it with --resume-metric {one.metric_set or one.name} "
                "(results state what it missed), or give it another name"
            )
        elif one.fingerprint != fingerprints[one.name]:
            # Compared as they are stored, so that a tuple and a list are the same.
            now = json.loads(json.dumps(descriptions[one.name]))
            more = more_variants(one.description, now) or frozenset()
            starts = more_epochs(one.description, now)
            left = now
            if more:
                names = cast("list[object]", one.description["variant"])[1]
                left = {**left, "variant": [now["variant"][0], names]}
            if starts and starts_after(starts[0], counted_ms):
                left = as_before(left, one.description)
            elif starts:
                hint = "only an epoch that starts after all counted events may be added"
                found.append(f"metric {one.name}: the epoch {starts[0]} starts too early; {hint}")
            arms = more_arms(one.description, now)
            if arms:
                said = arms_refused(arms)
                found += [] if said in found else [said]
                continue
            if kept_no_late(one.description, now):
                is_older = True
                found += [] if KEPT_NO_LATE in found else [KEPT_NO_LATE]
                continue
            changes = ", ".join(differences(one.description, left))
            if (more or starts) and not changes:
                variants |= more
                epochs.update(starts)
                continue
            found.append(f"metric {one.name}: {changes or 'its meaning changed'}")
    if is_older:
        raise SettingsChanged(
            found,
            "Start over with --new-generation, or continue with the version that counted the "
            f"store; `results --generation {current.id}` still shows its results.",
        )
    if found:
        raise SettingsChanged(
            found,
            "The store was counted with the older settings. Restore them, give the metric "
            "another name, or start over with --new-generation; `results --generation "
            f"{current.id}` then shows the old results.",
        )
    return variants, epochs
