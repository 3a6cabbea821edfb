"""Different values, by marking and by sorting."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.parts.counts import distinct


@pytest.mark.parametrize("size", [7, 2_000, 1_000_000])
def test_each_row_has_the_place_of_its_value_among_the_different_ones(size: int) -> None:
    values = np.array([5, 0, 5, 6, 0], np.intp)
    present, positions = distinct(values, size)
    assert present.tolist() == [0, 5, 6]
    assert present[positions].tolist() == values.tolist()
    assert positions.dtype == np.intp


@pytest.mark.parametrize("size", [0, 10])
def test_no_rows_have_no_values(size: int) -> None:
    present, positions = distinct(np.empty(0, np.intp), size)
    assert len(present) == len(positions) == 0
