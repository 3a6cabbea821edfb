"""RankingMetrics beside ir-measures: what it has that pytrec_eval has not.

Its ERR and its NDCG with exponential gain are those of gdeval.pl, TREC's own script, which prints
five decimals.
"""

from __future__ import annotations

import ir_measures
import pytest
from ir_measures import ERR as THEIR_ERR
from ir_measures import RR, Success, nDCG

from streammetrics.ranking import ERR, HR, MRR, NDCG, Measure
from tests.peers.judged_lists import LISTS, mean_values, qrels, run

CUTS = (1, 10)
PRINTED = 0.5e-5 + 1e-12  # half a unit of the last decimal, and gdeval's own roundings


def values_of_peer(measure: ir_measures.Measure) -> dict[str, float]:
    """The value by list."""
    values = ir_measures.iter_calc([measure], qrels(LISTS), run(LISTS))
    return {value.query_id: value.value for value in values}


@pytest.mark.parametrize("k", CUTS)
@pytest.mark.parametrize(
    ("measure", "peer"), [(ERR, THEIR_ERR), (NDCG, nDCG(dcg="exp-log2"))], ids=["ERR", "NDCG"]
)
def test_what_gdeval_prints_is_ours_to_its_five_decimals(
    measure: Measure, peer: ir_measures.Measure, k: int
) -> None:
    peer_values = values_of_peer(peer @ k)
    assert len(peer_values) == len(LISTS)
    for i, ranking in enumerate(LISTS, 1):
        [value] = mean_values([measure @ k], [ranking])
        assert abs(value - peer_values[str(i)]) <= PRINTED, ranking


def test_mrr_and_hr_with_a_cut_are_theirs_to_the_last_bit() -> None:
    for k in CUTS:
        for peer, measure in ((RR, MRR), (RR(rel=2), MRR(rel=2)), (Success, HR)):
            peer_values = values_of_peer(peer @ k)
            for i, ranking in enumerate(LISTS, 1):
                assert mean_values([measure @ k], [ranking]) == [peer_values[str(i)]], (
                    measure,
                    ranking,
                )
