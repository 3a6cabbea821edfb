"""Users over all shards meet in buckets, and are sealed there."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pytest

from streammetrics import load
from streammetrics.combine.sealed import seal
from streammetrics.engines import Sealing
from streammetrics.engines.beam import Aggregate, Merge, States
from streammetrics.engines.groups import HASH
from tests.engines.beam.pipelines import COLUMNS, SPEC, VARIANTS, fed, log, run, shards


def buckets(n: int, scope: str = "day") -> States:
    return States(SPEC, ["variant"], columns=COLUMNS, user="user", n_buckets=n, scope=scope)


@pytest.mark.parametrize("n", [1, 5])
def test_sealed_buckets_merge_to_what_the_whole_is_sealed_to(n: int) -> None:
    table = log()
    found = run(lambda p: p | beam.Create(shards(table, 6, n)) | buckets(n) | Merge())
    names = table["variant"].to_pylist()
    expected = {}
    for name in VARIANTS:
        whole = fed(SPEC, table.filter([one == name for one in names]))
        expected[name,] = seal(whole, Sealing("user", 1, HASH, "day"), 0).digest()
    assert {group: load(state).digest() for group, state in found} == expected


def test_results_of_sealed_states_are_those_of_open_ones() -> None:
    def results(**given: Any) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        rows = run(
            lambda p: (
                p
                | beam.Create(shards(log(), 4, 2))
                | Aggregate(SPEC, ["variant"], columns=COLUMNS, **given)
            )
        )
        names = ("value", "low", "high")
        return {(r["variant"], r["metric"], r["view"]): tuple(map(r.get, names)) for r in rows}

    assert repr(results(user="user", n_buckets=8, scope="day")) == repr(results())
