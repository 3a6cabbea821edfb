"""How the events of hooks were sent: the answer of `hooks --json` and of `GET /api/hooks`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from streammetrics_consumers.ledger.outbox import HookRow
from streammetrics_consumers.ledger.store_view import StoreView
from streammetrics_consumers.model.hook_events import HookEvent, HookState
from streammetrics_consumers.query.json_kinds import Answer, Count, Time

Key: TypeAlias = Annotated[
    str,
    Meta(
        description="the idempotency key, also in a header: repetitions of an event have the same",
        pattern="^[0-9a-f]{64}$",
    ),
]


class SentHook(Answer, frozen=True):
    """An event of a hook. name: of the hook; host: of the receiver. state: waiting for its first or
    next attempt; sent; failed, after the last attempt; held, because the store was restored; or
    dropped. due_ms: when it is tried next. answer: to the last attempt."""

    name: str
    event: HookEvent
    experiment: str
    metric: str
    arm: str
    created_ms: Time
    state: HookState
    attempts: Count
    host: str
    answered_ms: Time | None
    answer: str
    due_ms: Time | None
    key: Key


class HooksAnswer(Answer, frozen=True, tag_field="format", tag="streammetrics-hooks/1"):
    """The newest events of hooks, the newest first."""

    generation: Count
    hooks: tuple[SentHook, ...]


def sent_hooks(now: StoreView, experiment: str | None = None) -> tuple[SentHook, ...]:
    """The newest events of the generation; experiment: the fingerprint of one, None for all."""
    return tuple(map(_sent, now.hooks(experiment)))


def hooks_answer(now: StoreView, experiment: str | None = None) -> HooksAnswer:
    """The answer of `GET /api/hooks`."""
    return HooksAnswer(now.version.generation.id, sent_hooks(now, experiment))


def _sent(row: HookRow) -> SentHook:
    message, subject = row.message, row.message.subject
    return SentHook(
        name=message.hook,
        event=subject.event,
        experiment=message.name,
        metric=subject.metric,
        arm=subject.arm,
        created_ms=message.created_ms,
        state=row.state,
        attempts=row.attempts,
        host=row.host,
        answered_ms=row.answered_ms,
        answer=row.answer,
        due_ms=row.due_ms if row.state == "waiting" else None,
        key=message.key,
    )
