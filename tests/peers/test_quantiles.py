"""Quantiles beside numpy and scipy, and beside DDSketch, whose buckets have relative widths too."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics import ExactQuantiles, Quantiles
from streammetrics.results import Bounded
from tests.peers.ddsketch_process import ENVIRONMENT, ask
from tests.requirements import Later, absent

stats = Later("scipy.stats")
BINARY = (0.0, 0.125, 0.25, 0.5, 0.75, 0.875, 1.0)  # numpy rounds n p for others: see below


def samples() -> list[np.ndarray]:
    """Ties, one value, skewed values of either sign, and values of every size."""
    rng = np.random.default_rng(12)
    return [
        rng.integers(-3, 4, 97).astype(float),
        np.array([2.5]),
        rng.lognormal(0, 2, 1_000),
        -rng.lognormal(0, 2, 501),
        rng.normal(0, 1, 640) * 10.0 ** rng.integers(-6, 7, 640),
    ]


def metrics_of(values: np.ndarray, *shards: np.ndarray) -> tuple[ExactQuantiles, Quantiles]:
    metrics = ExactQuantiles(), Quantiles()
    for metric in metrics:
        for shard in (values, *shards):
            part = metric.empty()
            part.update(shard)
            metric.merge(part)
    return metrics


def test_quantiles_are_those_of_numpy_that_are_observed_values() -> None:
    for values in samples():
        exact, coarse = (metric.compute() for metric in metrics_of(values))
        for p in BINARY:
            peer_value = np.quantile(values, p, method="inverted_cdf")
            assert exact.quantile(p) == peer_value
            bounds = coarse.quantile(p)
            assert isinstance(bounds, Bounded) and bounds.low <= peer_value <= bounds.high
            # The default interpolates between this value and the next one.
            after = np.quantile(values, min(1, p + 1 / len(values)), method="inverted_cdf")
            before = np.quantile(values, max(0, p - 1 / len(values)), method="inverted_cdf")
            assert before <= np.quantile(values, p) <= after


def test_a_decimal_share_is_not_the_binary_one_above_it() -> None:
    values = np.arange(1.0, 101.0)
    exact, _ = metrics_of(values)
    assert exact.compute().quantile(0.07) == 7.0
    assert np.quantile(values, 0.07, method="inverted_cdf") == 8.0


def test_trimmed_means_are_those_of_scipy() -> None:
    for values in samples():
        exact, _ = metrics_of(values)
        for share in (0.0, 0.125, 0.25):
            mean = exact.compute().trimmed_mean(share)
            assert mean == pytest.approx(stats.trim_mean(values, share), rel=1e-12, abs=1e-12)


def test_ddsketch_is_within_its_accuracy_of_the_exact_value_and_has_no_bounds() -> None:
    if not (ENVIRONMENT / ".made").is_file():
        absent("ddsketch", f"no {ENVIRONMENT}")
    shares, accuracy = (0.5, 0.9, 0.99), 2.0**-9
    for values in samples()[2:]:
        thirds = np.array_split(values, 3)
        estimates = ask([part.tolist() for part in thirds], shares, accuracy)
        exact, coarse = (metric.compute() for metric in metrics_of(*thirds))
        for p, estimate in zip(shares, estimates, strict=True):
            # Its rank is the integer part of p (n - 1), ours the least with a share of p.
            rank = math.floor(p * (len(values) - 1))
            value = float(np.sort(values)[rank])
            assert abs(estimate - value) <= 1.001 * accuracy * abs(value)
            bounds = coarse.quantile(p)
            assert isinstance(bounds, Bounded) and bounds.low <= exact.quantile(p) <= bounds.high
            # Both are as far from the exact value at most.
            assert abs(bounds.value - exact.quantile(p)) <= accuracy * abs(exact.quantile(p))
