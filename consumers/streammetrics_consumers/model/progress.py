"""How far a worker or a command has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """rows: events read by this worker. remaining: offsets to its ends, None where unknown."""

    rows: int
    seconds: float
    remaining: int | None

    @property
    def rows_per_second(self) -> float:
        """Since the worker started."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At this rate; None where the end is unknown."""
        rate = self.rows_per_second
        return self.remaining / rate if self.remaining is not None and rate > 0 else None
