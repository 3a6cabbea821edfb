"""pytrec_eval, which is trec_eval itself."""

import numpy as np
import pytrec_eval

DISTRIBUTION, ENVIRONMENT = "pytrec_eval-terrier", "atlas"


def mean(measure, qrels, run):
    """The mean over the queries that it evaluates."""
    values = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    (name,) = {name for scores in values.values() for name in scores}
    return np.mean([scores[name] for scores in values.values()])


CALLS = {
    "ndcg": 'mean("ndcg_cut.3", qrels, run)',
    "ndcg_linear": 'mean("ndcg_cut.3", qrels, run)',
    "ndcg_missed": 'mean("ndcg_cut.3", qrels, run)',
    "ndcg_tied": 'mean("ndcg_cut.1", qrels, run)',
    "ndcg_nothing": 'mean("ndcg_cut.2", qrels, run)',
    "ndcg_lacking": 'mean("ndcg_cut.2", qrels, run)',
    "mrr": 'mean("recip_rank", qrels, run)',
    "map": 'mean("map", qrels, run)',
    "map_2": 'mean("map_cut.2", qrels, run)',
    "precision_5": 'mean("P.5", qrels, run)',
    "recall_2": 'mean("recall.2", qrels, run)',
    "hit_1": 'mean("success.1", qrels, run)',
    "r_precision": 'mean("Rprec", qrels, run)',
    "bpref": 'mean("bpref", qrels, run)',
}
