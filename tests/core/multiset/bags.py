"""Bags to test: how rows are fed, and what a column holds by its bytes."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer
from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.multiset.bag_layout import Rule
from streammetrics.core.multiset.bag_table import read_table
from streammetrics.core.parts.score_bits import integers_of, scores_of
from streammetrics.core.rows import DictionaryColumn

Row = tuple[int, object, float, int]  # slot, group, value, label
RULES = [
    *(
        Rule(values, 2, kind, None)
        for values, kind in product(
            ("float32", "float64", "auto"), (None, "integer", "hashed", "exact")
        )
    ),
    *(  # grades, and one that says that there is none
        Rule(values, 17, kind, None)
        for values, kind in product(("float32", "float64", "auto"), (None, "integer", "exact"))
    ),
    *(Rule("int64", 1, kind, None) for kind in (None, "integer", "exact")),
    Rule("int64", 2, None, None),
]
SCORES = (-np.inf, -1e300, -1.0, -0.0, 0.0, 1e-300, 0.5, float(np.nextafter(0.5, 1)), np.inf)
INTEGERS = (-(2**63), -(2**62) - 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1)


def names(rule: Rule) -> list[object]:
    if rule.ids == "exact":
        return ["", "a", "é", "\U0001f600", "b" * 300]
    return [0, 1, -7, 2**62, -(2**63), 3 << 40]


def feed(
    column: BagColumn,
    rows: list[Row],
    plain: bool = False,
    units: NDArray[np.int64] | None = None,
) -> None:
    """Add rows; plain: without slots; units: of weight."""
    slots, groups, values, labels = zip(*rows, strict=True) if rows else ((), (), (), ())
    kind = column.rule.ids
    group_column: np.ndarray | DictionaryColumn | None = None
    if kind == "exact":
        group_names = sorted(set(groups))
        group_column = DictionaryColumn(
            np.array([group_names.index(g) for g in groups], np.intp), tuple(group_names)
        )
    elif kind:
        group_column = np.array(groups, np.int64)
    column.add(
        np.array(values, np.int64 if column.rule.values == "int64" else np.float64),
        None if column.rule.labels == 1 else np.array(labels, np.uint8),
        None if plain else np.array(slots, np.intp),
        group_column,
        units,
    )


def fitted(rule: Rule, rows: list[Row]) -> list[Row]:
    """Rows of scores and labels 0 and 1 as this rule takes them."""
    return [
        (
            slot,
            group,
            int(4 * value) if rule.values == "int64" else value,
            label * (rule.labels - 1),
        )
        for slot, group, value, label in rows
    ]


def in_precision(rule: Rule, value: float) -> float:
    if rule.values == "int64":
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value)) + 0.0 if rule.values == "float32" else value + 0.0


def expected(rule: Rule, rows: list[Row]) -> Counter[Row]:
    return Counter(
        (slot, group if rule.ids else None, in_precision(rule, value), label)
        for slot, group, value, label in rows
    )


def contents(column: BagColumn) -> Counter[Row]:
    """What a column holds, read from its bytes."""
    table = read_table(column.rule, column.width, Reader(data(column)))
    decoded = integers_of if column.rule.values == "int64" else scores_of
    values = decoded(table.codes).tolist()
    group_names: list[object] = getattr(table.ids, "names", None) or getattr(table.ids, "ids", [])
    counts: Counter[Row] = Counter()
    ends = np.cumsum(table.sizes).tolist()
    for g, (slot, size, end) in enumerate(
        zip(table.slots.tolist(), table.sizes.tolist(), ends, strict=True)
    ):
        group = None if table.groups is None else group_names[int(table.groups[g])]
        group = group.item() if isinstance(group, np.integer) else group
        for i, label in product(range(end - size, end), range(len(table.counts))):
            if table.counts[label][i]:
                counts[slot, group, values[i], label] += int(table.counts[label][i])
    return counts


def data(column: BagColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def some_rows(rule: Rule, n: int, width: int, rng: np.random.Generator) -> list[Row]:
    group_names = names(rule)
    values = INTEGERS if rule.values == "int64" else SCORES
    return [
        (
            int(rng.integers(width)),
            group_names[int(rng.integers(len(group_names)))],
            values[int(rng.integers(len(values)))],
            int(rng.random() < 0.4) if rule.labels == 2 else int(rng.integers(rule.labels)),
        )
        for _ in range(n)
    ]
