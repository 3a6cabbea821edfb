"""Fourteen labels of yeast genes, against values that others computed."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import Bounded, GroupedAUC, MulticlassAUC, MultilabelConfusion
from tests.expected import cases_of
from tests.oracles import many_classes as brute

Case = Mapping[str, Any]
Table = NDArray[np.float64]

AVERAGED = {
    "ml_prec": "precision",
    "ml_rec": "recall",
    "ml_f1": "f1",
    "ml_jaccard": "jaccard",
}
PLAIN = {"ml_hamming": "hamming_loss", "ml_subset": "subset_accuracy"}
# No figures of MultilabelConfusion or MulticlassAUC: tests/expected.py says why.
LEFT = ("ml_lrap", "ml_coverage", "ml_rankloss")


@pytest.fixture(scope="module")
def cases(data: Path) -> list[Case]:
    found = cases_of(data, "yeast")
    return [case for case in found if case["metric"].startswith("ml_")]


@pytest.fixture(scope="module")
def rows(data: Path) -> tuple[Table, Table]:
    with (data / "yeast.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    truth = [[float(row[f"y{k}"]) for k in range(14)] for row in found]
    return np.array(truth), np.array([[float(row[f"s{k}"]) for k in range(14)] for row in found])


def test_every_figure_of_the_counts(cases: list[Case], rows: tuple[Table, Table]) -> None:
    metric = MultilabelConfusion(14)
    metric.update(*rows)
    result = metric.compute()
    passed = 0
    for case in cases:
        name, params = case["metric"], case.get("params") or {}
        if name in AVERAGED:
            found = getattr(result, AVERAGED[name])(params["average"], zero_division=0)
        elif name in PLAIN:
            found = getattr(result, PLAIN[name])
        else:
            assert name in LEFT or name in ("ml_auc", "ml_map"), name
            continue
        assert found == case["value"], case["id"]
        passed += 1
    assert passed == 18


@pytest.mark.slow
def test_every_area(cases: list[Case], rows: tuple[Table, Table]) -> None:
    exact, in_buckets = MulticlassAUC(14, exact=True), MulticlassAUC(14)
    exact.update(*rows)
    in_buckets.update(*rows)
    truth, scores = rows[0] == 1, rows[1]
    pooled = truth.reshape(-1, 1), scores.reshape(-1, 1)
    each = brute.average_precisions(truth, scores)
    means = {
        "macro": brute.mean(each, [1] * 14, math.nan),
        "weighted": brute.mean(each, truth.sum(axis=0).tolist(), math.nan),
        "micro": brute.average_precisions(*pooled)[0],
    }
    passed = 0
    for case in cases:
        name, params = case["metric"], case.get("params") or {}
        if name not in ("ml_auc", "ml_map") or params["average"] == "samples":
            continue
        view = name.removeprefix("ml_").replace("map", "ap")
        found, near = (
            getattr(result, view)(params["average"])
            for result in (exact.compute(), in_buckets.compute())
        )
        if name == "ml_auc":
            assert found == case["value"], case["id"]
        else:  # no fraction is given, and the file's float is a sum of floats
            assert found == pytest.approx(case["value"], rel=2**-52), case["id"]
            mean = means[params["average"]]
            assert mean is not None and found == float(mean), case["id"]
        assert isinstance(near, Bounded)
        assert near.low <= case["value"] <= near.high, case["id"]
        assert near.width < 0.02
        passed += 1
    assert passed == 6


def test_the_mean_over_rows_of_their_areas_is_that_of_grouped_auc(
    cases: list[Case], rows: tuple[Table, Table]
) -> None:
    truth, scores = rows
    metric = GroupedAUC(weight="uniform", score_type="float64")
    users = np.repeat(np.arange(len(truth)), 14)
    metric.update(truth.reshape(-1), scores.reshape(-1), groups=users)
    [case] = [c for c in cases if c["id"].startswith("yeast/ml_auc/samples")]
    assert metric.compute().gauc == case["value"]
