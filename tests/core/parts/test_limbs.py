"""Integers in limbs of 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.parts.float_bits import BITS, in_limbs, settled


@pytest.mark.parametrize(
    "units", [1, -1, 5 << 64, -(5 << 64), (1 << 96) - 1, -((1 << 33) + 1), 3**200, -(3**200) << 70]
)
def test_an_integer_is_the_sum_of_its_limbs_of_which_the_first_and_last_count(units: int) -> None:
    first, limbs = in_limbs(units)
    assert sum(limb << BITS * (first + i) for i, limb in enumerate(limbs)) == units
    assert limbs[0] and limbs[-1]
    assert all(abs(limb) < 1 << BITS for limb in limbs)


def test_settled_limbs_are_the_same_integers_and_below_their_ends() -> None:
    limbs = np.array([[1 << 40, -(1 << 50), 1 << 45], [-1, 0, 0], [7, 0, -(1 << 62)]])
    wanted = [sum(x << BITS * i for i, x in enumerate(row)) for row in limbs.tolist()]
    found = settled(limbs).tolist()
    assert [sum(x << BITS * i for i, x in enumerate(row)) for row in found] == wanted
    for row in found:
        assert all(0 <= x < 1 << 32 for x in row[:-1])
        assert -(1 << 31) <= row[-1] < 1 << 31
