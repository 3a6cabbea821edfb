"""What a task says of the rows that it has read, beside their states."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from consumers.events.refusals import Refused
from consumers.model.commit import Counters


@dataclass(frozen=True, slots=True)
class Told:
    """`task` is its number in the batch. `refused` have as their offset their row in the task.

    >>> one = Told(3, Counters(rows=2), 1_700_000_000_000, ())
    >>> Told.from_json(one.to_json()) == one
    True
    """

    task: int
    counters: Counters
    greatest_event_ms: int | None
    refused: Sequence[Refused]

    def to_json(self) -> bytes:
        """For the way to the driver."""
        refused = [
            {**asdict(one), "payload": b64encode(one.payload).decode()} for one in self.refused
        ]
        found = {
            "task": self.task,
            "counters": asdict(self.counters),
            "greatest_event_ms": self.greatest_event_ms,
            "refused": refused,
        }
        return json.dumps(found).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Told:
        """What `to_json` wrote."""
        found = json.loads(data)
        refused = tuple(
            Refused(**{**one, "payload": b64decode(one["payload"])}) for one in found["refused"]
        )
        counters = Counters(**found["counters"])
        return cls(found["task"], counters, found["greatest_event_ms"], refused)


def told_together(told: Iterable[Told], batch: int, greatest_event_ms: int | None) -> Told:
    """What the tasks of one batch say together. A refused event has the number of its batch as
    its offset, and its row in the batch, the tasks in order, as its index.

    greatest_event_ms: that of all batches before.
    """
    counters, refused, before = Counters(), [], 0
    times = [] if greatest_event_ms is None else [greatest_event_ms]
    for one in sorted(told, key=lambda one: one.task):
        refused += [replace(r, offset=batch, index=before + r.offset) for r in one.refused]
        before += one.counters.rows
        counters += one.counters
        times += [] if one.greatest_event_ms is None else [one.greatest_event_ms]
    return Told(0, counters, max(times, default=None), tuple(refused))
