"""Whether what is shown may be relied on: the workers live, and the store is the one they know."""

from __future__ import annotations

from consumers.counting.worker_status import PartitionStatus
from consumers.ledger.failures import LedgerError
from consumers.ledger.ledger import Ledger
from consumers.ledger.witness import read_now
from consumers.model.commit import Head
from consumers.server.health import Watched


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
    for name, vitals in workers.items():
        for place in () if vitals is None else vitals.places:
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
