"""torcheval."""

import torch
from torch import tensor
from torcheval.metrics import functional as of

DISTRIBUTION, ENVIRONMENT = "torcheval", "torch"


def lists(metric, grades, scores, k):
    """The mean over lists of one of its metrics of lists, for 0 and 1."""
    values = [
        metric(tensor(s), tensor([min(grade, 1) for grade in g]), k=k)
        for g, s in zip(grades, scores, strict=True)
    ]
    return torch.stack(values).mean()


def first(metric, grades, scores, **k):
    """The mean over lists of one of its metrics that know the one relevant item of a list."""
    targets = [g.index(max(g)) for g in grades]
    values = [metric(tensor([s]), tensor([t]), **k) for s, t in zip(scores, targets, strict=True)]
    return torch.cat(values).mean()


CALLS = {
    "auc": "of.binary_auroc(tensor(scores), tensor(labels))",
    "auc_rare": "of.binary_auroc(tensor(scores), tensor(labels))",
    "auc_one_class": "of.binary_auroc(tensor(scores), tensor(labels))",
    "ap": "of.binary_auprc(tensor(scores), tensor(labels))",
    "accuracy": "of.binary_accuracy(tensor(scores), tensor(labels))",
    "precision": "of.binary_precision(tensor(scores), tensor(labels))",
    "recall": "of.binary_recall(tensor(scores), tensor(labels))",
    "f1": "of.binary_f1_score(tensor(scores), tensor(labels))",
    "precision_undefined": "of.binary_precision(tensor(scores), tensor(labels))",
    "normalized_entropy": "of.binary_normalized_entropy(tensor(scores), tensor(labels).float())",
    "multiclass_accuracy": "of.multiclass_accuracy(tensor(predictions), tensor(labels))",
    "macro_f1": (
        "of.multiclass_f1_score(tensor(predictions), tensor(labels), num_classes=3, "
        'average="macro")'
    ),
    "weighted_f1": (
        "of.multiclass_f1_score(tensor(predictions), tensor(labels), num_classes=3, "
        'average="weighted")'
    ),
    "macro_precision": (
        "of.multiclass_precision(tensor(predictions), tensor(labels), num_classes=3, "
        'average="macro")'
    ),
    "balanced_accuracy": (
        'of.multiclass_recall(tensor(predictions), tensor(labels), num_classes=3, average="macro")'
    ),
    "precision_5": "lists(of.retrieval_precision, grades, scores, 5)",
    "mrr": "first(of.reciprocal_rank, grades, scores)",
    "hit_1": "first(of.hit_rate, grades, scores, k=1)",
    "rmse": "of.mean_squared_error(tensor(predicted), tensor(truth)) ** 0.5",
    "r2": "of.r2_score(tensor(predicted), tensor(truth))",
    "r2_constant": "of.r2_score(tensor(predicted), tensor(truth))",
}
