"""For tests that read the same states again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
from streammetrics_consumers.query import results
from streammetrics_consumers.query.lines import Views
from streammetrics_consumers.query.query import Slice
from streammetrics_consumers.query.rows import SliceRow, Window
from streammetrics_consumers.query.slices import Computed

import streammetrics
from streammetrics import Accumulator

Found = tuple[list[SliceRow], tuple[str, ...], dict[str, results.Range]]


@contextmanager
def views_computed_once() -> Iterator[None]:
    """What states of the same bytes show, and their drift, is computed once: it costs more than all
    reads of them, and is tested in test_answers and test_drifts."""
    known: dict[object, Found] = {}

    def rows_of(
        window: Window,
        slice_: Slice,
        metric: str,
        computed: Computed,
        views: Callable[[object, Sequence[str]], Views],
        more: Sequence[str],
        users: str,
    ) -> Found:
        key = metric, computed.digest, views, more, users
        if key not in known:
            known[key] = real(window, slice_, metric, computed, views, more, users)
        rows, *rest = known[key]
        return [replace(row, window=window, slice=slice_) for row in rows], *rest

    distances: dict[object, object] = {}

    def drift(reference: Accumulator, current: Accumulator, **settings: object) -> object:
        key = reference.digest(), current.digest(), *sorted(settings.items())
        if key not in distances:
            distances[key] = real_drift(reference, current, **settings)  # type: ignore[arg-type]
        return distances[key]

    real, real_drift = results.rows_of, streammetrics.drift

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "rows_of", rows_of)
        patch.setattr(streammetrics, "drift", drift)
        yield
