"""Every public accumulator, panels, keys, windows and lists too, goes through Beam unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam
import pyarrow as pa

from streammetrics import Accumulator, load
from streammetrics.engines import partial
from streammetrics.engines.beam import StatesFn
from tests.engines.beam.pipelines import run
from tests.engines.every_case import every_case


def count(
    numbered: tuple[int, pa.RecordBatch], specs: Sequence[Accumulator]
) -> Iterator[tuple[int, bytes]]:
    """The number of the case, and the state of some of its rows."""
    number, batch = numbered
    for made in partial([batch], specs[number]):
        yield from ((number, state) for state in made["state"].to_pylist())


def test_the_states_of_tasks_combine_to_those_of_one_process() -> None:
    cases = every_case()
    specs = [rows.spec for rows in cases]
    halves = [
        (number, half)
        for number, rows in enumerate(cases)
        for half in (rows.batch.slice(0, 2), rows.batch.slice(2))
    ]
    found = run(
        lambda pipeline: (
            pipeline
            | beam.Create(halves)
            | beam.FlatMap(count, specs=specs)
            | beam.CombinePerKey(StatesFn())
        )
    )
    states = {number: load(state) for number, state in found}
    assert len(found) == len(states)
    assert states == {number: rows.whole for number, rows in enumerate(cases)}
