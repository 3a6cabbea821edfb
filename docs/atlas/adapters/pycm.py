"""PyCM."""

from pycm import ConfusionMatrix

DISTRIBUTION, ENVIRONMENT = "pycm", "atlas"


def matrix(labels, scores):
    """Of two classes, at 0.5."""
    return ConfusionMatrix(labels, [int(score >= 0.5) for score in scores])


CALLS = {
    "auc": "matrix(labels, scores).AUC[1]",
    "accuracy": "matrix(labels, scores).Overall_ACC",
    "precision": "matrix(labels, scores).PPV[1]",
    "recall": "matrix(labels, scores).TPR[1]",
    "fpr": "matrix(labels, scores).FPR[1]",
    "f1": "matrix(labels, scores).F1[1]",
    "mcc": "matrix(labels, scores).MCC[1]",
    "precision_undefined": "matrix(labels, scores).PPV[1]",
    "multiclass_accuracy": "ConfusionMatrix(labels, predictions).Overall_ACC",
    "macro_f1": "ConfusionMatrix(labels, predictions).F1_Macro",
    "weighted_f1": 'ConfusionMatrix(labels, predictions).weighted_average("F1")',
    "macro_precision": "ConfusionMatrix(labels, predictions).PPV_Macro",
    "balanced_accuracy": "ConfusionMatrix(labels, predictions).TPR_Macro",
    "multiclass_mcc": "ConfusionMatrix(labels, predictions).Overall_MCC",
    "kappa": "ConfusionMatrix(labels, predictions).Kappa",
}
