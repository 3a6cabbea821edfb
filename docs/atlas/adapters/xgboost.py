"""XGBoost, as it prints metrics of a model while it learns: here a model without trees."""

import numpy as np
import xgboost as xgb

DISTRIBUTION, ENVIRONMENT = "xgboost-cpu", "atlas"


def metric(name, objective, labels, scores, sizes=None):
    """The metric of these scores."""
    data = xgb.DMatrix(np.zeros((len(labels), 1)), labels, base_margin=scores)
    if sizes is not None:
        data.set_group(sizes)
    model = xgb.Booster({"objective": objective, "eval_metric": name, "base_score": 0.5}, [data])
    return float(model.eval(data).rpartition(":")[2])


def logits(scores):
    """Scores before the sigmoid."""
    scores = np.array(scores)
    return np.log(scores / (1 - scores))


def lists(name, grades, scores):
    """A metric of lists."""
    flat = [np.concatenate(column) for column in (grades, scores)]
    return metric(name, "rank:pairwise", *flat, [*map(len, grades)])


CALLS = {
    "auc": 'metric("auc", "binary:logistic", labels, logits(scores))',
    "auc_rare": 'metric("auc", "binary:logistic", labels, logits(scores))',
    "auc_one_class": 'metric("auc", "binary:logistic", labels, logits(scores))',
    "ap": 'metric("aucpr", "binary:logistic", labels, logits(scores))',
    "accuracy": '1 - metric("error", "binary:logistic", labels, logits(scores))',
    "log_loss": 'metric("logloss", "binary:logistic", labels, logits(scores))',
    "ndcg": 'lists("ndcg@3", grades, scores)',
    "ndcg_exponential": 'lists("ndcg@3", grades, scores)',
    "ndcg_tied": 'lists("ndcg@1", grades, scores)',
    "ndcg_nothing": 'lists("ndcg@2", grades, scores)',
    "map": 'lists("map", [[min(g, 1) for g in list] for list in grades], scores)',
    "map_2": 'lists("map@2", [[min(g, 1) for g in list] for list in grades], scores)',
    "precision_5": 'lists("pre@5", [[min(g, 1) for g in list] for list in grades], scores)',
    "rmse": 'metric("rmse", "reg:squarederror", truth, predicted)',
    "mae": 'metric("mae", "reg:squarederror", truth, predicted)',
}
