"""The functions that an engine's tasks apply to the rows of a batch, as a worker does to records.

    count_rows     rows of the table -> the bare states of a task, and its report
    merge_states   bare states of one keyed state -> rows of the store

Between them the engine groups the bare states by keyed state. Both functions take and return
Arrow batches, one at a time, and depend on no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.counted_states import CountedStates
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.arrow_columns import ArrowColumns, RowTexts
from streammetrics_consumers.events.arrow_messages import leaves, unread
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.commit import Counters, Refused
from streammetrics_consumers.model.generation import Pane, StateShard
from streammetrics_consumers.model.partition import Partition

if TYPE_CHECKING:
    import pyarrow as pa

    Batches: TypeAlias = Iterator[pa.RecordBatch]
    Table: TypeAlias = pa.Table

REPORT: Final = -1  # the keyed state of rows with the report of a task
# The columns between the two functions, and of the result, with the type names of engines.
BARE: Final = "keyed int, task bigint, windows binary, expired binary"
SHARDS: Final = (
    "metric string, grouping int, start_ms bigint, end_ms bigint, key_range int, key_ranges int, "
    "for_coarser boolean, state binary, packed binary"
)


@dataclass(frozen=True, slots=True)
class Job:
    """One batch of a streaming query, as passed to each of its tasks.

    greatest_event_ms: of all earlier batches. record_time: the column with the time at which a row
    was written, the reference of `max_ahead_s`; None if there is none.
    """

    config: Config
    log: Partition
    batch: int
    greatest_event_ms: int | None
    floor_ms: int | None
    record_time: str | None = None


def require_schema(job: Job, schema: pa.Schema) -> None:
    """Raise SourceError if a table lacks a needed column, or has one of an unsupported type."""
    import pyarrow.types

    decoder = Decoder(job.config)
    record_times = [] if job.record_time is None else [job.record_time]
    paths = [*(path for path in decoder.paths if path not in decoder.optional), *record_times]
    needed = [*decoder.needed, *record_times]
    if decoder.filter is not None:
        needed += decoder.filter.lacks(dict(leaves(schema)))
    why = unread(schema, needed, paths)
    if why is not None:
        raise SourceError(
            f"column {why.field!r} of the query {job.log.topic}: expected a column that [event] "
            f"and [metrics] can read, got a table that does not fit: {why.detail}; select it under "
            "this name, or correct the config"
        )
    kind = dict(leaves(schema)).get(job.record_time or "")
    if kind is not None and not pyarrow.types.is_timestamp(kind):
        raise SourceError(
            f"record_time={job.record_time!r}: expected a column of timestamps, got one of "
            f"{kind}; name another, or leave record_time out"
        )


def count_rows(batches: Iterable[pa.RecordBatch], job: Job, task: int) -> Iterator[pa.RecordBatch]:
    """Columns BARE: each keyed state (`CountedStates.keyed`), and the report of the task.

    All rows are returned at the end, so a failed task returns nothing. Raises SourceError.
    """
    delta = Delta(job.config, job.log, 0, job.greatest_event_ms, job.floor_ms, ordered=False)
    decoder = Decoder(job.config)
    for batch in batches:
        for decoded in decoder.pieces(_chunk(batch, job, delta.end)):
            delta.add(decoded)
    rows: list[tuple[int, int, bytes, bytes | None]] = []
    if delta.has_states:
        rows += [(place, task, *keyed.bare()) for place, keyed in enumerate(delta.states.keyed)]
    report = TaskReport(task, delta.counters, delta.greatest_event_ms, tuple(delta.quarantine))
    yield _batch([*rows, (REPORT, task, msgspec.json.encode(report), None)], _schema(BARE))


def merge_states(batches: Iterable[pa.RecordBatch], config: Config) -> Iterator[pa.RecordBatch]:
    """Columns SHARDS from BARE of one keyed state: the rows of a store, one at a time.
    Reports pass through as states without a metric."""
    states: CountedStates | None = None
    for batch in batches:
        places, _, windows, expired = (column.to_pylist() for column in batch.columns)
        for i, place in enumerate(places):
            if place == REPORT:
                yield _batch([(None, 0, None, None, 0, 1, False, windows[i], b"")], _schema(SHARDS))
                continue
            states = states or CountedStates(config)
            states.keyed[place].join(windows[i], expired[i])
    for shard in states.shards() if states is not None else ():
        place = (*shard.pane, shard.key_range, shard.key_ranges, shard.for_coarser)
        yield _batch([(*place, shard.state, shard.packed)], _schema(SHARDS))


def read_merged(table: pa.Table) -> tuple[list[StateShard], list[TaskReport]]:
    """The rows of a store and the reports of the tasks, from columns SHARDS."""
    shards: list[StateShard] = []
    reports: list[TaskReport] = []
    for batch in table.to_batches():
        columns = [column.to_pylist() for column in batch.columns]
        for metric, grouping, start, end, key_range, key_ranges, coarser, state, small in zip(
            *columns, strict=True
        ):
            if metric is None:
                reports.append(msgspec.json.decode(state, type=TaskReport))
            else:
                pane = Pane(metric, grouping, start, end)
                shards.append(StateShard(pane, key_range, key_ranges, state, coarser, small))
    return shards, reports


def _chunk(batch: pa.RecordBatch, job: Job, start: int) -> Chunk:
    """Rows as records of the task: their offsets are their positions in it."""
    end = start + batch.num_rows
    columns = ArrowColumns(batch)
    times: NDArray[np.int64] | None = None
    if job.record_time is not None:
        record_times = columns[job.record_time]
        assert isinstance(record_times, np.ndarray)
        written = record_times.astype("datetime64[ms]").astype(np.int64)
        times = np.where(np.isnat(record_times), -1, written)
    return Chunk(
        job.log, start, end, range(start, end), RowTexts(batch), timestamps_ms=times,
        columns=columns,
    )  # fmt: skip


def _batch(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow

    columns = zip(*rows, strict=True)
    arrays = [pyarrow.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(text: str) -> pa.Schema:
    import pyarrow

    types = {
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "string": pyarrow.string(),
        "boolean": pyarrow.bool_(),
        "binary": pyarrow.binary(),
    }
    return pyarrow.schema([(n, types[t]) for n, t in (c.split(" ") for c in text.split(", "))])


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The report of one task, sent to the driver as JSON. `task` is its number in the batch; the
    offset of a refused event is its row in the task."""

    task: int
    counters: Counters
    greatest_event_ms: int | None
    refused: tuple[Refused, ...]


def combined_report(
    reports: Iterable[TaskReport], batch: int, greatest_event_ms: int | None
) -> TaskReport:
    """The combined report of the tasks of one batch. The offset of a refused event is the number of
    its batch, and its index is its row in the batch, with the tasks in order.

    greatest_event_ms: that of all earlier batches.
    """
    counters, refused, before = Counters(), [], 0
    times = [] if greatest_event_ms is None else [greatest_event_ms]
    for report in sorted(reports, key=lambda report: report.task):
        refused += [replace(r, offset=batch, index=before + r.offset) for r in report.refused]
        before += report.counters.rows
        counters += report.counters
        times += [] if report.greatest_event_ms is None else [report.greatest_event_ms]
    return TaskReport(0, counters, max(times, default=None), tuple(refused))
