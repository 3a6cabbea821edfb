"""Ten classes of handwritten digits, against values that others computed."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import Bounded, MulticlassAUC, MulticlassConfusion
from streammetrics.results.class_rates import ClassRates
from tests.expected import cases_of
from tests.oracles import many_classes as brute

Case = Mapping[str, Any]

# No figures of MulticlassConfusion or MulticlassAUC: tests/expected.py says why not
# the first, and test_real_calibration.py has the second.
LEFT = ("mc_f1_of_macro", "mc_log_loss")
AVERAGED = {"mc_prec": "precision", "mc_rec": "recall", "mc_f1": "f1"}


@pytest.fixture(scope="module")
def cases(data: Path) -> list[Case]:
    found = cases_of(data, "digits")
    return [case for case in found if case["metric"].startswith("mc_")]


@pytest.fixture(scope="module")
def rows(data: Path) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    with (data / "digits.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    truth = np.array([int(row["y"]) for row in found])
    return truth, np.array([[float(row[f"p{k}"]) for k in range(10)] for row in found])


def test_every_figure_of_the_counts(
    cases: list[Case], rows: tuple[NDArray[np.int64], NDArray[np.float64]]
) -> None:
    metric = MulticlassConfusion(10, top_k=(2, 3))
    metric.update(*rows)
    result = metric.compute()
    passed = []
    for case in cases:
        name, params = case["metric"], case.get("params") or {}
        if name in LEFT or name in ("mc_auc_ovr", "mc_map"):
            continue
        assert figure(result, name, params) == case["value"], case["id"]
        if name == "mc_confusion":
            assert result.matrix.tolist() == case["matrix"]
        passed.append(name)
    assert len(passed) == 18
    assert result.top_k_ties(2) == result.top_k_ties(3) == 0


@pytest.mark.slow
def test_every_area(cases: list[Case], rows: tuple[NDArray[np.int64], NDArray[np.float64]]) -> None:
    exact, in_buckets = MulticlassAUC(10, exact=True), MulticlassAUC(10)
    exact.update(*rows)
    in_buckets.update(*rows)
    passed = 0
    for case in cases:
        name, params = case["metric"], case.get("params") or {}
        if name not in ("mc_auc_ovr", "mc_map"):
            continue
        found, near = (
            result.map if name == "mc_map" else result.auc(params["average"])
            for result in (exact.compute(), in_buckets.compute())
        )
        if name == "mc_map":  # no fraction is given, and the file's float is a sum of floats
            assert found == pytest.approx(case["value"], rel=2**-52), case["id"]
            each = brute.average_precisions(rows[0][:, None] == np.arange(10), rows[1])
            exact = brute.mean(each, [1] * 10, math.nan)
            assert exact is not None and found == float(exact)
        else:
            assert found == case["value"], case["id"]
        assert isinstance(near, Bounded)
        assert near.low <= case["value"] <= near.high, case["id"]
        assert near.width < 0.001
        passed += 1
    assert passed == 3


def test_each_class_against_the_rest(
    data: Path, rows: tuple[NDArray[np.int64], NDArray[np.float64]]
) -> None:
    metric = MulticlassAUC(10, exact=True)
    metric.update(*rows)
    curves, passed = metric.compute().curves, 0
    for case in cases_of(data, "digits"):
        name, where = case["metric"], case.get("where") or {}
        if name in ("auc", "gini", "ap", "pr_auc_trapezoid", "ks"):
            found = getattr(curves[int(where["positive"].removeprefix("y="))], name)
            assert found == pytest.approx(case["value"], rel=2**-52), case["id"]
            passed += 1
    assert passed == 5


def figure(result: ClassRates, name: str, params: Mapping[str, Any]) -> object:
    if name in AVERAGED:
        return getattr(result, AVERAGED[name])(params["average"], zero_division=0)
    if name == "mc_kappa" and params["weights"] != "none":
        return result.weighted_kappa(params["weights"])
    if name == "mc_topk":
        return result.top_k_accuracy(params["k"])
    if name == "mc_confusion":
        return np.trace(result.matrix)
    return getattr(result, name.removeprefix("mc_"))
