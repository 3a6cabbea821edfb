"""Student's t and intervals as columns have the bits of the single ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.bounded import equal
from streammetrics.kernels.inference.t_columns import (
    critical_columns,
    logit_bound_columns,
    symmetric_bound_columns,
    t_isf_columns,
)
from streammetrics.kernels.inference.t_interval import critical, logit_bounds, symmetric_bounds
from streammetrics.kernels.inference.tails import t_isf

EDGES = [1.0, 1 + 2**-52, 31.99, 32.0, 4095.9, 4096.0, 2.0**50, 1e300, 0.3, 1e-9, 0.0, -1.0]


@pytest.mark.parametrize("p", [0.025, 0.005, 1e-10, 1e-300, 0.4, 0.5 - 2**-40, 0.5])
def test_quantiles_of_many_degrees_of_freedom_are_those_of_each(p: float) -> None:
    rng = np.random.default_rng(1)
    df = [*rng.uniform(1, 60, 200), *(10 ** rng.uniform(0, 8, 200)), *EDGES, math.inf, math.nan]
    together = t_isf_columns(p, np.array(df)).tolist()
    for x, quantile in zip(df, together, strict=True):
        assert equal(quantile, t_isf(p, float(x))), x


def test_quantiles_of_only_few_or_only_many_degrees_of_freedom_are_those_of_each() -> None:
    for df in (np.linspace(1, 40, 50), np.linspace(4096, 9000, 50)):
        assert t_isf_columns(0.025, df).tolist() == [t_isf(0.025, x) for x in df.tolist()]


def test_one_level_of_equal_and_of_unknown_degrees_of_freedom_has_the_critical_value_of_each() -> (
    None
):
    df = [7.0, 3.5, 7.0, math.nan, math.inf]
    together = critical_columns(0.9, np.array(df))
    assert isinstance(together, np.ndarray)
    assert equal(together.tolist(), [critical(0.9, x) for x in df])
    assert critical_columns(0.9) == critical(0.9)


number = st.floats(-2, 2) | st.sampled_from([0.0, 1.0, 0.5, math.nan, 1e-300, 1 - 2**-53])
error = st.floats(0, 2) | st.sampled_from([0.0, 1e300, 5e-324, math.inf, math.nan])


@given(st.lists(st.tuples(number, error, st.sampled_from([1.96, math.nan, 0.0])), min_size=1))
def test_bounds_of_many_estimates_are_those_of_each(rows: list[tuple[float, float, float]]) -> None:
    estimates, errors, q = np.array(rows).T
    logits = logit_bound_columns(estimates, errors, q)
    plain = symmetric_bound_columns(estimates, errors, q)
    for i, row in enumerate(rows):
        assert equal((logits[0].item(i), logits[1].item(i)), logit_bounds(*row)), row
        assert equal((plain[0].item(i), plain[1].item(i)), symmetric_bounds(*row)), row
