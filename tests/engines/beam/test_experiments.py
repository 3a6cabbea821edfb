"""A config of several experiments: Beam gives the bytes that a worker stores of each."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import apache_beam as beam
import pyarrow as pa
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.engines.tasks import (
    Job,
    TaskReport,
    count_rows,
    merge_states,
    read_merged,
    require_schema,
)
from streammetrics_consumers.ledger.delta_metadata import state_of
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.generation import StateShard

from streammetrics import PerKey, Ratio, UserGroups, load
from streammetrics.engines.beam import Merge, States
from tests.consumers.engines.fed_store import (
    ASSIGNED,
    THREE,
    Fed,
    assigned_rows,
    look_rows,
    shard_rows,
    table,
    worked,
)
from tests.engines.beam.pipelines import run, shards

Task = tuple[int, pa.Table]


def test_a_batch_that_beam_counts_writes_the_rows_of_a_worker_for_each_experiment(
    tmp_path: Path,
) -> None:
    rows = assigned_rows(400)
    worker = worked(tmp_path, rows, ASSIGNED, **THREE)
    Random(5).shuffle(rows)
    parts = [pa.Table.from_batches([table(rows[i::4], ASSIGNED)]) for i in range(4)]
    fed = Fed(tmp_path, **THREE)
    with closing(fed.opened()) as ledger:
        assert ledger.count(0, lambda job: counted(job, parts))
    assert shard_rows(fed.config) == shard_rows(worker)
    looks = look_rows(fed.config)
    assert looks == look_rows(worker) and len({experiment for experiment, *_ in looks}) == 3


def counted(job: Job, parts: list[pa.Table]) -> tuple[list[StateShard], list[TaskReport]]:
    """What comes of the tasks of a batch in a pipeline."""
    require_schema(job, ASSIGNED)
    batches = run(
        lambda pipeline: (
            pipeline
            | beam.Create([*enumerate(parts)])
            | "count" >> beam.FlatMap(_counted, job=job)
            | beam.GroupByKey()
            | "merge" >> beam.FlatMap(_merged, config=job.config)
        )
    )
    return read_merged(pa.Table.from_batches(batches))


def _counted(task: Task, job: Job) -> list[tuple[int, pa.RecordBatch]]:
    number, rows = task
    return [
        (batch.column("keyed")[i].as_py(), batch.slice(i, 1))
        for batch in count_rows(rows.to_batches(), job, number)
        for i in range(batch.num_rows)
    ]


def _merged(group: tuple[int, list[pa.RecordBatch]], config: Config) -> list[pa.RecordBatch]:
    return list(merge_states(group[1], config))


def test_states_by_arm_and_condition_are_those_of_the_experiment_in_a_store(
    tmp_path: Path,
) -> None:
    rows = assigned_rows(400)
    worker = worked(tmp_path, rows, ASSIGNED, **THREE)
    whole = pa.Table.from_batches([table(rows, ASSIGNED)]).sort_by("ts")
    end = 4 * 3_600_000
    arms = pa.array([row["search"] for row in whole.column("exps").to_pylist()])
    events = (
        whole.append_column("search", arms)
        .append_column("ms", whole.column("ts").cast("int64"))
        .filter(arms.is_valid())
    )
    spec = UserGroups(Ratio(), buckets=64, salt="streammetrics")
    states = States(
        spec,
        ["search"],
        columns={"groups": "user", "numerators": "label"},
        where=f"phase == 'fit' and ms < {end}",
    )
    pairs = run(
        lambda pipeline: pipeline | beam.Create(shards(events, 5, 1)) | states | Merge(), repeats=1
    )
    expected = stored(worker, "experiment/search/ctr")
    assert len(expected) == 2
    assert {arm: load(state).digest() for (arm,), state in pairs} == expected


def stored(config: Config, metric: str) -> dict[str, str]:
    """The digests of the totals of a metric by arm."""

    def read(now: StoreView) -> dict[str, str]:
        panes = [size.pane for size in now.snapshot.panes if size.pane.metric == metric]
        metadata = now.delta_metadata([pane for pane in panes if pane.is_total])
        states: list[PerKey] = [state_of(row, data) for row, data in now.states(metadata)]
        total = states[0].copy()
        for state in states[1:]:
            total.merge(state)
        return {str(key[2]): total.state(key).digest() for key in total.keys()}  # noqa: SIM118

    with closing(Ledger.open(config.store.url)) as ledger:
        return view(ledger, read)
