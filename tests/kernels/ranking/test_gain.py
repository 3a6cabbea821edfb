from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.ranking import gain as kernel
from streammetrics.kernels.ranking import rank_tables
from streammetrics.kernels.ranking.graded_lists import Lists, Ranked
from streammetrics.kernels.ranking.rank_tables import Floats, Growing
from streammetrics.kernels.ranking.ranked import ranked
from tests.oracles import ranking as oracle
from tests.oracles import ranking_measures as formulas

GAINS = pytest.mark.parametrize("gain", ["exponential", "linear"])


def only(lists: Lists, ties: str = "expected") -> Ranked:
    [(_, result)] = ranked(lists, None, ties)
    return result


def flat(items: Sequence[Sequence[tuple[float, int]]]) -> Lists:
    every = [item for row in items for item in row]
    return Lists(
        np.array([grade for _, grade in every], np.uint8),
        np.array([score for score, _ in every], np.float64),
        np.cumsum([0, *map(len, items)]),
    )


def ulps(value: float, exact: Fraction) -> float:
    return float(abs(Fraction(value) - exact) / Fraction(math.ulp(float(exact))))


@GAINS
@pytest.mark.parametrize("cut", [None, 1, 10])
def test_the_best_order_has_an_ndcg_of_exactly_one(gain: str, cut: int | None) -> None:
    rng = np.random.default_rng(10)
    grades = [sorted(rng.integers(0, 16, size).tolist(), reverse=True) for size in range(1, 150)]
    lists = flat([[(-float(i), g) for i, g in enumerate(row)] for row in grades])
    values = kernel.ndcg(only(lists), gain, cut)
    assert values.tolist() == [float(max(row[:cut]) > 0) for row in grades]


@GAINS
def test_no_order_of_a_long_tie_has_an_ndcg_above_one(gain: str) -> None:
    rng = np.random.default_rng(11)
    items = [[(0.0, int(g)) for g in rng.integers(1, 3, size)] for size in range(2, 200)]
    values: Floats = kernel.ndcg(only(flat(items)), gain, None)
    assert (values <= 1).all()


def test_a_list_that_is_longer_than_the_table_of_discounts_makes_it_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel, "discounts", Growing(rank_tables._discounts))
    last = only(flat([[(-float(i), int(i == 128)) for i in range(129)]]))
    value = kernel.dcg(last, "linear", None).item()
    assert ulps(value, formulas.discount(129)) <= 1


def test_the_ideal_knows_the_grades_of_items_that_the_list_lacks() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        grades = rng.integers(0, 4, rng.integers(0, 6)).tolist()
        unseen = np.zeros(16, np.int64)
        unseen[:4] = rng.integers(0, 5, 4)
        lists = Lists(np.array(grades, np.uint8), None, np.array([0, len(grades)]), unseen[None])
        missing = tuple(np.repeat(np.arange(4), unseen[:4]).tolist())
        scored = [(-float(i), grade) for i, grade in enumerate(grades)]
        for cut in (None, 2, 4):
            value = kernel.ndcg(only(lists), "linear", cut)
            exact = oracle.values(formulas.ndcg("linear", cut), scored, missing)
            assert ulps(value.item(), exact["expected"]) <= 3


def test_the_ideal_of_a_huge_number_of_items_costs_their_cut_alone() -> None:
    unseen = np.zeros((1, 16), np.int64)
    unseen[0, 2] = 1 << 50
    result = only(Lists(np.array([1], np.uint8), None, np.array([0, 1]), unseen))
    exact = formulas.dcg("linear", 5)((2,) * 5, ())
    assert ulps(kernel.ideal_dcg(result, "linear", 5).item(), exact) <= 1
