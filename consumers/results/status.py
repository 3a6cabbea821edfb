"""How a store stands: its generation, how far each log was read, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from consumers.ledger.ledger import Ledger
from consumers.ledger.quarantine import count_entries
from consumers.model.commit import Head, Snapshot
from consumers.model.generation import Metric
from consumers.results.join_reader import JoinReader
from consumers.results.joined import join_json
from consumers.results.json_text import Json, dumps
from consumers.results.query import require_generation
from consumers.results.watermark import idle_heads


def status_json(ledger: Ledger, wanted: int | None = None) -> bytes:
    """The bytes of `status --json` and of `GET /api/status`, of one generation or the newest."""
    seen = snapshot_of(ledger, wanted)
    generation = seen.generation
    entries = count_entries(ledger.store, generation.id)
    idle = idle_heads(seen)
    return dumps(
        {
            "format": "streammetrics-status/1",
            "generation": generation.id,
            "revision": generation.revision,
            "floor_ms": generation.floor_ms,
            "watermark_ms": seen.greatest_event_ms,
            "logs": [_head_json(head, idle=head.id in idle) for head in seen.logs],
            "metrics": [
                {
                    "name": metric.name,
                    "type": cast("Json", metric.description.get("type")),
                    "settings": cast("Json", metric.description.get("settings")),
                    "fingerprint": metric.fingerprint,
                    "ended": metric.ended,
                    "holes": _holes_json(metric, seen.heads),
                }
                for metric in generation.metrics
            ],
            "quarantine": {"open": entries.open, "done": entries.done},
            "deltas": {
                "rows": seen.stored_rows,
                "panes": len(seen.panes),
                "nbytes": seen.stored_nbytes,
            },
            "join": join_json(JoinReader(ledger).found(wanted)[0]),
        }
    )


def snapshot_of(ledger: Ledger, wanted: int | None) -> Snapshot:
    """The store now, of one generation or the newest; QueryError where it does not have it."""
    if wanted is not None:
        require_generation(wanted, [one.id for one in ledger.generations()])
    return ledger.snapshot(generation=wanted)


def _holes_json(metric: Metric, heads: Sequence[Head]) -> Json:
    """By log, which offsets it did not count: [from, to)."""
    names = {head.id: str(head.partition) for head in heads}
    return [
        {"log": names[of], "start_offset": start, "end_offset": end}
        for of, some in sorted(metric.holes.items())
        for start, end in some
    ]


def _head_json(head: Head, *, idle: bool) -> Json:
    return {
        "cluster": head.partition.cluster,
        "topic": head.partition.topic,
        "topic_id": head.partition.topic_id,
        "partition": head.partition.number,
        "closed": head.closed,
        "idle": idle,
        "start_offset": head.start_offset,
        "next_offset": head.next_offset,
        "greatest_event_ms": head.greatest_event_ms,
        "rows": head.counters.rows,
        "late": head.counters.late,
        "future": head.counters.future,
        "expired": head.counters.expired,
        "quarantined": head.counters.quarantined,
        "tombstones": head.counters.tombstones,
        "repeated": head.counters.repeated,
        "skipped": head.counters.skipped,
        "lost": head.lost,
    }
