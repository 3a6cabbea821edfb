"""Many groups at once: the results of all groups are those of each state, also by way of shards."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from streammetrics import InputError, OverlapError, Ratio
from streammetrics.engines import (
    Task,
    aggregate,
    keyed,
    merge_all,
    partial,
    results_rows,
    results_schema,
    states_schema,
)
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import classes_first
from tests.engines.every_case import rows_of
from tests.engines.log_rows import COLUMNS, SPEC, log_table, states, with_groups

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")

BY = ["variant", "mobile", "phase"]


@pytest.mark.parametrize("case", classes_first(CASES), ids=str)
def test_the_results_of_groups_together_are_those_of_each_state(case: Case[Any]) -> None:
    rows = rows_of(case)
    groups = np.resize(np.array([3, None, 1, 3, 2, 5]), rows.batch.num_rows)
    batch = rows.batch.append_column("group", pa.array(groups.tolist(), pa.int8()))
    expected = [
        (row["group"], *figure)
        for state_batch in partial([batch], rows.spec, ["group"])
        for row in state_batch.to_pylist()
        for figure in results_rows(row["state"])
    ]
    table = aggregate([batch, batch.slice(0, 0)], rows.spec, ["group"])
    assert repr([tuple(row.values()) for row in table.to_pylist()]) == repr(expected)
    whole = aggregate([batch], rows.spec)
    assert repr([tuple(row.values()) for row in whole.to_pylist()]) == repr(
        results_rows(rows.whole)
    )


def test_shards_of_tasks_have_the_results_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_groups(log_table(4_000, 300))
    for most in (1 << 26, 1 << 10):  # in one piece, and in several
        monkeypatch.setattr(keyed, "_BYTES", most)
        shipped = defaultdict(list)
        for task in (table.slice(0, 999), table.slice(999)):
            for shard, state in keyed.shards(task.to_batches(70), SPEC, BY, COLUMNS):
                shipped[shard].append(state)
        assert len(shipped) > 4 and max(shipped) < keyed.SHARDS
        fields = list(states_schema(table.schema, BY))[: len(BY)]
        batches = [
            b
            for shard_states in shipped.values()
            for b in keyed.results_of_shard(shard_states, fields)
        ]
        whole = aggregate(table.to_batches(), SPEC, BY, columns=COLUMNS)
        assert batches[0].schema == whole.schema
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert sorted(map(repr, rows)) == sorted(map(repr, whole.to_pylist()))


@pytest.mark.parametrize("name", ["metric", "view", "value", "low", "high"])
def test_a_group_column_is_named_as_no_column_of_results(name: str) -> None:
    batch = pa.record_batch({name: ["a", "b"], "numerators": [1, 0]})
    with pytest.raises(InputError, match=f"by: expected names of columns, .*got '{name}'"):
        aggregate([batch], Ratio(), [name])
    with pytest.raises(InputError, match="by: expected names of columns"):
        results_schema(batch.schema, [name])


def test_no_rows_have_no_results() -> None:
    empty = log_table(0)
    assert aggregate(empty.to_batches(), SPEC, BY[:1], columns=COLUMNS).num_rows == 0
    assert aggregate([], SPEC, BY).num_rows == aggregate([], SPEC).num_rows == 0


@pytest.mark.parametrize("most", [1 << 26, 1])
def test_states_of_groups_merge_group_by_group(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "_BYTES", most)
    table = with_groups(log_table(4_000, 300))
    tasks = [
        (row["variant"], row["state"])
        for number in range(3)
        for row in states(
            table.slice(1_500 * number, 1_500), SPEC, BY[:1], counted=Task("j", number)
        )
    ]
    together = keyed.StatesByGroup("skip")
    together.add(((variant,), state) for variant, state in [*tasks, *tasks])
    totals = dict(together.merged())
    assert totals == {
        (variant,): merge_all(state for group, state in tasks if group == variant)
        for variant in ("a", "b", None)
    }
    with pytest.raises(OverlapError):
        twice = keyed.StatesByGroup()
        twice.add((("a",), state) for _, state in [*tasks, *tasks])
        dict(twice.merged())
