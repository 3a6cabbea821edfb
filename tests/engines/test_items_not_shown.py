"""Known items that were not shown, in the columns of an engine: the numbers of one process."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from streammetrics import GroupedScores, RankingMetrics
from streammetrics.engines import merged, partial

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'streammetrics[parquet]'")

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
    found = merged(states).compute()
    assert dict(found) == dict(lists.compute())  # type: ignore[call-overload]
