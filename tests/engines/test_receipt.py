"""The receipt of a Kafka consumer is that of a backfill in plain processes."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pytest

from streammetrics import Accumulator
from streammetrics.engines import merged, partial
from tests.engines.receipt import COLUMNS, VARIANTS, consumed, logged, of_the_window

pytestmark = pytest.mark.slow


def counted(part: pa.Table, spec: Accumulator) -> list[tuple[str, bytes]]:
    """The states of one part, by variant."""
    found = pa.Table.from_batches(partial(part.to_batches(), spec, ["variant"], columns=COLUMNS))
    return list(zip(found["variant"].to_pylist(), found["state"].to_pylist(), strict=True))


def test_a_consumer_and_two_processes_give_the_same_receipt(kafka: str, tmp_path: Path) -> None:
    live = consumed(kafka, tmp_path)
    rows = of_the_window(logged())
    parts = [rows.slice(0, 700), rows.slice(700)]
    spec = live["a"].empty()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        states = [one for some in pool.map(counted, parts, [spec, spec]) for one in some]
    for variant in VARIANTS:
        backfill = merged(state for name, state in states if name == variant)
        assert backfill.digest() == live[variant].digest()


def test_a_row_that_is_missing_is_seen_in_the_receipt(kafka: str, tmp_path: Path) -> None:
    live = consumed(kafka, tmp_path)["a"]
    rows = of_the_window(logged())
    first = rows["variant"].to_pylist().index("a")
    some = pa.concat_tables([rows.slice(0, first), rows.slice(first + 1)])
    without = merged(s for name, s in counted(some, live.empty()) if name == "a")
    assert without.digest() != live.digest()
