"""Sums of all states but one, each of which is what all others were fed with."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streammetrics.combine.user_groups_result as module
from streammetrics import Calibration, HistogramAUC, Ratio
from streammetrics.combine.user_groups_result import leave_one_out, summed
from streammetrics.core.accumulator import Accumulator
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import most_are_slow


def in_slots(slots: list[int], width: int) -> Accumulator:
    """Row i, numerator i of 10, in slots[i]."""
    states = Ratio()._empty(width)
    rows = Ratio().check(np.arange(len(slots)) / 10)
    states._feed(rows, np.array(slots, np.intp))
    return states


def of_rows(rows: list[int]) -> object:
    state = Ratio()
    state.update(np.array(rows) / 10)
    return state.compute()


# Sums one after the other; a few side by side; all of them, however many.
HELD = [0, 2000, 1 << 60]


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 64])
def test_each_result_is_that_of_the_rows_of_all_other_slots(
    width: int, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SIDE_BY_SIDE", held)
    slots = (np.random.default_rng(width).permutation(3 * width) % width).tolist()
    found = leave_one_out(in_slots(slots, width), [3] * width)
    assert list(found) == [
        of_rows([row for row, slot in enumerate(slots) if slot != out]) for out in range(width)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("case", list(most_are_slow(CASES)))
def test_each_state_without_one_is_the_same_however_many_are_held(case: Case[Any]) -> None:
    """All parts of all metrics: the bytes are those of the other states merged one by one."""

    @settings(max_examples=3, deadline=None, database=None)
    @given(st.lists(case.row, max_size=12), st.integers(1, 7), st.randoms())
    def holds(rows: list[Any], width: int, random: Random) -> None:
        slots = [random.randrange(width) for _ in rows]
        states = case.empty._empty(width)
        of_rows = [case.fed([row]) for row in rows]
        for one, slot in zip(of_rows, slots, strict=True):
            states._merge_slots(one, np.array([slot]))
        expected = []
        for out in range(width):
            state = case.empty.empty()
            state.merge(one for one, slot in zip(of_rows, slots, strict=True) if slot != out)
            expected.append(state.to_bytes())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(case.empty), "compute", Accumulator.to_bytes)
            for held in (0, 3 * states.nbytes, 1 << 60):
                patch.setattr(module, "SIDE_BY_SIDE", held)
                assert list(leave_one_out(states, [1] * width)) == expected

    holds()


def test_a_slot_without_weight_is_not_left_out_and_adds_nothing() -> None:
    slots = [0, 3, 3, 5]
    found = leave_one_out(in_slots(slots, 7), [1, 0, 0, 2, 0, 1, 0])
    assert [one is None for one in found] == [False, True, True, False, True, False, True]
    assert found[3] == of_rows([0, 3])
    assert leave_one_out(in_slots([], 3), [0, 0, 0]) == (None, None, None)


def test_one_slot_alone_leaves_nothing() -> None:
    [found] = leave_one_out(in_slots([0, 0], 1), [2])
    assert found == Ratio().compute()


def test_the_sum_is_of_all_slots_and_the_states_stay_as_they_are() -> None:
    states = in_slots([0, 2, 2, 1], 3)
    before = states._take(np.arange(3))
    assert summed(states).compute() == of_rows([0, 1, 2, 3])
    leave_one_out(states, [1, 1, 2])
    after = states._take(np.arange(3))
    assert [after._take(np.array([i])) == before._take(np.array([i])) for i in range(3)] == [
        True
    ] * 3


@pytest.mark.parametrize(("held", "most"), [(0, 1), (1 << 60, 64)])
@pytest.mark.parametrize("metric", [HistogramAUC(), Calibration()], ids=repr)
def test_a_state_is_added_log2_times_and_not_once_for_each_other_one(
    metric: Accumulator, held: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SIDE_BY_SIDE", held)
    width, added, sums = 64, [], []
    rows = metric.check([0, 1] * width, np.arange(2 * width) / 200)
    states = metric._empty(width)
    states._feed(rows, np.arange(2 * width) % width)
    merge = type(metric)._merge_slots

    def counting(self: Accumulator, other: Accumulator, to: np.typing.NDArray[np.intp]) -> None:
        added.append(len(to))
        sums.append(self._width)
        merge(self, other, to)

    monkeypatch.setattr(type(metric), "_merge_slots", counting)
    leave_one_out(states, [2] * width)
    # To know how large a sum is, all of them are added once more.
    assert sum(added) == width * (7 if held else 6)
    assert len(added) == (7 if held else 126)
    assert max(sums) == most
