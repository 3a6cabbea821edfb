"""Whole numbers without end in a table of exact sums."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from streammetrics import GroupedAUC, InputError, StateError
from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.parts.exact_sums import (
    ExactSumsColumn,
    WithoutRows,
    add_whole,
    require_whole,
    unlimited,
)


def table(cells: int) -> ExactSumsColumn:
    return ExactSumsColumn(cells, 1, ExactSumColumn(cells))


def test_integers_of_any_size_are_added_exactly() -> None:
    random, sums, total = Random(5), table(3), [0, 0, 0]
    for _ in range(50):
        values = [random.getrandbits(random.choice((0, 1, 53, 54, 160, 900))) for _ in range(3)]
        add_whole(sums, values)
        total = [a + b for a, b in zip(total, values, strict=True)]
    assert [int(value) for value in sums.fractions()] == total
    require_whole(sums)


@pytest.mark.parametrize("bad", [0.5, -1.0, float("inf")])
def test_other_numbers_are_damage(bad: float) -> None:
    sums = table(2)
    sums.add(np.array([bad]), np.array([1]))
    with pytest.raises(StateError, match="no whole numbers"):
        require_whole(sums)


def test_the_refusals_say_what_to_do() -> None:
    users = GroupedAUC()
    sealed = seal(users, Sealing("user", 1, "xxhash64", "today"))
    assert isinstance(sealed, WithoutRows)
    for refused in (sealed.update, sealed.check, users._totals().update):
        with pytest.raises(InputError, match="compute the whole scope again"):
            refused(labels=[1])
    assert "leave max_rows out" in str(unlimited(GroupedAUC(max_rows=3)))
