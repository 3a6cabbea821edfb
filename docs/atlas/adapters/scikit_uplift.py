"""scikit-uplift."""

from sklift.metrics import qini_auc_score, uplift_auc_score

DISTRIBUTION, ENVIRONMENT = "scikit-uplift", "uplift-peers"
CALLS = {
    "qini": "qini_auc_score(labels, scores, treated)",
    "auuc": "uplift_auc_score(labels, scores, treated)",
}
