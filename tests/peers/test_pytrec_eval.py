"""RankingMetrics beside pytrec_eval, which is trec_eval's own C code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest
import pytrec_eval

from streammetrics.ranking import (
    AP,
    HR,
    MRR,
    NDCG,
    Bpref,
    Measure,
    P,
    R,
    RankingMetrics,
    RPrec,
)
from tests.peers.judged_lists import LISTS, LONGEST, NASTY, JudgedList, near, ours, qrels, run

pytestmark = pytest.mark.slow

NAMES = ("map", "map_cut", "ndcg", "ndcg_cut", "P", "recall", "success", "Rprec", "recip_rank")
CUTS = (1, 3, 5, 10, 30)
LINEAR = NDCG(gain="linear")

# One division of two integers, of which there is one correctly rounded value.
ONE_DIVISION: dict[str, Measure] = {"recip_rank": MRR, "Rprec": RPrec}
for k in CUTS:
    ONE_DIVISION |= {f"P_{k}": P @ k, f"recall_{k}": R @ k, f"success_{k}": HR @ k}
# Sums, which trec_eval rounds after each term.
SUMS: dict[str, Measure] = {"map": AP, "ndcg": LINEAR, "bpref": Bpref}
for k in CUTS:
    SUMS |= {f"map_cut_{k}": AP @ k, f"ndcg_cut_{k}": LINEAR @ k}
# The grade from which on an item is relevant is an option of a whole run of trec_eval.
OF_GRADE_2: dict[str, Measure] = {
    "recip_rank": MRR(rel=2),
    "Rprec": RPrec(rel=2),
    "map": AP(rel=2),
    "map_cut_5": AP(rel=2) @ 5,
    "bpref": Bpref(rel=2),
    "P_5": P(rel=2) @ 5,
    "recall_5": R(rel=2) @ 5,
    "success_5": HR(rel=2) @ 5,
    "ndcg_cut_5": LINEAR @ 5,
}

Values = Mapping[str, Mapping[str, float]]


def theirs(
    judgements: dict[str, dict[str, int]], scores: dict[str, dict[str, float]], level: int = 1
) -> Values:
    """The value of every measure by list."""
    cuts = ",".join(map(str, CUTS))
    asked = {f"{name}.{cuts}" if name in ("map_cut", "ndcg_cut", "P") else name for name in NAMES}
    asked = (asked - {"recall", "success"}) | {f"recall.{cuts}", f"success.{cuts}", "bpref"}
    found: Values = pytrec_eval.RelevanceEvaluator(
        judgements, asked, relevance_level=level
    ).evaluate(scores)
    return found


@pytest.fixture(scope="module")
def values() -> Values:
    return theirs(qrels(LISTS), run(LISTS))


@pytest.mark.parametrize("name", ONE_DIVISION)
def test_a_value_that_is_one_division_is_theirs_to_the_last_bit(values: Values, name: str) -> None:
    for i, one in enumerate(LISTS, 1):
        assert ours([ONE_DIVISION[name]], [one]) == [values[str(i)][name]], one


@pytest.mark.parametrize("name", SUMS)
def test_a_value_that_is_a_sum_is_theirs_but_for_their_roundings(values: Values, name: str) -> None:
    # For each item: a quotient with a logarithm of two roundings, and the addition.
    for i, one in enumerate(LISTS, 1):
        [mine] = ours([SUMS[name]], [one])
        if name == "bpref":  # each term is 1 less a quotient: its error is absolute
            assert abs(mine - values[str(i)][name]) <= (len(one.ids) + 4) * 2.0**-53, one
        else:
            assert near(mine, values[str(i)][name], len(one.ids) + 3), one


@pytest.mark.parametrize("name", [*ONE_DIVISION, *SUMS])
def test_a_mean_is_theirs_but_for_their_roundings(values: Values, name: str) -> None:
    column = [found[name] for found in values.values()]
    assert len(column) == len(LISTS)
    mean = pytrec_eval.compute_aggregated_measure(name, column)
    [mine] = ours([(ONE_DIVISION | SUMS)[name]], LISTS)
    assert near(mine, mean, LONGEST + 3 + len(LISTS))


@pytest.mark.parametrize("name", OF_GRADE_2)
def test_items_may_be_relevant_from_grade_2_on(name: str) -> None:
    some = [one for one in LISTS if max(one.truth.values(), default=0) >= 1]
    for i, found in theirs(qrels(some), run(some), level=2).items():
        one = some[int(i) - 1]
        [mine] = ours([OF_GRADE_2[name]], [one])
        assert abs(mine - found[name]) <= (len(one.ids) + 4) * 2.0**-53, one


def test_scored_rows_give_the_same_bits_as_ids(values: Values) -> None:
    measures = [m for name, m in (ONE_DIVISION | SUMS).items() if name != "bpref"]
    metric = RankingMetrics(measures, empty="zero")
    for one in LISTS:
        grades = [list(one.truth.values()).count(grade) for grade in range(1, 16)]
        ranks = np.random.default_rng(len(one.ids)).permutation(len(one.ids))
        ids = [one.ids[rank] for rank in ranks]  # in any order
        metric.update(
            [[one.truth.get(id_, 0) for id_ in ids]],
            [[one.scores[id_] for id_ in ids]],
            n_relevant=[grades],
        )
    assert [metric.compute()[measure] for measure in measures] == ours(measures, LISTS)


def test_their_ap_over_the_smaller_of_r_and_k_is_our_denominator_min(values: Values) -> None:
    for i, one in enumerate(LISTS, 1):
        for k in CUTS if one.relevant else ():
            [mine] = ours([AP(denominator="min") @ k], [one])
            wanted = values[str(i)][f"map_cut_{k}"] * one.relevant / min(one.relevant, k)
            assert near(mine, wanted, len(one.ids) + 3), one


def test_their_gain_is_the_grade_and_ours_is_exponential_unless_asked(values: Values) -> None:
    exponential = {i: {d: 2**g - 1 for d, g in truth.items()} for i, truth in qrels(LISTS).items()}
    mapped = theirs(exponential, run(LISTS))
    differ = 0
    for i, one in enumerate(LISTS, 1):
        [mine] = ours([NDCG @ 10], [one])
        assert near(mine, mapped[str(i)]["ndcg_cut_10"], len(one.ids) + 3), one
        differ += not near(mine, values[str(i)]["ndcg_cut_10"], len(one.ids) + 3)
    assert differ > 50


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("map", AP),
        ("map_cut_3", AP @ 3),
        ("ndcg", LINEAR),
        ("recip_rank", MRR),
        ("P_1", P @ 1),
        ("Rprec", RPrec),
        ("bpref", Bpref),
    ],
)
@pytest.mark.parametrize("grades", [[3, 0, 1, 0, 0], [3, 1, 0, 0, 0]])
def test_they_break_ties_by_id_and_we_take_the_mean_over_all_orders(
    name: str, measure: Measure, grades: list[int]
) -> None:
    scores = [2.0, 2.0, 1.0, 2.0, 1.0]
    orders = []
    for named in itertools.permutations("abcde"):  # whichever item has which id
        judgements = {"1": dict(zip(named, grades, strict=True))}
        orders.append(theirs(judgements, {"1": dict(zip(named, scores, strict=True))})["1"][name])
    for ties, wanted in (
        ("expected", math.fsum(orders) / len(orders)),
        ("worst", min(orders)),
        ("best", max(orders)),
    ):
        metric = RankingMetrics([measure], ties=ties)
        metric.update([grades], [scores])
        assert near(metric.compute()[measure], wanted, 8), ties
    assert min(orders) < max(orders)


def test_among_equal_scores_they_put_the_greater_id_first() -> None:
    tied = {"1": {"a": 1.0, "b": 1.0}}
    assert theirs({"1": {"a": 1}}, tied)["1"]["recip_rank"] == 1 / 2
    assert theirs({"1": {"b": 1}}, tied)["1"]["recip_rank"] == 1


def test_they_count_a_list_with_nothing_relevant_as_0_and_we_leave_it_out_unless_asked() -> None:
    found = theirs(qrels(NASTY), run(NASTY))
    column = [by_name["map"] for by_name in found.values()]
    for empty, lists in (("zero", len(NASTY)), ("skip", sum(one.relevant > 0 for one in NASTY))):
        metric = RankingMetrics([AP], empty=empty)
        metric.update_ranked([one.ids for one in NASTY], [one.truth for one in NASTY])
        assert near(metric.compute()[AP], math.fsum(column) / lists, LONGEST + 3)
    assert metric.compute().lists_empty == 2


def test_they_leave_out_a_list_that_was_not_returned_and_we_count_an_empty_one() -> None:
    judgements = {"1": {"a": 1}, "2": {"a": 1}}
    assert theirs(judgements, {"1": {"a": 1.0}}).keys() == {"1"}
    assert theirs(judgements, {"1": {"a": 1.0}, "2": {}})["2"]["map"] == 0
    metric = RankingMetrics([AP])
    metric.update_ranked([["a"], []], [{"a"}, {"a"}])
    assert metric.compute()[AP] == 1 / 2


def test_their_bpref_knows_judged_items_that_the_list_lacks() -> None:
    one = JudgedList(("x", "a"), {"a": 1, "b": 1, "x": 0, "y": 0})
    found = theirs(qrels([one]), run([one]))["1"]["bpref"]
    assert found == 1 / 4  # one of R = 2 found; 1 of the first min(R, N) = 2 bad ones is above it
    assert ours([Bpref], [one]) == [found]
    fewer = JudgedList(one.ids, {"a": 1, "b": 1, "x": 0})  # N = 1
    assert theirs(qrels([fewer]), run([fewer]))["1"]["bpref"] == 0 == ours([Bpref], [fewer])[0]
