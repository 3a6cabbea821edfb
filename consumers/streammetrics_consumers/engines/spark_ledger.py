"""A sink that writes Spark Structured Streaming into the ledger, for `foreachBatch`.

    sink = LedgerSink(load_config("clicks.toml"))
    rows.writeStream.option("checkpointLocation", ...).foreachBatch(sink).start()

The config is that of a worker, with `[source] kind = "spark"` and `query`, its name in the ledger;
paths of [event] are names of columns. Tasks decode and count as a worker does. The driver writes
the results of a batch in one transaction, under the number of the batch, so that a repeated batch
counts once. See docs/engines.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from streammetrics import InputError
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.engines.batch_ledger import BatchLedger, Gap
from streammetrics_consumers.engines.tasks import (
    BARE,
    SHARDS,
    Job,
    count_rows,
    merge_states,
    read_merged,
    require_schema,
)
from streammetrics_consumers.model.generation import Requested

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streammetrics_consumers.engines.tasks import Batches, Table

QUERY_ID = "sql.streaming.queryId"  # a local property of the thread that runs a streaming query


class LedgerSink:
    """The callback of `foreachBatch`, called with the rows and the number of each batch.

    identity: distinguishes this query from an earlier one of the same name; by default the id in
    the Spark checkpoint (required over Connect, for example the location of the checkpoint).
    record_time: the column with the time at which a row was written (Kafka's `timestamp`), which
    `[windows] max_ahead_s` needs. on_gap, new_generation, new_source, drop_metrics, resume_metrics,
    restart_metrics, drop_windows:
    like the flags of `streammetrics run`.
    """

    def __init__(
        self,
        config: Config,
        *,
        identity: str | None = None,
        record_time: str | None = None,
        on_gap: Gap = "stop",
        new_generation: bool = False,
        new_source: bool = False,
        drop_metrics: Sequence[str] = (),
        resume_metrics: Sequence[str] = (),
        restart_metrics: Sequence[str] = (),
        drop_windows: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if config.source.kind != "spark":
            raise InputError(
                expected='a config with [source] kind = "spark" and a query',
                got=f"kind = {config.source.kind!r}",
                where=str(config.path),
                hint="correct [source]; a worker (`streammetrics run`) reads other sources",
            )
        self.config, self.identity, self.record_time = config, identity, record_time
        self._open = partial(
            BatchLedger,
            config,
            monotonic=monotonic,
            clock=clock,
            on_gap=on_gap,
            new_generation=new_generation,
            new_source=new_source,
            requested=Requested(
                tuple(drop_metrics), tuple(resume_metrics), tuple(restart_metrics), drop_windows
            ),
        )
        self._opened: BatchLedger | None = None

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Count a batch, or skip it if it is already counted. An error stops the query, and nothing
        of the batch is written."""
        self._ledger(rows).count(
            batch_id, lambda job: read_merged(_merged(rows, job)), self.record_time
        )

    def close(self) -> None:
        """Close the store, after the query has ended."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _ledger(self, rows: DataFrame) -> BatchLedger:
        if self._opened is None:
            self._opened = self._open(self.identity or _query_id(rows))
        return self._opened


def _merged(rows: DataFrame, job: Job) -> Table:
    """The store rows that a batch adds, merged in the engine."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    require_schema(job, to_arrow_schema(rows.schema, timezone="UTC"))
    config = job.config

    def count(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from count_rows(batches, job, context.partitionId())

    def merge(batches: Batches) -> Batches:
        yield from merge_states(batches, config)

    kind = Iterator[pyarrow.RecordBatch]
    # Spark reads the signature of the function here.
    merge.__annotations__ = {"batches": kind, "return": kind}
    bare = rows.mapInArrow(count, BARE)
    return bare.groupBy("keyed").applyInArrow(merge, SHARDS).toArrow()


def _query_id(rows: DataFrame) -> str:
    """The id of the query running in this thread, as stored in its checkpoint."""
    context = getattr(rows.sparkSession, "_sc", None)  # None over Connect
    query_id = None if context is None else context.getLocalProperty(QUERY_ID)
    if not isinstance(query_id, str):
        raise InputError(
            expected="the id of the streaming query, which identifies its batches",
            got="none, since this is not called by foreachBatch, or over Connect",
            where="LedgerSink",
            hint="pass identity=..., such as the location of the checkpoint",
        )
    return query_id
