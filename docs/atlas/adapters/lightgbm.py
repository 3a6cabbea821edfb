"""LightGBM, as it prints metrics of a model while it learns: here a model that adds nothing."""

import lightgbm as lgb
import numpy as np

DISTRIBUTION, ENVIRONMENT = "lightgbm", "atlas"


def metric(name, objective, labels, scores, sizes=None, **settings):
    """The metric of these scores, which the first trees leave as they are."""
    data = lgb.Dataset(
        np.zeros((len(labels), 1)), labels, group=sizes, init_score=scores,
        params={"min_data_in_bin": 1, "feature_pre_filter": False, "verbose": -1},
    )  # fmt: skip
    values = {}
    lgb.train(
        {"objective": objective, "metric": name, "verbose": -1, "min_data_in_leaf": 1,
         "learning_rate": 1e-300, "boost_from_average": False, **settings},
        data, 1, valid_sets=[data], valid_names=["rows"],
        callbacks=[lgb.record_evaluation(values)],
    )  # fmt: skip
    ((value,),) = [*values["rows"].values()]
    return value


def logits(scores):
    """Scores before the sigmoid."""
    scores = np.array(scores)
    return np.log(scores / (1 - scores))


def lists(name, grades, scores, cutoff):
    """A metric of lists."""
    flat = [np.concatenate(column) for column in (grades, scores)]
    return metric(name, "lambdarank", *flat, [*map(len, grades)], eval_at=[cutoff])


CALLS = {
    "auc": 'metric("auc", "binary", labels, logits(scores))',
    "auc_rare": 'metric("auc", "binary", labels, logits(scores))',
    "ap": 'metric("average_precision", "binary", labels, logits(scores))',
    "log_loss": 'metric("binary_logloss", "binary", labels, logits(scores))',
    "ndcg": 'lists("ndcg", grades, scores, 3)',
    "ndcg_exponential": 'lists("ndcg", grades, scores, 3)',
    "ndcg_tied": 'lists("ndcg", grades, scores, 1)',
    "ndcg_nothing": 'lists("ndcg", grades, scores, 2)',
    "map": 'lists("map", grades, scores, 3)',
    "map_2": 'lists("map", grades, scores, 2)',
    "rmse": 'metric("rmse", "regression", truth, predicted)',
    "mae": 'metric("l1", "regression", truth, predicted)',
}
