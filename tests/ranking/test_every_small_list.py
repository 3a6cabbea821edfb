"""Every measure against brute force over all orders, for every multiset of up to 6 items.

Rational measures must be the correctly rounded rational, for each list and for the mean of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import nan
from typing import Any

import numpy as np
import pytest

from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.ranking import CG, HR, MRR, NDCG, Bpref, Measure, RankingMetrics
from streammetrics.ranking.id_lists import id_lists
from streammetrics.ranking.list_values import measured
from streammetrics.ranking.lists import graded_lists
from tests.oracles.measure_table import Truth, differences, truths
from tests.oracles.ranking import UNJUDGED, AllOrders, Grades, small_lists

TRUTHS = truths((1, 2, 3, 10, None))
LEVELS = (-1.5, 0.0, 0.1)  # what the three scores of a small list stand for
RULES = pytest.mark.parametrize("ties", ["expected", "worst", "best"])


@cache
def every_list(grades: Grades = (0, 1, 2), most: int = 6) -> AllOrders:
    return AllOrders(small_lists(3, grades, most), ())


def in_one_order(orders: Sequence[Grades], unseen: Grades = ()) -> AllOrders:
    return AllOrders([[(-i, grade) for i, grade in enumerate(order)] for order in orders], unseen)


def columns(lists: AllOrders) -> dict[str, Any]:
    """All lists as the columns of one update."""
    items = [item for entries in lists.lists for item in entries]
    arrays: dict[str, Any] = {
        "labels": np.array([max(grade, 0) for _, grade in items]),
        "scores": np.array([LEVELS[score] for score, _ in items]),
        "offsets": np.cumsum([0, *map(len, lists.lists)]),
    }
    if any(grade == UNJUDGED for _, grade in items):
        arrays["judged"] = np.array([grade != UNJUDGED for _, grade in items])
    return arrays


def as_lists(lists: AllOrders) -> Lists:
    arrays = columns(lists)
    return graded_lists(
        *(arrays["labels"], arrays["scores"], arrays["offsets"], None, arrays.get("judged")),
        graded_from=2,
    )


def values_of(lists: Lists, chosen: Sequence[Truth], ties: str) -> dict[Measure, list[float]]:
    """The value of each list, of which the mean is made."""
    values_by_measure: dict[Measure, list[float]] = {truth.measure: [] for truth in chosen}
    for _, _, several in measured(lists, list(values_by_measure), ties):
        for measure, (values, remainders, weights) in zip(values_by_measure, several, strict=True):
            of_lists = values.tolist()
            if weights is not None and remainders is not None:  # a ratio of sums, of one list
                parts = zip(of_lists, remainders.tolist(), weights.tolist(), strict=True)
                of_lists = [
                    float((Fraction(value) + Fraction(remainder)) / int(weight))
                    if remainder and weight
                    else value / weight  # which rounds once, too
                    if weight
                    else nan
                    for value, remainder, weight in parts
                ]
            values_by_measure[measure] += of_lists
    return values_by_measure


@RULES
def test_every_small_list_has_the_value_of_all_its_orders(ties: str) -> None:
    lists = every_list()
    values_by_measure = values_of(as_lists(lists), TRUTHS, ties)
    assert differences(values_by_measure, lists, TRUTHS, ties) == []


@RULES
@pytest.mark.parametrize("grades", [(UNJUDGED, 0, 1, 2), (UNJUDGED, 0, 1)])
def test_items_that_nobody_judged_are_skipped_by_bpref_alone(grades: Grades, ties: str) -> None:
    lists = every_list(grades, 6 if len(grades) == 3 else 4)
    measures = (NDCG @ 2, MRR, HR @ 2, CG @ 3)
    chosen = [truth for truth in TRUTHS if truth.measure in (Bpref, Bpref(rel=2), *measures)]
    assert len(chosen) == 2 + len(measures)
    values_by_measure = values_of(as_lists(lists), chosen, ties)
    assert differences(values_by_measure, lists, chosen, ties) == []


@RULES
def test_the_mean_of_all_small_lists_is_the_correctly_rounded_one(ties: str) -> None:
    lists = every_list()
    masks = {"skip": np.array(lists.relevant), "zero": np.ones(len(lists.lists), np.bool_)}
    results = {}
    for empty in masks:
        measures = [truth.measure for truth in TRUTHS]
        metric = RankingMetrics(measures, ties, empty, complete_lists=True)
        metric.update(**columns(lists))
        results[empty] = metric.compute()
    for truth in TRUTHS:
        tops, unit = lists.tops(truth.formula, ties)
        bottoms = np.array(truth.denominators(lists))
        for empty, mask in masks.items():
            top, bottom = int(tops[mask].sum()), unit * int(bottoms[mask].sum())
            got = results[empty][truth.measure]
            assert truth.agrees(got, top, bottom), (truth.measure, empty, got, top / bottom)


@pytest.mark.parametrize("unseen", [(0, 0, 2), (), (0,), (1, 1, 0)])
def test_every_short_list_of_ids_has_the_value_of_its_order(unseen: Grades) -> None:
    orders = every_list((UNJUDGED, 0, 1, 2), 4).sequences
    lists = in_one_order(orders, unseen)
    unseen_grades = {-1 - i: grade for i, grade in enumerate(unseen)}  # not in the list
    ranked_lists = id_lists(
        [range(len(order)) for order in orders],
        [{i: g for i, g in enumerate(order) if g != UNJUDGED} | unseen_grades for order in orders],
    )
    assert differences(values_of(ranked_lists, TRUTHS, "expected"), lists, TRUTHS, "expected") == []
