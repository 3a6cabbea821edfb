"""partial: rows in batches to one state a group, the same as in a single process, and beside it
what tasks counted."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    GroupedScores,
    InputError,
    Moments,
    MulticlassAUC,
    OverlapError,
    RankingMetrics,
    SettingsError,
    UnitMean,
    UnitRate,
    load,
)
from streammetrics.engines import (
    Positions,
    Sealing,
    Task,
    aggregate,
    merge_all,
    merged,
    partial,
    results_rows,
    seal,
    states_by_group,
    states_schema,
)
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import classes_first
from tests.engines.every_case import rows_of
from tests.engines.log_rows import COLUMNS, SPEC, log_table, states, updated_states, with_groups

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")

N = 4_000


def log(n: int = N, seed: int = 1) -> Any:
    return with_groups(log_table(n, 300, seed))


def single(table: Any) -> Accumulator:
    """The state that one process counts."""
    return updated_states(table, SPEC)[()]


@pytest.mark.parametrize("seed", range(2))
def test_any_split_into_tasks_and_any_order_gives_the_state_of_one_process(seed: int) -> None:
    random, table = Random(seed), log(seed=seed)
    cuts = sorted(random.sample(range(N), 4))
    tasks = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, N], strict=True)]
    sizes = [random.choice((9, 999)) for _ in tasks]
    task_states = [
        row["state"]
        for task, size in zip(tasks, sizes, strict=True)
        for row in states(task, SPEC, size=size)
    ]
    random.shuffle(task_states)
    half = len(task_states) // 2
    merged_twice = merge_all([merge_all(task_states[:half]), merge_all(task_states[half:])])
    assert load(merged_twice).digest() == single(table).digest()


def test_each_group_is_the_state_of_its_rows_and_a_null_is_a_group() -> None:
    table = log()
    rows = states(table, SPEC, ["variant", "mobile"])
    assert len(rows) == 6
    for row in rows:
        keep = [
            (v, m) == (row["variant"], row["mobile"])
            for v, m in zip(table["variant"].to_pylist(), table["mobile"].to_pylist(), strict=True)
        ]
        assert load(row["state"]) == single(table.filter(pa.array(keep)))
    everything = merged(row["state"] for row in rows)
    assert everything == single(table)


def test_types_of_groups_stay_and_dictionaries_become_their_values() -> None:
    table = log()
    group_columns = ["topic", "partition", "mobile"]
    schema = states_schema(table.schema, group_columns)
    assert [str(field.type) for field in schema] == ["string", "int32", "bool", "int32", "binary"]
    batches = list(
        partial(table.to_batches(), SPEC, ["topic", "partition", "mobile"], columns=COLUMNS)
    )
    assert all(batch.schema == schema for batch in batches)


def test_a_task_without_rows_emits_nothing() -> None:
    assert list(partial([], SPEC)) == []
    assert states(log(0), SPEC, ["variant"]) == []


def test_the_bucket_may_be_a_number_or_a_column() -> None:
    table = log()
    bucket = pa.array(np.array(table["user"]) % 5, pa.int32())
    rows = states(table.append_column("b", bucket), SPEC, ["mobile"], bucket="b")
    assert [row["bucket"] for row in rows] == [0, 1, 2, 3, 4] * 2
    assert merged(row["state"] for row in rows) == single(table)
    assert {row["bucket"] for row in states(table, SPEC, bucket=7)} == {7}
    with pytest.raises(InputError, match="number of the user bucket"):
        states(table, SPEC, bucket="variant")


@pytest.mark.parametrize("number", [-1, 2**31, 2**40, None])
def test_a_bucket_that_is_not_the_number_of_one_is_refused(number: int | None) -> None:
    table = log(10)
    numbers = pa.array([0] * 9 + [number], pa.int64())
    with pytest.raises(InputError, match="the number of the user bucket, from 0 to 2147483647"):
        states(table.append_column("b", numbers), SPEC, bucket="b")
    with pytest.raises(SettingsError, match=r"partial\(bucket\): expected a whole number"):
        states(table, SPEC, bucket=number)


def test_columns_that_are_not_there_are_named() -> None:
    table = log(10)
    with pytest.raises(InputError, match="the column 'labels'"):
        list(partial(table.to_batches(), SPEC))
    with pytest.raises(InputError, match="'nobody'"):
        list(partial(table.to_batches(), SPEC, columns={**COLUMNS, "users": "nobody"}))
    with pytest.raises(InputError, match="'nothing'"):
        list(partial(table.to_batches(), SPEC, columns={**COLUMNS, "nothing": "user"}))
    for group_columns in (["nobody"], ["score"]):
        with pytest.raises(InputError, match="by"):
            states(table, SPEC, group_columns)
    with pytest.raises(InputError, match="each once"):
        states(table, SPEC, ["variant", "variant"])


BY_TYPES = [
    ([True], [7]),
    ([1], ["a"]),
    (["a"], [1]),
    (pa.array([1], pa.int8()), pa.array([1000], pa.int64())),
    (["a"], [1.5]),
    (["a"], None),
]
READERS = [partial, states_by_group, aggregate]


@pytest.mark.parametrize(("first", "later"), BY_TYPES)
@pytest.mark.parametrize("read", READERS)
def test_a_group_column_of_another_type_in_a_later_batch_is_refused(
    read: Any, first: Any, later: Any
) -> None:
    rows = pa.record_batch({"v": first, "values": [1.0]})
    other = {"values": [1.0]} if later is None else {"values": [1.0], "v": later}
    with pytest.raises(InputError, match="by"):
        list(read([rows, rows, pa.record_batch(other)], Moments(), ["v"]))


@pytest.mark.parametrize("first", [pa.string(), pa.large_string(), pa.null()])
@pytest.mark.parametrize("later", [pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.null()])
def test_a_group_column_may_hold_texts_or_nulls_in_several_ways(first: Any, later: Any) -> None:
    columns = [
        pa.array([None] if pa.types.is_null(kind) else ["a"], kind)
        for kind in (first, later, first)
    ]
    batches = [pa.record_batch({"v": column, "values": [1.0]}) for column in columns]
    expected = {None if pa.types.is_null(kind) else "a" for kind in (first, later)}
    (rows,) = partial(batches, Moments(), ["v"])
    assert {*rows["v"].to_pylist()} == expected
    assert merged(rows["state"].to_pylist()).compute().rows == 3  # type: ignore[attr-defined]


def test_rows_that_the_metric_refuses_are_refused() -> None:
    table = log(10).set_column(4, "score", pa.array([0.5] * 9 + [None], pa.float32()))
    with pytest.raises(InputError, match=r"scores\[9\]"):
        states(table, SPEC)


def test_large_states_are_emitted_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["streammetrics.engines.partial"]  # the package has a function of its name
    sizes = [len(row["state"]) for row in states(log(), SPEC, ["variant", "mobile"])]
    # Each by itself, two of them together or more, and all.
    for most, n in ((1, 1), (2 * max(sizes), 2), (sum(sizes), 6)):
        monkeypatch.setattr(module, "_BYTES", most)
        batches = list(partial(log().to_batches(), SPEC, ["variant", "mobile"], columns=COLUMNS))
        lengths = [[len(state) for state in batch["state"].to_pylist()] for batch in batches]
        assert sum(map(len, lengths)) == 6 and max(map(len, lengths)) >= n
        assert all(
            sum(batch_lengths) <= most or len(batch_lengths) == 1 for batch_lengths in lengths
        )
        assert all(
            sum(batch_lengths) + after[0] > most for batch_lengths, after in pairwise(lengths)
        )


@pytest.mark.parametrize(
    "group_columns", [(), ("variant",), ("mobile",), ("variant", "topic", "mobile", "phase")]
)
def test_the_states_of_one_process_are_those_that_partial_emits(
    group_columns: tuple[str, ...],
) -> None:
    table = log()
    emitted = states(table, SPEC, group_columns)
    for size in (70, N):
        batches = table.to_batches(size)
        batches = [batches[0].slice(0, 0), *batches, batches[-1].slice(0, 0)]
        pairs = list(states_by_group(batches, SPEC, group_columns, columns=COLUMNS))
        assert [group for group, _ in pairs] == [
            tuple(row[name] for name in group_columns) for row in emitted
        ]
        assert [type(value) for group, _ in pairs for value in group] == [
            type(row[name]) for row in emitted for name in group_columns
        ]
        for (_, state), row in zip(pairs, emitted, strict=True):
            assert state.to_file_bytes() == row["state"]


def test_states_without_rows_have_no_group() -> None:
    for batches in ([], log(0).to_batches(), [log().to_batches()[0].slice(0, 0)]):
        assert list(states_by_group(batches, SPEC, ["variant"])) == []
        assert list(states_by_group(batches, SPEC)) == []


def test_the_states_of_one_process_refuse_what_partial_refuses() -> None:
    table = log(10)
    counted = updated_states(table, SPEC)[()]
    bad = table.set_column(4, "score", pa.array([0.5] * 9 + [None], pa.float32()))
    for rows, spec, group_columns, columns in (
        (bad, SPEC, [], COLUMNS),
        (bad, SPEC, ["variant"], COLUMNS),
        (table, SPEC, ["score"], COLUMNS),
        (table, SPEC, ["nobody"], COLUMNS),
        (table, SPEC, [], {**COLUMNS, "users": "nobody"}),
        (table, counted, [], COLUMNS),
    ):
        errors = []
        for read in (partial, states_by_group):
            with pytest.raises((InputError, SettingsError)) as raised:
                list(read(rows.to_batches(), spec, group_columns, columns=columns))  # type: ignore[operator]
            errors.append(str(raised.value).replace(read.__name__, "read"))
        assert errors[0] == errors[1]


def test_an_empty_batch_among_others_changes_nothing() -> None:
    scores = pa.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    rows = pa.record_batch({"labels": pa.array([2, 1]), "scores": scores})
    spec = MulticlassAUC(3)
    (output,) = partial([rows.slice(0, 0), rows, rows.slice(2), rows], spec)
    (plain,) = partial([rows, rows], spec)
    assert output == plain


def test_rows_that_a_metric_does_not_take_one_by_one_have_no_groups() -> None:
    flat = {"labels": [0, 1, 0, 1], "scores": [0.1, 0.2, 0.3, 0.4], "offsets": [0, 1, 2, 4]}
    rows = pa.record_batch({**flat, "variant": ["a", "a", "b", "b"]})
    for group_columns in (["variant"], []):
        with pytest.raises(InputError, match="by"):
            list(partial([rows], RankingMetrics(["NDCG@10"]), group_columns))


def test_a_task_is_counted_once() -> None:
    table = log()
    first, replay, second = (
        [row["state"] for row in states(table, SPEC, ["mobile"], counted=Task("job", n))]
        for n in (0, 0, 1)
    )
    with pytest.raises(OverlapError, match=r"job/tasks, \[0\] bucket 0"):
        merged([first[0], replay[0]])
    assert merged([first[0], replay[0]], replay="skip") == load(first[0])
    assert merged([first[0], first[1], second[0]]).compute()["auc"].rows == sum(
        load(state).compute()["auc"].rows for state in (first[0], first[1], second[0])
    )
    merged_twice = merge_all([first[0], second[0]])
    with pytest.raises(OverlapError):
        merged([first[0], merged_twice], replay="skip")  # some of it is new


def test_positions_are_the_ranges_of_the_tasks_rows() -> None:
    table = log()
    positions = Positions(("topic", "partition"), "offset")
    (row,) = states(table, SPEC, counted=positions)
    ranges = list(load(row["state"]).provenance)
    assert ranges == [(f"clicks/{p}", "[] bucket 0", 0, N // 4) for p in range(4)]
    halves = [table.slice(0, 2000), table.slice(2000)]
    first, second = (states(half, SPEC, counted=positions)[0]["state"] for half in halves)
    assert merged([second, first]) == single(table)
    with pytest.raises(OverlapError):
        merged([first, row["state"]])
    backwards = table.take(pa.array(np.arange(N)[::-1]))
    (row,) = states(backwards, SPEC, counted=positions)
    assert list(load(row["state"]).provenance) == ranges


@pytest.mark.parametrize(
    "offset", [None, -3, 2**63, 1.5, math.nan, "7", datetime(2026, 1, 1, tzinfo=UTC)]
)
def test_an_offset_that_is_no_position_is_refused(offset: Any) -> None:
    kind = {int: pa.uint64() if offset == 2**63 else None, type(None): pa.int64()}.get(type(offset))
    rows = pa.record_batch({"values": [0.5], "o": pa.array([offset], kind), "v": ["a"]})
    with pytest.raises(InputError, match="column 'o': expected an offset in each row"):
        list(partial([rows], Moments(), counted=Positions(("v",), "o")))


def test_columns_of_positions_that_are_not_there_are_named() -> None:
    rows = pa.record_batch({"values": [0.5], "o": [1], "v": ["a"]})
    for positions in (Positions(("v",), "nobody"), Positions(("v", "nobody"), "o")):
        with pytest.raises(InputError, match="counted: expected one of the columns"):
            list(partial([rows], Moments(), counted=positions))


@pytest.mark.parametrize("counted", ["day/7", ("clicks", "offset"), {"job": 7}, True, Task])
def test_what_is_no_provenance_is_refused(counted: Any) -> None:
    rows = pa.record_batch({"values": [0.5]})
    with pytest.raises(SettingsError, match=r"partial\(counted\): expected a Task, Positions"):
        list(partial([rows], Moments(), counted=counted))
    with pytest.raises(SettingsError, match=r"partial\(sealing\): expected a Sealing"):
        list(partial([rows], Moments(), sealing=counted))


@pytest.mark.parametrize("number", [-1, 1.5, None, 2**63])
def test_a_task_has_a_number_from_0(number: Any) -> None:
    with pytest.raises(SettingsError, match=r"Task.number: expected a whole number from 0"):
        Task("job", number)


def test_tasks_that_have_whole_users_seal_them() -> None:
    table, n = log(), 8
    sealing = Sealing(of="user", n_buckets=n, hash="mod", scope="today")
    buckets = pa.array(np.array(table["user"]) % n, pa.int32())
    state_rows = states(
        table.append_column("b", buckets),
        SPEC,
        ["mobile"],
        bucket="b",
        counted=Task("j", 0),
        sealing=sealing,
    )
    for mobile in (False, True):
        mobile_states = [row["state"] for row in state_rows if row["mobile"] is mobile]
        rows = table.filter(pa.compute.equal(table["mobile"], mobile))
        whole = seal(single(rows), Sealing("user", 1, "", "today"))
        total = merged(mobile_states)
        assert total.digest() == whole.digest() and total.complete
        assert merged([*mobile_states, *mobile_states], replay="skip") == total
        assert results_rows(total) == results_rows(single(rows))
    with pytest.raises(OverlapError, match="keep groups apart"):
        merged(row["state"] for row in state_rows)


def test_tasks_that_do_not_have_whole_users_are_noticed() -> None:
    table, n = log(), 8
    sealing = Sealing(of="user", n_buckets=n, hash="mod", scope="today")
    table = table.append_column("b", pa.array(np.array(table["user"]) % n, pa.int32()))
    task_states = [
        row["state"]
        for number, task in enumerate((table.slice(0, N // 2), table.slice(N // 2)))
        for row in states(task, SPEC, bucket="b", counted=Task("j", number), sealing=sealing)
    ]
    for replay in ("refuse", "skip"):
        with pytest.raises(OverlapError, match=r"sealed/mod\(user\) mod 8/today"):
            merged(task_states, replay=replay)


MEASURES = ["NDCG@3", "R@3", "AP", "MRR", "P@2", "Bpref", "PooledHR@3"]


@pytest.mark.parametrize(
    "hidden", [{"scores": [-math.inf] * 2}, {"scores": [0.0] * 2, "shown": [False] * 2}]
)
def test_the_tasks_of_a_list_have_the_value_of_the_list(hidden: Mapping[str, list[float]]) -> None:
    spec = GroupedScores(MEASURES, duplicates="conflict")
    first = {"labels": [1, 0], "scores": [0.5, 0.9], "groups": [7, 7]}
    if "shown" in hidden:
        first["shown"] = [True, True]
    tasks = [first, {"labels": [1, 1], "groups": [7, 7], **hidden}]
    states = [
        state
        for task in tasks
        for batch in partial([pa.record_batch(task)], spec)
        for state in batch["state"].to_pylist()
    ]
    lists = RankingMetrics(MEASURES)
    lists.update_ranked([["x", "a"]], [{"x": 0, "a": 1, "b": 1, "c": 1}])
    result = merged(states).compute()
    assert dict(result) == dict(lists.compute())  # type: ignore[call-overload]


@pytest.mark.parametrize("case", classes_first(CASES), ids=str)
def test_every_accumulator_counts_batches_in_tasks_as_it_does_rows(case: Case[Any]) -> None:
    rows = rows_of(case)
    states = [
        state
        for half in (rows.batch.slice(0, 3), rows.batch.slice(3))
        for state_batch in partial([half], rows.spec)
        for state in state_batch["state"].to_pylist()
    ]
    assert merged(states) == rows.whole


@pytest.mark.parametrize("metric", [UnitMean(), UnitRate()])
def test_a_user_whose_rows_lie_in_several_tasks_counts_once(metric: UnitMean | UnitRate) -> None:
    users, values = [1, 2, 1, 3, 2, 1], [0.0, 5.0, 2.5, 0.0, 0.5, -1.0]
    states = [
        state
        for half in (slice(0, 3), slice(3, 6))
        for state_batch in partial(
            [pa.record_batch({"units": users[half], "values": values[half]})], metric.empty()
        )
        for state in state_batch["state"].to_pylist()
    ]
    metric.update(users, values)
    assert merged(states) == metric
    assert merged(states).compute().units == 3  # type: ignore[attr-defined]
