"""Impressions as an Arrow table, and what one process and one task make of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from streammetrics import Accumulator, GroupedAUC, HistogramAUC, Panel
from streammetrics.engines import partial

N = 4_000
SPEC = Panel({"auc": HistogramAUC(), "gauc": GroupedAUC()})
COLUMNS = {"labels": "label", "scores": "score", "groups": "user"}


def log(n: int = N, seed: int = 1) -> Any:
    """A table of impressions: variants of which some are null, users, topics and offsets."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "variant": pa.array(rng.choice(np.array(["a", "b", None], object), n).tolist()),
            "mobile": pa.array(rng.random(n) < 0.3),
            "label": pa.array((rng.random(n) < 0.3).astype(np.int16)),
            "score": pa.array(rng.random(n, np.float32)),
            "user": pa.array(rng.integers(0, 300, n)),
            "topic": pa.array(["clicks"] * n).dictionary_encode(),
            "log": pa.array(rng.integers(0, 2, n), pa.int32()),
            "offset": pa.array(np.arange(n) + 100),
        }
    )


def single(table: Any, spec: Accumulator = SPEC) -> Accumulator:
    """The state that one process counts."""
    state = spec.empty()
    state.update(
        labels=np.array(table["label"]),
        scores=np.array(table["score"]),
        groups=np.array(table["user"]),
    )
    return state


def states(table: Any, *args: Any, size: int = 700, **named: Any) -> list[dict[str, Any]]:
    """The rows that `partial` emits of a table."""
    made = partial(table.to_batches(size), *args, columns=COLUMNS, **named)
    return [row for batch in made for row in batch.to_pylist()]
