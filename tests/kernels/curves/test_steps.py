"""Cumulative counts from high to low, and shares of counts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.curves.steps import shares, steps


def test_steps_go_from_high_to_low_and_leave_out_empty_places() -> None:
    curve = steps(np.array([3, 0, 1, 0]), np.array([0, 0, 2, 5]))
    assert curve.tp.tolist() == [0, 5, 7, 7]
    assert curve.fp.tolist() == [0, 0, 1, 4]
    assert curve.positions.tolist() == [3, 2, 0]
    assert (curve.positives, curve.negatives, curve.rows, curve.pairs) == (7, 4, 11, 28)


@pytest.mark.parametrize("top", [2**61, 2**62, 2**63 - 1])
def test_sums_past_int64_are_exact(top: int) -> None:
    curve = steps(np.array([top, top, 1]), np.array([1, top, top]))
    assert curve.fp.tolist() == [0, 1, top + 1, 2 * top + 1]
    assert curve.tp.tolist() == [0, top, 2 * top, 2 * top + 1]
    assert curve.rows == 4 * top + 2


@pytest.mark.parametrize("scale", [1, 2**53, 2**60])
def test_shares_are_correctly_rounded_at_any_size(scale: int) -> None:
    parts = np.array([0, 1, 2, 3, 7], np.int64) * scale
    parts[1:] += 1
    assert shares(parts, 7 * scale + 2).tolist() == [
        float(Fraction(part, 7 * scale + 2)) for part in parts.tolist()
    ]
    assert math.isnan(shares(np.array([0]), np.array([0]))[0])
