"""The groups of a bag: their rows, and those that hold a row more than once."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.parts.score_bits import integers_of, scores_of
from tests.bags import RULES, Row, expected, feed, held, some_rows

GROUPED = [rule for rule in RULES if rule.ids]


def filled(column: BagColumn, seed: int, times: int) -> list[Row]:
    """Rows that it now holds; with `times` above 1 so that keys have counts."""
    rows = some_rows(column.rule, 60, 1, np.random.default_rng(seed)) * times
    feed(column, rows, plain=True)
    return rows


@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize("rule", GROUPED, ids=lambda r: f"{r.values}-{r.labels}-{r.ids}")
def test_groups_hold_their_rows_in_ascending_order(rule, times: int) -> None:  # type: ignore[no-untyped-def]
    column = BagColumn(rule, 1)
    filled(column, 3, times)
    decoded = integers_of if rule.values == "int64" else scores_of
    by_group: dict[object, list[tuple[object, int]]] = defaultdict(list)
    for (_, name, value, label), n in held(column).items():
        by_group[name] += [(value, label)] * n
    groups = column.groups()
    names = getattr(column.ids, "names", None)
    names = names or column.ids.ids.tolist()  # type: ignore[union-attr]
    assert len(groups) == len(by_group) and int(groups.sizes.sum()) == column.total
    for i, index in enumerate(groups.indices.tolist()):
        codes, labels = groups.rows(np.array([i]))
        found = list(zip(decoded(codes).tolist(), labels.tolist(), strict=True))
        assert found == sorted(by_group[names[index]])
        assert len(found) == groups.sizes[i]
    some = np.array([0, len(groups) - 1])
    codes, _ = groups.rows(some)
    assert len(codes) == groups.sizes[some].sum()


@pytest.mark.parametrize("rule", GROUPED, ids=lambda r: f"{r.values}-{r.labels}-{r.ids}")
def test_groups_with_a_row_more_than_once_are_found_with_and_without_counts(rule) -> None:  # type: ignore[no-untyped-def]
    for times in (1, 2):
        column = BagColumn(rule, 1)
        rows = filled(column, 4, times)
        twice = {row[1] for row, n in expected(rule, rows).items() if n > 1}
        groups = column.groups()
        found = groups.indices[groups.repeated()].tolist()
        names = getattr(column.ids, "names", None)
        names = names or column.ids.ids.tolist()  # type: ignore[union-attr]
        assert sorted(map(str, (names[i] for i in found))) == sorted(map(str, twice))


def test_an_empty_bag_has_no_groups() -> None:
    for rule in GROUPED:
        groups = BagColumn(rule, 1).groups()
        assert len(groups) == 0 and len(groups.repeated()) == 0
        assert len(groups.rows(np.empty(0, np.intp))[0]) == 0
