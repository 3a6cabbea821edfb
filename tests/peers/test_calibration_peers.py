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


Floats = NDArray[np.float64]
N = 5000
# numpy adds in blocks, so that a mean of n numbers is off by some log2(n) roundings.
ROUNDINGS = 40


def scored() -> dict[str, tuple[NDArray[np.int64], Floats]]:
    rng = np.random.default_rng(6)
    p = rng.random(N)
    rare = p**8
    edges = rng.integers(0, 16, N) / 15
    scores_by_name = {
        "uniform": p,
        "rare": rare,
        "at the edges of bins": np.clip(edges, 0.05, 0.95),
    }
    return {name: ((rng.random(N) < s).astype(np.int64), s) for name, s in scores_by_name.items()}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", scored())
def test_losses_are_theirs_but_for_their_roundings(name: str, weighted: bool) -> None:
    labels, scores = scored()[name]
    weights = np.random.default_rng(7).integers(1, 9, N) if weighted else None
    metric = Calibration()
    metric.update(labels, scores, weights=weights)
    result = metric.compute()
    peer_value = sk.log_loss(labels, scores, sample_weight=weights)
    assert near(result.log_loss, peer_value, ROUNDINGS)
    peer_value = sk.brier_score_loss(labels, scores, sample_weight=weights)
    assert near(result.brier, peer_value, ROUNDINGS)


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


@pytest.mark.parametrize("groups", [4, 10])
def test_the_bounds_by_mass_contain_their_curve_of_quantiles(groups: int) -> None:
    labels, scores = scored()["rare"]
    metric = Calibration(bins=groups, grid="relative")
    metric.update(labels, scores)
    result = metric.compute()
    table = result.reliability_by_mass(groups)
    share, mean = calibration.calibration_curve(labels, scores, n_bins=groups, strategy="quantile")
    assert (table.share_low <= share).all() and (share <= table.share_high).all()
    gaps = np.abs(share - mean)  # groups of 1,250 or 500 rows, none tied
    for view, peer_value in (("ece_by_mass", gaps.mean()), ("ace", gaps.mean()),
                         ("mce_by_mass", gaps.max())):  # fmt: skip
        bounded = getattr(result, view)
        assert bounded.low * (1 - 1e-12) <= peer_value <= bounded.high * (1 + 1e-12), view
        assert bounded.width < 0.1 * peer_value


def test_groups_of_scores_in_buckets_of_their_own_are_their_quantiles() -> None:
    scores = np.repeat([0.001, 0.01, 0.02, 0.3, 0.9], 40)
    labels = np.random.default_rng(9).integers(0, 2, 200)
    metric = Calibration(grid="relative")
    metric.update(labels, scores)
    table = metric.compute().reliability_by_mass(5)
    share, mean = calibration.calibration_curve(labels, scores, n_bins=5, strategy="quantile")
    np.testing.assert_allclose(table.positive_share, share, rtol=1e-14)
    np.testing.assert_allclose(table.mean_score, mean, rtol=1e-14)


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
    options = {"sample_weight": weights}
    assert near(result.mae, sk.mean_absolute_error(labels, scores, **options), ROUNDINGS)
    assert near(result.mse, sk.mean_squared_error(labels, scores, **options), ROUNDINGS)
    assert abs(result.r2 - sk.r2_score(labels, scores, **options)) < 1e-12
