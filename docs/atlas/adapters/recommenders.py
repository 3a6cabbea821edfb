"""Microsoft's recommenders."""

import pandas as pd
from recommenders.evaluation.python_evaluation import (
    map_at_k,
    ndcg_at_k,
    precision_at_k,
    r_precision_at_k,
    recall_at_k,
)

DISTRIBUTION, ENVIRONMENT = "recommenders", "atlas"


def mean(metric, qrels, run, k, **settings):
    """The mean over users: queries are its users; the relevant items are its ratings."""
    truth = [(q, d, grade) for q in qrels for d, grade in qrels[q].items() if grade > 0]
    shown = [(q, d, score) for q in run for d, score in run[q].items()]
    return metric(
        pd.DataFrame(truth, columns=["userID", "itemID", "rating"]),
        pd.DataFrame(shown, columns=["userID", "itemID", "prediction"]),
        k=k, **settings,
    )  # fmt: skip


CALLS = {
    "ndcg": "mean(ndcg_at_k, qrels, run, 3)",
    "ndcg_linear": 'mean(ndcg_at_k, qrels, run, 3, score_type="raw")',
    "ndcg_exponential": 'mean(ndcg_at_k, qrels, run, 3, score_type="exp")',
    "ndcg_missed": 'mean(ndcg_at_k, qrels, run, 3, score_type="raw")',
    "ndcg_nothing": "mean(ndcg_at_k, qrels, run, 2)",
    "ndcg_lacking": "mean(ndcg_at_k, qrels, run, 2)",
    "map": "mean(map_at_k, qrels, run, 10)",
    "map_2": "mean(map_at_k, qrels, run, 2)",
    "precision_5": "mean(precision_at_k, qrels, run, 5)",
    "recall_2": "mean(recall_at_k, qrels, run, 2)",
    "r_precision": "mean(r_precision_at_k, qrels, run, 10)",
}
