"""How a store stands: its generation, how far each log was read, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import count_entries
from streammetrics_consumers.model.commit import Head, Snapshot
from streammetrics_consumers.model.generation import Metric
from streammetrics_consumers.query import answers
from streammetrics_consumers.query.join_status import JoinReader
from streammetrics_consumers.query.query import require_generation
from streammetrics_consumers.query.query_plan import idle_heads


def status_json(ledger: Ledger, wanted: int | None = None) -> bytes:
    """The bytes of `status --json` and of `GET /api/status`, of one generation or the newest."""
    seen = snapshot_of(ledger, wanted)
    generation = seen.generation
    entries = count_entries(ledger.store, generation.id)
    idle = idle_heads(seen)
    join, _ = JoinReader(ledger).found(wanted)
    return answers.dumps(
        answers.Status(
            generation=generation.id,
            revision=generation.revision,
            floor_ms=generation.floor_ms,
            watermark_ms=seen.greatest_event_ms,
            logs=tuple(_log(head, idle=head.id in idle) for head in seen.logs),
            metrics=tuple(_metric(metric, seen.heads) for metric in generation.metrics),
            quarantine=answers.Quarantined(entries.open, entries.done),
            deltas=answers.Deltas(
                rows=seen.stored_rows, panes=len(seen.panes), nbytes=seen.stored_nbytes
            ),
            join=None if join is None else join.answer(),
        )
    )


def snapshot_of(ledger: Ledger, wanted: int | None) -> Snapshot:
    """The store now, of one generation or the newest; QueryError where it does not have it."""
    if wanted is not None:
        require_generation(wanted, [one.id for one in ledger.generations()])
    return ledger.snapshot(generation=wanted)


def _metric(metric: Metric, heads: Sequence[Head]) -> answers.StatusMetric:
    return answers.StatusMetric(
        name=metric.name,
        type=cast("str", metric.description.get("type")),
        settings=cast("dict[str, str]", metric.description.get("settings")),
        fingerprint=metric.fingerprint,
        ended=metric.ended,
        holes=tuple(_holes(metric, heads)),
    )


def _holes(metric: Metric, heads: Sequence[Head]) -> Iterator[answers.Hole]:
    names = {head.id: str(head.partition) for head in heads}
    for of, some in sorted(metric.holes.items()):
        for start, end in some:
            yield answers.Hole(names[of], start, end)


def _log(head: Head, *, idle: bool) -> answers.StatusLog:
    return answers.StatusLog(
        cluster=head.partition.cluster,
        topic=head.partition.topic,
        topic_id=head.partition.topic_id,
        partition=head.partition.number,
        closed=head.closed,
        idle=idle,
        start_offset=head.start_offset,
        next_offset=head.next_offset,
        greatest_event_ms=head.greatest_event_ms,
        rows=head.counters.rows,
        late=head.counters.late,
        future=head.counters.future,
        expired=head.counters.expired,
        quarantined=head.counters.quarantined,
        tombstones=head.counters.tombstones,
        repeated=head.counters.repeated,
        skipped=head.counters.skipped,
        lost=head.lost,
    )
