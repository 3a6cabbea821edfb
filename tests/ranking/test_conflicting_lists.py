"""An item that is in a list of `GroupedScores` twice: refused, or the list leaves the measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streammetrics import MRR, DictionaryColumn, GroupedScores, InputError, P, load


@pytest.mark.parametrize("item_ids", ["integer", "hashed"])
def test_an_item_twice_in_a_list_of_one_update_is_refused(item_ids: str) -> None:
    items: list[Any] = [5, 6, 5, 5, 7, 5]
    if item_ids == "hashed":
        items = [f"i{item}" for item in items]
    metric = GroupedScores([MRR], item_ids=item_ids)
    given = {"labels": [0, 1, 0, 1, 0, 0], "scores": [0.5] * 6, "groups": [1, 1, 2, 1, 1, 1]}
    with pytest.raises(InputError, match=r"items\[3\].*item '?i?5'? again in list 1;") as caught:
        metric.update(**given, items=items)
    assert caught.value.rows.tolist() == [3, 5]
    assert metric == metric.empty()
    once = [0, 1, 2, 4]
    metric.update(
        **{name: [column[i] for i in once] for name, column in given.items()},
        items=[items[i] for i in once],
    )
    assert metric.compute().conflicting == 0


def test_the_refusal_names_ids_of_any_column() -> None:
    metric = GroupedScores([MRR], ids="exact", item_ids="hashed")
    dictionary_column = DictionaryColumn(np.array([1, 0, 1]), ("bo", "ann"))
    with pytest.raises(InputError, match="item 'ann' again in list 'ann'"):
        metric.update([0, 1, 0], [0.1, 0.2, 0.3], groups=dictionary_column, items=dictionary_column)


@pytest.mark.parametrize("ids", ["integer", "hashed", "exact"])
def test_a_double_that_a_merge_or_a_later_update_reveals_leaves_the_measures(ids: str) -> None:
    first, second, third = (0, 1, 2) if ids == "integer" else ("", "b", "c")
    metric = GroupedScores([MRR], ids=ids)
    metric.update([1, 0, 1], [0.5, 0.9, 0.1], groups=[first, second, third], items=[8, 8, 8])
    metric.update([1], [0.2], groups=[second], items=[9])
    sound = metric.compute()
    assert (sound["MRR"], sound.lists_kept, sound.conflicting) == ((1 + 1 / 2 + 1) / 3, 3, 0)
    other = GroupedScores([MRR], ids=ids)
    other.update([0], [0.9], groups=[first], items=[8])
    later = metric.copy()
    later.update([0], [0.9], groups=[first], items=[8])
    merged = metric + other
    assert merged == later == other + metric
    result = merged.compute()
    assert (result["MRR"], result.lists_kept, result.conflicting) == (0.75, 2, 1)
    assert result.rows == 5
    assert load(merged.to_bytes()).compute() == result


def test_with_conflict_nothing_is_refused_and_no_cut_into_updates_shows() -> None:
    rows = {
        "labels": [1, 1, 1, 0, 1],
        "scores": [0.9, 0.8, 0.7, 0.6, 0.5],
        "groups": [1, 1, 2, 2, 1],
        "items": [4, 5, 4, 5, 4],
    }
    states = []
    for cuts in ([5], [1, 4], [4, 1], [1] * 5):
        state, start = GroupedScores([MRR], duplicates="conflict"), 0
        for size in cuts:
            end = start + size
            state.update(**{name: column[start:end] for name, column in rows.items()})
            start = end
        states.append(state)
    assert all(state == states[0] for state in states)
    result = states[0].compute()
    assert (result.conflicting, result.lists_kept, result["MRR"]) == (1, 1, 1.0)


def test_equal_items_of_different_lists_and_equal_rows_without_items_are_no_conflict() -> None:
    metric = GroupedScores([P @ 2])
    metric.update([1, 1], [0.5, 0.5], groups=[1, 2], items=[3, 3])
    metric.update([1, 1], [0.5, 0.5], groups=[4, 4])  # the same row twice, and no items
    result = metric.compute()
    assert (result.conflicting, result.lists_kept, result["P@2"]) == (0, 3, 2 / 3)


@pytest.mark.parametrize("ids", ["integer", "hashed", "exact"])
def test_the_list_that_leaves_is_the_one_with_the_double(ids: str) -> None:
    plain, doubled, sound = (5, 6, 7) if ids == "integer" else ("e", "f", "g")
    metric = GroupedScores([MRR], ids=ids, duplicates="conflict")
    metric.update([0, 1], [0.9, 0.5], groups=[plain, plain])  # known to one of the two bags alone
    metric.update([1, 0], [0.9, 0.5], groups=[doubled, doubled], items=[1, 1])
    metric.update([0, 0, 1], [0.9, 0.5, 0.4], groups=[sound] * 3, items=[1, 2, 3])
    result = metric.compute()
    assert (result["MRR"], result.conflicting) == (5 / 12, 1)


def test_items_that_no_double_tells_apart_are_two_items() -> None:
    metric = GroupedScores([MRR], duplicates="conflict")
    metric.update([1, 0], [0.9, 0.5], groups=[1, 1], items=[2**53, 2**53 + 1])
    assert metric.compute().conflicting == 0


def test_ids_that_mixing_makes_equal_are_looked_at_as_they_are() -> None:
    golden, silver = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
    # list * golden + item * silver is 0 for both rows, modulo 2**64.
    item = (-golden * pow(silver, -1, 1 << 64)) % (1 << 64)
    item -= (item >= 1 << 63) << 64
    metric = GroupedScores([MRR])
    metric.update([0, 1], [0.1, 0.2], groups=[0, 1], items=[0, item])
    assert metric.compute().lists_kept == 1
