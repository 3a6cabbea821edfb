"""Quantiles: the exact least and greatest value, and states that contradict themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streammetrics import ExactQuantiles, PerKey, Quantiles, StateError
from streammetrics.core.parts.score_bits import codes_of, integers_of, ordered_integers


def state(values: list[float], **settings: Any) -> Quantiles:
    metric = Quantiles(**settings)
    metric.update(values)
    metric.compute()  # no row is pending, so that a test may alter the state
    return metric


@pytest.mark.parametrize("value", [0.5, -7.0, 2.0**30, math.inf])
def test_a_least_value_outside_of_the_lowest_bucket_is_refused(value: float) -> None:
    altered = state([1.0, 2.0, 3.0])
    altered.extremes.least[:] = value
    altered.extremes.greatest[:] = max(3.0, value)
    with pytest.raises(StateError, match="extremes outside of the occupied buckets"):
        Quantiles.from_bytes(altered.to_bytes())


def test_a_greatest_value_outside_of_the_highest_bucket_is_refused() -> None:
    altered = state([1.0, 2.0, 3.0])
    altered.extremes.greatest[:] = math.inf
    with pytest.raises(StateError, match="extremes outside of the occupied buckets"):
        Quantiles.from_bytes(altered.to_bytes())


def test_extremes_of_no_rows_are_refused() -> None:
    altered = state([])
    altered.extremes.add(np.array([1.0]))
    with pytest.raises(StateError, match="extremes outside of the occupied buckets"):
        Quantiles.from_bytes(altered.to_bytes())


def test_extremes_and_buckets_at_their_edges_are_read_back() -> None:
    edges = [2.0**24, math.nextafter(2.0**24, 0), 2.0**-24, math.nextafter(2.0**-24, 0), 1.0]
    values = [*edges, *(-edge for edge in edges), 0.0, -0.0, math.inf, -math.inf, 5e-324]
    for sample in (values, values[:3], values[3:4], values[-3:], [-0.0]):
        whole = state(sample)
        copy = Quantiles.from_bytes(whole.to_bytes())
        assert copy == whole
        assert (copy.compute().minimum, copy.compute().maximum) == (min(sample), max(sample))


def test_the_value_of_a_bucket_of_subnormal_numbers_is_within_its_bounds() -> None:
    for values in ([5e-324], [-5e-324], [5e-324, 1e-323], [-1e-323, -5e-324, 1.0]):
        for edges in ((-1.0,), (0.0, 1.0), (-1e-323, 5e-324)):
            result = state(values, grid="edges", edges=edges).compute()
            assert (result.low <= result.values).all() and (result.values <= result.high).all(), (
                edges
            )


def test_results_by_key_are_those_of_each_key_alone() -> None:
    rng = np.random.default_rng(4)
    keys = rng.integers(0, 40, 3_000)
    values = np.where(keys % 3 == 0, -1.0, 1.0) * rng.lognormal(0, 3, 3_000)
    values[::50] = 0.0
    for kind in (
        Quantiles(),
        Quantiles(grid="edges", edges=(0.0, 2.0)),
        ExactQuantiles(max_rows=80),
    ):
        metric = PerKey(kind)
        for batch in np.array_split(np.arange(3_000), 7):
            metric.update(keys[batch], values=values[batch])
        results = metric.compute()
        for key in range(40):
            single_state = kind.empty()
            single_state.update(values[keys == key])
            result, single_result = results[key], single_state.compute()
            for name in ("values", "low", "high", "counts"):
                assert np.array_equal(getattr(result, name), getattr(single_result, name)), (
                    key,
                    name,
                )
            assert (result.rows, result.reason) == (single_result.rows, single_result.reason)
            assert (result.minimum, result.maximum) == pytest.approx(
                (single_result.minimum, single_result.maximum), rel=0, nan_ok=True
            )
        assert any(results[key].reason for key in range(40)) == (type(kind) is ExactQuantiles)


def test_extremes_are_kept_in_the_order_of_floats() -> None:
    values = np.array([-math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 2.0, math.inf])
    codes = ordered_integers(values)
    assert codes.tolist() == integers_of(codes_of(values)).tolist()
    assert ordered_integers(values[4:]).tolist() == codes[4:].tolist()  # none is negative
    assert ordered_integers(values.astype(np.float32)[[1, 6]]).tolist() == codes[[1, 6]].tolist()
