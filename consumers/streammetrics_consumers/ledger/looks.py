"""Looks at an experiment, as rows: claiming one, adding it, and the result of all together.

A look is keyed by generation, experiment and the next offset of each log, so that the same look
taken twice is one row. Looks are added and never changed. No digest includes them, `verify`,
compaction and retention ignore them, and they belong to their generation: a new one has none.

A look has a row for each comparison, and rows whose names no comparison has, made by
`Outcome.readings`: the decision on a comparison and the effect since then, and the sample ratio of
the epoch and of its days. What must outlast later data is the greatest of its rows, or repeated.

Readers of results never take a look. Of the workers one looks at a time: a look is claimed first,
in a transaction of its own, and the states are read after it. A look is added while its claim is
locked, so those of an experiment are added in the order of their claims. If the worker dies in
between, no look was taken, and the next one is due at its usual time.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from streammetrics import experiments
from streammetrics_consumers.ledger.read import last_retry, read_heads
from streammetrics_consumers.ledger.schema import experiment, head, look, look_reading
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.commit import JOIN_START, Head

T = TypeVar("T")

MAX_POINTS: Final = 500  # of a plot of the looks at one comparison
NEWEST: Final = 100  # looks that tell one moment from another
RETRIES: Final = "(retries)"  # beside the logs: a retry counts events at offsets already passed


@dataclass(frozen=True, slots=True)
class LookRow:
    """A look, with values to show beside its readings: the newest event time that was counted, and
    the estimated effects by comparison (nan where undefined)."""

    look: experiments.Look
    watermark_ms: int | None
    effects: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Point:
    """One look at one comparison, as a point of a plot."""

    watermark_ms: int | None
    place: int
    effect: float
    reading: experiments.Anytime


def thinned(points: Sequence[T], most: int = MAX_POINTS) -> list[T]:
    """At most `most` points, evenly spaced, with the first and the last.

    >>> thinned(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(points) <= most:
        return list(points)
    return [points[i * (len(points) - 1) // (most - 1)] for i in range(most)]


def heads_of(heads: Sequence[Head], retry: int) -> dict[str, int]:
    """The next offset of each log, by a name that no later head takes: a log that follows another
    one of its name is `clicks/0#1`; label windows have no entry before the first is closed. So the
    offsets only rise. `retry` is the number of the last retry."""
    offsets: dict[str, int] = {}
    for log_head in sorted(heads, key=lambda head: head.id):
        name, earlier = str(log_head.partition), 0
        while name in offsets:
            earlier += 1
            name = f"{log_head.partition}#{earlier}"
        if log_head.next_offset != JOIN_START:
            offsets[name] = log_head.next_offset
    return {**offsets, RETRIES: retry} if retry else offsets


def claim(
    store: Store, generation: int, fingerprint: str, *, now_ms: int, every_ms: int, last: bool
) -> bool:
    """Claim a look if one is due: the last claim is `every_ms` old. Returns whether to look.

    Of concurrent callers one gets the claim, and the others do not wait: for them, or for a look
    that is being added. last: the log has ended, so a look is due whenever the last one was, and
    the caller waits: the look that is being added may have counted less.
    """
    conditions = experiment.c.generation == generation, experiment.c.fingerprint == fingerprint

    def work(connection: Connection, is_repeated: bool) -> bool:
        row = select(experiment.c.last_look_ms).where(*conditions)
        last_ms = connection.scalar(row.with_for_update(skip_locked=not last))
        if last_ms is not None:
            # A time written by a clock that was far ahead must not prevent looks until then.
            if (
                not last
                and abs(now_ms - last_ms) < every_ms
                and not (is_repeated and last_ms == now_ms)
            ):
                return False
            connection.execute(update(experiment).where(*conditions).values(last_look_ms=now_ms))
            return True
        if connection.scalar(row) is not None:
            return False  # another process claims it or adds a look at this moment
        try:
            with connection.begin_nested():
                values = {"generation": generation, "fingerprint": fingerprint}
                connection.execute(insert(experiment).values(**values, last_look_ms=now_ms))
        except IntegrityError:
            return False  # another process was first
        return True

    return store.write(work)


Follow: TypeAlias = Callable[[Connection], None]


def heads_text(new_look: experiments.Look) -> str:
    """The heads of a look, as they are stored."""
    return json.dumps(
        dict(new_look.heads), sort_keys=True, separators=(",", ":"), ensure_ascii=True
    )


def heads_sha256(new_look: experiments.Look) -> str:
    """The hash (hex) of the heads of a look."""
    return hashlib.sha256(heads_text(new_look).encode()).hexdigest()


def take(
    store: Store, row: LookRow, claimed_ms: int | None = None, follow: Follow | None = None
) -> bool:
    """Add a look; False where one of the same experiment and heads exists.

    follow: adds what follows from the look, in the same transaction.

    The offsets of looks only rise. So it is not added either where the store went back since its
    states were read: it has counted less, or lacks the claim of `claimed_ms` (see `claim`), or
    another process has claimed a look since. None: no other process looks.
    """
    new_look = row.look
    key = _key(new_look)

    def work(connection: Connection, _: bool) -> bool:
        if is_taken(connection, new_look) or not _is_reached(connection, new_look):
            return False
        if claimed_ms is not None and not _is_claimed(connection, new_look, claimed_ms):
            return False
        try:
            with connection.begin_nested():
                number = connection.execute(
                    insert(look)
                    .values(**key, heads=heads_text(new_look), watermark_ms=row.watermark_ms)
                    .returning(look.c.id)
                ).scalar_one()
        except IntegrityError:
            return False  # another process was first
        readings = [
            {
                "look": number,
                "comparison": name,
                "effect": _stored(row.effects.get(name, math.nan)),
                "lower": reading.lower,
                "upper": reading.upper,
                "log_e": reading.log_e,
                "gated": reading.gated,
                "reason": reading.reason,
            }
            for name, reading in new_look.readings
        ]
        if readings:
            connection.execute(insert(look_reading), readings)
        if follow is not None:
            follow(connection)
        return True

    return store.write(work)


def is_taken(connection: Connection, new_look: experiments.Look) -> bool:
    """Whether there is a look at the same experiment and heads."""
    same = (look.c[name] == value for name, value in _key(new_look).items())
    return connection.scalar(select(look.c.id).where(*same)) is not None


def _key(new_look: experiments.Look) -> dict[str, int | str]:
    return {
        "generation": new_look.generation,
        "experiment": new_look.experiment,
        "place": new_look.place[0],
        "heads_sha256": heads_sha256(new_look),
    }


def _is_reached(connection: Connection, new_look: experiments.Look) -> bool:
    """Whether the logs and the retries are counted as far as at a look."""
    heads = read_heads(connection, head.c.generation == new_look.generation)
    retry, _ = last_retry(connection, new_look.generation)
    now = heads_of(heads, retry)
    return all(name in now and now[name] >= offset for name, offset in dict(new_look.heads).items())


def _is_claimed(connection: Connection, new_look: experiments.Look, claimed_ms: int) -> bool:
    """Whether the last claim is this one. No other is made until the end of the transaction."""
    last = select(experiment.c.last_look_ms).where(
        experiment.c.generation == new_look.generation,
        experiment.c.fingerprint == new_look.experiment,
    )
    return connection.scalar(last.with_for_update()) == claimed_ms


def newest_ids(connection: Connection) -> tuple[int, ...]:
    """What changes when a look is added: the numbers of the newest of the store, the newest first.

    The greatest is not enough: looks at two experiments may be added in another order than they
    are numbered. Counting all of them would take longer and longer.
    """
    return tuple(connection.scalars(select(look.c.id).order_by(look.c.id.desc()).limit(NEWEST)))


def count_looks(connection: Connection, generation: int, fingerprint: str | None = None) -> int:
    """The number of looks at an experiment; None: at all of the generation."""
    conditions = _look_conditions(generation, fingerprint)
    return int(connection.scalar(select(func.count()).select_from(look).where(*conditions)) or 0)


def read_last(
    connection: Connection, generation: int, fingerprint: str
) -> dict[str, experiments.Anytime]:
    """The readings of the last look at an experiment, by name; none before the first."""
    last = (
        select(look.c.id)
        .where(*_look_conditions(generation, fingerprint))
        .order_by(look.c.place.desc(), look.c.heads_sha256.desc())
        .limit(1)
        .scalar_subquery()
    )
    rows = connection.execute(select(look_reading).where(look_reading.c.look == last))
    return {row.comparison: _reading(row) for row in rows.all()}


def read_start(connection: Connection, generation: int, fingerprint: str) -> int | None:
    """The least watermark of the looks at an experiment, in milliseconds; None before the first."""
    conditions = _look_conditions(generation, fingerprint)
    watermark_ms: int | None = connection.scalar(
        select(func.min(look.c.watermark_ms)).where(*conditions)
    )
    return watermark_ms


def read_points(
    connection: Connection, generation: int, fingerprint: str, comparison: str, limit: int = 10_000
) -> list[Point]:
    """The last `limit` looks at one comparison, in order: its effect over time."""
    rows = connection.execute(
        select(look.c.watermark_ms, look.c.place, look_reading)
        .join(look_reading)
        .where(*_look_conditions(generation, fingerprint), look_reading.c.comparison == comparison)
        .order_by(look.c.place.desc(), look.c.heads_sha256.desc())
        .limit(limit)
    ).all()
    return [
        Point(
            row.watermark_ms,
            row.place,
            math.nan if row.effect is None else row.effect,
            _reading(row),
        )
        for row in reversed(rows)
    ]


def read_watched(
    connection: Connection,
    generation: int,
    fingerprint: str,
    alphas: Mapping[str, float],
    until: int | None = None,
) -> dict[str, experiments.Watched]:
    """The joint result of all looks at each of these comparisons, at its alpha. The same as
    `Monitor.watched`, computed by the database, since there may be 40,000 looks a month.

    until: the `place` of the last look to include; None for all.
    """
    conditions = (
        *_look_conditions(generation, fingerprint),
        look_reading.c.comparison.in_(list(alphas)),
    )
    if until is not None:
        conditions = (*conditions, look.c.place <= until)
    sums = connection.execute(
        select(
            look_reading.c.comparison,
            func.count().label("looks"),
            func.max(look_reading.c.log_e).label("log_e"),
            func.max(look_reading.c.lower).label("lower"),
            func.min(look_reading.c.upper).label("upper"),
            func.max(look.c.place).label("place"),
        )
        .join(look)
        .where(*conditions)
        .group_by(look_reading.c.comparison)
    )
    return {
        row.comparison: experiments.Watched(
            looks=row.looks,
            log_e=max(0.0, row.log_e),
            p_value=experiments.Anytime(log_e=row.log_e).p_value,
            lower=row.lower,
            upper=row.upper,
            consistent=row.lower <= row.upper,
            nested=True,  # as `heads_of` names them, offsets never fall
            first_reject=_first(connection, conditions, row.comparison, alphas[row.comparison]),
            latest=_latest(connection, conditions, row.comparison, row.place),
        )
        for row in sums.all()
    }


def _first(
    connection: Connection,
    conditions: tuple[ColumnElement[bool], ...],
    comparison: str,
    alpha: float,
) -> tuple[tuple[str, int], ...] | None:
    """The heads of the first look whose e-value reached 1 / alpha."""
    goal = -math.log(alpha)
    heads = connection.scalar(
        select(look.c.heads)
        .join(look_reading)
        .where(*conditions, look_reading.c.comparison == comparison, look_reading.c.log_e >= goal)
        .order_by(look.c.place)
        .limit(1)
    )
    return None if heads is None else tuple(sorted(json.loads(heads).items()))


def _latest(
    connection: Connection, conditions: tuple[ColumnElement[bool], ...], comparison: str, place: int
) -> experiments.Anytime:
    row = connection.execute(
        select(look_reading)
        .join(look)
        .where(*conditions, look_reading.c.comparison == comparison, look.c.place == place)
        .limit(1)
    ).one()
    return _reading(row)


def _look_conditions(generation: int, fingerprint: str | None) -> tuple[ColumnElement[bool], ...]:
    of_generation = look.c.generation == generation
    return (
        (of_generation,)
        if fingerprint is None
        else (of_generation, look.c.experiment == fingerprint)
    )


def _reading(row: Row[tuple[object, ...]]) -> experiments.Anytime:
    return experiments.Anytime(row.lower, row.upper, row.log_e, bool(row.gated), row.reason)


def _stored(value: float) -> float | None:
    """Undefined is NULL, because SQLite cannot store nan."""
    return None if math.isnan(value) else value
