"""t-statistics as normal ones, there and back."""

from __future__ import annotations

import math

import pytest

from streammetrics.kernels.inference.normal_mixture import as_t, gaussianised
from streammetrics.kernels.inference.tails import normal_sf, t_sf

DF = [1.0, 3.5, 15.0, 63.0, 1e4]


@pytest.mark.parametrize("df", DF)
@pytest.mark.parametrize("z", [0.01, 0.7, 2.0, 3.1, 6.0])
def test_the_tail_is_the_same(z: float, df: float) -> None:
    moved = gaussianised(z, df)
    assert math.isclose(normal_sf(moved), t_sf(z, df), rel_tol=1e-12)
    assert 0 < moved < z
    assert gaussianised(-z, df) == -moved
    assert math.isclose(as_t(moved, df), z, rel_tol=1e-11)
    assert as_t(-moved, df) == -as_t(moved, df)


@pytest.mark.parametrize("z", [-2.0, 0.0, 7.0])
def test_many_degrees_of_freedom_change_nothing(z: float) -> None:
    assert gaussianised(z, math.inf) == as_t(z, math.inf) == z


def test_what_no_float_can_hold_is_cut_on_the_safe_side() -> None:
    assert 37 < gaussianised(1e9, 63.0) < 38
    assert gaussianised(math.inf, 63.0) == gaussianised(1e9, 63.0)
    assert as_t(38.0, 3.0) == as_t(math.inf, 63.0) == math.inf
    assert as_t(-math.inf, 63.0) == -math.inf


@pytest.mark.parametrize("df", [0.0, -1.0, math.nan])
def test_without_degrees_of_freedom_there_is_nothing(df: float) -> None:
    assert math.isnan(gaussianised(2.0, df)) and math.isnan(as_t(2.0, df))


def test_nan_stays() -> None:
    assert math.isnan(gaussianised(math.nan, 5.0)) and math.isnan(as_t(math.nan, 5.0))
