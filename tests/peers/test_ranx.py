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
    Bpref,
    Measure,
    P,
    R,
    RankingMetrics,
    RPrec,
)
from tests.peers.judged_lists import UNIT, JudgedList, near, ours, qrels, random_lists, run
from tests.peers.ranx_process import ENVIRONMENT, Answer, Question, ask
from tests.requirements import absent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ranx"),  # one worker asks, once
    pytest.mark.timeout(400),  # numba compiles for half a minute in a new environment
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
    *(one for one in random_lists(150, seed=2) if one.truth),
]
BINARY = [JudgedList(one.ids, {d: min(g, 1) for d, g in one.truth.items()}) for one in LISTS]
BOTH = [one for one in LISTS if 0 < one.relevant < len(one.truth)]
GOOD_ONLY = JudgedList(("a", "b", "c"), {"a": 1, "b": 1, "c": 1})
HALF = JudgedList(("x", "a", "b"), {"a": 1, "b": 1, "x": 0, "y": 0})
AFTER_EMPTY = [HALF, HALF, JudgedList(("x",), {"x": 0}), HALF, HALF]
TIED = {f"t{i:02d}": 1.0 for i in range(40)}
RELEVANT = {"1": {"t07": 1, "t31": 1, "t00": 0}}

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
    backward = dict(reversed(TIED.items()))
    if not (ENVIRONMENT / ".made").is_file():
        absent("ranx", f"no {ENVIRONMENT}")
    return ask(
        [
            Question([*ONE_DIVISION, *SUMS, *RBPS], qrels(LISTS), run(LISTS)),
            Question([*RBPS], qrels(BINARY), run(BINARY)),
            Question(["mrr", "map"], RELEVANT, {"1": TIED}),
            Question(["mrr", "map"], RELEVANT, {"1": backward}),
            Question(["ndcg@5-l2", "dcg@5-l2"], {"1": {"a": 1, "b": 2}}, {"1": {"a": 2.0}}),
            *(
                Question(["bpref", "mrr"], qrels(lists), run(lists))
                for lists in (BOTH, [GOOD_ONLY], AFTER_EMPTY)
            ),
        ]
    )


def test_a_value_is_theirs_to_the_last_bit_and_a_sum_but_for_their_roundings() -> None:
    for name, measure in (ONE_DIVISION | SUMS).items():
        values = answers()[0][name]
        for one, theirs in zip(LISTS, values, strict=True):
            [mine] = ours([measure], [one])
            if name in ONE_DIVISION:
                assert mine == theirs, (name, one)
            else:  # for each item: a logarithm, a quotient and an addition; NDCG has two such sums
                roundings = 2 * (max(len(one.ids), len(one.truth)) + 3)
                assert near(mine, theirs, roundings), (name, one)
        [mine] = ours([measure], LISTS)  # empty lists count 0
        assert near(mine, math.fsum(values) / len(values), 2 * (100 + 3)), name


@pytest.mark.parametrize("name", RBPS)
def test_their_rbp_multiplies_by_the_grade_and_is_ours_where_grades_are_0_and_1(name: str) -> None:
    # A power of p is as good as so many products.
    for one, theirs in zip(BINARY, answers()[1][name], strict=True):
        [mine] = ours([RBPS[name]], [one])
        assert near(mine, theirs, 2 * len(one.ids) + 4), one
    by_grade = answers()[0][name]
    one = LISTS[4]  # grade 3 at rank 3
    [mine] = ours([RBPS[name]], [one])
    assert near(3 * mine, by_grade[4], 10)
    assert max(by_grade) > 1 > max(ours([RBPS[name]], [one])[0] for one in LISTS)


def test_bpref_is_theirs_where_there_are_relevant_and_bad_items_in_every_list() -> None:
    for one, theirs in zip(BOTH, answers()[5]["bpref"], strict=True):
        # Each term is 1 less a quotient: its error is absolute.
        assert abs(ours([Bpref], [one])[0] - theirs) <= (len(one.ids) + 4) * UNIT, one
    assert len(BOTH) > 80
    assert math.isnan(answers()[6]["bpref"][0])  # 0/0 without a bad item; trec_eval has 1
    assert ours([Bpref], [GOOD_ONLY]) == [1.0]
    # After a list with nothing relevant, a division by 0 ends their loop without a word.
    assert answers()[7]["bpref"] == [0.5, 0.5, 0.0, 0.0, 0.0]
    assert [ours([Bpref], [one])[0] for one in AFTER_EMPTY] == [0.5, 0.5, 0.0, 0.5, 0.5]


def test_their_relevance_level_takes_lower_grades_out_of_ndcg_and_ours_is_of_all_grades() -> None:
    assert answers()[4] == {"ndcg@5-l2": [0.0], "dcg@5-l2": [0.0]}
    assert ours([DCG(gain=LINEAR) @ 5], [JudgedList(("a",), {"a": 1, "b": 2})]) == [1.0]


def test_their_sort_lets_the_order_of_tied_rows_show_and_ours_cannot() -> None:
    forward, backward = answers()[2:4]
    assert forward["map"] != backward["map"]
    found = set()
    for ids in (list(TIED), list(reversed(TIED))):
        metric = RankingMetrics([AP, MRR])
        metric.update([[RELEVANT["1"].get(id_, 0) for id_ in ids]], [[TIED[id_] for id_ in ids]])
        found.add(metric.digest())
    assert len(found) == 1
