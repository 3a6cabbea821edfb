"""The coarse form that groups keep of a metric: few buckets, and the same rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    MulticlassAUC,
    Ratio,
)
from streammetrics.combine.user_groups import ENOUGH, coarse_form
from streammetrics.core.accumulator import Accumulator

SCORES = [HistogramAUC(), HistogramAUC(range="real"), ExactAUC()]


@pytest.mark.parametrize("metric", SCORES, ids=repr)
def test_a_metric_that_keeps_scores_has_about_64_buckets_in_each_group(metric: Accumulator) -> None:
    coarse = coarse_form(metric)
    assert isinstance(coarse, HistogramAUC)
    assert 60 <= coarse.buckets <= ENOUGH
    assert coarse_form(coarse) == coarse, "a grid that is coarse is its own coarse form"


@pytest.mark.parametrize("metric", [MulticlassAUC(4), MulticlassAUC(4, exact=True)], ids=repr)
def test_so_have_the_scores_of_many_classes(metric: MulticlassAUC) -> None:
    coarse = coarse_form(metric)
    assert isinstance(coarse, MulticlassAUC)
    assert (coarse.n_classes, coarse.exact) == (4, False)
    assert 60 <= coarse.buckets <= ENOUGH


@pytest.mark.parametrize(
    "metric",
    [
        Ratio(),
        Calibration(bins=5),
        BinaryConfusion(threshold=0.25),
        GroupedAUC(),
        HistogramAUC(grid="equal", resolution=6),
        HistogramAUC(grid="edges", edges=(0.25, 0.5)),
        MulticlassAUC(3, grid="equal", resolution=4),
    ],
    ids=repr,
)
def test_any_other_metric_is_its_own(metric: Accumulator) -> None:
    coarse = coarse_form(metric)
    assert coarse == metric
    assert coarse is not metric


def test_a_grid_of_65_buckets_has_a_coarse_form_and_one_of_64_has_none() -> None:
    of_64, of_65 = (
        HistogramAUC(grid="edges", edges=tuple(i / 100 for i in range(1, n))) for n in (64, 65)
    )
    assert (of_64.buckets, of_65.buckets) == (64, 65)
    assert coarse_form(of_64) == of_64
    assert coarse_form(of_65) == coarse_form(HistogramAUC())


@pytest.mark.parametrize("metric", SCORES, ids=repr)
def test_what_a_row_is_is_said_by_the_same_settings(metric: HistogramAUC | ExactAUC) -> None:
    given = {"positive": "yes", "weight_unit": "1/10", "round_weights": True}
    own = {k: v for k, v in metric.settings().items() if k not in given}
    coarse = coarse_form(type(metric)(**own, **given))  # type: ignore[arg-type]
    assert isinstance(coarse, HistogramAUC)
    assert (coarse.positive, coarse.round_weights) == ("yes", True)
    assert str(coarse.weight_unit) == "1/10"


def test_the_buckets_of_any_score_tell_log_odds_and_probabilities_apart() -> None:
    coarse = coarse_form(ExactAUC())
    assert isinstance(coarse, HistogramAUC)
    edges = np.array(coarse.edges)
    assert np.array_equal(edges, np.unique(edges))
    inside = edges[(edges > 0) & (edges < 1)]
    assert np.array_equal(inside, 1 - inside[::-1]), "mirrored at 1/2"
    assert inside.min() == 2.0**-12
    assert (edges.min(), edges.max()) == (-10.0, 10.0)


@pytest.mark.parametrize("logit", [False, True])
@pytest.mark.parametrize("shift", [-7.0, -2.0, 0.0, 3.0])
def test_the_variance_of_an_area_is_that_of_the_scores_within_a_few_percent(
    logit: bool, shift: float
) -> None:
    random = np.random.default_rng(7)
    labels = (random.random(20_000) < 0.3).astype(np.uint8)
    scores = random.normal(labels + shift, 1.0)
    if not logit:
        scores = 1 / (1 + np.exp(-scores))
    fine, coarse = ExactAUC(), coarse_form(ExactAUC())
    fine.update(labels, scores)
    coarse.update(labels, scores)
    variances = []
    for state in (fine, coarse):
        found = state.confidence_interval()
        variances.append(found.se * found.se)
    assert math.isclose(*variances, rel_tol=0.1 if shift > -7 or not logit else 0.2)
