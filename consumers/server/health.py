"""Whether the workers live, and whether they are ready: None, or why not, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from consumers.counting.worker_status import WorkerStatus

Workers: TypeAlias = Mapping[str, WorkerStatus | None]  # by name; None: it has not spoken yet

POLL_LIMIT_S: Final = 60.0
FETCH_LIMIT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Watched:
    """Those who count, and the clocks by which they are judged.

    A poll takes half a second at most, so a loop that has not come round for `poll_limit_s` hangs:
    a client that spins inside `poll` looks to its group as if it lived. A log that nothing was
    heard from for `fetch_limit_s` is away, whether or not an exception said so.
    """

    workers: Callable[[], Workers]
    monotonic: Callable[[], float]  # of the machine, as the workers read it
    clock: Callable[[], float]  # seconds since 1970
    poll_limit_s: float = POLL_LIMIT_S
    fetch_limit_s: float = FETCH_LIMIT_S

    def unhealthy(self) -> str | None:
        """Why the process should be started again."""
        now_s = self.monotonic()
        for name, vitals in self.workers().items():
            if vitals is None:
                continue
            hangs_s = now_s - vitals.polled_s
            if hangs_s > self.poll_limit_s:
                return f"worker {name}: no poll has returned for {hangs_s:.0f} s"
            silent_s = now_s - vitals.fetched_s
            if silent_s > self.fetch_limit_s:
                return f"worker {name}: nothing was heard from the log for {silent_s:.0f} s"
        return None

    def unready(self) -> str | None:
        """Why what it shows may stand still."""
        why = self.unhealthy()
        if why is not None:
            return why
        for name, vitals in self.workers().items():
            if vitals is None:
                return f"worker {name} has not started yet"
            if not vitals.joined:
                return f"worker {name} was not told yet which partitions are its own"
        return None


def _zero() -> float:
    return 0.0


NOBODY: Final = Watched(dict, _zero, _zero)  # of a process that shows and does not count
