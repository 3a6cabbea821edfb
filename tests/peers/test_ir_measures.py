"""RankingMetrics beside ir-measures: what it has that pytrec_eval has not.

Its ERR and its NDCG with exponential gain are those of gdeval.pl, TREC's own script, which prints
five decimals.
"""

from __future__ import annotations

import math

import ir_measures
import pytest
from ir_measures import ERR as THEIR_ERR
from ir_measures import RR, Success, nDCG

from streammetrics.ranking import ERR, HR, MRR, NDCG, Measure
from tests.peers.judged_lists import LISTS, LONGEST, NASTY, near, ours, qrels, run

pytestmark = pytest.mark.slow

CUTS = (1, 3, 10, 30)
PRINTED = 0.5e-5 + 1e-12  # half a unit of the last decimal, and gdeval's own roundings


def theirs(measure: ir_measures.Measure) -> dict[str, float]:
    """The value by list."""
    found = ir_measures.iter_calc([measure], qrels(LISTS), run(LISTS))
    return {value.query_id: value.value for value in found}


@pytest.mark.parametrize("k", CUTS)
@pytest.mark.parametrize(
    ("measure", "peer"), [(ERR, THEIR_ERR), (NDCG, nDCG(dcg="exp-log2"))], ids=["ERR", "NDCG"]
)
def test_what_gdeval_prints_is_ours_to_its_five_decimals(
    measure: Measure, peer: ir_measures.Measure, k: int
) -> None:
    found = theirs(peer @ k)
    assert len(found) == len(LISTS)
    for i, one in enumerate(LISTS, 1):
        [mine] = ours([measure @ k], [one])
        assert abs(mine - found[str(i)]) <= PRINTED, one


def test_mrr_and_hr_with_a_cut_are_theirs_to_the_last_bit() -> None:
    for k in CUTS:
        for peer, measure in ((RR, MRR), (RR(rel=2), MRR(rel=2)), (Success, HR)):
            found = theirs(peer @ k)
            for i, one in enumerate(LISTS, 1):
                assert ours([measure @ k], [one]) == [found[str(i)]], (measure, one)


def test_their_mean_counts_every_judged_list_and_is_ours_with_empty_lists_as_0() -> None:
    aggregate = ir_measures.calc_aggregate([nDCG @ 10, RR @ 10], qrels(LISTS), run(LISTS))
    mine = ours([NDCG(gain="linear") @ 10, MRR @ 10], LISTS)
    assert near(mine[0], aggregate[nDCG @ 10], LONGEST + 3 + len(LISTS))
    assert near(mine[1], aggregate[RR @ 10], len(LISTS))
    assert math.isclose(mine[0], aggregate[nDCG @ 10], rel_tol=1e-13)  # the bound is a bound
    assert sum(one.relevant == 0 for one in NASTY) == 2
