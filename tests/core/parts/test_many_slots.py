"""Rows that count in several states, against a dict of rows and slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.parts.many_slots import NO_SLOT, Grouping, ManySlots

WIDTH = 40


def groupings(kind: str, n: int, rng: np.random.Generator) -> Iterator[Grouping]:
    """Groupings whose slots are alone or shared, repeated, related, and absent in some rows."""
    users = rng.integers(0, 5, n)
    for i in range(7):
        match kind:
            case "arms":
                yield Grouping(np.array([2 * i, 2 * i + 1]), rng.integers(0, 2, n))
            case "gaps":
                yield Grouping(np.array([NO_SLOT, 2 * i, 2 * i + 1]), rng.integers(0, 3, n))
            case "none":
                yield Grouping(np.array([NO_SLOT]), np.zeros(n, np.intp))
            case "one slot":
                yield Grouping(np.array([3, 3, NO_SLOT, 3]), rng.integers(0, 4, n))
            case "users":
                yield Grouping(rng.integers(0, WIDTH, 5), users)
            case "many":
                yield Grouping(rng.integers(NO_SLOT, WIDTH, n + 1), rng.integers(0, n + 1, n))


@pytest.mark.parametrize("kind", ["arms", "gaps", "none", "one slot", "users", "many"])
@pytest.mark.parametrize("n", [1, 30, 3_000])
def test_rows_are_added_up_as_one_after_another(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    row_slots = ManySlots([*groupings(kind, n, rng)])
    cells, values = rng.integers(0, 3, n), rng.integers(-9, 9, n) / 8
    rows = [np.arange(n)[section] for section in (slice(None), slice(n // 3, n), slice(0, n // 2))]
    cases = [
        (row_slots, rows[0], 1),
        (row_slots[n // 3 :], rows[1], 1),
        (row_slots[rows[2]], rows[2], 1),
    ]
    inner = row_slots.cell_slots(3, cells)
    cases += [(inner, rows[0], 3), (inner[n // 3 :], rows[1], 3), (inner[rows[2]], rows[2], 3)]
    for case_slots, case_rows, size in cases:
        expected, counted = Counter[int](), Counter[int]()
        for slots, codes in row_slots.groupings:
            for row in case_rows.tolist():
                if (slot := slots.item(codes.item(row))) != NO_SLOT:
                    to = slot * size + (cells.item(row) if size > 1 else 0)
                    expected[to] += int(values.item(row) * 8)
                    counted[to] += 1
        if len(case_rows):
            present, sums = (
                case_slots.present.tolist(),
                case_slots.sums(values[case_rows], -3).tolist(),
            )
            assert sorted(set(present)) == present
            sum_by_slot = dict(zip(present, sums, strict=True))
            assert {to: sum_by_slot[to] for to in counted} == dict(expected)
            assert not any(sum_ for to, sum_ in sum_by_slot.items() if to not in counted)
            counts = dict(zip(present, case_slots.counts().tolist(), strict=True))
            assert {to: count for to, count in counts.items() if count} == dict(counted)
        assert Counter(case_slots.every().tolist()) == counted
        exact, one_by_one = ExactSumColumn(WIDTH * 3), ExactSumColumn(WIDTH * 3)
        exact.add(values[case_rows], case_slots)
        one_by_one.add(case_slots.spread(values[case_rows]), case_slots.every())
        every = np.arange(WIDTH * 3)
        assert exact.units(every).fractions() == one_by_one.units(every).fractions()
