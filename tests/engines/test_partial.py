"""partial: rows in batches to one state a group, the same as in a single process."""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import pytest

from streammetrics import InputError, MulticlassAUC, RankingMetrics, load
from streammetrics.engines import (
    merge_all,
    merged,
    partial,
    states_schema,
)
from tests.engines.impressions import COLUMNS, SPEC, N, log, single, states

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'streammetrics[parquet]'")


@pytest.mark.parametrize("seed", range(2))
def test_any_split_into_tasks_and_any_order_gives_the_state_of_one_process(seed: int) -> None:
    random, table = Random(seed), log(seed=seed)
    cuts = sorted(random.sample(range(N), 4))
    tasks = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, N], strict=True)]
    sizes = [random.choice((9, 999)) for _ in tasks]
    found = [
        row["state"]
        for task, size in zip(tasks, sizes, strict=True)
        for row in states(task, SPEC, size=size)
    ]
    random.shuffle(found)
    half = len(found) // 2
    merged_twice = merge_all([merge_all(found[:half]), merge_all(found[half:])])
    assert load(merged_twice).digest() == single(table).digest()


def test_each_group_is_the_state_of_its_rows_and_a_null_is_a_group() -> None:
    table = log()
    found = states(table, SPEC, ["variant", "mobile"])
    assert len(found) == 6
    for row in found:
        keep = [
            (v, m) == (row["variant"], row["mobile"])
            for v, m in zip(table["variant"].to_pylist(), table["mobile"].to_pylist(), strict=True)
        ]
        assert load(row["state"]) == single(table.filter(pa.array(keep)))
    everything = merged(row["state"] for row in found)
    assert everything == single(table)


def test_types_of_groups_stay_and_dictionaries_become_their_values() -> None:
    table = log()
    schema = states_schema(table.schema, ["topic", "log", "mobile"])
    assert [str(field.type) for field in schema] == ["string", "int32", "bool", "int32", "binary"]
    made = list(partial(table.to_batches(), SPEC, ["topic", "log", "mobile"], columns=COLUMNS))
    assert all(batch.schema == schema for batch in made)


def test_a_task_without_rows_emits_nothing() -> None:
    assert list(partial([], SPEC)) == []
    assert states(log(0), SPEC, ["variant"]) == []


def test_the_bucket_may_be_a_number_or_a_column() -> None:
    table = log()
    bucket = pa.array(np.array(table["user"]) % 5, pa.int32())
    found = states(table.append_column("b", bucket), SPEC, ["mobile"], bucket="b")
    assert [row["bucket"] for row in found] == [0, 1, 2, 3, 4] * 2
    assert merged(row["state"] for row in found) == single(table)
    assert {row["bucket"] for row in states(table, SPEC, bucket=7)} == {7}
    with pytest.raises(InputError, match="number of the user bucket"):
        states(table, SPEC, bucket="variant")


def test_columns_that_are_not_there_are_named() -> None:
    table = log(10)
    with pytest.raises(InputError, match="the column 'labels'"):
        list(partial(table.to_batches(), SPEC))
    with pytest.raises(InputError, match="'nobody'"):
        list(partial(table.to_batches(), SPEC, columns={**COLUMNS, "groups": "nobody"}))
    with pytest.raises(InputError, match="'nothing'"):
        list(partial(table.to_batches(), SPEC, columns={**COLUMNS, "nothing": "user"}))
    for by in (["nobody"], ["score"]):
        with pytest.raises(InputError, match="by"):
            states(table, SPEC, by)
    with pytest.raises(InputError, match="each once"):
        states(table, SPEC, ["variant", "variant"])


def test_rows_that_the_metric_refuses_are_refused() -> None:
    table = log(10).set_column(3, "score", pa.array([0.5] * 9 + [None], pa.float32()))
    with pytest.raises(InputError, match=r"scores\[9\]"):
        states(table, SPEC)


def test_large_states_are_emitted_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["streammetrics.engines.partial"]  # the package has a function of its name
    sizes = [len(row["state"]) for row in states(log(), SPEC, ["variant", "mobile"])]
    # Each by itself, two of them together, and all.
    for most, n in ((1, 1), (2 * max(sizes), 2), (sum(sizes), 6)):
        monkeypatch.setattr(module, "_BYTES", most)
        made = list(partial(log().to_batches(), SPEC, ["variant", "mobile"], columns=COLUMNS))
        found = [batch.num_rows for batch in made]
        assert sum(found) == 6 and max(found) >= n
        for batch in made:
            held = sum(map(len, batch["state"].to_pylist()))
            assert held <= most or batch.num_rows == 1
        assert len(made) == -(-6 // n)


def test_an_empty_batch_among_others_changes_nothing() -> None:
    scores = pa.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    rows = pa.record_batch({"labels": pa.array([2, 1]), "scores": scores})
    spec = MulticlassAUC(3)
    (made,) = partial([rows.slice(0, 0), rows, rows.slice(2), rows], spec)
    (plain,) = partial([rows, rows], spec)
    assert made == plain


def test_rows_that_a_metric_does_not_take_one_by_one_have_no_groups() -> None:
    flat = {"labels": [0, 1, 0, 1], "scores": [0.1, 0.2, 0.3, 0.4], "offsets": [0, 1, 2, 4]}
    rows = pa.record_batch({**flat, "variant": ["a", "a", "b", "b"]})
    with pytest.raises(InputError, match="by"):
        list(partial([rows], RankingMetrics(["NDCG@10"]), ["variant"]))
