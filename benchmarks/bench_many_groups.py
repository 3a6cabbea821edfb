"""Many groups: what engines count in a task, and its results, beside a PerKey of the same rows.

AUC and click rate of a million rows, in 20,000 groups and in six. `python -m
benchmarks.bench_many_groups`; `benchmarks.spark_routes` has the same groups in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import in_turns
from benchmarks.workloads import click_scores, generator, labels_of
from streammetrics import HistogramAUC, Panel, PerKey, Ratio
from streammetrics.engines import Task, aggregate, partial, results_rows, states_by_group

GROUPS = 20_000
BATCH = 1 << 16
SPEC = Panel({"auc": HistogramAUC(), "ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})
COLUMNS = {"labels": "label", "scores": "score"}
MANY, FEW = f"{GROUPS:,} groups", "6 groups"


def log(rows: int) -> pa.Table:
    """Rows of items, and of two variants on three positions."""
    scores, rng = click_scores(rows), generator(3)
    items = np.array([f"item-{i}" for i in range(GROUPS)])
    return pa.table(
        {
            "item": items[rng.integers(0, GROUPS, rows)],
            "variant": pa.array(np.array(["bts", "random"])[rng.integers(0, 2, rows)]),
            "position": rng.integers(0, 3, rows),
            "label": labels_of(scores),
            "score": scores,
        }
    )


def jobs(table: pa.Table) -> Mapping[str, Callable[[], object]]:
    """Each way to count the rows by item, and to read the results."""
    batches = table.to_batches(max_chunksize=BATCH)

    def per_key() -> PerKey:
        state = PerKey(SPEC, max_keys=GROUPS)
        for batch in batches:
            state.update_from(batch, keys="item", columns=COLUMNS)
        return state

    def emitted() -> list[pa.RecordBatch]:
        task = Task("bench", 1)
        return list(partial(batches, SPEC, ["item"], columns=COLUMNS, counted=task))

    state = per_key()
    expected = [(key, *row) for key in state.keys()[:50] for row in results_rows(state.state(key))]
    results = aggregate(batches, SPEC, ["item"], columns=COLUMNS).slice(0, len(expected))
    assert repr([tuple(row.values()) for row in results.to_pylist()]) == repr(expected)
    return {
        f"{MANY}, PerKey to bytes": lambda: per_key().to_bytes(),
        f"{MANY}, partial": emitted,
        f"{MANY}, PerKey to its table": lambda: per_key().compute().to_dict(),
        f"{MANY}, aggregate": lambda: aggregate(batches, SPEC, ["item"], columns=COLUMNS),
    }


def jobs_of_few(table: pa.Table) -> Mapping[str, Callable[[], object]]:
    """All rows in one state, and in the six states of two columns."""
    batches = table.to_batches(max_chunksize=BATCH)

    def counted(*by: str) -> list[object]:
        return list(states_by_group(batches, SPEC, by, columns=COLUMNS))

    return {"1 group": counted, FEW: lambda: counted("variant", "position")}


def ask(quick: bool) -> Answer:
    rows = 200_000 if quick else 1_000_000
    table = log(rows)
    arrays = [table["label"].to_numpy(), table["score"].to_numpy()]
    report = answer("many-groups", "Many groups of rows in engines", rows=rows, arrays=arrays)
    report.add(*in_turns(jobs(table), rows, 3), *in_turns(jobs_of_few(table), rows))
    report.notes.append(
        "AUC and click rate. Groups are strings: an item, or one of two variants on one of three "
        "positions."
    )
    return report


if __name__ == "__main__":
    run_question(ask)
