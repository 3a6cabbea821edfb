"""Every public accumulator runs in an engine unchanged: from Arrow batches, to the same bytes."""

from __future__ import annotations

from typing import Any

import pytest

from streammetrics import registry
from streammetrics.engines import merged, partial
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import most_are_slow
from tests.engines.every_case import rows_of

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'streammetrics[parquet]'")


@pytest.mark.parametrize("case", list(most_are_slow(CASES)), ids=str)
def test_every_accumulator_counts_batches_in_tasks_as_it_does_rows(case: Case[Any]) -> None:
    rows = rows_of(case)
    states = [
        state
        for half in (rows.batch.slice(0, 3), rows.batch.slice(3))
        for made in partial([half], rows.spec)
        for state in made["state"].to_pylist()
    ]
    assert merged(states) == rows.whole


def test_every_accumulator_is_there() -> None:
    assert {type(case.empty) for case in CASES} == set(registry.metric_types().values())
