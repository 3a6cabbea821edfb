"""Which version of the program, with which schema and config, counted which offsets of each log."""

from __future__ import annotations

from collections.abc import Mapping

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.periods import CountedOffsets
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.json_kinds import Answer, Count
from streammetrics_consumers.query.status import snapshot_of


class CountedRange(Answer, frozen=True):
    """The offsets [start_offset, end_offset) of a log. version, schema, config, settings: of the
    program that counted them; None where they were counted before version 8 of the schema."""

    log: str
    topic_id: str
    start_offset: Count
    end_offset: Count
    version: str | None
    schema: Count | None
    config: str | None
    settings: Mapping[str, int] | None


class CountingHistory(Answer, frozen=True, tag_field="format", tag="streammetrics-history/1"):
    """The history of a generation: what counted its logs, in order of offsets."""

    generation: Count
    counted: tuple[CountedRange, ...]


def counting_history(ledger: Ledger, generation_number: int | None = None) -> CountingHistory:
    """The history of one generation, or of the newest. Raises QueryError if it is not there."""
    generation = snapshot_of(ledger, generation_number).generation.id
    return CountingHistory(
        generation=generation,
        counted=tuple(_range(offsets) for offsets in ledger.history(generation)),
    )


def _range(offsets: CountedOffsets) -> CountedRange:
    period = offsets.period
    return CountedRange(
        log=str(offsets.head.partition),
        topic_id=offsets.head.partition.topic_id,
        start_offset=offsets.start,
        end_offset=offsets.end,
        version=None if period is None else period.version,
        schema=None if period is None else period.schema,
        config=None if period is None else period.config,
        settings=None if period is None else dict(period.settings),
    )


def history_json(history: CountingHistory) -> bytes:
    """The bytes of `status --history --json`."""
    return dumps(history)
