from __future__ import annotations

import pytest

from streammetrics.results.bounded import Bounded


def test_a_bounded_value_is_a_float_with_its_interval() -> None:
    area = Bounded(0.75, low=0.5, high=1.0)
    assert float(area) == 0.75
    assert (area.low, area.high, area.width) == (0.5, 1.0, 0.5)


def test_it_is_frozen_and_compared_by_value() -> None:
    area = Bounded(0.75, 0.5, 1.0)
    assert area == Bounded(0.75, 0.5, 1.0)
    with pytest.raises(AttributeError):
        area.value = 0.8  # type: ignore[misc]
