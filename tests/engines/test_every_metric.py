"""Every public accumulator runs in an engine unchanged: from Arrow batches, to the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from streammetrics import registry
from streammetrics.core.rows import Coded
from streammetrics.engines import merged, partial
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import most_are_slow

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'streammetrics[parquet]'")


def drawn(case: Case[Any]) -> list[Any]:
    """Some rows of the case, the last that hypothesis thinks of."""
    found: list[list[Any]] = []

    @hypothesis.settings(max_examples=5, phases=[hypothesis.Phase.generate], database=None)
    @hypothesis.given(st.lists(case.row, min_size=6, max_size=6))
    def draw(rows: list[Any]) -> None:
        found.append(rows)

    draw()
    return found[-1]


def plain(name: str, given: Any) -> Any:
    """A column as Arrow may hold it: its keys are of one type, and UTF-8."""
    if isinstance(given, Coded):
        given = [given.values[code] for code in given.codes]
    return [ascii(key) for key in given] if name == "keys" else given


def arrow(columns: Mapping[str, Any]) -> Any:
    """The columns of `update` as a batch of an engine: flat ones with offsets as lists."""
    offsets = columns.get("offsets")
    found = {}
    for name, given in columns.items():
        if name == "offsets" or given is None:
            continue
        array = pa.array([one.tolist() if isinstance(one, np.ndarray) else one for one in given])
        of_items = offsets is not None and len(array) == int(offsets[-1])
        if of_items and name != "n_relevant":
            array = pa.ListArray.from_arrays(pa.array(np.asarray(offsets), pa.int32()), array)
        found[name] = array
    return pa.record_batch(found)


@pytest.mark.parametrize("case", list(most_are_slow(CASES)), ids=str)
def test_every_accumulator_counts_batches_in_tasks_as_it_does_rows(case: Case[Any]) -> None:
    columns = {name: plain(name, given) for name, given in case.columns(drawn(case)).items()}
    batch = arrow(columns)
    states = [
        state
        for half in (batch.slice(0, 3), batch.slice(3))
        for made in partial([half], case.empty)
        for state in made["state"].to_pylist()
    ]
    whole = case.empty.empty()
    whole.update(**columns)
    assert merged(states) == whole


def test_every_accumulator_is_there() -> None:
    assert {type(case.empty) for case in CASES} == set(registry.metric_types().values())
