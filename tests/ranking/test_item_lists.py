"""Lists of item numbers: what is refused, and what CatalogMetrics says of them."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import CatalogMetrics, StateError
from streammetrics.core.errors import InputError
from streammetrics.core.rows import Ragged
from streammetrics.ranking.item_lists import first_of, item_lists
from streammetrics.results.list_results import CatalogShare


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


def test_lists_that_are_arrays_are_read_one_by_one() -> None:
    none, signed, unsigned = np.array([]), np.array([1, 2]), np.array([3, 0], np.uint64)
    for arrays in ([none], [none, signed], [unsigned, signed, none] * 20, [signed, [4], unsigned]):
        lists = item_lists(arrays, None, 5)
        assert lists.values.tolist() == [int(item) for array in arrays for item in array]
        assert lists.sizes.tolist() == list(map(len, arrays))
    with pytest.raises(InputError, match=r"lists\[1\]\[0\]: .* got 1.0 of object") as caught:
        item_lists([signed, np.array([1.0]), unsigned], None, 5)
    assert caught.value.rows.tolist() == [1]


def test_an_item_that_comes_again_is_named() -> None:
    with pytest.raises(InputError, match="each item once in a list, got 3 twice"):
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
    assert item_lists([3, 1, 2], None, 5, [2, 0, 1]).offsets.tolist() == [0, 2, 2, 3]
    assert item_lists(np.zeros((3, 0), int), None, 5).sizes.tolist() == [0, 0, 0]


def test_the_first_items_of_each_list_are_kept() -> None:
    lists = Ragged(np.array([5, 6, 7, 8, 9, 1]), np.array([0, 3, 3, 5, 6]))
    cut = first_of(lists, 2)
    assert (cut.values.tolist(), cut.offsets.tolist()) == ([5, 6, 8, 9, 1], [0, 2, 2, 4, 5])
    assert first_of(lists, None) is lists
    assert first_of(lists, 3) is lists


# -- the catalog: views of lists whose values are known, and their limits


def share(*lists: list[int], n_items: int = 10, k: int = 3) -> CatalogShare:
    metric = CatalogMetrics(n_items, k)
    metric.update(lists)
    return metric.compute()


def test_lists_that_are_all_the_same_have_no_novelty_and_no_personalization() -> None:
    result = share(*[[1, 2, 3]] * 7)
    assert (result.coverage, result.popularity) == (0.3, 1)
    assert (result.novelty, result.personalization) == (0, 0)


def test_lists_without_a_common_item_are_as_novel_and_personal_as_can_be() -> None:
    result = share([0, 1], [2, 3], [4, 5], [6, 7], k=2)
    assert (result.coverage, result.popularity) == (0.8, 0.25)
    assert (result.novelty, result.personalization) == (2, 1)


def test_means_are_over_what_is_shown_and_not_over_items() -> None:
    # Item 0 is in both lists, 1 and 2 in one each: of four places two have a share of 1.
    result = share([0, 1], [0, 2], k=2)
    assert result.popularity == 0.75
    assert result.novelty == 0.5
    assert result.personalization == 0.5
    assert (result.shown, result.items_shown) == (4, 3)


def test_in_a_distance_the_free_places_of_a_short_list_agree_with_nothing() -> None:
    result = share([0, 1, 2, 3], [0], k=4)
    assert result.personalization == 0.75
    assert (result.lists_kept, result.lists_under_k, result.lists_empty) == (2, 1, 0)
    assert share([0], [0], k=4).personalization == 0.75
    assert share([0], [], k=4).lists_empty == 1


def test_counts_past_2_to_the_53_are_not_rounded() -> None:
    metric = CatalogMetrics(3, 1)
    metric.update([[0]])
    for _ in range(54):
        metric.merge(metric.copy())
    metric.update([[1]])
    result = metric.compute()
    assert result.shown == 2**54 + 1
    # 2 · 2**54 of (2**54 + 1) · 2**54 ordered pairs are different.
    assert result.personalization == 2.0**-53
    assert 0 < result.novelty < 1e-14


def test_all_places_together_stay_below_2_to_the_63() -> None:
    metric = CatalogMetrics(3, 2)
    metric.update([[0, 1]])
    for _ in range(61):
        metric.merge(metric.copy())
    before = metric.digest()
    with pytest.raises(StateError, match="at most"):
        metric.merge(metric.copy())
    assert metric.digest() == before


def test_a_catalog_may_be_far_larger_than_memory() -> None:
    metric = CatalogMetrics(1 << 40, 2)
    metric.update([[0, (1 << 40) - 1]])
    assert metric.compute().items_shown == 2
    assert metric.nbytes < 10_000
    assert len(metric.to_bytes()) < 200
