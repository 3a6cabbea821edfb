"""Warnings about the stream that a store counts: most events are refused, or all are skipped."""

from __future__ import annotations

from typing import Final

from streammetrics_consumers.ledger.quarantine import open_kinds
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.commit import Counters, Snapshot
from streammetrics_consumers.model.refusals import (
    RefusedKind,
    all_skipped,
    mostly_refused,
    refusal_sentence,
)

NEWEST: Final = 10_000  # refused events whose reasons are counted


def stream_warnings(store: Store, snapshot: Snapshot) -> tuple[str, ...]:
    """A sentence about the events since the start, if most of them are refused or all are skipped.
    It has no contents of events. The quarantine is read only then."""
    counters = sum((head.counters for head in snapshot.logs), Counters())
    kinds: list[RefusedKind] = []
    if mostly_refused(counters):
        rows = open_kinds(store, snapshot.generation.id, 3, NEWEST)
        kinds = [RefusedKind(*row) for row in rows]
    elif not all_skipped(counters):
        return ()
    metrics = [metric.description for metric in snapshot.generation.metrics if not metric.ended]
    description = metrics[0] if metrics else {}
    return (refusal_sentence(counters, kinds, description, newest=NEWEST),)
