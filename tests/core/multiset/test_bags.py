from __future__ import annotations

import numpy as np

from streammetrics import MulticlassAUC
from streammetrics.core.multiset.bag import BagsColumn


def column(width: int) -> BagsColumn:
    return MulticlassAUC(3, exact=True)._empty(width).bags


def filled(width: int) -> BagsColumn:
    """Ten times its slot and its bag as a score, in every bag."""
    found = column(width)
    slots, bags = np.divmod(np.arange(3 * width), 3)
    labels = (slots % 2).astype(np.uint8)
    found.add(10.0 * slots + bags, labels, bags, slots)
    return found


def scores(held: BagsColumn, slot: int) -> list[list[float]]:
    taken = held.take(np.array([slot]))
    return [taken.bag(number).points()()[0].tolist() for number in range(3)]


def test_each_state_has_its_own_bags() -> None:
    held = filled(4)
    assert [scores(held, slot) for slot in (0, 3)] == [[[0], [1], [2]], [[30], [31], [32]]]
    assert held.total_count == 12


def test_states_are_taken_merged_and_appended_with_all_of_their_bags() -> None:
    held = filled(3)
    held.widen(5)
    assert scores(held, 4) == [[], [], []]
    held.merge(filled(2).take(np.array([1, 0])), np.array([4, 4]))
    assert scores(held, 4) == [[0, 10], [1, 11], [2, 12]]
    assert scores(held, 2) == [[20], [21], [22]]


def test_without_slots_rows_go_to_the_first_state() -> None:
    held = column(2)
    held.add(np.array([5.0, 6.0]), np.array([0, 1], np.uint8), np.array([2, 0]))
    assert scores(held, 0) == [[6.0], [], [5.0]]
    assert scores(held, 1) == [[], [], []]


def test_rows_have_units_in_the_bag_that_they_go_to() -> None:
    held = column(2)
    values, labels = np.array([5.0, 6.0, 5.0]), np.array([0, 1, 0], np.uint8)
    held.add(values, labels, np.array([2, 0, 2]), np.array([1, 1, 1]), np.array([3, 4, 1]))
    taken = held.take(np.array([1]))
    assert [taken.bag(number).units for number in range(3)] == [4, 0, 4]
    assert [taken.bag(number).total for number in range(3)] == [1, 0, 2]
    assert held.total_count == 8
