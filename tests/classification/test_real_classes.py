"""Ten classes of digits and fourteen labels of yeast genes: values that others computed."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    Bounded,
    GroupedAUC,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
)
from streammetrics.results.class_rates import ClassRates
from tests.expected import cases_of
from tests.oracles import many_classes as brute

Case = Mapping[str, Any]
Table = NDArray[np.float64]

# By the end of a case's name, the figure that has an average.
AVERAGED = {"prec": "precision", "rec": "recall", "f1": "f1", "jaccard": "jaccard"}
PLAIN = {"ml_hamming": "hamming_loss", "ml_subset": "subset_accuracy"}
AREAS = ("mc_auc_ovr", "mc_map", "ml_auc", "ml_map")
# No figures of these metrics: tests/expected.py says why; test_curves_of_real_data.py has the loss.
LEFT = ("mc_f1_of_macro", "mc_log_loss", "ml_lrap", "ml_coverage", "ml_rankloss")


def rows(data: Path, name: str) -> tuple[Table, Table]:
    """The true class, or a flag for each label, and the scores of all."""
    with (data / f"{name}.csv").open(encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    if name == "digits":
        truth = np.array([int(row["y"]) for row in records])
        return truth, np.array([[float(row[f"p{k}"]) for k in range(10)] for row in records])
    flags = [[float(row[f"y{k}"]) for k in range(14)] for row in records]
    return np.array(flags), np.array([[float(row[f"s{k}"]) for k in range(14)] for row in records])


def cases(data: Path, name: str) -> list[Case]:
    return [case for case in cases_of(data, name) if case["metric"].startswith(("mc_", "ml_"))]


def figure(result: Any, name: str, params: Mapping[str, Any]) -> object:
    if name[3:] in AVERAGED:
        return getattr(result, AVERAGED[name[3:]])(params["average"], zero_division=0)
    if name == "mc_kappa" and params["weights"] != "none":
        return result.weighted_kappa(params["weights"])
    if name == "mc_topk":
        return result.top_k_accuracy(params["k"])
    if name == "mc_confusion":
        return np.trace(result.matrix)
    return getattr(result, PLAIN.get(name, name.removeprefix("mc_")))


@pytest.mark.parametrize("name", ["digits", "yeast"])
def test_every_figure_of_the_counts(data: Path, name: str) -> None:
    metric = MulticlassConfusion(10, top_k=(2, 3)) if name == "digits" else MultilabelConfusion(14)
    metric.update(*rows(data, name))
    result = metric.compute()
    passed = 0
    for case in cases(data, name):
        if case["metric"] in (*LEFT, *AREAS):
            continue
        value = figure(result, case["metric"], case.get("params") or {})
        assert value == case["value"], case["id"]
        if case["metric"] == "mc_confusion":
            assert result.matrix.tolist() == case["matrix"]
        passed += 1
    assert passed == 18
    if isinstance(result, ClassRates):
        assert result.top_k_ties(2) == result.top_k_ties(3) == 0


@pytest.mark.parametrize(("name", "n", "width"), [("digits", 3, 0.001), ("yeast", 6, 0.02)])
def test_every_area(data: Path, name: str, n: int, width: float) -> None:
    truth, scores = rows(data, name)
    exact, in_buckets = (MulticlassAUC(scores.shape[1], exact=flag) for flag in (True, False))
    exact.update(truth, scores)
    in_buckets.update(truth, scores)
    flags = truth[:, None] == np.arange(10) if name == "digits" else truth == 1
    precisions = brute.average_precisions(flags, scores)
    means = {
        "macro": brute.mean(precisions, [1] * len(precisions), math.nan),
        "weighted": brute.mean(precisions, flags.sum(axis=0).tolist(), math.nan),
        "micro": brute.average_precisions(flags.reshape(-1, 1), scores.reshape(-1, 1))[0],
    }
    passed = 0
    for case in cases(data, name):
        average = (case.get("params") or {}).get("average", "macro")
        if case["metric"] not in AREAS or average == "samples":
            continue
        view = "ap" if case["metric"].endswith("map") else "auc"
        value, near = (getattr(m.compute(), view)(average) for m in (exact, in_buckets))
        if view == "auc":
            assert value == case["value"], case["id"]
        else:  # no fraction is given, and the file's float is a sum of floats
            assert value == pytest.approx(case["value"], rel=2**-52), case["id"]
            mean = means[average]
            assert mean is not None and value == float(mean), case["id"]
        assert isinstance(near, Bounded)
        assert near.low <= case["value"] <= near.high, case["id"]
        assert near.width < width
        passed += 1
    assert passed == n


def test_each_class_of_digits_against_the_rest(data: Path) -> None:
    metric = MulticlassAUC(10, exact=True)
    metric.update(*rows(data, "digits"))
    curves, passed = metric.compute().curves, 0
    for case in cases_of(data, "digits"):
        name, where = case["metric"], case.get("where") or {}
        if name in ("auc", "gini", "ap", "pr_auc_trapezoid", "ks"):
            value = getattr(curves[int(where["positive"].removeprefix("y="))], name)
            assert value == pytest.approx(case["value"], rel=2**-52), case["id"]
            passed += 1
    assert passed == 5


def test_the_mean_over_rows_of_their_areas_is_that_of_grouped_auc(data: Path) -> None:
    truth, scores = rows(data, "yeast")
    metric = GroupedAUC(weight="uniform", score_type="float64")
    users = np.repeat(np.arange(len(truth)), 14)
    metric.update(truth.reshape(-1), scores.reshape(-1), groups=users)
    [case] = [c for c in cases(data, "yeast") if c["id"].startswith("yeast/ml_auc/samples")]
    assert metric.compute().gauc == case["value"]
