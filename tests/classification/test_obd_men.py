"""A logged A/B test with 20,000 events, against values that others computed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics.classification import BinaryConfusion, HistogramAUC, Ratio
from streammetrics.combine import PerKey
from streammetrics.core.bounded import Bounded
from tests.expected import cases_of

Event = Mapping[str, Any]
Case = Mapping[str, Any]
Column = NDArray[np.generic]
RATES = (
    *("accuracy", "error_rate", "recall", "specificity", "fpr", "npv", "jaccard"),
    *("balanced_accuracy", "kappa", "precision", "mcc"),
)


class Events:
    """The events, as the columns of the rows that a case is about."""

    def __init__(self, path: Path) -> None:
        self.rows: list[Event] = list(map(json.loads, path.read_text().splitlines()))
        self.known: dict[str, tuple[Column, Column]] = {}

    def columns(self, case: Case) -> tuple[Column, Column]:
        """Labels and scores."""
        where = dict(case.get("where", {}))
        key = repr(where)
        if key not in self.known:
            score, last_day = where.pop("score_field", "score"), where.pop("ts_date_at_most", "9")
            kept = [
                e
                for e in self.rows
                if e["ts"][:10] <= last_day and all(e[k] == v for k, v in where.items())
            ]
            labels, scores = [e["label"] for e in kept], [e[score] for e in kept]
            self.known[key] = np.array(labels), np.array(scores)
        return self.known[key]


@pytest.fixture(scope="module")
def events(data: Path) -> Events:
    return Events(data / "obd_men_events.jsonl")


@pytest.fixture(scope="module")
def cases(data: Path) -> list[Case]:
    return list(cases_of(data, "obd_men_events"))


def of(cases: list[Case], *metrics: str, least: int) -> list[Case]:
    found = [c for c in cases if c["metric"] in metrics]
    assert len(found) >= least
    return found


@pytest.mark.slow
def test_click_rates(events: Events, cases: list[Case]) -> None:
    for case in of(cases, "ctr", least=7):
        metric = Ratio()
        metric.update(events.columns(case)[0])
        assert metric.compute().ratio == case["value"], case["id"]


def test_click_rates_by_position_and_by_day(events: Events, cases: list[Case]) -> None:
    keys = {"ctr_by_position": lambda e: e["position"], "ctr_by_day": lambda e: e["ts"][:10]}
    tables = of(cases, "ctr_table", least=2)
    assert {case["id"] for case in tables} == set(keys)
    for case in tables:
        key = keys[case["id"]]
        metric = PerKey(Ratio(), max_keys=100)
        metric.update(
            keys=[f"{e['variant']} {key(e)}" for e in events.rows],
            numerators=[e["label"] for e in events.rows],
        )
        result = metric.compute()
        assert len(case["rows"]) == case["value"]
        for variant, name, rows, clicks in case["rows"]:
            found = result[f"{variant} {name}"]
            assert (found.numerator, found.denominator) == (clicks, rows), (variant, name)


def test_confusions_and_their_rates(events: Events, cases: list[Case]) -> None:
    for case in of(cases, "confusion", "f_beta", *RATES, least=280):
        metric = BinaryConfusion(threshold=case["params"]["threshold"])
        metric.update(*events.columns(case))
        rates = metric.compute()
        if case["metric"] == "confusion":
            expected = [[case["tn"], case["fp"]], [case["fn"], case["value"]]]
            assert rates.table().tolist() == expected, case["id"]
            continue
        beta = case["params"].get("beta")
        found = rates.f_beta(beta) if beta else getattr(rates, case["metric"])
        if case["value"] is None:
            assert np.isnan(found), case["id"]
        else:
            assert found == case["value"], case["id"]


# What the README says: the width of the interval to its last digit, and the occupied buckets.
@pytest.mark.parametrize(
    ("grid", "resolution", "width", "occupied"),
    [
        ("relative", 7, 0.0020, 869),
        ("relative", 8, 0.0012, 1_489),
        ("equal", 6, 0.7021, 27),
        ("equal", 10, 0.0703, 124),
        ("equal", 14, 0.0050, 613),
    ],
)
def test_relative_buckets_are_sharper_than_equal_ones(
    events: Events, grid: str, resolution: int, width: float, occupied: int
) -> None:
    metric = HistogramAUC(grid=grid, resolution=resolution)
    metric.update(*events.columns({}))
    found = metric.compute()
    assert isinstance(found.auc, Bounded)
    assert (round(found.auc.width, 4), len(found.scores)) == (width, occupied)
    if resolution == 6:
        assert (round(found.auc.low, 3), round(found.auc.high, 3)) == (0.264, 0.966)
    assert (found.rows, found.positives) == (20_000, 115)


def test_the_default_grid_is_the_relative_one_of_8_bits() -> None:
    assert HistogramAUC().digest() == HistogramAUC(grid="relative", resolution=8).digest()
