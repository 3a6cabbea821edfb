"""Bounded: a value with an interval that certainly holds the exact one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streammetrics.core.bounded import Bounded


def test_it_is_its_value_with_its_interval() -> None:
    area = Bounded(0.8666, low=0.5, high=1.0)
    assert float(area) == 0.8666
    assert (area.low, area.high, area.width) == (0.5, 1.0, 0.5)
    assert area == Bounded(0.8666, 0.5, 1.0)
    with pytest.raises(AttributeError):
        area.value = 0.8  # type: ignore[misc]
    assert f"{area:.3f} {area:8.1%}" == "0.867    86.7%"
    assert repr(area) == "Bounded(value=0.8666, low=0.5, high=1.0)"
    assert f"{area}" == str(area) == "0.8666 (exact within [0.5, 1.0])"
    assert str(Bounded(np.float64(0.5), 0.5, 0.5)) == "0.5 (exact)"
    assert (round(area, 2), round(area)) == (0.87, 1)
    assert isinstance(round(area, 2), float)


def test_a_comparison_with_a_number_says_what_to_pass() -> None:
    area = Bounded(0.75, 0.5, 1.0)
    compared: list[tuple[Callable[[Any], object], str]] = [
        (lambda x: x > 0.5, "a Bounded is an interval, so > a float is undefined"),
        (lambda x: x > 1, "so > a int is undefined"),
        (lambda x: x <= x, "so <= another Bounded is undefined"),
        (lambda x: x >= 1, "so >= a int is undefined"),
        (lambda x: x == 0.75, "so == a float is undefined"),
        (lambda x: x != 0.75, "so == a float is undefined"),
        (lambda x: np.float64(0.75) == x, "numpy's equal takes numbers, not a Bounded"),
        (lambda x: np.float64(0.5) < x, "numpy's less takes numbers, not a Bounded"),
        (lambda x: np.isnan(x), "numpy's isnan takes numbers, not a Bounded"),
        (lambda x: sorted([x, x]), "so < another Bounded is undefined"),
    ]
    for compare, message in compared:
        with pytest.raises(TypeError) as error:
            compare(area)
        assert message in str(error.value)
        advice = ": pass float(x) for the value, or x.low or x.high for a certain bound"
        assert str(error.value).endswith(advice)


def test_what_is_no_number_is_not_equal_to_it() -> None:
    area = Bounded(math.nan, 0.5, 1.0)
    assert area != "0.75" and area not in (None, ()) and area == area
    assert math.isnan(area) and hash(area) == hash(Bounded(area.value, 0.5, 1.0))
