"""RankingMetrics beside ranx, whose measures are loops compiled by numba."""

from __future__ import annotations

import math
from functools import cache

import pytest

from streammetrics.ranking import (
    AP,
    DCG,
    HR,
    MRR,
    NDCG,
    RBP,
    Measure,
    P,
    R,
    RPrec,
)
from tests.peers.judged_lists import JudgedList, mean_values, near, qrels, random_lists, run
from tests.peers.ranx_process import ENVIRONMENT, Answer, Question, ask
from tests.requirements import absent

pytestmark = [
    pytest.mark.xdist_group("ranx"),  # one worker asks, once
]

# ranx has no list without items and none that nobody judged: these have no entry in its arrays.
LISTS = [
    JudgedList(("a",), {"a": 1}),
    JudgedList(("a",), {"a": 0}),
    JudgedList(("a",), {"a": 4, "b": 4, "c": 1}),
    JudgedList(("x", "y", "z"), {"a": 2, "b": 1}),
    JudgedList(("x", "y", "a"), {"a": 3, "x": 0, "q": 0}),
    JudgedList(("a", "b", "c"), {"a": 1, "b": 1, "c": 1}),
    JudgedList((*(f"n{i}" for i in range(99)), "a"), {"a": 1}),
    *(ranking for ranking in random_lists(150, seed=2) if ranking.truth),
]
BINARY = [
    JudgedList(ranking.ids, {d: min(g, 1) for d, g in ranking.truth.items()}) for ranking in LISTS
]
CUTS = (1, 3, 10, 30)
ONE_DIVISION: dict[str, Measure] = {"mrr": MRR, "r-precision": RPrec, "mrr-l2": MRR(rel=2)}
SUMS: dict[str, Measure] = {"map": AP, "map-l2": AP(rel=2)}
LINEAR = "linear"
for k in CUTS:
    ONE_DIVISION |= {f"precision@{k}": P @ k, f"recall@{k}": R @ k, f"hit_rate@{k}": HR @ k}
    ONE_DIVISION |= {f"mrr@{k}": MRR @ k, f"recall@{k}-l2": R(rel=2) @ k}
    SUMS |= {f"map@{k}": AP @ k, f"dcg@{k}": DCG(gain=LINEAR) @ k, f"dcg_burges@{k}": DCG @ k}
    SUMS |= {f"ndcg@{k}": NDCG(gain=LINEAR) @ k, f"ndcg_burges@{k}": NDCG @ k}
RBPS: dict[str, Measure] = {"rbp.80": RBP, "rbp.95": RBP(p=0.95)}


@cache
def answers() -> list[Answer]:
    """All questions of this file: a process that compiles once."""
    if not (ENVIRONMENT / ".made").is_file():
        absent("ranx", f"no {ENVIRONMENT}")
    every = Question([*ONE_DIVISION, *SUMS, *RBPS], qrels(LISTS), run(LISTS))
    return ask([every, Question([*RBPS], qrels(BINARY), run(BINARY))])


def test_a_value_is_theirs_to_the_last_bit_and_a_sum_but_for_their_roundings() -> None:
    measures = ONE_DIVISION | SUMS
    values_of_lists = [mean_values([*measures.values()], [judged]) for judged in LISTS]
    means = mean_values([*measures.values()], LISTS)  # empty lists count 0
    for name, mean, *values in zip(measures, means, *values_of_lists, strict=True):
        values_of_theirs = answers()[0][name]
        for judged, value, peer_value in zip(LISTS, values, values_of_theirs, strict=True):
            if name in ONE_DIVISION:
                assert value == peer_value, (name, judged)
            else:  # for each item: a logarithm, a quotient and an addition; NDCG has two such sums
                roundings = 2 * (max(len(judged.ids), len(judged.truth)) + 3)
                assert near(value, peer_value, roundings), (name, judged)
        assert near(mean, math.fsum(values_of_theirs) / len(LISTS), 2 * (100 + 3)), name


@pytest.mark.parametrize("name", RBPS)
def test_their_rbp_multiplies_by_the_grade_and_is_ours_where_grades_are_0_and_1(name: str) -> None:
    # A power of p is as good as so many products.
    for ranking, peer_value in zip(BINARY, answers()[1][name], strict=True):
        [value] = mean_values([RBPS[name]], [ranking])
        assert near(value, peer_value, 2 * len(ranking.ids) + 4), ranking
    by_grade = answers()[0][name]
    ranking = LISTS[4]  # grade 3 at rank 3
    [value] = mean_values([RBPS[name]], [ranking])
    assert near(3 * value, by_grade[4], 10)
    assert (
        max(by_grade)
        > 1
        > max(mean_values([RBPS[name]], [judged_list])[0] for judged_list in LISTS)
    )
