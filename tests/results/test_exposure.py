"""Exposures of items: worked by hand, other examinations when reading, users, and refusals."""

from __future__ import annotations

from fractions import Fraction
from math import isnan, log2

import numpy as np
import pytest

from streammetrics import InputError, ItemExposure, SettingsError, UserGroups
from streammetrics.results import counts_of
from streammetrics.results.exposure import Exposures


def result(examination: object = (1, 0.5)) -> Exposures:
    metric = ItemExposure(n_items=4, k=2, examination=examination)  # type: ignore[arg-type]
    metric.update([[0, 1], [0, 2, 3], [], [1]])
    return metric.compute()


def test_exposure_is_the_sum_of_the_examination_of_ranks_and_gini_its_inequality() -> None:
    exposures = result()
    assert exposures.exposure().tolist() == [2.0, 1.5, 0.5, 0.0]
    assert exposures.gini == 0.4375  # (-3*0 - 0.5 + 1.5 + 3*2) / (4*4)
    assert (exposures.share([0]), exposures.share([2, 3, 3]), exposures.share([])) == (
        0.5,
        0.125,
        0.0,
    )
    assert (exposures.shown, exposures.items_shown, exposures.lists_under_k, exposures.rows) == (
        5,
        3,
        1,
        4,
    )


def test_the_state_has_the_ranks_so_that_each_view_may_take_another_examination() -> None:
    exposures = result()
    for examination in ("log", "reciprocal", "uniform", (1, 0.3), (Fraction(1), Fraction(1, 7), 1)):
        expected = result(examination)
        assert exposures.gini_of(examination) == expected.gini
        assert exposures.exposure(examination).tolist() == expected.exposure().tolist()
        assert exposures.share([1], examination) == expected.share([1])
    second = 1 / log2(3)
    assert exposures.exposure("log").tolist() == pytest.approx(
        [2, 1 + second, second, 0], rel=1e-15
    )
    assert result((1, 0.1)).exposure()[1] == 1.1  # decimals as written


def test_a_catalog_that_is_shown_evenly_has_gini_0_and_one_item_has_all_but_1_over_n() -> None:
    even, uneven = ItemExposure(3, 1), ItemExposure(10, 2)
    even.update([[0], [1], [2]])
    uneven.update([[7], [7]])
    assert (even.compute().gini, uneven.compute().gini) == (0.0, 0.9)
    assert isnan(ItemExposure(3, 1).compute().gini) and isnan(
        ItemExposure(3, 1).compute().share([0])
    )


def test_gini_has_an_interval_over_users() -> None:
    rng = np.random.default_rng(3)
    metric = UserGroups(ItemExposure(20, 3))
    lists = [rng.choice(20, 3, replace=False).tolist() for _ in range(400)]
    metric.update(groups=list(range(400)), lists=lists)
    interval = metric.confidence_interval()
    assert interval.defined and interval.lower < interval.estimate < interval.upper
    assert not ItemExposure(3, 1).compute().interval().defined


@pytest.mark.parametrize("examination", ["linear", (1,), (1, 0), (1, 2.0), 3, ("a", "b")])
def test_other_examinations_and_items_are_refused(examination: object) -> None:
    with pytest.raises(InputError, match="examination"):
        result().exposure(examination)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"ItemExposure\.examination"):
        result(examination)


@pytest.mark.parametrize("item", [4, -1, 0.5, "0", True])
def test_items_beyond_the_catalog_are_refused(item: object) -> None:
    with pytest.raises(InputError, match="item numbers from 0 to 3"):
        result().share([item])  # type: ignore[list-item]


@pytest.mark.parametrize("items", ["12", None, 0.5, True, b"1"])
def test_items_that_are_no_numbers_are_refused(items: object) -> None:
    with pytest.raises(InputError, match=r"item numbers from 0 to 3, got .*; pass a list"):
        result().share(items)  # type: ignore[arg-type]


def test_the_share_of_one_item_is_a_view() -> None:
    exposures = result()
    assert exposures.share(1) == exposures.share([1]) == exposures.share(np.int64(1)) == 0.375  # type: ignore[arg-type]
    assert exposures.interval("share(1)").estimate == 0.375
    with pytest.raises(InputError, match="item numbers from 0 to 3, got 4"):
        exposures.share(4)


def test_a_probability_that_no_state_can_hold_is_refused() -> None:
    assert result((1, 1e-99)).share([2, 3]) < 1e-98
    with pytest.raises(SettingsError, match="examination: expected probabilities of at most 100"):
        result((1, 1e-100))


def test_settings_are_no_counts() -> None:
    assert {"n_items", "k"}.isdisjoint(counts_of(result()))
