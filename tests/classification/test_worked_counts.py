"""Counts of the worked examples of the literature, and their rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streammetrics import BinaryConfusion
from streammetrics.results.rates import Rates
from tests.expected import examples_of

Example = Mapping[str, Any]


@pytest.fixture(scope="module")
def examples(data: Path) -> Mapping[str, Example]:
    found = examples_of(data)
    return {example["id"]: example for example in found}


def rates(*, tp: int = 0, fp: int = 0, fn: int = 0, tn: int = 0) -> Rates:
    metric = BinaryConfusion()
    metric.update([1, 0, 1, 0], [1.0, 1.0, 0.0, 0.0], weights=[tp, fp, fn, tn])
    found = metric.compute()
    assert isinstance(found, Rates)
    assert (found.tp, found.fp, found.fn, found.tn) == (tp, fp, fn, tn)
    return found


def test_80_of_100_carps_are_caught(examples: Mapping[str, Example]) -> None:
    example = examples["002/recall_carp"]
    assert rates(**example["inputs"]).recall == example["value"]


def test_who_never_finds_anything_may_be_accurate(examples: Mapping[str, Example]) -> None:
    accuracy, recall = (examples[f"004/imbalanced_{view}"] for view in ("accuracy", "recall"))
    assert accuracy["inputs"] == recall["inputs"]
    found = rates(**accuracy["inputs"])
    assert (found.accuracy, found.recall) == (accuracy["value"], recall["value"])
    assert math.isnan(found.precision)


def test_f_has_its_parentheses(examples: Mapping[str, Example]) -> None:
    example = examples["002/f_alpha_with_parentheses"]
    found, inputs = rates(tp=1, fp=1, fn=1), example["inputs"]
    assert (found.precision, found.recall) == (inputs["precision"], inputs["recall"])
    assert found.f_beta(inputs["alpha_of_seed_002_is_beta"]) == example["value"]
    assert found.f1 == found.f_alpha(0.5) == example["value"]
    p, r = found.precision, found.recall
    assert (1 + p * r) / (p + r) == example["value_of_seed_formula_as_printed"]


def test_f_beta_is_f_alpha(examples: Mapping[str, Example]) -> None:
    example = examples["004/f_beta_equals_f_alpha"]
    found, inputs = rates(tp=1, fp=1), example["inputs"]
    assert (found.precision, found.recall) == (inputs["precision"], inputs["recall"])
    assert found.f_beta(inputs["beta"]) == found.f_alpha(inputs["alpha"]) == example["value"]
