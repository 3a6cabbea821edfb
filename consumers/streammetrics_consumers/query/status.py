"""The status of a store: its generation, how far each log was read, and its contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, cast

from msgspec import UNSET, Meta, UnsetType

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.outbox import count_by_state
from streammetrics_consumers.ledger.quarantine import count_entries
from streammetrics_consumers.model.commit import COUNTED, Head, Snapshot
from streammetrics_consumers.model.generation import Metric
from streammetrics_consumers.query.answers import Join
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.exposed_answers import ExposureStatus
from streammetrics_consumers.query.exposures_status import PendingReaders
from streammetrics_consumers.query.json_kinds import Answer, Count, Counts, Time
from streammetrics_consumers.query.query import require_generation
from streammetrics_consumers.query.query_plan import idle_heads
from streammetrics_consumers.query.stream_warnings import stream_warnings


class StatusLog(Answer, frozen=True):
    """How far a log was read. lost: offsets that the log deleted before they were read."""

    cluster: str
    topic: str
    topic_id: str
    partition: Count
    closed: bool
    idle: bool
    start_offset: Count
    next_offset: Count
    greatest_event_ms: Time | None
    rows: Count
    late: Count
    future: Count
    expired: Count
    quarantined: Count
    tombstones: Count
    repeated: Count
    skipped: Count
    lost: Count


class HoleAnswer(Answer, frozen=True):
    """The offsets [start_offset, end_offset) of a log that a metric did not count."""

    log: str
    start_offset: int
    end_offset: int


class StatusMetric(Answer, frozen=True):
    """A metric with its settings. ended: whether the config no longer has it."""

    name: str
    type: str
    settings: Mapping[str, str]
    fingerprint: str
    ended: bool
    holes: tuple[HoleAnswer, ...]


class Quarantined(Answer, frozen=True):
    """Refused events that are open, and those that a retry counted."""

    open: Count
    done: Count


class Deltas(Answer, frozen=True):
    """The size of the states of this generation."""

    rows: Count
    panes: Count
    nbytes: Count


class Status(Answer, frozen=True, tag_field="format", tag="streammetrics-status/1"):
    """The status of a store: its generation, how far each log was read, and its contents. warnings:
    sentences, such as that most events are refused. exposures: where the config has them."""

    generation: Count
    revision: Count
    floor_ms: Time | None
    watermark_ms: Time | None
    logs: tuple[StatusLog, ...]
    metrics: tuple[StatusMetric, ...]
    quarantine: Quarantined
    deltas: Deltas
    join: Join | None
    warnings: tuple[str, ...]
    hooks: (
        Annotated[
            Mapping[str, Counts],
            Meta(description="the events of each hook by their state; left out of none"),
        ]
        | UnsetType
    ) = UNSET
    exposures: ExposureStatus | UnsetType = UNSET


def status_json(ledger: Ledger, generation_number: int | None = None) -> bytes:
    """The bytes of `status --json` and of `GET /api/status`, of one generation or the newest."""
    snapshot = snapshot_of(ledger, generation_number)
    generation = snapshot.generation
    entries = count_entries(ledger.store, generation.id)
    idle = idle_heads(snapshot)
    (join, exposures), _ = PendingReaders(ledger).read(generation_number)
    return dumps(
        Status(
            generation=generation.id,
            revision=generation.revision,
            floor_ms=generation.floor_ms,
            watermark_ms=snapshot.greatest_event_ms,
            logs=tuple(_log(head, idle=head.id in idle) for head in snapshot.logs),
            metrics=tuple(_metric(metric, snapshot.heads) for metric in generation.metrics),
            quarantine=Quarantined(entries.open, entries.done),
            deltas=Deltas(
                rows=snapshot.stored_rows, panes=len(snapshot.panes), nbytes=snapshot.stored_nbytes
            ),
            join=join,
            warnings=stream_warnings(ledger.store, snapshot),
            hooks=_hooks(ledger) or UNSET,
            exposures=UNSET if exposures is None else exposures,
        )
    )


def snapshot_of(ledger: Ledger, generation_number: int | None) -> Snapshot:
    """The store now, of one generation or the newest. Raises QueryError if it is not there."""
    if generation_number is not None:
        require_generation(
            generation_number, [generation.id for generation in ledger.generations()]
        )
    return ledger.snapshot(generation=generation_number)


def _hooks(ledger: Ledger) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for (name, state), count in ledger.store.read(count_by_state).items():
        counts.setdefault(name, {})[state] = count
    return counts


def _metric(metric: Metric, heads: Sequence[Head]) -> StatusMetric:
    return StatusMetric(
        name=metric.name,
        type=cast("str", metric.description.get("type")),
        settings=cast("dict[str, str]", metric.description.get("settings")),
        fingerprint=metric.fingerprint,
        ended=metric.ended,
        holes=tuple(_holes(metric, heads)),
    )


def _holes(metric: Metric, heads: Sequence[Head]) -> Iterator[HoleAnswer]:
    names = {head.id: str(head.partition) for head in heads}
    for head_id, ranges in sorted(metric.holes.items()):
        for start, end in ranges:
            yield HoleAnswer(names[head_id], start, end)


def _log(head: Head, *, idle: bool) -> StatusLog:
    return StatusLog(
        cluster=head.partition.cluster,
        topic=head.partition.topic,
        topic_id=head.partition.topic_id,
        partition=head.partition.number,
        closed=head.closed,
        idle=idle,
        start_offset=head.start_offset,
        next_offset=head.next_offset,
        greatest_event_ms=head.greatest_event_ms,
        **{name: getattr(head.counters, name) for name in ("rows", "tombstones", *COUNTED)},
        lost=head.lost,
    )
