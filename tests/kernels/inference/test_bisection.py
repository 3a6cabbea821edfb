"""The last float inside, exactly."""

from __future__ import annotations

import math

import pytest

from streammetrics.kernels.inference.tails import last_inside


@pytest.mark.parametrize("edge", [1.0, 1.3, 1.9999999, -0.7, 1e-9])
def test_the_end_is_the_float_next_to_the_change(edge: float) -> None:
    assert last_inside(-2.0, 2.0, lambda x: x <= edge) == edge
    assert last_inside(2.0, -2.0, lambda x: x >= edge) == edge
    assert last_inside(-2.0, 2.0, lambda x: x < edge) == math.nextafter(edge, -math.inf)


def test_neighbours_end_at_once() -> None:
    def never(x: float) -> bool:
        raise AssertionError(x)

    assert last_inside(1.0, math.nextafter(1.0, 2.0), never) == 1.0
    assert last_inside(1.0, 1.0, never) == 1.0
