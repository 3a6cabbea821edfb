"""torchmetrics."""

import torch
from torch import tensor
from torchmetrics import retrieval
from torchmetrics.functional import classification as of
from torchmetrics.functional import (
    mean_absolute_error,
    mean_squared_error,
    r2_score,
)

DISTRIBUTION, ENVIRONMENT = "torchmetrics", "torch"


def joined(lists):
    """All lists in one."""
    return tensor([value for list in lists for value in list])


def lists(metric, grades, scores):
    """A metric of lists."""
    ids = torch.cat([torch.full((len(list),), i) for i, list in enumerate(grades)])
    return metric(joined(scores), joined(grades), indexes=ids)


def binary(grades):
    """Relevant or not, which most of its metrics of lists need."""
    return [[min(grade, 1) for grade in list] for list in grades]


def by_user(labels, scores, users):
    """Labels and scores as a list for each user."""
    rows = [*zip(labels, scores, users, strict=True)]
    return [
        [[row[column] for row in rows if row[2] == user] for user in sorted({*users})]
        for column in (0, 1)
    ]


CALLS = {
    "auc": "of.binary_auroc(tensor(scores), tensor(labels))",
    "auc_rare": "of.binary_auroc(tensor(scores), tensor(labels))",
    "auc_one_class": "of.binary_auroc(tensor(scores), tensor(labels))",
    "partial_auc": "of.binary_auroc(tensor(scores), tensor(labels), max_fpr=0.5)",
    "ap": "of.binary_average_precision(tensor(scores), tensor(labels))",
    "accuracy": "of.binary_accuracy(tensor(scores), tensor(labels))",
    "precision": "of.binary_precision(tensor(scores), tensor(labels))",
    "recall": "of.binary_recall(tensor(scores), tensor(labels))",
    "fpr": "1 - of.binary_specificity(tensor(scores), tensor(labels))",
    "f1": "of.binary_f1_score(tensor(scores), tensor(labels))",
    "mcc": "of.binary_matthews_corrcoef(tensor(scores), tensor(labels))",
    "precision_undefined": "of.binary_precision(tensor(scores), tensor(labels))",
    "ece": "of.binary_calibration_error(tensor(scores), tensor(labels), n_bins=10)",
    "brier": "mean_squared_error(tensor(scores), tensor(labels))",
    "multiclass_accuracy": "of.multiclass_accuracy(tensor(predictions), tensor(labels), 3)",
    "macro_f1": "of.multiclass_f1_score(tensor(predictions), tensor(labels), 3)",
    "weighted_f1": (
        'of.multiclass_f1_score(tensor(predictions), tensor(labels), 3, average="weighted")'
    ),
    "macro_precision": "of.multiclass_precision(tensor(predictions), tensor(labels), 3)",
    "balanced_accuracy": "of.multiclass_recall(tensor(predictions), tensor(labels), 3)",
    "multiclass_mcc": "of.multiclass_matthews_corrcoef(tensor(predictions), tensor(labels), 3)",
    "kappa": "of.multiclass_cohen_kappa(tensor(predictions), tensor(labels), 3)",
    "gauc": "lists(retrieval.RetrievalAUROC(), *by_user(labels, scores, users))",
    "ndcg": "lists(retrieval.RetrievalNormalizedDCG(top_k=3), grades, scores)",
    "ndcg_linear": "lists(retrieval.RetrievalNormalizedDCG(top_k=3), grades, scores)",
    "ndcg_missed": "lists(retrieval.RetrievalNormalizedDCG(top_k=3), grades, scores)",
    "ndcg_tied": "lists(retrieval.RetrievalNormalizedDCG(top_k=1), grades, scores)",
    "ndcg_nothing": "lists(retrieval.RetrievalNormalizedDCG(top_k=2), grades, scores)",
    "mrr": "lists(retrieval.RetrievalMRR(), binary(grades), scores)",
    "map": "lists(retrieval.RetrievalMAP(), binary(grades), scores)",
    "map_2": "lists(retrieval.RetrievalMAP(top_k=2), binary(grades), scores)",
    "precision_5": "lists(retrieval.RetrievalPrecision(top_k=5), binary(grades), scores)",
    "recall_2": "lists(retrieval.RetrievalRecall(top_k=2), binary(grades), scores)",
    "hit_1": "lists(retrieval.RetrievalHitRate(top_k=1), binary(grades), scores)",
    "r_precision": "lists(retrieval.RetrievalRPrecision(), binary(grades), scores)",
    "rmse": "mean_squared_error(tensor(predicted), tensor(truth), squared=False)",
    "mae": "mean_absolute_error(tensor(predicted), tensor(truth))",
    "r2": "r2_score(tensor(predicted), tensor(truth))",
    "r2_constant": "r2_score(tensor(predicted), tensor(truth))",
}
