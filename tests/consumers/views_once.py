"""For tests that read the same states again and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from streammetrics_consumers.query import results
from streammetrics_consumers.query.answers import Window
from streammetrics_consumers.query.query import Slice
from streammetrics_consumers.query.results import ResultRow

from streammetrics import Accumulator


@contextmanager
def views_computed_once() -> Iterator[None]:
    """What states of the same bytes show is computed once: it costs more than all reads of them,
    and is tested in test_results."""
    known: dict[object, list[ResultRow]] = {}

    def rows_of(
        window: Window, slice_: Slice, metric: str, state: Accumulator, *, headlines: bool
    ) -> list[ResultRow]:
        key = metric, state.to_bytes(), headlines
        if key not in known:
            known[key] = results.rows_of(window, slice_, metric, state, headlines=headlines)
        return [replace(row, window=window, slice=slice_) for row in known[key]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streammetrics_consumers.query.reader.rows_of", rows_of)
        yield
