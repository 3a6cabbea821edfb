"""Which groupings follow from which, and the state of a coarser one from that of a finer."""

from __future__ import annotations

import pytest
from streammetrics_consumers.ledger.delta_metadata import (
    Key,
    bases,
    can_stand_for_coarser,
    finest,
    split,
    summed,
)
from streammetrics_consumers.model.generation import Pane

from streammetrics import PerKey, Ratio

PANE = Pane("ctr", 0, None, None)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ([()], {0: ()}),
        ([(), ("a",)], {1: (0,)}),
        ([("a",), ("b",)], {0: (), 1: ()}),
        ([("a", "b"), ("b", "c"), ("b",)], {0: (2,), 1: ()}),
        ([(), ("a",), ("b",), ("a", "b"), ("c",)], {3: (1, 2), 4: (0,)}),
        ([("a", "b", "c"), ("a",), ("a", "b"), ()], {0: (1, 2, 3)}),
        ([(), ("a", "b"), ("c", "d")], {1: (0,), 2: ()}),
    ],
)
def test_each_grouping_follows_from_one_finest_with_the_fewest_names(
    by: list[tuple[str, ...]], expected: dict[int, tuple[int, ...]]
) -> None:
    assert finest(by) == expected
    assert bases(by) == {place: base for base, places in expected.items() for place in places}
    assert sorted([*expected, *bases(by)]) == list(range(len(by)))


def test_names_are_taken_by_their_place_in_the_finer_grouping() -> None:
    by = [("b",), ("c", "a"), ("a", "b", "c")]
    state = PerKey(Ratio(), 4)
    keys = [(2, "a1", "b1", "c1"), (2, "a1", None, "c2"), (2, "a2", "b1", "c1")]
    state.update(keys, numerators=[1, 2, 4])
    wanted: list[dict[Key, list[int]]] = [
        {(0, "b1"): [1, 4], (0, None): [2]},
        {(1, "c1", "a1"): [1], (1, "c2", "a1"): [2], (1, "c1", "a2"): [4]},
    ]
    for place, expected in enumerate(wanted):
        alone = PerKey(Ratio(), 4)
        for key, numerators in expected.items():
            alone.update([key] * len(numerators), numerators=numerators)
        assert summed(state, by, 2, place).to_bytes() == alone.to_bytes()


def test_a_state_stands_for_coarser_ones_if_it_is_one_row_with_all_keys_apart() -> None:
    state = PerKey(Ratio(), 4)
    state.update(["a", "b", "c", "d"], numerators=[1] * 4)
    assert can_stand_for_coarser(list(split(PANE, state)), state)
    assert not can_stand_for_coarser(list(split(PANE, state, 10)), state)
    assert not can_stand_for_coarser(list(split(PANE, state, at_least=2)), state)
    one_range = list(split(PANE, state, at_least=2))[:1]
    assert not can_stand_for_coarser(one_range, state)
    state.update(["e"], numerators=[1])
    assert not can_stand_for_coarser(list(split(PANE, state)), state)
