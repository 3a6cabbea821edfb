"""Declarations: final classes with one schema each, settings fixed for life, state not rebound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from streammetrics import MulticlassConfusion
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import SettingsError
from streammetrics.core.inputs import Inputs, Integers, Real
from streammetrics.core.parts.counts import Counts, CountsColumn
from streammetrics.core.parts.exact_sum import ExactSum
from streammetrics.core.parts.part import Slots
from tests.cases import CASES
from tests.toys import Tally


def fed(*cells: int) -> Tally:
    state = Tally()
    state.update(cells)
    return state


def test_a_metric_is_final() -> None:
    with pytest.raises(TypeError, match="a metric is final; share kernels and results"):

        class Finer(Tally):
            pass

    with pytest.raises(TypeError, match="a metric is final"):

        class FinerStill(Tally, schema="toy-finer/1"):
            pass


def test_a_schema_names_one_metric() -> None:
    with pytest.raises(SettingsError, match=r"'toy-tally/1', that of tests\.toys\.Tally; choose"):

        class Other(Accumulator, schema="toy-tally/1"):
            def update(self) -> None: ...

    assert Tally.from_bytes(fed(1).to_bytes()) == fed(1)


def cell_of_a_notebook() -> type[Accumulator]:
    """The same class statement, run once more."""

    class Mine(Accumulator, schema="toy-notebook/1"):
        inputs = Inputs(cells=Integers())
        counts = Counts(3)

        def _accumulate(self, batch: Batch, slots: Any) -> None:
            self.counts.add(batch.cells, slots)

        def compute(self) -> int:
            self._flush()
            return int(self.counts.dense().sum())

    return Mine


def test_a_metric_that_is_defined_again_reads_its_own_bytes_and_those_of_before() -> None:
    first = cell_of_a_notebook()()
    first.update([1, 2])
    assert type(first).from_bytes(first.to_bytes()) == first
    second = cell_of_a_notebook()
    back = second.from_bytes(first.to_bytes())
    assert type(back) is second
    assert back.compute() == 2


def test_an_abstract_metric_cannot_be_made() -> None:
    class Half(Accumulator, schema="toy-half/1"):
        def update(self) -> None: ...

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_settings_are_fixed_for_life() -> None:
    state = Tally(size=5)
    with pytest.raises(AttributeError, match=r"Tally\.size cannot be set: it is a setting"):
        state.size = 6
    with pytest.raises(AttributeError, match=r"Tally\.size cannot be deleted"):
        del state.size
    with pytest.raises(AttributeError):
        state.__init__(7)  # type: ignore[misc]
    assert state.size == 5


def test_state_cannot_be_rebound() -> None:
    state = Tally()
    assert isinstance(Tally.counts, Counts) and isinstance(state.counts, CountsColumn)
    with pytest.raises(AttributeError, match=r"Tally\.counts cannot be set: it is state"):
        state.counts = Tally().counts  # type: ignore[assignment]
    with pytest.raises(AttributeError, match=r"Tally\.threshold cannot be set$"):
        state.threshold = 0.5  # type: ignore[attr-defined]


def test_settings_are_given_by_name_or_in_order_each_once() -> None:
    assert Tally(note="x", size=3).settings() == {"size": 3, "note": "x"}
    make: Any = Tally
    for call, message in (
        (lambda: make(sizes=3), "Tally: expected settings among size, note, got 'sizes'; did"),
        (lambda: make(1, "x", 2), "settings among size, note, got 3 values; pass each"),
        (lambda: make(1, size=2), r"got size twice; pass each setting by .* names, once"),
        (lambda: make(size=0), "Tally.size"),
        (
            lambda: MulticlassConfusion(),
            "MulticlassConfusion: .* a value for n_classes, .* none; add n_classes=",
        ),  # type: ignore[call-arg]
    ):
        with pytest.raises(SettingsError, match=message):
            call()


def test_repr_is_the_call_that_makes_an_equal_empty_state() -> None:
    state = Tally(size=7, note="it's")
    assert repr(state) == 'Tally(size=7, note="it\'s")'
    state.update([6])
    assert repr(state) == 'Tally(size=7, note="it\'s"): 1 row'
    assert eval(repr(state).partition(":")[0]) == state.empty()


def test_a_state_has_no_hash_because_it_changes() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Tally())


def test_widths_are_of_arguments_that_take_tables() -> None:
    assert Tally().widths() == {}
    for case in CASES:
        metric = case.empty
        assert set(metric.widths()) <= set(metric.arguments())
        assert all(widths[-1] is not None for widths in metric.widths().values())


def test_a_check_of_a_metric_itself_decides_what_its_update_counts() -> None:
    class Sums(Accumulator):
        inputs = Inputs(values=Real())
        total = ExactSum()

        def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
            self.total.add(batch.values, slots)

        def compute(self) -> float:
            self._flush()
            return self.total.value()

    class Doubled(Sums, schema="test-doubled-by-its-check/1"):
        def check(self, values: ArrayLike) -> Batch:
            return super().check(2 * np.asarray(values))

    doubled = Doubled()
    for values in ([1.0, 2.0], np.array([4.0]), np.array([8.0])):
        doubled.update(values)
    assert doubled.compute() == 30
