"""Tables by rank: they grow, and what they say does not change when they do."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.kernels.exact.double_double import Pair
from streammetrics.kernels.ranking.rank_tables import (
    Growing,
    comes,
    discount_totals,
    discounts,
    harmonics,
    looks,
    reciprocals,
)


def test_a_table_grows_to_what_is_asked_for_and_is_made_once() -> None:
    made: list[int] = []

    def make(n: int) -> Pair:
        made.append(n)
        return Pair(np.arange(float(n)), np.zeros(n))

    table = Growing(make)
    assert len(table(3).high) == 128
    assert table(128) is table(1)
    assert len(table(129).high) == 256
    assert len(table(1000).high) == 1000
    assert made == [128, 256, 1000]


def test_a_table_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        reciprocals(4).high[0] = 2.0


@pytest.mark.parametrize(
    "table", [discounts, discount_totals, reciprocals, harmonics, comes(0.8), looks(0.8)]
)
def test_longer_tables_begin_as_shorter_ones_do(table: Growing[Pair]) -> None:
    before = table(100)
    n = len(before[0])
    longer = table(n + 1)
    assert len(longer[0]) > n
    assert all(np.array_equal(a, b[:n]) for a, b in zip(before, longer, strict=True))
