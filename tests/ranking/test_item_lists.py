"""Lists of item numbers: what is refused, and where it says so."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.errors import InputError
from streammetrics.core.rows import Ragged
from streammetrics.ranking.item_lists import first_of, item_lists


@pytest.mark.parametrize(
    ("lists", "offsets", "where", "rows"),
    [
        ([[0, 1], [2, 9], [9]], None, "lists[1][1]", [1, 2]),
        ([[0, -1]], None, "lists[0][1]", [0]),
        (np.array([[0, 1], [2, 5]]), None, "lists[1][1]", [1]),
        ([0, 1, 2, 5], [0, 1, 1, 4], "lists[2][2]", [2]),
        ([[0, 1], [2, 3, 4, 3], [1, 1]], None, "lists[1][3]", [1, 2]),
        ([[0, 1], [1.5, 2]], None, "lists[1][0]", [1]),
        ([[0, 1], [1, None]], None, "lists[1][1]", [1]),
        ([[0], ["1"], [2.0]], None, "lists[1][0]", [1, 2]),
        ([0, 1, 2.5, 1], [0, 2, 4], "lists[1][0]", [1]),
        ([[0, 1 << 70]], None, "lists[0][1]", [0]),
        (np.ma.masked_equal([[0, 1], [2, 3]], 3), None, "lists[1][1]", [1]),
        ([0, 1], None, "lists", []),
        (np.array([0, 1]), None, "lists", []),
        (np.zeros((1, 1, 1), int), None, "lists", []),
        ("012", None, "lists", []),
        (["012"], None, "lists", []),
        ([[0, 1]], [0, 2], "lists", []),
        ([0, 1], [0, 3], "offsets", []),
        ([0, 1], [1, 2], "offsets", []),
        ([0, 1], [0, "2"], "offsets[1]", []),
        ([0, 1], [0, 2, 1, 2], "offsets[2]", [1]),
    ],
)
def test_an_error_names_the_list_and_the_item_and_has_all_bad_lists(
    lists: object, offsets: object, where: str, rows: list[int]
) -> None:
    with pytest.raises(InputError) as caught:
        item_lists(lists, offsets, 5)  # type: ignore[arg-type]
    assert caught.value.where == where
    assert caught.value.rows.tolist() == rows


def test_an_item_that_comes_again_is_named() -> None:
    with pytest.raises(InputError, match="each item once in a list, got 3 for the second time"):
        item_lists([[3, 4, 3]], None, 5)


def test_many_lists_of_every_length_are_searched_for_items_that_come_again() -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        lists = [rng.permutation(40)[: rng.integers(0, 40)].tolist() for _ in range(60)]
        assert item_lists(lists, None, 40).sizes.tolist() == list(map(len, lists))
        bad = sorted({i for i in rng.integers(0, 60, 3).tolist() if len(lists[i]) > 1})
        for i in bad:
            lists[i][-1] = lists[i][0]
        if bad:
            with pytest.raises(InputError) as caught:
                item_lists(lists, None, 40)
            assert caught.value.rows.tolist() == bad
            assert caught.value.where == f"lists[{bad[0]}][{len(lists[bad[0]]) - 1}]"


def test_no_lists_are_no_rows() -> None:
    for none in ([], np.zeros((0, 3), int), np.array([], object)):
        assert len(item_lists(none, None, 5)) == 0  # type: ignore[arg-type]
    assert len(item_lists([], [0], 5)) == 0
    assert item_lists(np.zeros((3, 0), int), None, 5).sizes.tolist() == [0, 0, 0]


def test_the_first_items_of_each_list_are_kept() -> None:
    lists = Ragged(np.array([5, 6, 7, 8, 9, 1]), np.array([0, 3, 3, 5, 6]))
    cut = first_of(lists, 2)
    assert (cut.values.tolist(), cut.offsets.tolist()) == ([5, 6, 8, 9, 1], [0, 2, 2, 4, 5])
    assert first_of(lists, None) is lists
    assert first_of(lists, 3) is lists
