"""RecTools."""

import pandas as pd
from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall

DISTRIBUTION, ENVIRONMENT = "rectools", "rectools"


def mean(metric, qrels, run):
    """The mean over users: queries are its users; the relevant items are its interactions."""
    shown = [(q, d, rank) for q in run for rank, d in enumerate(run[q], 1)]
    interactions = [(q, d) for q in qrels for d, grade in qrels[q].items() if grade > 0]
    return metric.calc(
        pd.DataFrame(shown, columns=["user_id", "item_id", "rank"]),
        pd.DataFrame(interactions, columns=["user_id", "item_id"]),
    )


CALLS = {
    "ndcg": "mean(NDCG(k=3), qrels, run)",
    "ndcg_tied": "mean(NDCG(k=1), qrels, run)",
    "ndcg_nothing": "mean(NDCG(k=2), qrels, run)",
    "ndcg_lacking": "mean(NDCG(k=2), qrels, run)",
    "mrr": "mean(MRR(k=10), qrels, run)",
    "map": "mean(MAP(k=10), qrels, run)",
    "map_2": "mean(MAP(k=2), qrels, run)",
    "precision_5": "mean(Precision(k=5), qrels, run)",
    "recall_2": "mean(Recall(k=2), qrels, run)",
    "hit_1": "mean(HitRate(k=1), qrels, run)",
}
