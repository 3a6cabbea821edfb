"""A logged A/B test with 20,000 events, against values that others computed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streammetrics import Bounded, HistogramAUC, PerKey, Ratio
from tests.expected import cases_of

Event = Mapping[str, Any]


@pytest.fixture(scope="module")
def events(data: Path) -> list[Event]:
    return list(map(json.loads, (data / "obd_men_events.jsonl").read_text().splitlines()))


def test_click_rates_of_all_and_by_position_and_by_day(events: list[Event], data: Path) -> None:
    cases = cases_of(data, "obd_men_events")
    rates = [case for case in cases if case["metric"] == "ctr"]
    assert len(rates) >= 7
    for case in rates:
        where, metric = dict(case.get("where", {})), Ratio()
        where.pop("score_field", None)
        last_day = where.pop("ts_date_at_most", "9")
        selection = [e for e in events if e["ts"][:10] <= last_day and where.items() <= e.items()]
        metric.update([e["label"] for e in selection])
        assert metric.compute().ratio == case["value"], case["id"]
    keys = {"ctr_by_position": lambda e: e["position"], "ctr_by_day": lambda e: e["ts"][:10]}
    tables = [case for case in cases if case["metric"] == "ctr_table"]
    assert {case["id"] for case in tables} == set(keys)
    for case in tables:
        keyed = PerKey(Ratio(), max_keys=100)
        keyed.update(
            keys=[f"{e['variant']} {keys[case['id']](e)}" for e in events],
            numerators=[e["label"] for e in events],
        )
        assert len(case["rows"]) == case["value"]
        for variant, name, rows, clicks in case["rows"]:
            result = keyed.compute()[f"{variant} {name}"]
            assert (result.numerator, result.denominator) == (clicks, rows), (variant, name)


# What docs/performance.md says: the width of the interval, to its last digit, and the occupied
# buckets.
GRIDS = {
    ("relative", 7): (0.0020, 869),
    ("relative", 8): (0.0012, 1_489),
    ("equal", 6): (0.7021, 27),
    ("equal", 10): (0.0703, 124),
    ("equal", 14): (0.0050, 613),
}


def test_relative_buckets_are_sharper_than_equal_ones(events: list[Event]) -> None:
    columns = [e["label"] for e in events], [e["score"] for e in events]
    assert HistogramAUC().digest() == HistogramAUC(grid="relative", resolution=8).digest()
    for (grid, resolution), (width, occupied) in GRIDS.items():
        metric = HistogramAUC(grid=grid, resolution=resolution)
        metric.update(*columns)
        result = metric.compute()
        assert isinstance(result.auc, Bounded)
        assert (round(result.auc.width, 4), len(result.scores)) == (width, occupied), grid
        if resolution == 6:
            assert (round(result.auc.low, 3), round(result.auc.high, 3)) == (0.264, 0.966)
        assert (result.rows, result.positives) == (20_000, 115)
