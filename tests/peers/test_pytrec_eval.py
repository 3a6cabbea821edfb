"""RankingMetrics beside pytrec_eval, which is trec_eval's own C code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

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
from tests.peers.judged_lists import LISTS, LONGEST, mean_values, near, qrels, run

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


def values_of_peer(
    judgements: dict[str, dict[str, int]], scores: dict[str, dict[str, float]], level: int = 1
) -> Values:
    """The value of every measure by list."""
    cuts = ",".join(map(str, CUTS))
    names = {f"{name}.{cuts}" if name in ("map_cut", "ndcg_cut", "P") else name for name in NAMES}
    names = (names - {"recall", "success"}) | {f"recall.{cuts}", f"success.{cuts}", "bpref"}
    answers: Values = pytrec_eval.RelevanceEvaluator(
        judgements, names, relevance_level=level
    ).evaluate(scores)
    return answers


@pytest.fixture(scope="module")
def values() -> Values:
    return values_of_peer(qrels(LISTS), run(LISTS))


def test_a_value_is_theirs_to_the_last_bit_and_a_sum_but_for_their_roundings(
    values: Values,
) -> None:
    measures = ONE_DIVISION | SUMS
    for i, ranking in enumerate(LISTS, 1):
        values_by_name = dict(
            zip(measures, mean_values([*measures.values()], [ranking]), strict=True)
        )
        for name, value in values_by_name.items():
            peer_value = values[str(i)][name]
            if name in ONE_DIVISION:
                assert value == peer_value, (name, ranking)
            elif name == "bpref":  # each term is 1 less a quotient: its error is absolute
                assert abs(value - peer_value) <= (len(ranking.ids) + 4) * 2.0**-53, ranking
            else:  # for each item: a quotient with a logarithm of two roundings, and the addition
                assert near(value, peer_value, len(ranking.ids) + 3), (name, ranking)
    for name, value in zip(measures, mean_values([*measures.values()], LISTS), strict=True):
        mean = pytrec_eval.compute_aggregated_measure(
            name, [query_values[name] for query_values in values.values()]
        )
        assert near(value, mean, LONGEST + 3 + len(LISTS)), name


def test_items_may_be_relevant_from_grade_2_on() -> None:
    rankings = [
        judged_list for judged_list in LISTS if max(judged_list.truth.values(), default=0) >= 1
    ]
    for i, peer_values in values_of_peer(qrels(rankings), run(rankings), level=2).items():
        ranking = rankings[int(i) - 1]
        for name, measure in OF_GRADE_2.items():
            [value] = mean_values([measure], [ranking])
            assert abs(value - peer_values[name]) <= (len(ranking.ids) + 4) * 2.0**-53, (
                name,
                ranking,
            )


def test_their_ap_over_the_smaller_of_r_and_k_is_our_denominator_min(values: Values) -> None:
    for i, ranking in enumerate(LISTS, 1):
        for k in CUTS if ranking.relevant else ():
            [value] = mean_values([AP(denominator="min") @ k], [ranking])
            expected = values[str(i)][f"map_cut_{k}"] * ranking.relevant / min(ranking.relevant, k)
            assert near(value, expected, len(ranking.ids) + 3), ranking


def test_their_gain_is_the_grade_and_ours_is_exponential_unless_asked(values: Values) -> None:
    exponential = {i: {d: 2**g - 1 for d, g in truth.items()} for i, truth in qrels(LISTS).items()}
    mapped = values_of_peer(exponential, run(LISTS))
    differ = 0
    for i, ranking in enumerate(LISTS, 1):
        [value] = mean_values([NDCG @ 10], [ranking])
        assert near(value, mapped[str(i)]["ndcg_cut_10"], len(ranking.ids) + 3), ranking
        differ += not near(value, values[str(i)]["ndcg_cut_10"], len(ranking.ids) + 3)
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
    for ids in itertools.permutations("abcde"):  # whichever item has which id
        judgements = {"1": dict(zip(ids, grades, strict=True))}
        orders.append(
            values_of_peer(judgements, {"1": dict(zip(ids, scores, strict=True))})["1"][name]
        )
    for ties, expected in (
        ("expected", math.fsum(orders) / len(orders)),
        ("worst", min(orders)),
        ("best", max(orders)),
    ):
        metric = RankingMetrics([measure], ties=ties, complete_lists=True)
        metric.update([grades], [scores])
        assert near(metric.compute()[measure], expected, 8), ties
    assert min(orders) < max(orders)
