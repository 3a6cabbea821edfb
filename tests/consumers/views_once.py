"""For tests that read the same states again and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from streammetrics_consumers.query.slices import Computed
from streammetrics_consumers.query.state_cells import CellForm, StateCell

import streammetrics
from streammetrics import Accumulator


@contextmanager
def views_computed_once() -> Iterator[None]:
    """What states of the same bytes show, and their drift, is computed once: it costs more than all
    reads of them, and is tested in test_answers and test_drifts."""
    cells: dict[object, StateCell] = {}

    def cell(form: CellForm, computed: Computed) -> StateCell:
        key = computed.digest, computed.drift, form.name, form.more, form.users
        if key not in cells:
            cells[key] = real(form, computed)
        return cells[key]

    distances: dict[object, object] = {}

    def drift(reference: Accumulator, current: Accumulator, **settings: object) -> object:
        key = reference.digest(), current.digest(), *sorted(settings.items())
        if key not in distances:
            distances[key] = real_drift(reference, current, **settings)  # type: ignore[arg-type]
        return distances[key]

    real, real_drift = CellForm.cell, streammetrics.drift

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CellForm, "cell", cell)
        patch.setattr(streammetrics, "drift", drift)
        yield
