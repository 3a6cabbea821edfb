"""lifelines, whose concordance of times is the AUC where the times are 0 and 1."""

from lifelines.utils import concordance_index

DISTRIBUTION, ENVIRONMENT = "lifelines", "atlas"
CALLS = {
    "auc": "concordance_index(labels, scores)",
    "auc_rare": "concordance_index(labels, scores)",
    "auc_one_class": "concordance_index(labels, scores)",
}
