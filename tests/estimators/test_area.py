"""Areas under the ROC curve, and functions of them."""

from __future__ import annotations

import numpy as np

from streammetrics import ExactAUC, HistogramAUC
from streammetrics.experiments import ConfidenceSequence


def curve(metric: ExactAUC | HistogramAUC, n: int = 200) -> ExactAUC | HistogramAUC:
    rng = np.random.default_rng(n)
    labels = rng.integers(0, 2, n)
    metric.update(labels, np.clip(0.3 * labels + 0.7 * rng.random(n), 0.0, 1.0))
    return metric


def test_the_interval_of_gini_is_that_of_the_area_on_its_scale() -> None:
    for metric in (ExactAUC(), HistogramAUC(resolution=2)):
        result = curve(metric).compute()
        area, gini = result.interval("auc"), result.interval("gini")
        assert (gini.lower, gini.upper) == (2 * area.lower - 1, 2 * area.upper - 1)
        assert (gini.se, gini.df, gini.n) == (2 * area.se, area.df, area.n)
        assert gini.estimate == float(result.gini)


def test_an_area_alone_waits_for_30_rows_of_each_class() -> None:
    sequence = ConfidenceSequence(v_opt=1_000.0)
    few, enough = ExactAUC(), ExactAUC()
    for metric, positives in ((few, 29), (enough, 30)):
        metric.update([1] * positives + [0] * 400, [i % 7 / 7 for i in range(positives + 400)])
    assert "29, needs 30" in sequence.of(few).reason
    assert not sequence.of(enough).gated
