"""The events of hooks, as rows: adding one, claiming it for an attempt, and the answer.

A row is added in the transaction of the look from which it follows, so that neither is there
without the other. Its subject is there once for each hook, and its body never changes: an event is
sent again as the same bytes, with the same key. Of the processes of a store one at a time sends an
event: it claims the row for as long as an attempt may take. If it dies, another claims the row
after that. An answer to an attempt is noted by the process that made the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from streammetrics_consumers.ledger.schema import hook
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.hook_events import HookEvent, HookState, HookSubject

MOST_SHOWN: Final = 200  # rows of one answer, the newest
MAX_ANSWER: Final = 200  # characters


@dataclass(frozen=True, slots=True)
class HookMessage:
    """An event as a hook sends it. name: of the experiment; body: its bytes, JSON."""

    hook: str
    subject: HookSubject
    name: str
    key: str
    body: bytes
    created_ms: int


@dataclass(frozen=True, slots=True)
class HookRow:
    """A message, and how far it was sent.

    due_ms: when it is tried next, or when the claim of the present attempt ends. host: that of the
    receiver at the last attempt, and answer what that came to; answered_ms: when.
    """

    id: int
    message: HookMessage
    state: HookState
    attempts: int
    due_ms: int
    host: str
    answered_ms: int | None
    answer: str


def add(
    connection: Connection, messages: Iterable[HookMessage], state: HookState = "waiting"
) -> int:
    """Add messages whose subject their hook does not have yet; returns how many."""
    added = 0
    for message in messages:
        subject = message.subject.sha256
        if has_message(connection, message):
            continue
        values = {
            "hook": message.hook,
            "generation": message.subject.generation,
            "experiment": message.subject.experiment,
            "name": message.name,
            "event": message.subject.event,
            "metric": message.subject.metric,
            "arm": message.subject.arm,
            "episode": message.subject.episode,
            "subject": subject,
            "key": message.key,
            "body": message.body,
            "created_ms": message.created_ms,
            "state": state,
            "due_ms": message.created_ms,
        }
        try:
            with connection.begin_nested():
                connection.execute(insert(hook).values(**values))
        except IntegrityError:
            continue  # another process was first
        added += 1
    return added


def has_message(connection: Connection, message: HookMessage) -> bool:
    """Whether a hook has an event about the same subject."""
    row = select(hook.c.id).where(*_same_subject(message))
    return connection.scalar(row) is not None


def last_message(
    connection: Connection, generation: int, experiment: str, name: str, event: HookEvent
) -> tuple[int, HookMessage | None]:
    """How many events of this kind a hook has of an experiment, and the newest."""
    conditions = (
        hook.c.hook == name,
        hook.c.generation == generation,
        hook.c.experiment == experiment,
        hook.c.event == event,
    )
    count = connection.scalar(select(func.count()).select_from(hook).where(*conditions)) or 0
    row = connection.execute(
        select(hook).where(*conditions).order_by(hook.c.id.desc()).limit(1)
    ).first()
    return int(count), None if row is None else _row(row).message


def due_hooks(connection: Connection, names: Collection[str], now_ms: int) -> set[str]:
    """The hooks, of these, that have a message to send now."""
    query = select(hook.c.hook).distinct().where(*_due(names, now_ms))
    return set(connection.scalars(query))


def claim(store: Store, name: str, host: str, now_ms: int, claim_ms: int) -> HookRow | None:
    """Claim the message of a hook that is due first, for `claim_ms`; None if none is due.

    Of concurrent callers one gets it, and the others do not wait.
    """
    before: list[HookRow] = []

    def work(connection: Connection, is_repeated: bool) -> HookRow | None:
        if is_repeated and before and _is_unchanged(connection, before[0]):
            return before[0]  # the answer to the COMMIT was lost
        row = connection.execute(
            select(hook)
            .where(*_due([name], now_ms))
            .order_by(hook.c.due_ms, hook.c.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        ).first()
        if row is None:
            return None
        claimed = connection.execute(
            update(hook)
            .where(hook.c.id == row.id)
            .values(attempts=hook.c.attempts + 1, due_ms=now_ms + claim_ms, host=host)
            .returning(hook)
        ).one()
        before[:] = [_row(claimed)]
        return before[0]

    return store.write(work)


def note_answer(
    store: Store, claimed: HookRow, state: HookState, answer: str, now_ms: int, due_ms: int
) -> bool:
    """Note the answer to an attempt; False where another process has made a later one, or where
    the event was held or dropped meanwhile. An event that was delivered is `sent` all the same."""
    conditions = [
        hook.c.id == claimed.id,
        hook.c.attempts == claimed.attempts,
        hook.c.key == claimed.message.key,
    ]
    if state != "sent":
        conditions.append(hook.c.state == "waiting")

    def work(connection: Connection, _: bool) -> bool:
        changed = connection.execute(
            update(hook)
            .where(*conditions)
            .values(state=state, answer=answer[:MAX_ANSWER], answered_ms=now_ms, due_ms=due_ms)
        )
        return changed.rowcount == 1

    return store.write(work)


def read_rows(
    connection: Connection,
    generation: int | None = None,
    experiment: str | None = None,
    most: int = MOST_SHOWN,
) -> list[HookRow]:
    """The newest rows, the newest first: of a generation and an experiment, or all."""
    query = select(hook).order_by(hook.c.id.desc()).limit(most)
    if generation is not None:
        query = query.where(hook.c.generation == generation)
    if experiment is not None:
        query = query.where(hook.c.experiment == experiment)
    return [_row(row) for row in connection.execute(query)]


def count_by_state(connection: Connection) -> Mapping[tuple[str, HookState], int]:
    """The number of messages by hook and state."""
    query = select(hook.c.hook, hook.c.state, func.count()).group_by(hook.c.hook, hook.c.state)
    return {
        (name, cast("HookState", state)): count for name, state, count in connection.execute(query)
    }


def waiting_since_ms(connection: Connection) -> Mapping[str, int]:
    """By hook, when the oldest message was added that is not sent yet."""
    query = select(hook.c.hook, func.min(hook.c.created_ms)).where(hook.c.state == "waiting")
    rows = connection.execute(query.group_by(hook.c.hook)).all()
    return {name: ms for name, ms in rows}  # noqa: C416 - rows are no pairs to a type checker


def change_state(
    connection: Connection, before: Collection[HookState], after: HookState, now_ms: int
) -> int:
    """Give all messages in these states another; returns how many. They are due now."""
    changed = connection.execute(
        update(hook).where(hook.c.state.in_(list(before))).values(state=after, due_ms=now_ms)
    )
    return changed.rowcount


def restore(connection: Connection, message: HookMessage, state: HookState, answer: str) -> bool:
    """Have the ledger know a message that was sent from it before it went back, in place of one
    that it made of the same subject since. Returns whether something changed."""
    row = connection.execute(select(hook).where(*_same_subject(message))).first()
    if row is not None and row.key == message.key:
        if row.state not in ("waiting", "held") or state == "waiting":
            return False
        values = {"state": state, "answer": answer}
        connection.execute(update(hook).where(hook.c.id == row.id).values(**values))
        return True
    if row is not None:
        connection.execute(hook.delete().where(hook.c.id == row.id))
    add(connection, [message], state)
    connection.execute(update(hook).where(*_same_subject(message)).values(answer=answer))
    return True


def _same_subject(message: HookMessage) -> tuple[ColumnElement[bool], ...]:
    return hook.c.hook == message.hook, hook.c.subject == message.subject.sha256


def _due(names: Collection[str], now_ms: int) -> Sequence[ColumnElement[bool]]:
    return hook.c.state == "waiting", hook.c.due_ms <= now_ms, hook.c.hook.in_(list(names))


def _is_unchanged(connection: Connection, claimed: HookRow) -> bool:
    attempts = connection.scalar(select(hook.c.attempts).where(hook.c.id == claimed.id))
    return attempts == claimed.attempts


def _row(row: Row[tuple[object, ...]]) -> HookRow:
    subject = HookSubject(
        row.generation, row.experiment, row.event, row.metric, row.arm, row.episode
    )
    message = HookMessage(row.hook, subject, row.name, row.key, bytes(row.body), row.created_ms)
    return HookRow(
        row.id, message, row.state, row.attempts, row.due_ms, row.host, row.answered_ms, row.answer
    )
