"""Definitions of the atlas for rows of two classes and of many."""

from __future__ import annotations

from typing import Final

from docs.atlas.definition import Definition

# All scores are the same as float32. One row has the score 0.5, which is the threshold; two tie.
EIGHT: Final = {
    "labels": [1, 0, 1, 1, 0, 1, 0, 0],
    "scores": [0.875, 0.75, 0.625, 0.5, 0.375, 0.375, 0.25, 0.125],
}
RARE: Final = {
    "labels": [1, 0, 1, 0],
    "scores": [0.03125, 0.0234375, 0.015625, 0.0078125],
}
SURE: Final = {"labels": [1, 0], "scores": [0.0, 0.25]}
POSITIVES: Final = {"labels": [1, 1, 1], "scores": [0.25, 0.5, 0.75]}
UNDETECTED: Final = {"labels": [1, 0, 1, 0], "scores": [0.25, 0.25, 0.375, 0.125]}
USERS: Final = {
    "labels": [1, 0, 0, 0, 1, 1, 0, 1, 1],
    "scores": [0.875, 0.25, 0.125, 0.5, 0.25, 0.75, 0.5, 0.25, 0.75],
    "users": [1, 1, 1, 1, 2, 2, 2, 3, 3],
}
TEN: Final = {
    "labels": [0, 0, 0, 0, 0, 0, 1, 1, 1, 2],
    "predictions": [0, 0, 0, 0, 0, 1, 1, 1, 0, 0],
}

ABOVE: Final = "a score equal to the threshold is predicted negative"
ZERO: Final = "0/0 is 0"

DEFINITIONS: Final = (
    Definition(
        "auc",
        "AUC",
        "The area under the ROC curve; a tied pair counts one half.",
        EIGHT,
        "curve(labels, scores).auc",
        {
            "pycm": "of the one threshold: the mean of recall and specificity",
        },
    ),
    Definition(
        "auc_rare",
        "AUC of low scores",
        "As of clicks: no score is above 1/32.",
        RARE,
        "curve(labels, scores).auc",
        {
            "river": (
                "ten thresholds between 0 and 1 by default (`n_thresholds`), and all scores are "
                "between the first two"
            ),
        },
    ),
    Definition(
        "auc_one_class",
        "AUC of one class",
        "All rows are positive: there is no pair.",
        POSITIVES,
        "curve(labels, scores).auc",
        {
            "catboost": "0 in place of undefined",
            "river": "0 in place of undefined",
            "torchmetrics": "0, with a warning",
            "torcheval": "1/2 in place of undefined",
            "lifelines": "an error in place of undefined",
        },
    ),
    Definition(
        "gauc",
        "GAUC",
        (
            "The mean of the users' AUC, each weighted by its rows. The third user has one class, "
            "and is left out."
        ),
        USERS,
        "result(sm.GroupedAUC(), labels, scores, groups=users).gauc",
        {
            "fairlearn": "the mean of the users without weights",
            "torchmetrics": (
                "without weights, and the user of one class counts 0 (`empty_target_action`)"
            ),
        },
    ),
    Definition(
        "partial_auc",
        "Partial AUC",
        "The area up to an FPR of 1/2, as an area.",
        EIGHT,
        "curve(labels, scores).partial_auc(0.5)",
        {
            "scikit-learn": "rescaled after McClish",
            "torchmetrics": "rescaled after McClish",
        },
    ),
    Definition(
        "ap",
        "Average precision of rows",
        "A sum of steps: at each score the precision times the rise in recall.",
        EIGHT,
        "curve(labels, scores).ap",
        {
            "catboost": "the area by trapezoids",
            "xgboost-cpu": "interpolated between points, after Davis and Goadrich",
        },
    ),
    Definition(
        "ks",
        "KS",
        "The largest TPR − FPR.",
        EIGHT,
        "curve(labels, scores).ks",
    ),
    Definition(
        "accuracy",
        "Accuracy at 0.5",
        "A row is predicted positive if its score is at least 0.5.",
        EIGHT,
        "rates(labels, scores, 0.5).accuracy",
        {
            "catboost": ABOVE,
            "torchmetrics": ABOVE,
            "xgboost-cpu": ABOVE,
        },
    ),
    Definition(
        "precision",
        "Precision at 0.5",
        "Likewise.",
        EIGHT,
        "rates(labels, scores, 0.5).precision",
        {
            "catboost": ABOVE,
            "torchmetrics": ABOVE,
        },
    ),
    Definition(
        "recall",
        "Recall at 0.5",
        "Likewise.",
        EIGHT,
        "rates(labels, scores, 0.5).recall",
        {
            "catboost": ABOVE,
            "torchmetrics": ABOVE,
        },
    ),
    Definition(
        "fpr",
        "FPR at 0.5",
        "Likewise.",
        EIGHT,
        "rates(labels, scores, 0.5).fpr",
    ),
    Definition(
        "f1",
        "F1 at 0.5",
        "Likewise.",
        EIGHT,
        "rates(labels, scores, 0.5).f1",
        {
            "catboost": ABOVE,
            "torchmetrics": ABOVE,
        },
    ),
    Definition(
        "mcc",
        "Matthews correlation at 0.5",
        "Likewise.",
        EIGHT,
        "rates(labels, scores, 0.5).mcc",
        {
            "catboost": ABOVE,
            "torchmetrics": ABOVE,
        },
    ),
    Definition(
        "precision_undefined",
        "Precision if nothing is predicted positive",
        "0/0: no row has a score of at least 0.5.",
        UNDETECTED,
        "rates(labels, scores, 0.5).precision",
        {
            "catboost": ZERO,
            "river": ZERO,
            "torcheval": ZERO,
            "torchmetrics": ZERO,
            "scikit-learn": "0, with a warning (`zero_division`)",
        },
    ),
    Definition(
        "log_loss",
        "Log loss",
        "The mean of −log p of what happened, in nats.",
        EIGHT,
        "losses(labels, scores).log_loss",
    ),
    Definition(
        "log_loss_sure",
        "Log loss of a sure mistake",
        "A positive row has the probability 0, so the loss is infinite.",
        SURE,
        "losses(labels, scores).log_loss",
        {
            "scikit-learn": "clipped at the epsilon of the scores' type",
            "river": "clipped at 1e-15",
        },
    ),
    Definition(
        "normalized_entropy",
        "Normalized entropy",
        "The log loss over that of a model that always says the share of positives.",
        EIGHT,
        "losses(labels, scores).normalized_entropy",
    ),
    Definition(
        "brier",
        "Brier score",
        "The mean squared error of the probabilities.",
        EIGHT,
        "losses(labels, scores).brier",
    ),
    Definition(
        "ece",
        "ECE of ten bins",
        (
            "The mean distance of share and mean score, over ten bins of equal width, weighted by "
            "rows."
        ),
        EIGHT,
        "losses(labels, scores, bins=10).ece",
    ),
    Definition(
        "multiclass_accuracy",
        "Accuracy of classes",
        "Ten rows of three classes; class 2 is never predicted.",
        TEN,
        "classes(labels, predictions).accuracy",
        {
            "torchmetrics": 'the mean of the recalls by default (`average="macro"`)',
        },
    ),
    Definition(
        "macro_f1",
        "Macro F1",
        "The mean of the classes' F1; that of class 2 is 0, since it has rows, and none is found.",
        TEN,
        'classes(labels, predictions).f1("macro")',
    ),
    Definition(
        "weighted_f1",
        "Weighted F1",
        "The same mean, weighted by the rows of each class.",
        TEN,
        'classes(labels, predictions).f1("weighted")',
    ),
    Definition(
        "macro_precision",
        "Macro precision",
        "The mean of the classes' precision. That of class 2 is 0/0, and is left out.",
        TEN,
        'classes(labels, predictions).precision("macro")',
        {
            "scikit-learn": ZERO,
            "river": ZERO,
            "torcheval": ZERO,
            "torchmetrics": ZERO,
            "pycm": "undefined, as that of a class is",
        },
    ),
    Definition(
        "balanced_accuracy",
        "Balanced accuracy",
        "The mean of the classes' recall.",
        TEN,
        "classes(labels, predictions).balanced_accuracy",
    ),
    Definition(
        "multiclass_mcc",
        "Matthews correlation of classes",
        "Gorodkin's R for three classes.",
        TEN,
        "classes(labels, predictions).mcc",
    ),
    Definition(
        "kappa",
        "Cohen's kappa",
        "The agreement beyond chance.",
        TEN,
        "classes(labels, predictions).kappa",
    ),
)
