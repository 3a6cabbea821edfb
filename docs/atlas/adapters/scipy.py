"""scipy; its functions, not metrics by name."""

import numpy as np
from scipy.spatial.distance import jensenshannon
from scipy.stats import (
    binomtest,
    ks_2samp,
    mannwhitneyu,
    skew,
    tvar,
    wasserstein_distance,
)

DISTRIBUTION, ENVIRONMENT = "scipy", "atlas"


def of_label(labels, scores, label):
    """The scores of one class."""
    return [score for truth, score in zip(labels, scores, strict=True) if truth == label]


def shares(*samples):
    """The share of each different number in each sample."""
    numbers = sorted({number for sample in samples for number in sample})
    return [[np.mean(np.array(sample) == number) for number in numbers] for sample in samples]


CALLS = {
    "auc": "mannwhitneyu(of_label(labels, scores, 1), of_label(labels, scores, 0)).statistic / 16",
    "ks": "ks_2samp(of_label(labels, scores, 1), of_label(labels, scores, 0)).statistic",
    "variance": "tvar(numbers)",
    "skewness": "skew(numbers)",
    "ks_drift": "ks_2samp(reference, current).statistic",
    "wasserstein": "wasserstein_distance(reference, current)",
    "jensen_shannon": "jensenshannon(*shares(reference, current))",
    "wilson": 'binomtest(successes, trials).proportion_ci(method="wilson").low',
}
