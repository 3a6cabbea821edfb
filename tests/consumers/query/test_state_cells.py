"""The cells of the states of an answer."""

from __future__ import annotations

from weakref import ref

from streammetrics_consumers.query.rows import Window
from streammetrics_consumers.query.slices import KeyedState
from streammetrics_consumers.query.state_cells import CellCache, CellForm

from streammetrics import PerKey, Ratio


class Number(float):
    """A value that tells whether its cell is still held."""


def test_a_cache_of_no_cells_holds_none_of_those_that_it_returned() -> None:
    states = PerKey(Ratio())
    states.update([(0, i) for i in range(20)], numerators=[i % 3 for i in range(20)])
    state = KeyedState(Window(None, None, "total"), ("item",), "ctr", states, None)
    form = CellForm("none", lambda result, names: ({"ratio": Number(0.5)}, ("ratio",)))
    refs: list[ref[object]] = []
    for _, cell in CellCache(0).cells(state, state.slices(), form, with_other=True):
        [(row, _)] = cell.values
        refs.append(ref(row.value))
        del cell, row
        assert sum(value() is not None for value in refs) <= 2  # the last two cells
    assert len(refs) == 20
