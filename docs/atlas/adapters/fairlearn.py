"""fairlearn."""

import numpy as np
from fairlearn.metrics import MetricFrame, false_positive_rate, true_positive_rate
from sklearn.metrics import roc_auc_score

DISTRIBUTION, ENVIRONMENT = "fairlearn", "atlas"


def by_user(labels, scores, users):
    """The AUC of each user."""
    frame = MetricFrame(
        metrics=roc_auc_score, y_true=labels, y_pred=scores, sensitive_features=users
    )
    return frame.by_group


CALLS = {
    "gauc": "by_user(labels, scores, users).mean()",
    "recall": "true_positive_rate(labels, np.array(scores) >= 0.5)",
    "fpr": "false_positive_rate(labels, np.array(scores) >= 0.5)",
}
