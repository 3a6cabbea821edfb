"""Groups of real data and of worked examples: the values that others computed."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from streammetrics import Bounded, ExactAUC, GroupedAUC
from tests.expected import cases_of, examples_of

Case = Mapping[str, Any]
Row = tuple[str, int, float]  # group, label, score
WEIGHTS = {"views": "impressions", "clicks": "positives", "one": "uniform"}


def clicks(data: Path) -> Callable[[Case], list[Row]]:
    """The events that a case is about."""
    lines = (data / "obd_men_events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]

    def rows_of(case: Case) -> list[Row]:
        where = case.get("where", {})
        matches = [e for e in events if all(e[k] == v for k, v in where.items())]
        return [(e["user"], e["label"], e["score"]) for e in matches]

    return rows_of


def graded(data: Path) -> Callable[[Case], list[Row]]:
    """The lists of grades that a case is about, as rows of 0 and 1."""
    with (data / "ltr_test.csv").open(newline="") as file:
        items = list(csv.DictReader(file))

    def rows_of(case: Case) -> list[Row]:
        where, params = case.get("where", {}), case.get("params", {})
        least = int(params.get("rel", where.get("positive", "rel>=1").removeprefix("rel>=")))
        score = where.get("score_field", "score")
        return [(i["qid"], int(int(i["rel"]) >= least), float(i[score])) for i in items]

    return rows_of


# How many cases there are of each metric.
SOURCES = {
    "obd_men_events": (clicks, {"gauc": 18, "gauc_groups": 6}),
    "ltr_test": (graded, {"gauc": 6, "gauc_groups": 2, "mean_list_auc": 2}),
}


def cases(data: Path, source: str) -> list[Case]:
    source_cases = cases_of(data, source)
    return [c for c in source_cases if c["metric"] in ("gauc", "gauc_groups", "mean_list_auc")]


def fed(rows: Sequence[Row], metric: GroupedAUC) -> GroupedAUC:
    groups, labels, scores = zip(*rows, strict=True)
    metric.update(labels, scores, groups=groups)
    return metric


@pytest.mark.parametrize(("ids", "score_type"), [("hashed", "float32"), ("exact", "float64")])
@pytest.mark.parametrize("source", SOURCES)
def test_every_case_of_groups_has_the_value_that_others_computed(
    source: str, ids: str, score_type: str, data: Path
) -> None:
    load, counts = SOURCES[source]
    rows_of, group_cases = load(data), cases(data, source)
    assert Counter(c["metric"] for c in group_cases) == counts
    for case in group_cases:
        weight = WEIGHTS[case.get("params", {}).get("weight", "one")]
        metric = GroupedAUC(weight=weight, ids=ids, score_type=score_type)
        result = fed(rows_of(case), metric).compute()
        if case["metric"] == "gauc_groups":
            assert (result.groups_kept, result.rows_kept) == (case["value"], case["events_used"])
            dropped = (result.groups_one_class, result.rows_one_class)
            assert dropped == (case["dropped_one_class"], case["events_dropped"])
        else:
            exact = Fraction(case["exact"])
            assert result.gauc == case["value"] == float(exact), case["id"]


@pytest.mark.parametrize(("resolution", "width"), [(8, 0.1), (0, 1.0)])
def test_a_grid_bounds_every_real_gauc(resolution: int, width: float, data: Path) -> None:
    rows_of = clicks(data)
    for case in cases(data, "obd_men_events"):
        if case["metric"] == "gauc":
            weight = WEIGHTS[case["params"]["weight"]]
            metric = GroupedAUC(weight=weight, ids="exact", grid="relative", resolution=resolution)
            value = fed(rows_of(case), metric).compute().gauc
            assert isinstance(value, Bounded)
            assert value.low <= Fraction(case["exact"]) <= value.high, case["id"]
            assert 0 < value.width < width


def test_worked_examples_of_groups(data: Path) -> None:
    examples = {e["id"]: e for e in examples_of(data) if "simpson" in e["id"]}
    areas: dict[str, Fraction] = {}
    curves = {}
    for name, example in examples.items():
        if example["metric"] not in ("auc", "gauc"):
            continue
        inputs = example["inputs"]
        labels, scores = inputs["y"], inputs["score"]
        areas[name] = Fraction(example["exact"])
        if example["metric"] == "auc":
            plain = ExactAUC()
            plain.update(labels, scores)
            curves[name] = plain.compute()
            assert curves[name].auc == example["value"]
            continue
        for weight in WEIGHTS.values():
            metric = GroupedAUC(ids="exact", weight=weight)
            metric.update(labels, scores, groups=inputs["user"])
            assert metric.compute().gauc == example["value"] == 1.0
    assert sorted(map(str, areas.values())) == ["1", "1", "2/3", "5/6"]
    a, b = (curves[f"001/simpson_auc_model_{model}"] for model in "AB")
    rela_impr = examples["001/relaimpr_simpson"]
    assert 100 * a.rela_impr(b) == rela_impr["value"] == 100.0
