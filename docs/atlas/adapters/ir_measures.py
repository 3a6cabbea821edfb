"""ir_measures."""

import ir_measures
from ir_measures import AP, ERR, RR, Bpref, P, R, Rprec, Success, nDCG

DISTRIBUTION, ENVIRONMENT = "ir-measures", "atlas"


def mean(measure, qrels, run):
    """What its command line prints."""
    return ir_measures.calc_aggregate([measure], qrels, run)[measure]


CALLS = {
    "ndcg": "mean(nDCG @ 3, qrels, run)",
    "ndcg_linear": "mean(nDCG @ 3, qrels, run)",
    "ndcg_exponential": 'mean(nDCG(dcg="exp-log2") @ 3, qrels, run)',
    "ndcg_missed": "mean(nDCG @ 3, qrels, run)",
    "ndcg_tied": "mean(nDCG @ 1, qrels, run)",
    "ndcg_nothing": "mean(nDCG @ 2, qrels, run)",
    "ndcg_lacking": "mean(nDCG @ 2, qrels, run)",
    "mrr": "mean(RR, qrels, run)",
    "map": "mean(AP, qrels, run)",
    "map_2": "mean(AP @ 2, qrels, run)",
    "precision_5": "mean(P @ 5, qrels, run)",
    "recall_2": "mean(R @ 2, qrels, run)",
    "hit_1": "mean(Success @ 1, qrels, run)",
    "r_precision": "mean(Rprec, qrels, run)",
    "err": "mean(ERR @ 3, qrels, run)",
    "bpref": "mean(Bpref, qrels, run)",
}
