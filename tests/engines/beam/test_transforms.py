"""States, Merge, Results, Aggregate: the digest of a single process, whatever Beam does."""

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

from streammetrics import GroupedAUC, Ratio, SettingsError, load
from streammetrics.engines import Positions
from streammetrics.engines.beam import Aggregate, Merge, Results, States, transforms
from tests.engines.beam.pipelines import COLUMNS, ROWS, SPEC, alone, fed, log, run, shards

BY = ["variant"]
POSITIONS = Positions(("source",), "offset")


def counted() -> States:
    return States(SPEC, BY, columns=COLUMNS)


def digests(pairs: list[tuple[Any, bytes]]) -> dict[Any, str]:
    return {group: load(state).digest() for group, state in pairs}


@pytest.mark.parametrize("seed", range(2))
def test_however_rows_are_cut_the_digests_are_those_of_one_process(seed: int) -> None:
    table = log()
    found = run(
        lambda pipeline: (
            pipeline | beam.Create(shards(table, 3 + 7 * seed, seed)) | counted() | Merge()
        )
    )
    assert len(found) == 3
    assert digests(found) == alone(table)


def test_bundles_that_run_again_change_nothing() -> None:
    table = log()
    found = run(
        lambda pipeline: pipeline | beam.Create(shards(table, 5, 1)) | counted() | Merge(),
        repeats=2,
    )
    assert digests(found) == alone(table)


def test_a_bundle_of_many_rows_emits_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms, "TASK_ROWS", 3_000)
    table = log()
    found = run(lambda pipeline: pipeline | beam.Create(shards(table, 40, 1)) | counted())
    assert len(found) > 3 * 3
    assert digests(run(lambda p: p | beam.Create(found) | Merge())) == alone(table)


def test_tables_come_from_parquet(tmp_path: Path) -> None:
    table = log()
    for i, shard in enumerate(shards(table, 3, 2)):
        pq.write_table(shard, tmp_path / f"{i}.parquet")
    found = run(
        lambda pipeline: (
            pipeline
            | beam.io.ReadFromParquetBatched(str(tmp_path / "*.parquet"))
            | counted()
            | Merge()
        )
    )
    assert digests(found) == alone(table)


def test_the_positions_of_rows_are_what_a_consumer_would_note() -> None:
    tables = [log().take(list(range(at, at + ROWS // 5))) for at in range(0, ROWS, ROWS // 5)]
    found = run(
        lambda pipeline: (
            pipeline
            | beam.Create(tables)
            | States(SPEC, columns=COLUMNS, provenance=POSITIONS)
            | Merge()
        )
    )
    ((_, state),) = found
    assert [(source, start, end) for source, _, start, end in load(state).provenance] == [
        ("clicks/0", 0, ROWS // 2),
        ("clicks/1", 0, ROWS // 2),
    ]


def test_a_numbered_table_that_comes_twice_is_refused() -> None:
    tables = list(enumerate(shards(log(), 4, 1)))
    found = run(lambda p: p | beam.Create(tables) | counted() | Merge())
    assert digests(found) == alone(log())
    assert {(a, b) for _, s in found for _, _, a, b in load(s).provenance} == {(0, 4)}
    with pytest.raises(Exception, match="twice"):
        run(lambda p: p | beam.Create([*tables, tables[2]]) | counted() | Merge())


def test_a_state_that_is_merged_twice_is_refused_or_skipped_on_request() -> None:
    table = log()
    states = run(lambda pipeline: pipeline | beam.Create(shards(table, 4, 1)) | counted())
    with pytest.raises(Exception, match="twice"):
        run(lambda pipeline: pipeline | beam.Create([*states, states[0]]) | Merge())
    found = run(
        lambda pipeline: (
            pipeline | beam.Create([*states, states[0]]) | Merge(replay="skip", fanout=2)
        )
    )
    assert digests(found) == alone(table)


def test_results_are_rows_for_each_view() -> None:
    table = log()
    found = run(
        lambda pipeline: (
            pipeline | beam.Create(shards(table, 5, 1)) | Aggregate(SPEC, BY, columns=COLUMNS)
        )
    )
    of_bts = {(r["metric"], r["view"]): r for r in found if r["variant"] == "bts"}
    whole = fed(SPEC, table.filter(pa.array([v == "bts" for v in table["variant"].to_pylist()])))
    assert of_bts["ctr", "ratio"]["value"] == whole.compute()["ctr"].ratio
    auc = whole.compute()["auc"].auc
    assert (of_bts["auc", "auc"]["low"], of_bts["auc", "auc"]["high"]) == (auc.low, auc.high)
    assert list(found[0]) == ["variant", "metric", "view", "value", "low", "high"]
    again = run(lambda p: p | beam.Create([table]) | counted() | Merge(fanout=2) | Results(BY))
    assert sorted(map(repr, again)) == sorted(map(repr, found))


def times(table: pa.Table) -> list[TimestampedValue]:
    """Ten tables, two in each minute but the third, which has none."""
    tables = shards(table, 10, 4)
    return [TimestampedValue(t, 30 * (i if i < 4 else i + 2)) for i, t in enumerate(tables)]


@pytest.mark.parametrize(
    ("windows", "cut"), [(FixedWindows(60), [2, 4, 6, 8]), (Sessions(45), [4])]
)
def test_each_window_of_beam_has_states_of_its_own(windows: Any, cut: list[int]) -> None:
    table = log()
    tables = shards(table, 10, 4)
    found = run(
        lambda pipeline: (
            pipeline
            | beam.Create(range(10))
            | beam.Map(lambda i, every: every[i], every=times(table))
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
    assert sorted(load(state).digest() for _, state in found) == sorted(expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"user": "user"}, "or neither"),
        ({"n_buckets": 4}, "or neither"),
        ({"user": "user", "n_buckets": 0}, "n_buckets"),
        ({"user": "user", "n_buckets": 2.0}, "n_buckets"),
        ({"provenance": "rows"}, "Positions"),
    ],
)
def test_settings_that_name_no_states_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        States(GroupedAUC(), **given)
