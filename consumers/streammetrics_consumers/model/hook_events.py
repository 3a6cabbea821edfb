"""The events that hooks send, and how one is identified."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

HookEvent: TypeAlias = Literal[
    "guardrail_broken", "worse", "sample_ratio", "recommendation", "store_stalled"
]
HookState: TypeAlias = Literal["waiting", "sent", "failed", "held", "dropped"]
EVENTS: Final[tuple[HookEvent, ...]] = get_args(HookEvent)
STATES: Final[tuple[HookState, ...]] = get_args(HookState)
STORE_STALLED: Final = "store_stalled"


@dataclass(frozen=True, slots=True)
class HookSubject:
    """What an event is about: each is sent once for a hook.

    experiment: the fingerprint. metric, arm: "" where it is about all. episode: "" of an event that
    a generation has once; else what tells one from the next: the epoch of a sample ratio, the
    number of a recommendation.
    """

    generation: int
    experiment: str
    event: HookEvent
    metric: str = ""
    arm: str = ""
    episode: str = ""

    @property
    def sha256(self) -> str:
        """The hash (hex) of all of it."""
        return _hashed(
            [self.generation, self.experiment, self.event, self.metric, self.arm, self.episode]
        )

    def key(self, look: LookPlace) -> str:
        """The idempotency key (hex) of this event at a look: where it was taken, in which store."""
        return _hashed([look.store_id, self.sha256, look.place, look.heads_sha256])


@dataclass(frozen=True, slots=True)
class LookPlace:
    """Where a look is: its number, and what its key is made of. claimed_ms: when it was taken."""

    store_id: str
    generation: int
    number: int
    place: int
    heads_sha256: str
    watermark_ms: int | None
    claimed_ms: int


def stall_key(store_id: str, start_ms: int) -> str:
    """The idempotency key of a stall of a store, which began at this time."""
    return _hashed([store_id, STORE_STALLED, start_ms])


def _hashed(parts: list[object]) -> str:
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
