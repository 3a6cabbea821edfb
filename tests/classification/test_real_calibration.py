"""Calibration on real scores, against values that others computed: every one to its last bit."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import Calibration
from streammetrics.kernels.exact.elementary import log
from tests.depth import further_are_slow
from tests.expected import cases_of

Row = Mapping[str, Any]
VIEWS = {
    **{name: name for name in ("log_loss", "brier", "normalized_entropy", "mean_score", "copc")},
    "ctr": "base_rate",
    "ece_l1_15": "ece",
    "mce_15": "mce",
}
LEAST = {"obd_men_events": 56, "higgs500": 10, "phishing": 24, "digits": 8}


def rows_of(path: Path) -> list[Row]:
    if path.suffix == ".jsonl":
        return list(map(json.loads, path.read_text().splitlines()))
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def taken(row: Row, where: Mapping[str, Any]) -> bool:
    for key, value in where.items():
        if key == "seq_at_least":
            if row["seq"] < value:
                return False
        elif key not in ("score_field", "positive") and row[key] != value:
            return False
    return True


def cases(data: Path, name: str) -> Iterator[tuple[Row, Calibration]]:
    """Each case of this file, and the metric of its rows."""
    [path] = [p for p in (data / f"{name}.csv", data / f"{name}.jsonl") if p.exists()]
    every = rows_of(path)
    for case in cases_of(data, name):
        if case["metric"] not in VIEWS:
            continue
        where = case.get("where", {})
        rows = [row for row in every if taken(row, where)]
        scores = np.array([float(row[where.get("score_field", "score")]) for row in rows])
        column, _, positive = where.get("positive", "label=1").partition("=")
        labels = np.array([str(row[column]) == positive for row in rows])
        if "weight" in case.get("params", {}):
            metric = Calibration(weight_unit=Fraction(1, 10))
            metric.update(labels, scores, weights=[float(row["weight"]) for row in rows])
        else:
            metric = Calibration()
            metric.update(labels, scores)
        yield case, metric


@pytest.mark.parametrize("name", list(further_are_slow(*reversed(LEAST), fast=3)))
def test_every_case_to_the_last_bit(data: Path, name: str) -> None:
    n = 0
    for case, metric in cases(data, name):
        assert getattr(metric.compute(), VIEWS[case["metric"]]) == case["value"], case["id"]
        n += 1
    assert n >= LEAST[name]


def test_the_log_loss_of_ten_classes_is_a_mean_of_our_logarithms(data: Path) -> None:
    """There is no class for it: the loss of a row is that of one probability."""
    rows = rows_of(data / "digits.csv")
    chosen: NDArray[np.float64] = np.array([float(row[f"p{row['y']}"]) for row in rows])
    high, low = log(chosen)
    mean = -sum(map(Fraction, (*high.tolist(), *low.tolist()))) / len(rows)
    found = cases_of(data, "digits")
    [expected] = [case["value"] for case in found if case["metric"] == "mc_log_loss"]
    assert float(mean) == expected
    metric = Calibration()
    metric.update(np.ones(len(rows)), chosen)
    assert metric.compute().log_loss == expected
    assert math.isnan(metric.compute().normalized_entropy)
