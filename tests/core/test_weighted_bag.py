"""Bags of weighted rows: any batches, slots and merges, against a dictionary of units."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from streammetrics.core.bytes.codec import Reader
from streammetrics.core.errors import StateError
from streammetrics.core.multiset import bag as bag_module
from streammetrics.core.multiset import sorted_run
from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.multiset.bag_layout import Rule
from streammetrics.core.multiset.bag_table import read_table
from tests.bags import data, held

RULES = [
    Rule(values, 2, ids, None, weighted=True)
    for values in ("float32", "float64")
    for ids in (None, "integer")
]
weighted_rule = pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.values}-{r.ids}")
Row = tuple[int, int, float, int, int]  # slot, group, value, label, units


def some_rows(n: int, width: int, rng: np.random.Generator) -> list[Row]:
    values = (-np.inf, -1.0, -0.0, 0.0, 0.5, np.inf)
    return [
        (
            int(rng.integers(width)),
            int(rng.integers(3)),
            values[int(rng.integers(6))],
            int(rng.integers(2)),
            int(rng.choice([1, 1, 2, 300, 1 << 40])),
        )
        for _ in range(n)
    ]


def feed(column: BagColumn, rows: list[Row], *, plain: bool = False) -> None:
    """Add rows; plain: those of one unit without units, and of one slot without slots."""
    ones = [row for row in rows if row[-1] == 1]
    for some in ([row for row in rows if row[-1] > 1], ones) if plain else (rows,):
        slots, groups, values, labels, units = zip(*some, strict=True) if some else [()] * 5
        column.add(
            np.array(values, np.float64),
            np.array(labels, np.uint8),
            None if plain and column.width == 1 else np.array(slots, np.intp),
            np.array(groups, np.int64) if column.rule.ids else None,
            None if plain and some is ones else np.array(units, np.int64),
        )


def expected(rule: Rule, rows: list[Row]) -> Counter[tuple[int, int | None, float, int]]:
    found: Counter[tuple[int, int | None, float, int]] = Counter()
    for slot, group, value, label, units in rows:
        found[slot, group if rule.ids else None, value + 0.0, label] += units
    return found


@weighted_rule
@pytest.mark.parametrize("width", [1, 5])
def test_units_and_rows_are_those_that_came_however_they_came(
    rule: Rule, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, size in (
        (sorted_run, "BUFFERED", 50), (sorted_run, "FAN", 4), (bag_module, "_WAIT", 20),
        (bag_module, "_PIECE", 37),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, size)
    rng = np.random.default_rng(width)
    for sizes in ([0, 1, 3, 40], [100] * 3, [5] * 30):
        batches = [some_rows(n, width, rng) for n in sizes]
        rows = [row for batch in batches for row in batch]
        whole, streamed, merged = (BagColumn(rule, width) for _ in range(3))
        feed(whole, rows)
        for batch in batches:
            feed(streamed, batch, plain=width == 1)
            part = BagColumn(rule, width)
            feed(part, batch, plain=True)
            merged.merge(part, np.arange(width))
        assert held(whole) == expected(rule, rows)
        assert data(whole) == data(streamed) == data(merged)
        assert (
            whole.total_count
            == streamed.total_count
            == merged.total_count
            == sum(row[-1] for row in rows)
        )
        assert (whole.total, whole.units) == (
            sum(row[0] == 0 for row in rows),
            sum(row[-1] for row in rows if row[0] == 0),
        )
        back = BagColumn.of(rule, read_table(rule, width, Reader(data(whole))))
        assert (data(back), back.total_count) == (data(whole), whole.total_count)
        taken = whole.take(np.array([width - 1]))
        assert taken.total_count == sum(row[-1] for row in rows if row[0] == width - 1)


@weighted_rule
def test_max_rows_counts_rows_and_not_units(rule: Rule) -> None:
    limited = replace(rule, max_rows=3)
    one, other = BagColumn(limited, 1), BagColumn(limited, 1)
    rows: list[Row] = [(0, 1, 0.5, 1, 1 << 40), (0, 1, 0.25, 0, 7), (0, 2, 0.5, 1, 9)]
    feed(one, rows)
    assert not one.dropped and one.units == (1 << 40) + 16
    feed(other, rows[:2])
    other.merge(one, np.zeros(1, np.intp))
    feed(one, rows[:2])
    feed(one, rows)
    feed(other, rows)
    for column in (one, other):
        assert column.dropped and (column.total, column.total_count) == (8, 8)
    assert data(one) == data(other)


@pytest.mark.parametrize(("total", "good"), [(1, False), (2, True), (5, True), (6, False)])
def test_more_rows_than_units_or_fewer_than_different_ones_are_refused(
    total: int, good: bool
) -> None:
    rule = Rule("float32", 2, None, None, weighted=True)
    column = BagColumn(rule, 1)
    feed(column, [(0, 0, 0.5, 1, 4), (0, 0, 0.5, 0, 1)])
    bytes_ = data(column)
    assert bytes_[:2] == b"\1\2"
    other = bytes([1, total]) + bytes_[2:]
    if good:
        assert read_table(rule, 1, Reader(other)).totals.tolist() == [total]
    else:
        with pytest.raises(StateError, match="totals that are not those"):
            read_table(rule, 1, Reader(other))
    if total != 5:
        with pytest.raises(StateError, match="totals that are not those"):
            read_table(replace(rule, weighted=False), 1, Reader(other))
