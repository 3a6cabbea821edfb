"""PerKey: each key's state is that of the plain metric fed with its rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from streammetrics import (
    InputError,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import StateError
from streammetrics.core.rows import Key
from tests.oracles.maps import rank
from tests.toys import Tally


def tally(keys: Sequence[Key], limit: int = 3) -> PerKey:
    """Each key counts one row, whose cell is its place in the list."""
    state = PerKey(Tally(64), limit)
    state.update(keys, cells=range(len(keys)) if len(keys) else [])
    return state


def test_a_key_that_never_came_has_an_empty_state() -> None:
    state = tally(["a"])
    assert state.state("b") == Tally(64)
    state.state("b").update([1])
    assert state.keys() == ("a",)
    with pytest.raises(KeyError):
        state.compute()["b"]


def test_one_and_true_and_the_text_1_are_not_one_key() -> None:
    state = PerKey(Tally(), 10)
    state.update([1, "1", (1,)], cells=[1, 2, 3])
    assert len(state.keys()) == 3
    with pytest.raises(InputError):
        state.update([True], cells=[1])
    with pytest.raises(InputError, match="expected 2 values, one for each row"):
        state.update(["a"], cells=[1, 2])


def test_no_rows_are_lost_to_the_limit() -> None:
    state = tally([f"k{i}" for i in range(64)], limit=5)
    overflow = state.overflow_state()
    assert overflow is not None
    total = overflow.copy()
    total.merge(map(state.state, state.keys()))
    assert total.compute().cells == (1,) * 64  # type: ignore[attr-defined]


def test_keys_that_cannot_be_kept_take_no_place() -> None:
    keys = sorted((f"k{i}" for i in range(100)), key=rank)
    state = tally(keys[:5], limit=4)
    assert len(state.keys()) == 4
    width = state.states.child._width
    state.update(keys[5:6], cells=[1])
    state._flush()
    assert state.states.child._width == width == 5


def test_a_state_far_past_its_limit_stays_small() -> None:
    state = PerKey(Ratio(), 100)
    sizes = []
    for start in range(0, 20_000, 1_000):
        state.update(np.arange(start, start + 1_000), numerators=np.ones(1_000))
        state.to_bytes()
        sizes.append(state.nbytes)
    assert sizes[-1] <= sizes[0] * 2


@pytest.mark.parametrize(("n", "limit"), [(1, 3), (2, 100), (7, 3)])
def test_pieces_by_hash_merge_back_into_the_whole(n: int, limit: int) -> None:
    state = tally([f"k{i}" for i in range(40)], limit)
    pieces = state.split(n)
    assert len(pieces) == n
    found = list(itertools.chain.from_iterable(piece.keys() for piece in pieces))
    assert sorted(found) == sorted(state.keys())
    for order in (pieces, pieces[::-1]):
        back = state.empty()
        back.merge(order)
        assert back == state
        back.merge([])
    stored = [PerKey.from_bytes(piece.to_bytes()) for piece in pieces]
    assert sum(stored[1:], start=stored[0]) == state


def test_a_projection_is_the_state_of_one_metric_alone() -> None:
    both = PerKey(Panel({"t": Tally(), "r": Ratio()}, inputs={"r": {"numerators": "cells"}}), 2)
    alone, ratios = PerKey(Tally(), 2), PerKey(Ratio(), 2)
    for keys in (["a", "b"], ["c", "a"], ["d"]):
        cells = [1, 2][: len(keys)]
        both.update(keys, cells=cells)
        alone.update(keys, cells=cells)
        ratios.update(keys, numerators=cells)
    assert both.project("t") == alone
    assert both.project("r") == ratios
    projected = both.project("t")
    before = both.digest()
    projected.update(["a"], cells=[3])
    assert both.digest() == before
    with pytest.raises(SettingsError, match="a PerKey of Tally"):
        alone.project("t")


def test_extracted_states_are_independent() -> None:
    state = tally(["a", "b", "c", "d", "e"])
    before = state.digest()
    overflow = state.overflow_state()
    assert overflow is not None
    for part in (state.state("a"), overflow, *state.split(2), state.copy()):
        if isinstance(part, PerKey):
            part.update(["a"], cells=[1])
        else:
            part.update([1])
    assert state.digest() == before


def test_the_limit_of_mass_is_that_of_all_keys_together() -> None:
    state = PerKey(Tally(), 10)
    state.update(["a"], cells=[1], weights=[2**62])
    state.update(["b"], cells=[1], weights=[2**62 - 1])
    before = state.digest()
    with pytest.raises(StateError):
        state.update(["c"], cells=[1])
    with pytest.raises(StateError):
        state.merge(one_more())
    assert state.digest() == before
    extracted: Accumulator = state.state("a")
    extracted.update([1], weights=[2**62 - 1])
    assert extracted.compute().rows == 2**63 - 1  # type: ignore[attr-defined]


def one_more() -> PerKey:
    state = PerKey(Tally(), 10)
    state.update(["c"], cells=[1])
    return state
