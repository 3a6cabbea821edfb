"""A log, what a single process makes of it, and pipelines whose output a test can look at."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any
from uuid import uuid4

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from streammetrics import Accumulator, GroupedAUC, HistogramAUC, Panel, Ratio

ROWS, USERS = 20_000, 2_000
VARIANTS = ("random", "bts", None)
SPEC = Panel(
    {"auc": HistogramAUC(), "ctr": Ratio(), "gauc": GroupedAUC()},
    inputs={"ctr": {"numerators": "labels"}, "gauc": {"groups": "users"}},
)
COLUMNS = {"labels": "label", "scores": "score", "users": "user"}
_KEPT: dict[str, list[Any]] = {}


def log(seed: int = 7) -> pa.Table:
    """Rows whose users meet all shards, one of them in a tenth of the rows; types as logs have."""
    rng = np.random.default_rng(seed)
    user = rng.integers(1, USERS, ROWS)
    user[rng.permutation(ROWS)[: ROWS // 10]] = 0
    score = rng.random(ROWS, np.float32)
    variant = rng.integers(0, 3, ROWS)
    return pa.table(
        {
            "variant": pa.array([VARIANTS[i] for i in variant], pa.string()),
            "user": pa.array(user),
            "score": pa.array(np.round(score, 3)),
            "label": pa.array((rng.random(ROWS) < score / 2).astype(np.int8)),
            "source": pa.array(["clicks/0", "clicks/1"] * (ROWS // 2)),
            "offset": pa.array(np.arange(ROWS) // 2),
        }
    )


def shards(table: pa.Table, n: int, seed: int) -> list[pa.Table]:
    """The rows in another order, cut at random places. Copies: a pickled slice holds the whole."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(table.num_rows)
    cuts = [0, *sorted(rng.integers(0, table.num_rows, n - 1).tolist()), table.num_rows]
    return [table.take(order[a:b]) for a, b in pairwise(cuts)]


def fed(spec: Accumulator, table: pa.Table) -> Accumulator:
    """What a single process makes of all rows."""
    state = spec.empty()
    state.update(**{name: table[column].to_numpy() for name, column in COLUMNS.items()})
    return state


def alone(table: pa.Table) -> dict[tuple[str | None], str]:
    """The digest of each variant in a single process."""
    names = np.array(table["variant"].to_pylist(), object)
    return {
        (name,): fed(SPEC, table.filter(pa.array([one == name for one in names]))).digest()
        for name in VARIANTS
    }


def run(make: Callable[[Any], Any], *, repeats: int = 0) -> list[Any]:
    """What the pipeline puts out; each bundle is run `repeats` times more."""
    name = uuid4().hex
    _KEPT[name] = []
    runner = FnApiRunner(bundle_repeat=repeats)
    with beam.Pipeline(runner=runner) as pipeline:
        _ = make(pipeline) | "keep" >> beam.Map(_keep, name=name)
    return _KEPT.pop(name)


def _keep(element: object, name: str) -> None:
    _KEPT[name].append(element)
