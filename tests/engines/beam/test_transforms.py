"""States, Merge, Results, Aggregate: the digest of a single process, whatever Beam does. Users
over all shards meet in buckets, and are sealed there."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.transforms.window import FixedWindows, Sessions, TimestampedValue

import streammetrics.engines.beam
from streammetrics import GroupedAUC, InputError, Ratio, SettingsError, load
from streammetrics.combine.sealed import seal
from streammetrics.engines import Positions, Sealing
from streammetrics.engines.beam import Aggregate, Merge, Results, States
from streammetrics.engines.groups import HASH
from tests.engines.beam.pipelines import run, shards
from tests.engines.log_rows import COLUMNS, ROWS, SPEC, digests, log_table, updated_states

BY = ["variant"]
POSITIONS = Positions(("partition",), "offset")
TABLE = log_table()
WHOLE = digests(updated_states(TABLE, SPEC, BY))


def counted() -> States:
    return States(SPEC, BY, columns=COLUMNS)


def digests_of(pairs: list[tuple[Any, bytes]]) -> dict[Any, str]:
    return {group: load(state).digest() for group, state in pairs}


@pytest.mark.parametrize("seed", range(2))
def test_however_rows_are_cut_the_digests_are_those_of_one_process(seed: int) -> None:
    pairs = run(
        lambda pipeline: (
            pipeline | beam.Create(shards(TABLE, 3 + 7 * seed, seed)) | counted() | Merge()
        )
    )
    assert len(pairs) == 3
    assert digests_of(pairs) == WHOLE


def test_bundles_that_run_again_change_nothing() -> None:
    pairs = run(
        lambda pipeline: pipeline | beam.Create(shards(TABLE, 5, 1)) | counted() | Merge(),
        repeats=2,
    )
    assert digests_of(pairs) == WHOLE


def test_a_bundle_of_many_rows_emits_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streammetrics.engines.beam, "TASK_ROWS", 3_000)
    pairs = run(lambda pipeline: pipeline | beam.Create(shards(TABLE, 40, 1)) | counted())
    assert len(pairs) > 3 * 3
    assert digests_of(run(lambda p: p | beam.Create(pairs) | Merge())) == WHOLE


def test_tables_come_from_parquet(tmp_path: Path) -> None:
    for i, shard in enumerate(shards(TABLE, 3, 2)):
        pq.write_table(shard, tmp_path / f"{i}.parquet")
    pairs = run(
        lambda pipeline: (
            pipeline
            | beam.io.ReadFromParquetBatched(str(tmp_path / "*.parquet"))
            | counted()
            | Merge()
        )
    )
    assert digests_of(pairs) == WHOLE


def test_the_positions_of_rows_are_what_a_consumer_would_note() -> None:
    tables = [
        TABLE.take(list(range(start, start + ROWS // 5))) for start in range(0, ROWS, ROWS // 5)
    ]
    pairs = run(
        lambda pipeline: (
            pipeline
            | beam.Create(tables)
            | States(SPEC, columns=COLUMNS, provenance=POSITIONS)
            | Merge()
        )
    )
    ((_, state),) = pairs
    assert [(source, start, end) for source, _, start, end in load(state).provenance] == [
        (str(partition), 0, ROWS // 4) for partition in range(4)
    ]


def test_a_numbered_table_that_comes_twice_is_refused() -> None:
    tables = list(enumerate(shards(TABLE, 4, 1)))
    pairs = run(lambda p: p | beam.Create(tables) | counted() | Merge())
    assert digests_of(pairs) == WHOLE
    assert {(a, b) for _, s in pairs for _, _, a, b in load(s).provenance} == {(0, 4)}
    with pytest.raises(Exception, match="twice"):
        run(lambda p: p | beam.Create([*tables, tables[2]]) | counted() | Merge())


def test_a_state_that_is_merged_twice_is_refused_or_skipped_on_request() -> None:
    states = run(lambda pipeline: pipeline | beam.Create(shards(TABLE, 4, 1)) | counted())
    with pytest.raises(Exception, match="twice"):
        run(lambda pipeline: pipeline | beam.Create([*states, states[0]]) | Merge())
    pairs = run(
        lambda pipeline: (
            pipeline | beam.Create([*states, states[0]]) | Merge(replay="skip", fanout=2)
        )
    )
    assert digests_of(pairs) == WHOLE


def test_results_are_rows_for_each_view() -> None:
    rows = run(
        lambda pipeline: (
            pipeline | beam.Create(shards(TABLE, 5, 1)) | Aggregate(SPEC, BY, columns=COLUMNS)
        )
    )
    of_a = {(r["metric"], r["view"]): r for r in rows if r["variant"] == "a"}
    whole: Any = updated_states(TABLE, SPEC, BY)["a",].compute()
    assert of_a["ctr", "ratio"]["value"] == whole["ctr"].ratio
    auc = whole["auc"].auc
    assert (of_a["auc", "auc"]["low"], of_a["auc", "auc"]["high"]) == (auc.low, auc.high)
    assert list(rows[0]) == ["variant", "metric", "view", "value", "low", "high"]
    merged_rows = run(
        lambda p: p | beam.Create([TABLE]) | counted() | Merge(fanout=2) | Results(BY)
    )
    assert sorted(map(repr, merged_rows)) == sorted(map(repr, rows))


def times(table: pa.Table) -> list[TimestampedValue]:
    """Ten tables, two in each minute but the third, which has none."""
    tables = shards(table, 10, 4)
    return [TimestampedValue(t, 30 * (i if i < 4 else i + 2)) for i, t in enumerate(tables)]


@pytest.mark.parametrize(
    ("windows", "cut"), [(FixedWindows(60), [2, 4, 6, 8]), (Sessions(45), [4])]
)
def test_each_window_of_beam_has_states_of_its_own(windows: Any, cut: list[int]) -> None:
    tables = shards(TABLE, 10, 4)
    pairs = run(
        lambda pipeline: (
            pipeline
            | beam.Create(range(10))
            | beam.Map(lambda i, every: every[i], every=times(TABLE))
            | beam.WindowInto(windows)
            | States(Ratio(), columns={"numerators": "label"})
            | Merge()
        )
    )
    bounds = [0, *cut, 10]
    pieces = [tables[a:b] for a, b in pairwise(bounds)]
    expected = []
    for piece in pieces:
        state = Ratio()
        state.update(np.concatenate([t["label"].to_numpy() for t in piece]))
        expected.append(state.digest())
    assert sorted(load(state).digest() for _, state in pairs) == sorted(expected)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"user": "user"}, "or neither"),
        ({"n_buckets": 4}, "or neither"),
        ({"user": "user", "n_buckets": 0}, "n_buckets"),
        ({"user": "user", "n_buckets": 2.0}, "n_buckets"),
        ({"provenance": "rows"}, "Positions"),
        ({"provenance": np.array([True, False])}, "Positions"),
    ],
)
def test_settings_that_name_no_states_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        States(GroupedAUC(), **settings)


def test_group_columns_are_named_as_no_column_of_results() -> None:
    for transform in (Results, lambda by: Aggregate(Ratio(), by)):
        with pytest.raises(InputError, match="by: expected names of columns"):
            transform(["value"])


def test_a_column_of_users_that_is_not_there_is_named() -> None:
    with pytest.raises(Exception, match="user: expected one of the columns"):
        absent = States(SPEC, columns=COLUMNS, user="nobody", n_buckets=2, scope="day")
        run(lambda p: p | beam.Create(shards(TABLE, 2, 1)) | absent)


def buckets(n: int, scope: str = "day") -> States:
    return States(SPEC, ["variant"], columns=COLUMNS, user="user", n_buckets=n, scope=scope)


@pytest.mark.parametrize("n", [1, 5])
def test_sealed_buckets_merge_to_what_the_whole_is_sealed_to(n: int) -> None:
    pairs = run(lambda p: p | beam.Create(shards(TABLE, 6, n)) | buckets(n) | Merge())
    sealing = Sealing("user", 1, HASH, "day")
    whole = updated_states(TABLE, SPEC, BY).items()
    assert digests_of(pairs) == {key: seal(state, sealing, 0).digest() for key, state in whole}


def test_results_of_sealed_states_are_those_of_open_ones() -> None:
    def results(**given: Any) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        rows = run(
            lambda p: (
                p
                | beam.Create(shards(TABLE, 4, 2))
                | Aggregate(SPEC, ["variant"], columns=COLUMNS, **given)
            )
        )
        names = ("value", "low", "high")
        return {(r["variant"], r["metric"], r["view"]): tuple(map(r.get, names)) for r in rows}

    assert repr(results(user="user", n_buckets=8, scope="day")) == repr(results())
