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
    return AllOrders([[(-i, grade) for i, grade in enumerate(one)] for one in orders], unseen)


def columns(lists: AllOrders) -> dict[str, Any]:
    """All lists as the columns of one update."""
    items = [item for one in lists.lists for item in one]
    made: dict[str, Any] = {
        "labels": np.array([max(grade, 0) for _, grade in items]),
        "scores": np.array([LEVELS[score] for score, _ in items]),
        "offsets": np.cumsum([0, *map(len, lists.lists)]),
    }
    if any(grade == UNJUDGED for _, grade in items):
        made["judged"] = np.array([grade != UNJUDGED for _, grade in items])
    return made


def as_lists(lists: AllOrders) -> Lists:
    made = columns(lists)
    return graded_lists(
        *(made["labels"], made["scores"], made["offsets"], None, made.get("judged")), graded_from=2
    )


def values_of(some: Lists, chosen: Sequence[Truth], ties: str) -> dict[Measure, list[float]]:
    """The value of each list, of which the mean is made."""
    found: dict[Measure, list[float]] = {truth.measure: [] for truth in chosen}
    for _, _, several in measured(some, list(found), ties):
        for measure, (values, rest, weights) in zip(found, several, strict=True):
            of_lists = values.tolist()
            if weights is not None and rest is not None:  # a ratio of sums: of one list, its own
                parts = zip(of_lists, rest.tolist(), weights.tolist(), strict=True)
                of_lists = [
                    float((Fraction(value) + Fraction(more)) / int(weight))
                    if more and weight
                    else value / weight  # which rounds once, too
                    if weight
                    else nan
                    for value, more, weight in parts
                ]
            found[measure] += of_lists
    return found


@RULES
def test_every_small_list_has_the_value_of_all_its_orders(ties: str) -> None:
    lists = every_list()
    found = values_of(as_lists(lists), TRUTHS, ties)
    assert differences(found, lists, TRUTHS, ties) == []


@RULES
@pytest.mark.parametrize("grades", [(UNJUDGED, 0, 1, 2), (UNJUDGED, 0, 1)])
def test_items_that_nobody_judged_are_skipped_by_bpref_alone(grades: Grades, ties: str) -> None:
    lists = every_list(grades, 6 if len(grades) == 3 else 4)
    others = (NDCG @ 2, MRR, HR @ 2, CG @ 3)
    chosen = [truth for truth in TRUTHS if truth.measure in (Bpref, Bpref(rel=2), *others)]
    assert len(chosen) == 2 + len(others)
    found = values_of(as_lists(lists), chosen, ties)
    assert differences(found, lists, chosen, ties) == []


@RULES
def test_the_mean_of_all_small_lists_is_the_correctly_rounded_one(ties: str) -> None:
    lists = every_list()
    kept = {"skip": np.array(lists.relevant), "zero": np.ones(len(lists.lists), np.bool_)}
    found = {}
    for empty in kept:
        measures = [truth.measure for truth in TRUTHS]
        metric = RankingMetrics(measures, ties, empty, complete_lists=True)
        metric.update(**columns(lists))
        found[empty] = metric.compute()
    for truth in TRUTHS:
        tops, unit = lists.tops(truth.formula, ties)
        bottoms = np.array(truth.denominators(lists))
        for empty, some in kept.items():
            top, bottom = int(tops[some].sum()), unit * int(bottoms[some].sum())
            got = found[empty][truth.measure]
            assert truth.agrees(got, top, bottom), (truth.measure, empty, got, top / bottom)


@pytest.mark.parametrize("unseen", [(0, 0, 2), (), (0,), (1, 1, 0)])
def test_every_short_list_of_ids_has_the_value_of_its_order(unseen: Grades) -> None:
    orders = every_list((UNJUDGED, 0, 1, 2), 4).sequences
    lists = in_one_order(orders, unseen)
    others = {-1 - i: grade for i, grade in enumerate(unseen)}  # not in the list
    found = id_lists(
        [range(len(one)) for one in orders],
        [{i: g for i, g in enumerate(one) if g != UNJUDGED} | others for one in orders],
    )
    assert differences(values_of(found, TRUTHS, "expected"), lists, TRUTHS, "expected") == []
