"""statsmodels."""

import numpy as np
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint
from statsmodels.tools.eval_measures import meanabs, rmse

DISTRIBUTION, ENVIRONMENT = "statsmodels", "atlas"


def table(labels, first, second):
    """Rows by whether each model is right."""
    right = [(np.array(scores) >= 0.5) == np.array(labels) for scores in (first, second)]
    return [
        [np.sum((right[0] == a) & (right[1] == b)) for b in (True, False)] for a in (True, False)
    ]


CALLS = {
    "rmse": "rmse(truth, predicted)",
    "mae": "meanabs(truth, predicted)",
    "wilson": "proportion_confint(successes, trials)[0]",
    "mcnemar": "mcnemar(table(labels, first, second)).pvalue",
}
