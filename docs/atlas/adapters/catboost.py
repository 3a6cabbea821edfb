"""CatBoost's metrics of predictions that are there."""

import numpy as np
from catboost.utils import eval_metric

DISTRIBUTION, ENVIRONMENT = "catboost", "atlas"


def logits(scores):
    """Scores before the sigmoid."""
    scores = np.array(scores)
    return np.log(scores / (1 - scores))


def metric(name, labels, scores):
    """A metric of rows."""
    return eval_metric(np.array(labels), np.array(scores), name)[0]


def lists(name, grades, scores):
    """A metric of lists."""
    ids = np.repeat(np.arange(len(grades)), [*map(len, grades)])
    flat = [np.concatenate(column).astype(float) for column in (grades, scores)]
    return eval_metric(*flat, name, group_id=ids)[0]


CALLS = {
    "auc": 'metric("AUC", labels, logits(scores))',
    "auc_rare": 'metric("AUC", labels, logits(scores))',
    "auc_one_class": 'metric("AUC", labels, logits(scores))',
    "ap": 'metric("PRAUC", labels, logits(scores))',
    "accuracy": 'metric("Accuracy", labels, logits(scores))',
    "precision": 'metric("Precision", labels, logits(scores))',
    "recall": 'metric("Recall", labels, logits(scores))',
    "f1": 'metric("F1", labels, logits(scores))',
    "mcc": 'metric("MCC", labels, logits(scores))',
    "precision_undefined": 'metric("Precision", labels, logits(scores))',
    "log_loss": 'metric("Logloss", labels, logits(scores))',
    "brier": 'metric("BrierScore", labels, logits(scores))',
    "ndcg": 'lists("NDCG:top=3", grades, scores)',
    "ndcg_linear": 'lists("NDCG:top=3", grades, scores)',
    "ndcg_exponential": 'lists("NDCG:top=3;type=Exp", grades, scores)',
    "ndcg_tied": 'lists("NDCG:top=1;type=Exp", grades, scores)',
    "ndcg_nothing": 'lists("NDCG:top=2", grades, scores)',
    "dcg": 'lists("DCG:top=3", grades, scores)',
    "mrr": 'lists("MRR", [[min(g, 1) for g in list] for list in grades], scores)',
    "map": 'lists("MAP", [[min(g, 1) for g in list] for list in grades], scores)',
    "map_2": 'lists("MAP:top=2", [[min(g, 1) for g in list] for list in grades], scores)',
    "precision_5": (
        'lists("PrecisionAt:top=5", [[min(g, 1) for g in list] for list in grades], scores)'
    ),
    "recall_2": 'lists("RecallAt:top=2", [[min(g, 1) for g in list] for list in grades], scores)',
    "err": 'lists("ERR:top=3", [[(2**g - 1) / 16 for g in list] for list in grades], scores)',
    "rmse": 'metric("RMSE", truth, predicted)',
    "mae": 'metric("MAE", truth, predicted)',
    "r2": 'metric("R2", truth, predicted)',
}
