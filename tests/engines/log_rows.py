"""A log of impressions for the tests of engines, and what one process makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics import Accumulator, GroupedAUC, HistogramAUC, Panel, Ratio, load
from streammetrics.engines import partial

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ROWS = 20_000
SPEC = Panel(
    {"auc": HistogramAUC(), "gauc": GroupedAUC(), "ctr": Ratio()},
    inputs={"gauc": {"groups": "users"}, "ctr": {"numerators": "labels"}},
)
COLUMNS = {"labels": "label", "scores": "score", "users": "user"}
Key = tuple[object, ...]


def log_table(rows: int = ROWS, users: int = 900, seed: int = 8) -> pa.Table:
    """Rows of two variants and of none (null); user 7 has a tenth of them all.

    Labels are int16 and scores float32, as engines hand them over.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, rows)
    user[rng.random(rows) < 0.1] = 7
    score = rng.random(rows, np.float32)
    label = (rng.random(rows) < 0.2 + score / 2).astype(np.int16)
    variant = np.array(["a", "b", None], object)[rng.choice(3, rows, p=[0.5, 0.4, 0.1])]
    return pa.table(
        {
            "variant": pa.array(variant, pa.string()),
            "phase": pa.array(rng.integers(0, 2, rows), pa.int32()),
            "user": pa.array(user, pa.int64()),
            "label": pa.array(label, pa.int16()),
            "score": pa.array(score, pa.float32()),
            "ms": pa.array(rng.integers(0, 3 * 86_400_000, rows), pa.int64()),
            "partition": pa.array(np.arange(rows) % 4, pa.int32()),
            "offset": pa.array(np.arange(rows) // 4, pa.int64()),
        }
    )


def write_shards(folder: Path, table: pa.Table, seed: int = 8, shards: int = 6) -> str:
    """The rows in another order, cut at random into so many parquet files; the folder's name."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    mixed = table.take(rng.permutation(table.num_rows))
    cuts = np.sort(rng.integers(0, table.num_rows, shards - 1))
    folder.mkdir(parents=True, exist_ok=True)
    edges = [0, *cuts.tolist(), table.num_rows]
    for i, (start, end) in enumerate(pairwise(edges)):
        pq.write_table(mixed.slice(start, end - start), folder / f"shard{i}.parquet")
    return str(folder)


def updated_states(
    table: pa.Table,
    spec: Accumulator,
    group_columns: Sequence[str] = (),
    columns: Mapping[str, str] = COLUMNS,
) -> dict[Key, Accumulator]:
    """The state of each group, by `update` of one process with all of its rows."""
    keys = list(zip(*(table[name].to_pylist() for name in group_columns), strict=True))
    keys = keys or [()] * table.num_rows
    rows_of: dict[Key, list[int]] = {}
    for i, key in enumerate(keys):
        rows_of.setdefault(key, []).append(i)
    states = {}
    for key, rows in rows_of.items():
        group_table = table.take(rows)
        states[key] = spec.empty()
        states[key].update(**{a: group_table[c].to_numpy() for a, c in columns.items()})
    return states


def with_groups(table: pa.Table) -> pa.Table:
    """The table with columns of other types to group by: a bool, and a dictionary of one text."""
    import pyarrow as pa

    mobile = pa.array([user % 3 == 0 for user in table["user"].to_pylist()])
    topic = pa.array(["clicks"] * table.num_rows).dictionary_encode()
    return table.append_column("mobile", mobile).append_column("topic", topic)


def states(table: pa.Table, *args: Any, size: int = 700, **options: Any) -> list[dict[str, Any]]:
    """The rows that `partial` emits of a table."""
    batches = partial(table.to_batches(size), *args, columns=COLUMNS, **options)
    return [row for batch in batches for row in batch.to_pylist()]


def digests(states: Mapping[Key, Accumulator]) -> dict[Key, str]:
    return {key: state.digest() for key, state in states.items()}


def merged_states(states: DataFrame) -> dict[Key, Accumulator]:
    """The one state of each group of a merged table of Spark."""
    rows = states.toArrow().to_pylist()
    states_by_group = {
        tuple(v for k, v in row.items() if k not in ("bucket", "state")): load(row["state"])
        for row in rows
    }
    assert len(states_by_group) == len(rows)
    return states_by_group


def digests_of(states: DataFrame) -> dict[Key, str]:
    return digests(merged_states(states))
