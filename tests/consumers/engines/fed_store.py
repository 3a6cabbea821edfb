"""A query that feeds a store, without its engine: its tasks run here, and their states meet as an
engine brings them together. And the same events in a parquet file, counted by a worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Select, select
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.engines.batch_ledger import BatchLedger, Gap
from streammetrics_consumers.engines.tasks import (
    Job,
    TaskReport,
    count_rows,
    merge_states,
    read_merged,
    require_schema,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta, look, look_reading
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.generation import Pane, StateShard
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from tests.consumers.small_config import EVENT, config
from tests.consumers.stores import stored

SPARK = 'kind = "spark"\nquery = "clicks"'
Row = dict[str, object]


def row(minute: float = 0, variant: object = "a", label: object = 0, score: float = 0.25,
        phase: str | None = "fit", user: str = "u") -> Row:  # fmt: skip
    """An event so many minutes after midnight."""
    return {
        "ts": int(minute * 60_000), "variant": variant, "label": label, "score": score,
        "phase": phase, "user": user,
    }  # fmt: skip


SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("ms", "UTC"),
        "variant": pa.string(),
        "label": pa.int32(),
        "score": pa.float64(),
        "phase": pa.string(),
        "user": pa.string(),
    }
)


def table(rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def counted(
    job: Job, tasks: Sequence[Sequence[pa.RecordBatch]]
) -> tuple[list[StateShard], list[TaskReport]]:
    """What comes of the tasks of a batch, each with its batches of rows."""
    require_schema(job, tasks[0][0].schema if tasks and tasks[0] else SCHEMA)
    bare = [b for number, rows in enumerate(tasks) for b in count_rows(rows, job, number)]
    groups: dict[int, list[pa.RecordBatch]] = {}
    for batch in bare:
        for i in range(batch.num_rows):
            row_batch = batch.slice(i, 1)
            groups.setdefault(row_batch.column("keyed")[0].as_py(), []).append(row_batch)
    shards = [shard for group in groups.values() for shard in merge_states(group, job.config)]
    return read_merged(pa.Table.from_batches(shards)) if shards else ([], [])  # no tasks at all


# The column of assignments, as [event] names it, and three experiments of these events.
ASSIGNED = SCHEMA.append(
    pa.field("exps", pa.struct({"pricing": pa.string(), "search": pa.string()}))
)
THREE = {
    "event": f'{EVENT}\nassignments = "exps"',
    "rest": """
[experiment]
control = "a"
decision = ["ctr"]
mde = 0.05
[experiments.pricing]
variants = { full = ["full"], cheap = ["low", "lowest"] }
control = "full"
decision = ["ctr"]
guardrails = [{ metric = "auc", margin = 0.1 }]
mde = 0.05
start = 1970-01-01T01:00:00Z
[experiments.search]
variants = ["old", "new"]
control = "old"
decision = ["ctr"]
metrics = ["auc"]
where = { phase = "fit" }
mde = 0.05
end = 1970-01-01T04:00:00Z
interactions = true
""",
}


def assigned_rows(n: int, seed: int = 3) -> list[Row]:
    """Events of forty users, some of which are in no experiment, or in an arm of another name."""
    random = Random(seed)
    prices, orders = ["full", "low", "lowest", "free", None], ["old", "new", None]
    return [
        row(
            random.uniform(0, 300),
            random.choice("ab"),
            random.randrange(2),
            random.random(),
            random.choice(["fit", "eval"]),
            f"u{random.randrange(40)}",
        )
        | {"exps": {"pricing": random.choice(prices), "search": random.choice(orders)}}
        for _ in range(n)
    ]


class Fed:
    """A store and the query that feeds it; `lives` are its lives so far."""

    def __init__(self, folder: Path, *, identity: str = "one", **parts: str) -> None:
        settings = config(**{"source": SPARK, **parts})
        self.config = replace(settings, store=replace(settings.store, url=str(folder / "fed.db")))
        self.identity = identity

    def opened(
        self, *, on_gap: Gap = "stop", config: Config | None = None, new_source: bool = False
    ) -> BatchLedger:
        return BatchLedger(
            config or self.config,
            self.identity,
            monotonic=lambda: 0.0,
            clock=lambda: 0.0,
            on_gap=on_gap,
            new_source=new_source,
        )

    def feed(self, number: int, *tasks: Sequence[Row], on_gap: Gap = "stop",
             record_time: str | None = None, schema: pa.Schema = SCHEMA) -> bool:  # fmt: skip
        """One batch, in a process of its own."""
        parts = [[table(rows, schema)] for rows in tasks]
        with closing(self.opened(on_gap=on_gap)) as ledger:
            return ledger.count(number, lambda job: counted(job, parts), record_time)

    def snapshot(self) -> Snapshot:
        with closing(Ledger.open(self.config.store.url)) as ledger:
            return ledger.snapshot()

    def digests(self) -> dict[tuple[object, ...], str]:
        return digests(self.config)


def digests(settings: Config) -> dict[tuple[object, ...], str]:
    """The digest of every metric, window and slice of a store."""
    digests_by_key: dict[tuple[object, ...], str] = {}
    with closing(Ledger.open(settings.store.url)) as ledger:
        for window in ("total", "all"):
            for result in read_results(ledger, Query(window=window)).rows:
                slice_ = tuple(sorted(result.slice.items(), key=repr))
                span = (result.window.start_ms, result.window.end_ms)
                digests_by_key[result.metric, span, slice_] = result.digest
    return digests_by_key


def panes(settings: Config) -> dict[Pane, str]:
    """The digest of every pane of a store, those of an experiment too."""
    with closing(Ledger.open(settings.store.url)) as ledger:
        sums = stored(ledger).sums(lambda row: row.pane)
    return {pane: state.digest() for pane, state in sums.items()}


def shard_rows(settings: Config) -> list[tuple[object, ...]]:
    """The rows of states in a store, without what says which records they count."""
    numbers = (delta.c.id, delta.c.head, delta.c.start_offset, delta.c.end_offset, delta.c.same_as)
    columns = [column for column in delta.c if column not in {*numbers}]
    return _rows(settings, select(*columns, delta.c.same_as.is_(None)).order_by(*columns))


def look_rows(settings: Config) -> list[tuple[object, ...]]:
    """The readings at all looks of a store, without the offsets of the looks."""
    columns = [look.c.experiment, look.c.watermark_ms, *look_reading.c[1:]]
    return _rows(settings, select(*columns).select_from(look_reading.join(look)).order_by(*columns))


def _rows(settings: Config, query: Select[Any]) -> list[tuple[object, ...]]:
    with closing(Ledger.open(settings.store.url)) as ledger:
        return ledger.store.read(lambda now: [tuple(row) for row in now.execute(query)])


def worked(folder: Path, rows: Iterable[Row], schema: pa.Schema = SCHEMA, **parts: str) -> Config:
    """The config of a store that a worker has fed with these rows."""
    path = folder / "events.parquet"
    pq.write_table(pa.Table.from_batches([table(list(rows), schema)]), path)
    settings = config(**{**parts, "source": f'kind = "file"\npath = "{path}"'})
    settings = replace(settings, store=replace(settings.store, url=str(folder / "worked.db")))
    service.run(settings, Options(until_end=True), stop=Stop())
    return settings
