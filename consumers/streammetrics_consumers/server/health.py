"""Whether the workers live, and whether they are ready: None, or why not, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from streammetrics_consumers.counting.worker_status import PartitionStatus, WorkerStatus
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.witness import read_now
from streammetrics_consumers.model.commit import Head

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
        for name, reported in self.workers().items():
            if reported is None:
                continue
            hangs_s = now_s - reported.polled_s
            if hangs_s > self.poll_limit_s:
                return f"worker {name}: no poll has returned for {hangs_s:.0f} s"
            silent_s = now_s - reported.fetched_s
            if silent_s > self.fetch_limit_s:
                return f"worker {name}: nothing was heard from the log for {silent_s:.0f} s"
        return None

    def unready(self) -> str | None:
        """Why what it shows may stand still."""
        why = self.unhealthy()
        if why is not None:
            return why
        for name, reported in self.workers().items():
            if reported is None:
                return f"worker {name} has not started yet"
            if not reported.joined:
                return f"worker {name} was not told yet which partitions are its own"
        return None


def _zero() -> float:
    return 0.0


NOBODY: Final = Watched(dict, _zero, _zero)  # of a process that shows and does not count


# Whether what is shown may be relied on: the workers live, and the store is the one they know.


def unready(ledger: Ledger, watched: Watched) -> str | None:
    """Why what a server shows may stand still, or be less than what was counted; None where it
    may be relied on.

    What each worker knows of its heads is compared with the store: see ledger/witness.py.
    """
    # First the workers, then the store: a head that a worker knows is never too new.
    workers = watched.workers()
    try:
        generations = ledger.generations()
        current = next((one for one in generations if one.current), None)
        heads = () if current is None else read_now(ledger.store, current)
    except LedgerError as error:
        return str(error)
    why = watched.unready()
    if why is not None:
        return why
    live = {(one.partition.topic, one.partition.number): one for one in heads if not one.closed}
    for name, reported in workers.items():
        for place in () if reported is None else reported.places:
            why = _lost(place, live.get((place.topic, place.number)))
            if why is not None:
                return f"worker {name}: {why}"
    for head in heads:
        if head.is_incomplete:
            return (
                f"{head.partition} was counted up to {head.known_offset} before the store went "
                f"back, and is up to {head.next_offset} now"
            )
    return None


def _lost(place: PartitionStatus, head: Head | None) -> str | None:
    """How a head differs from what its worker knows; None where it is that, or later."""
    if place.counted is None or (head is not None and head.next_offset > place.counted):
        return None
    name = f"{place.topic}/{place.number}"
    if head is None:
        return f"it has counted {name} up to {place.counted}, and the store knows nothing of it"
    if head.next_offset < place.counted:
        return (
            f"it has counted {name} up to {place.counted}, and the store has up to "
            f"{head.next_offset}: the store went back"
        )
    if head.digest != place.digest:
        return f"it has counted {name} up to {place.counted}, and the store has other commits there"
    return None
