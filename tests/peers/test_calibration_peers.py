"""Calibration and Regression beside scikit-learn, where the definitions agree."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import Calibration, Regression
from tests.peers.judged_lists import near
from tests.requirements import Later

sk = Later("sklearn.metrics")
calibration = Later("sklearn.calibration")

pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]
N = 5000
# numpy adds in blocks, so that a mean of n numbers is off by some log2(n) roundings.
ROUNDINGS = 40


def scored() -> dict[str, tuple[NDArray[np.int64], Floats]]:
    rng = np.random.default_rng(6)
    p = rng.random(N)
    rare = p**8
    edges = rng.integers(0, 16, N) / 15
    found = {"uniform": p, "rare": rare, "at the edges of bins": np.clip(edges, 0.05, 0.95)}
    return {name: ((rng.random(N) < s).astype(np.int64), s) for name, s in found.items()}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", scored())
def test_losses_are_theirs_but_for_their_roundings(name: str, weighted: bool) -> None:
    labels, scores = scored()[name]
    weights = np.random.default_rng(7).integers(1, 9, N) if weighted else None
    metric = Calibration()
    metric.update(labels, scores, weights=weights)
    result = metric.compute()
    theirs = sk.log_loss(labels, scores, sample_weight=weights)
    assert near(result.log_loss, theirs, ROUNDINGS)
    theirs = sk.brier_score_loss(labels, scores, sample_weight=weights)
    assert near(result.brier, theirs, ROUNDINGS)


@pytest.mark.parametrize("bins", [2, 10, 16])
def test_the_table_is_their_calibration_curve(bins: int) -> None:
    labels, scores = scored()["rare"]
    metric = Calibration(bins=bins)
    metric.update(labels, scores)
    table = metric.compute().reliability()
    share, mean = calibration.calibration_curve(labels, scores, n_bins=bins)
    used = table.units > 0
    np.testing.assert_allclose(table.positive_share[used], share, rtol=1e-14)
    np.testing.assert_allclose(table.mean_score[used], mean, rtol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_errors_are_theirs_but_for_their_roundings(weighted: bool, offset: float) -> None:
    rng = np.random.default_rng(8)
    labels = rng.standard_normal(N) + offset
    scores = labels + rng.standard_normal(N) / 4
    weights = rng.integers(1, 9, N) if weighted else None
    metric = Regression()
    metric.update(labels, scores, weights=weights)
    result = metric.compute()
    kept = {"sample_weight": weights}
    assert near(result.mae, sk.mean_absolute_error(labels, scores, **kept), ROUNDINGS)
    assert near(result.mse, sk.mean_squared_error(labels, scores, **kept), ROUNDINGS)
    assert abs(result.r2 - sk.r2_score(labels, scores, **kept)) < 1e-12
