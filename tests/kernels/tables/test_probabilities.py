from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.errors import InputError
from streammetrics.kernels.exact.double_double import two_sum
from streammetrics.kernels.exact.elementary import CHUNK, log
from streammetrics.kernels.tables.probabilities import (
    bin_edges,
    binary_entropy,
    equal_bins,
    log_losses,
    recalibrated,
)


def test_a_score_at_an_edge_opens_the_bin_above_it() -> None:
    for n in (1, 2, 3, 10, 49, 1000):
        edges = bin_edges(n)
        assert equal_bins(edges, n).tolist() == [*range(n), n - 1]
        assert equal_bins(np.nextafter(edges[1:], 0), n).tolist() == list(range(n))
        assert equal_bins(np.nextafter(edges[:-1], 2), n).tolist() == list(range(n))


@given(st.floats(0, 1), st.integers(1, 1000))
def test_the_bin_is_the_last_whose_edge_is_not_above_the_score(score: float, n: int) -> None:
    expected = min(max(i for i in range(n + 1) if i / n <= score), n - 1)
    assert equal_bins(np.array([score]), n)[0] == expected


def test_log_losses_at_the_ends() -> None:
    labels = np.array([0, 1, 0, 1, 0, 1, 0], np.uint8)
    scores = np.array([0.0, 1.0, 1.0, 0.0, 0.5, 0.5, 5e-324])
    half = 0.6931471805599453
    losses = log_losses(labels, scores)
    assert losses.high.tolist() == [0.0, 0.0, math.inf, math.inf, half, half, 5e-324]
    assert not np.signbit(losses.high).any()


def test_the_entropy_of_counts_that_floats_do_not_hold() -> None:
    assert binary_entropy(5, 0) == binary_entropy(0, 5) == binary_entropy(0, 0) == 0
    assert float(binary_entropy(3, 3)) == 0.6931471805599453
    n = 2**62
    q = 1 / (n + 1)  # -q ln q - (1 - q) ln(1 - q) is q (1 + ln(n + 1)), but for q²
    assert math.isclose(binary_entropy(1, n), q * (1 + 62 * math.log(2)), rel_tol=1e-15)
    assert binary_entropy(n, 1) == binary_entropy(1, n)


@given(st.floats(1e-300, 1), st.floats(1e-6, 1))
def test_recalibration_is_the_formula(p: float, rate: float) -> None:
    value = recalibrated([p], rate)[0]
    assert math.isclose(value, p / (p + (1 - p) / rate), rel_tol=8 * 2.0**-53)


def test_recalibration_without_sampling_changes_nothing_that_matters() -> None:
    p = np.linspace(0, 1, 101, dtype=np.float32)
    values = recalibrated(p, 1)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, p, rtol=2.0**-51, atol=0)
    assert recalibrated([], 0.5).tolist() == []


def test_a_rate_that_is_no_share_is_refused() -> None:
    for rate in (0, 1.5, math.nan, True, "1"):
        with pytest.raises(InputError, match="rate: expected a share of the negatives"):
            recalibrated([0.5], rate)  # type: ignore[arg-type]


def test_logits_are_refused() -> None:
    with pytest.raises(InputError, match="pass probabilities, not logits") as caught:
        recalibrated([0.5, 2.0], 0.5)
    assert caught.value.rows is not None and caught.value.rows.tolist() == [1]


@pytest.mark.parametrize("clip", [None, 1e-310, 1e-15, 0.1, 0.5])
def test_log_losses_are_the_logarithms_of_the_probability_of_each_class(
    clip: float | None,
) -> None:
    rng = np.random.default_rng(3)
    ends = [0.0, 5e-324, 2.0**-1022, 1e-300, 2.0**-54, 2.0**-53, 1e-15, 0.1, 1 / 3, 0.5]
    near = [
        x for end in ends for x in (end, np.nextafter(end, 1), 1 - end, np.nextafter(1 - end, 0))
    ]
    scores = np.concatenate([near, rng.random(CHUNK), np.exp(-700 * rng.random(CHUNK))])
    for labels in (np.zeros(len(scores), np.uint8), np.ones(len(scores), np.uint8)):
        high = scores if labels[0] else 1.0 - scores
        low = np.zeros(len(scores)) if labels[0] else (1.0 - high) - scores
        if clip is not None:
            top = two_sum(np.ones(1), np.full(1, -clip))
            above = (1.0 - scores if labels[0] else scores) < clip
            high, low = np.maximum(high, clip), np.where(high < clip, 0.0, low)
            high, low = np.where(above, top[0], high), np.where(above, top[1], low)
        expected, losses = log(high, low), log_losses(labels, scores, clip)
        assert losses.high.tolist() == (0.0 - expected.high).tolist()
        assert losses.low.tolist() == (0.0 - expected.low).tolist()
