"""Pipelines whose output a test can look at, and random cuts of a log."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any
from uuid import uuid4

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

_KEPT: dict[str, list[Any]] = {}


def shards(table: pa.Table, n: int, seed: int) -> list[pa.Table]:
    """The rows in another order, cut at random places. Copies: a pickled slice holds the whole."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(table.num_rows)
    cuts = [0, *sorted(rng.integers(0, table.num_rows, n - 1).tolist()), table.num_rows]
    return [table.take(order[a:b]) for a, b in pairwise(cuts)]


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
