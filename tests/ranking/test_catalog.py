"""CatalogMetrics: its views on lists whose values are known, and where they are undefined."""

from __future__ import annotations

import pytest

from streammetrics import CatalogMetrics, StateError
from streammetrics.results.list_results import CatalogShare


def share(*lists: list[int], n_items: int = 10, k: int = 3) -> CatalogShare:
    metric = CatalogMetrics(n_items, k)
    metric.update(lists)
    return metric.compute()


def test_lists_that_are_all_the_same_have_no_novelty_and_no_personalization() -> None:
    found = share(*[[1, 2, 3]] * 7)
    assert (found.coverage, found.popularity) == (0.3, 1)
    assert (found.novelty, found.personalization) == (0, 0)


def test_lists_without_a_common_item_are_as_novel_and_personal_as_can_be() -> None:
    found = share([0, 1], [2, 3], [4, 5], [6, 7], k=2)
    assert (found.coverage, found.popularity) == (0.8, 0.25)
    assert (found.novelty, found.personalization) == (2, 1)


def test_means_are_over_what_is_shown_and_not_over_items() -> None:
    # Item 0 is in both lists, 1 and 2 in one each: of four places two have a share of 1.
    found = share([0, 1], [0, 2], k=2)
    assert found.popularity == 0.75
    assert found.novelty == 0.5
    assert found.personalization == 0.5
    assert (found.shown, found.items_shown) == (4, 3)


def test_in_a_distance_the_free_places_of_a_short_list_agree_with_nothing() -> None:
    found = share([0, 1, 2, 3], [0], k=4)
    assert found.personalization == 0.75
    assert (found.lists_kept, found.lists_under_k, found.lists_empty) == (2, 1, 0)
    assert share([0], [0], k=4).personalization == 0.75
    assert share([0], [], k=4).lists_empty == 1


def test_counts_past_2_to_the_53_are_not_rounded() -> None:
    metric = CatalogMetrics(3, 1)
    metric.update([[0]])
    for _ in range(54):
        metric.merge(metric.copy())
    metric.update([[1]])
    found = metric.compute()
    assert found.shown == 2**54 + 1
    # 2 · 2**54 of (2**54 + 1) · 2**54 ordered pairs are different.
    assert found.personalization == 2.0**-53
    assert 0 < found.novelty < 1e-14


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
