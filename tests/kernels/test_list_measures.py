"""Every measure against brute force over all orders, for every multiset of up to 6 items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics.kernels import list_measures as kernel
from streammetrics.kernels.lists import Lists, Ranked
from streammetrics.kernels.ranked import ranked
from tests.oracles import ranking as oracle

Item = tuple[float, int]
Floats = NDArray[np.float64]
Ties = Literal["expected", "worst", "best"]

SMALL = oracle.small_lists()
LEVELS = np.array([-1.5, 0.0, 0.1])  # what the three scores of a small list stand for

# name: the kernel, the oracle, and by how many units in the last place they may differ
MEASURES: dict[
    str,
    tuple[Callable[[Ranked, int | None], Floats], Callable[[int | None], oracle.Formula], float],
] = {
    "dcg": (
        lambda r, k: kernel.dcg(r, "exponential", k),
        lambda k: oracle.dcg("exponential", k),
        2,
    ),
    "dcg linear": (lambda r, k: kernel.dcg(r, "linear", k), lambda k: oracle.dcg("linear", k), 2),
    "ndcg": (
        lambda r, k: kernel.ndcg(r, "exponential", k),
        lambda k: oracle.ndcg("exponential", k),
        3,
    ),
    "ndcg linear": (
        lambda r, k: kernel.ndcg(r, "linear", k),
        lambda k: oracle.ndcg("linear", k),
        3,
    ),
    "reciprocal rank": (
        lambda r, k: kernel.reciprocal_rank(r, 1, k)[0],
        lambda k: oracle.reciprocal_rank(1, k),
        2,
    ),
    "reciprocal rank of grade 2": (
        lambda r, k: kernel.reciprocal_rank(r, 2, k)[0],
        lambda k: oracle.reciprocal_rank(2, k),
        2,
    ),
    "hit": (lambda r, k: kernel.hit(r, 1, k), lambda k: oracle.hit(1, k), 2),
    "hit of grade 2": (lambda r, k: kernel.hit(r, 2, k), lambda k: oracle.hit(2, k), 2),
}


def flat(items: Sequence[Sequence[Item]], kind: type[np.floating] = np.float64) -> Lists:
    grades = [grade for one in items for _, grade in one]
    scores = [score for one in items for score, _ in one]
    ends = np.cumsum([0, *(len(one) for one in items)])
    return Lists(np.array(grades, np.uint8), np.array(scores, kind), ends)


def evaluate(
    lists: Lists, measure: Callable[[Ranked], Floats], depth: int | None, ties: str
) -> Floats:
    found = [measure(part) for _, part in ranked(lists, depth, ties)]
    return np.concatenate(found)


def ulps(value: float, exact: Fraction) -> float:
    return float(abs(Fraction(value) - exact) / Fraction(math.ulp(float(exact))))


@pytest.mark.parametrize("name", MEASURES)
def test_every_small_list_has_the_value_of_all_its_orders(name: str) -> None:
    measure, formula, bound = MEASURES[name]
    lists = flat([[(LEVELS[s], g) for s, g in items] for items in SMALL])
    for cut in (None, 1, 2, 4):
        exact = [oracle.values(formula(cut), items) for items in SMALL]
        for ties in ("expected", "worst", "best"):
            values = evaluate(lists, lambda r, k=cut: measure(r, k), cut, ties)
            far = [
                (ties, items, value, float(wanted[ties]))
                for items, value, wanted in zip(SMALL, values.tolist(), exact, strict=True)
                if ulps(value, wanted[ties]) > bound
            ]
            assert far == []


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("ties", ["expected", "worst", "best"])
def test_the_order_of_rows_changes_no_bit(name: str, ties: str) -> None:
    measure, _, _ = MEASURES[name]
    rng = np.random.default_rng(7)
    items = [
        [(float(rng.integers(0, 4)) / 10, int(rng.integers(0, 5))) for _ in range(size)]
        for size in rng.integers(0, 40, 300)
    ]
    shuffled = [[one[i] for i in rng.permutation(len(one))] for one in items]
    for depth in (None, 3, 10):
        first = evaluate(flat(items), lambda r, k=depth: measure(r, k), depth, ties)
        second = evaluate(flat(shuffled), lambda r, k=depth: measure(r, k), depth, ties)
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("name", MEASURES)
def test_a_cut_gives_the_same_bits_however_deep_the_ranking_goes(name: str) -> None:
    measure, _, _ = MEASURES[name]
    rng = np.random.default_rng(8)
    items = [
        [(float(rng.integers(0, 9)), int(rng.integers(0, 3))) for _ in range(size)]
        for size in rng.integers(1, 30, 200)
    ]
    values = {
        depth: evaluate(flat(items), lambda r: measure(r, 3), depth, "expected").tobytes()
        for depth in (3, 4, 20, None)
    }
    assert len(set(values.values())) == 1


@pytest.mark.parametrize("name", MEASURES)
def test_a_list_without_ties_has_the_same_bits_as_one_that_came_ranked(name: str) -> None:
    measure, _, _ = MEASURES[name]
    rng = np.random.default_rng(9)
    grades = [rng.choice([0, 0, 0, 1, 2, 15], size).tolist() for size in rng.integers(1, 60, 200)]
    scored = [[(-float(i), g) for i, g in enumerate(one)] for one in grades]
    lists = flat(scored)
    came_ranked = Lists(lists.grades, None, lists.offsets)
    for cut in (None, 5):
        a = evaluate(lists, lambda r, k=cut: measure(r, k), cut, "expected")
        b = evaluate(came_ranked, lambda r, k=cut: measure(r, k), cut, "expected")
        assert a.tobytes() == b.tobytes()


def test_the_best_order_has_an_ndcg_of_exactly_one() -> None:
    rng = np.random.default_rng(10)
    grades = [sorted(rng.integers(0, 16, size).tolist(), reverse=True) for size in range(1, 150)]
    lists = flat([[(-float(i), g) for i, g in enumerate(one)] for one in grades])
    for gain in ("exponential", "linear"):
        for cut in (None, 1, 10):
            values = evaluate(lists, lambda r, g=gain, k=cut: kernel.ndcg(r, g, k), cut, "worst")
            some = [max(one[:cut]) > 0 for one in grades]
            assert values.tolist() == [float(relevant) for relevant in some]


def test_items_of_one_grade_may_be_tied_and_nothing_is_lost() -> None:
    lists = flat([[(0.5, 2)] * 7 + [(0.1, 0)] * 5])
    for gain in ("exponential", "linear"):
        value = evaluate(lists, lambda r, g=gain: kernel.ndcg(r, g, 10), 10, "expected")
        assert value.tolist() == [1.0]


def test_the_ideal_knows_items_that_the_list_lacks() -> None:
    truth = Lists(np.array([1], np.uint8), None, np.array([0, 1]), np.array([[2]]))
    value = evaluate(truth, lambda r: kernel.ndcg(r, "exponential", 3), 3, "expected")
    assert round(value.item(), 6) == 0.469279


def test_the_ideal_knows_the_grades_of_items_that_the_list_lacks() -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        seen = rng.integers(0, 4, rng.integers(0, 6)).tolist()
        unseen = rng.integers(0, 5, 3)
        lists = Lists(np.array(seen, np.uint8), None, np.array([0, len(seen)]), unseen[None].copy())
        missing = tuple(np.repeat([1, 2, 3], unseen).tolist())
        scored = [(-float(i), grade) for i, grade in enumerate(seen)]
        for cut in (None, 2, 4):
            value = evaluate(lists, lambda r, k=cut: kernel.ndcg(r, "linear", k), cut, "expected")
            exact = oracle.values(oracle.ndcg("linear", cut), scored, missing)
            assert ulps(value.item(), exact["expected"]) <= 3


def test_a_reciprocal_rank_and_its_rest_are_exact_to_106_bits_without_ties() -> None:
    lists = flat([[(-float(i), int(i == at)) for i in range(at + 1)] for at in range(90)])
    [(_, part)] = ranked(lists, None, "best")
    high, low = kernel.reciprocal_rank(part, 1, None)
    for rank, (h, rest) in enumerate(zip(high.tolist(), low.tolist(), strict=True), 1):
        assert abs(Fraction(1, rank) - Fraction(h) - Fraction(rest)) < Fraction(1, 2**104)


def test_one_relevant_item_among_four_that_are_tied() -> None:
    lists = flat([[(0.5, g) for g in (0, 1, 0, 0)]])
    rank = evaluate(lists, lambda r: kernel.reciprocal_rank(r, 1, None)[0], None, "expected")
    ndcg = evaluate(lists, lambda r: kernel.ndcg(r, "exponential", 1), 1, "expected")
    assert round(rank.item(), 6) == 0.520833
    assert ndcg.item() == 0.25


def test_a_constant_scorer_has_no_perfect_reciprocal_rank_beside_a_poor_ndcg() -> None:
    lists = flat([[(0.0, int(i == 20)) for i in range(40)]])
    for ties, rank, ndcg in (("worst", 0.0, 0.0), ("best", 1.0, 1.0)):
        found = evaluate(lists, lambda r: kernel.reciprocal_rank(r, 1, 10)[0], 10, ties)
        gain = evaluate(lists, lambda r: kernel.ndcg(r, "exponential", 10), 10, ties)
        assert (found.item(), gain.item()) == (rank, ndcg)
    share = evaluate(lists, lambda r: kernel.hit(r, 1, 10), 10, "expected")
    assert ulps(share.item(), Fraction(10, 40)) <= 4
