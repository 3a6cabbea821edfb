"""ranx."""

from ranx import Qrels, Run, evaluate

DISTRIBUTION, ENVIRONMENT = "ranx", "ranx"
CALLS = {
    "ndcg": 'evaluate(Qrels(qrels), Run(run), "ndcg@3")',
    "ndcg_linear": 'evaluate(Qrels(qrels), Run(run), "ndcg@3")',
    "ndcg_exponential": 'evaluate(Qrels(qrels), Run(run), "ndcg_burges@3")',
    "ndcg_missed": 'evaluate(Qrels(qrels), Run(run), "ndcg@3")',
    "ndcg_nothing": 'evaluate(Qrels(qrels), Run(run), "ndcg@2")',
    "ndcg_lacking": 'evaluate(Qrels(qrels), Run(run), "ndcg@2")',
    "dcg": 'evaluate(Qrels(qrels), Run(run), "dcg@3")',
    "mrr": 'evaluate(Qrels(qrels), Run(run), "mrr")',
    "map": 'evaluate(Qrels(qrels), Run(run), "map")',
    "map_2": 'evaluate(Qrels(qrels), Run(run), "map@2")',
    "precision_5": 'evaluate(Qrels(qrels), Run(run), "precision@5")',
    "recall_2": 'evaluate(Qrels(qrels), Run(run), "recall@2")',
    "hit_1": 'evaluate(Qrels(qrels), Run(run), "hit_rate@1")',
    "r_precision": 'evaluate(Qrels(qrels), Run(run), "r-precision")',
    "rbp": 'evaluate(Qrels(qrels), Run(run), "rbp.80")',
    "bpref": 'evaluate(Qrels(qrels), Run(run), "bpref")',
}
