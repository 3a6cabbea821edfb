"""A column that a Panel gives another name is read as the argument that it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from streammetrics import (
    Accumulator,
    AlphaNDCG,
    GroupedScores,
    MulticlassAUC,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    StRecall,
    UserGroups,
    Windows,
)
from tests.cases import CASES
from tests.depth import classes_first

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")
pd = pytest.importorskip("pandas", reason="needs pandas")
pl = pytest.importorskip("polars", reason="needs polars")

TABLES: list[Callable[[dict[str, Any]], Any]] = [dict, pd.DataFrame, pl.DataFrame, pa.table]
SHARES = [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
EVENTS: dict[str, Any] = {
    "labels": [1, 0, 1, 1],
    "scores": [0.9, 0.5, 0.3, 0.2],
    "groups": ["a", "a", "b", "b"],
    "subtopics": [[1, 2], [], [3], [1]],
}
LISTS: dict[str, Any] = {
    "labels": [[1, 0], [0, 1, 1], [1]],
    "scores": [[0.9, 0.5], [0.1, 0.3, 0.2], [0.5]],
    "subtopics": [[[1, 2], []], [[], [3], [1]], [[2]]],
}
ROWS: dict[str, tuple[Accumulator, dict[str, Any]]] = {
    "events": (GroupedScores([AlphaNDCG @ 5, StRecall @ 2], ids="exact"), EVENTS),
    "lists": (RankingMetrics([AlphaNDCG @ 5, StRecall @ 2]), LISTS),
    "classes": (MulticlassAUC(3), {"labels": [0, 2, 1, 0], "scores": SHARES}),
    "keys": (PerKey(Ratio()), {"keys": ["a", "b", "a", "c"], "numerators": [1, 0, 1, 1]}),
}


@pytest.mark.parametrize("table", TABLES, ids=["dict", "pandas", "polars", "Arrow"])
@pytest.mark.parametrize("name", ROWS)
def test_every_role_may_have_another_name_in_every_table(
    name: str, table: Callable[[dict[str, Any]], Any]
) -> None:
    metric, rows = ROWS[name]
    expected, n = metric.empty(), len(next(iter(rows.values())))
    expected.update_from(rows)
    renames = {argument: f"my {argument}" for argument in metric.arguments()}
    panel = Panel({"renamed": metric}, inputs={"renamed": renames})
    renamed = table({renames[argument]: column for argument, column in rows.items()})
    panel.update_from(renamed)
    assert panel.state("renamed") == expected != metric

    keyed = Windows(PerKey(Panel({"inner": panel.empty()})), size_s=60)
    extra_columns = {"keys": ["k"] * n, "times_ms": [60_000] * n}
    keyed.update_from(table({**{renames[a]: c for a, c in rows.items()}, **extra_columns}))
    inner = keyed.total_state().state("k").state("inner")
    assert inner.state("renamed") == expected

    if name == "events":
        users = UserGroups(Panel({"renamed": metric}, inputs={"renamed": renames}))
        users.update_from(renamed, groups="my groups")
        assert users.metric_state().state("renamed") == expected


def test_keys_of_several_columns_may_have_another_name() -> None:
    panel = Panel({"by": PerKey(Ratio())}, inputs={"by": {"keys": "place"}})
    table = pd.DataFrame({"numerators": [1, 0], "country": ["de", "fr"], "city": ["x", "y"]})
    panel.update_from(table, place={"country": "country", "city": "city"})
    expected = PerKey(Ratio())
    expected.update_from(table, keys={"country": "country", "city": "city"})
    assert panel.state("by") == expected


@pytest.mark.parametrize(
    "case", classes_first([case for case in CASES if case.empty.arguments()]), ids=str
)
@settings(max_examples=3, phases=[Phase.generate])
@given(data=st.data())
def test_every_metric_reads_renamed_columns(case: Any, data: st.DataObject) -> None:
    rows = data.draw(st.lists(case.row, min_size=1, max_size=4))
    columns = case.columns(rows)
    renames = {argument: f"my_{argument}" for argument in case.empty.arguments()}
    panel = Panel({"renamed": case.empty}, inputs={"renamed": renames})
    panel.update(**{renames[argument]: column for argument, column in columns.items()})
    assert panel.state("renamed") == case.fed(rows)
