"""Weights of rows: real, huge and rounded ones, and those that change nothing."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Bounded,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    Regression,
    SettingsError,
    StateError,
)
from streammetrics.results import counts_of, views_of
from tests.expected import cases_of, same_result

TENTH = Fraction(1, 10)
# Each with the number of cells in which it counts a row.
METRICS = {
    "BinaryConfusion": (BinaryConfusion(), 1),
    "HistogramAUC": (HistogramAUC(), 1),
    "ExactAUC": (ExactAUC(), 1),
    "Calibration": (Calibration(), 1),
    "Regression": (Regression(), 1),
    "MulticlassConfusion": (MulticlassConfusion(2, top_k=(1, 2)), 2),
    "MultilabelConfusion": (MultilabelConfusion(2), 2),
    "MulticlassAUC": (MulticlassAUC(2), 2),
    "MulticlassAUC, exact": (MulticlassAUC(2, exact=True), 2),
    "GroupedAUC": (GroupedAUC(), 1),
    "GroupedAUC, float64": (GroupedAUC(score_type="float64", weight="positives"), 1),
    "GroupedAUC, grid": (GroupedAUC(grid="equal", resolution=2, weight="uniform"), 1),
}
each_metric = pytest.mark.parametrize(("empty", "cells"), METRICS.values(), ids=METRICS)


FIGURES = (
    *("accuracy", "kappa", "matrix", "subset_accuracy", "counts", "scores", "auc", "support"),
    *("bins", "squares", "hits", "losses", "mae", "mse", "rmse", "r2", "absolute"),
    *("gauc", "groups", "groups_kept", "positives"),
)


def columns(empty: Any, n: int) -> dict[str, Any]:
    """Rows of two classes, of which each metric here takes some form."""
    rng = np.random.default_rng(3)
    if not isinstance(empty, MulticlassConfusion | MultilabelConfusion | MulticlassAUC):
        plain = {"labels": rng.integers(0, 2, n), "scores": rng.random(n, np.float32).round(2)}
        of_groups = isinstance(empty, GroupedAUC)
        return {**plain, "groups": np.arange(n) % 7} if of_groups else plain
    scores = rng.random((n, 2), np.float32).round(2)
    if isinstance(empty, MulticlassConfusion):
        return {"labels": rng.integers(0, 2, n), "predictions": scores}
    return {"labels": rng.integers(0, 2, (n, 2)), "scores": scores}


def taken(rows: Mapping[str, Any], indices: Any) -> dict[str, Any]:
    return {name: column[indices] for name, column in rows.items()}


def changed(empty: Any, **settings: object) -> Any:
    return type(empty)(**{**empty.settings(), **settings})


def fed(metric: Any, rows: Mapping[str, Any], **more: Any) -> Any:
    state = metric.empty()
    state.update(**rows, **more)
    return state


def figures(result: Any) -> dict[str, Any]:
    """Every figure that repeating rows leaves as it is."""
    views = {name: getattr(result, name) for name in FIGURES if hasattr(result, name)}
    if hasattr(result, "top_k_ties"):
        views |= {"top_k": (result.top_k_accuracy(1), result.top_k_ties(1))}
    if hasattr(result, "curves"):
        averages = ("macro", "weighted", "micro", None)
        views["auc"] = [(result.auc(average), result.ap(average)) for average in averages]
    if hasattr(result, "subset_accuracy"):
        views["f1"] = result.f1("samples")
    return {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in views.items()}


@each_metric
def test_many_weighted_rows_are_those_rows_repeated(empty: Any, cells: int) -> None:
    n = 20_000  # more than a chunk of the kernels at once
    rows, weights = columns(empty, n), np.random.default_rng(9).integers(0, 4, n)
    state, repeated = empty.empty(), empty.empty()
    for batch in np.array_split(np.arange(n), [10, 50, 9000, 9001]):
        state.update(**taken(rows, batch), weights=weights[batch])
    repeated.update(**taken(rows, np.repeat(np.arange(n), weights)))
    result, expected = state.compute(), repeated.compute()
    assert result.rows == np.count_nonzero(weights) < expected.rows == result.weight_units
    assert figures(result) == figures(expected)


@each_metric
def test_weights_of_one_are_no_weights_and_rows_of_weight_zero_are_ignored(
    empty: Any, cells: int
) -> None:
    rows = columns(empty, 300)
    plain, ones, tenths = empty.empty(), empty.empty(), changed(empty, weight_unit="1/10")
    plain.update(**rows)
    for i in range(0, 300, 50):  # small batches of both kinds are buffered together
        batch = taken(rows, slice(i, i + 50))
        ones.update(**batch, weights=None if i % 100 else np.ones(50))
        ones.update(**batch, weights=np.zeros(50))
    assert ones == plain
    tenths.update(**taken(rows, slice(100)))
    tenths.update(**taken(rows, slice(100, 300)), weights=np.ones(200, np.int8))
    plain_result, scaled_result = plain.compute(), tenths.compute()
    assert (plain_result.rows, plain_result.weight, plain_result.weight_units) == (300, 300, None)
    assert (scaled_result.rows, scaled_result.weight, scaled_result.weight_units) == (
        300,
        300,
        3000,
    )
    assert counts_of(scaled_result)["weight_units"] == 3000 and "weight_units" not in counts_of(
        plain_result
    )
    assert plain_result != scaled_result and scaled_result == tenths.copy().compute()


@each_metric
def test_all_weights_of_a_state_together_stay_below_two_to_the_63(empty: Any, cells: int) -> None:
    most = 2**63 // cells
    state, rows = empty.empty(), columns(empty, 2)
    state.update(**taken(rows, [0]), weights=[most // 2])
    state.update(**taken(rows, [1]), weights=[most // 2 - 1])
    before = state.to_bytes()
    for weights in ([most // 2, 1], [most - 1, most - 1]):
        with pytest.raises(StateError, match="weight quanta"):
            state.update(**rows, weights=weights)
    with pytest.raises(StateError, match="weight quanta"):
        state.merge(state.copy())
    assert state.to_bytes() == before
    back = type(empty).from_bytes(before)
    assert back == state
    assert same_result(back.compute(), state.compute())
    assert back.compute().weight_units == most - 1


@each_metric
def test_a_unit_of_weight_is_a_whole_number_or_a_fraction(empty: Any, cells: int) -> None:
    assert changed(empty, weight_unit="1/10") == changed(empty, weight_unit=TENTH)
    assert changed(empty, weight_unit=1) == empty != changed(empty, weight_unit=2)
    with pytest.raises(SettingsError, match='weight_unit="1/10"'):
        changed(empty, weight_unit=0.1)
    with pytest.raises(InputError, match="not a multiple of 2"):
        changed(empty, weight_unit=2).update(**columns(empty, 2))


def values(result: object) -> dict[str, Any]:
    """Every view, with its certain bounds; nan as a text, which equals itself."""
    views = {
        name: (x.value, x.low, x.high) if isinstance(x, Bounded) else x
        for name, x in views_of(result).items()
    }
    return {name: "nan" if x != x else x for name, x in views.items()}


@each_metric
def test_counts_go_on_to_2_to_the_63_and_figures_stay_as_they_are(empty: Any, cells: int) -> None:
    state = fed(empty, columns(empty, 20))
    small, doublings = state.compute(), 0
    with pytest.raises(StateError, match="at most"):
        while True:
            state = state + state
            doublings += 1
    assert 20 * cells << doublings < 1 << 63 <= 20 * cells << doublings + 1
    huge = state.compute()
    assert huge.rows == 20 << doublings
    texts, expected = (
        {name: repr(float(view)) for name, view in views_of(result).items()}
        for result in (huge, small)
    )
    assert texts == expected  # but for bounds, which of few rows may be closer
    assert type(state).from_bytes(state.to_bytes()) == state


@each_metric
def test_rounded_weights_give_the_figures_of_what_they_are_rounded_to(
    empty: Any, cells: int
) -> None:
    rows, thirds = columns(empty, 60), np.arange(60) % 10  # of a third of a unit: 0 to 3 units
    exact = fed(changed(empty, weight_unit="1/4"), rows, weights=(thirds + 1) // 3 / 4).compute()
    rounding = changed(empty, weight_unit="1/4", round_weights=True)
    result = fed(rounding, rows, weights=thirds / 12).compute()
    assert values(result) == values(exact) and result.weight == exact.weight
    assert result.rows_rounded == np.count_nonzero(thirds % 3)  # 36, of which 6 weigh no unit
    assert result.rounded_by_at_most == Fraction(1, 8)
    assert exact.rows_rounded is None and exact.rounded_by_at_most is None
    assert counts_of(result) == {**counts_of(exact), "rows_rounded": 36}
    assert (result == exact) is False


@each_metric
def test_weights_that_need_no_rounding_leave_the_intervals(empty: Any, cells: int) -> None:
    rows = columns(empty, 60)
    rounding = fed(changed(empty, round_weights=True), rows)
    result, exact = rounding.compute(), fed(empty, rows).compute()
    assert (result.rows_rounded, result.rounded_by_at_most) == (0, Fraction(1, 2))
    assert values(result) == values(exact)
    assert str(result.interval()) == str(exact.interval())
    with pytest.raises(SettingsError):
        rounding.merge(empty)
    rounding.update(**rows, weights=np.full(60, 1.25))
    if not isinstance(empty, GroupedAUC):  # groups are independent whatever their rows weigh
        assert not rounding.compute().interval().defined


@each_metric
def test_only_round_weights_takes_weights_that_are_no_multiples(empty: Any, cells: int) -> None:
    rows = columns(empty, 2)
    with pytest.raises(SettingsError, match=r"\.round_weights.*True or False"):
        changed(empty, round_weights=1)
    with pytest.raises(InputError, match="round_weights=True"):
        fed(empty, rows, weights=[1, math.pi])
    with pytest.raises(InputError, match="at least 0"):
        fed(changed(empty, round_weights=True), rows, weights=[1, -0.25])


def test_weighted_figures_of_higgs_are_those_that_others_computed(data: Path) -> None:
    with (data / "higgs500.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = ("label", "score", "weight")
    columns = {f"{name}s": [float(row[name]) for row in rows] for name in names}
    cases = [case for case in cases_of(data, "higgs500") if "_weighted" in case["id"]]
    exact, histogram = ExactAUC(weight_unit=TENTH), HistogramAUC(weight_unit=TENTH)
    for metric in (exact, histogram):
        metric.update(**columns)
    curve, between = exact.compute(), histogram.compute()
    assert (curve.rows, curve.weight) == (500, sum(Fraction(str(w)) for w in columns["weights"]))
    passed = 0
    for case in cases:
        name, value = case["metric"], case["value"]
        if name in ("auc", "ap"):
            assert getattr(curve, name) == pytest.approx(value, rel=4e-16 if name == "ap" else 0)
            bounds = getattr(between, name)
            assert isinstance(bounds, Bounded) and bounds.low <= value <= bounds.high
        elif name in ("accuracy", "precision", "recall"):
            rates = BinaryConfusion(threshold=case["params"]["threshold"], weight_unit=TENTH)
            rates.update(**columns)
            assert getattr(rates.compute(), name) == value, case["id"]
        else:
            continue
        passed += 1
    assert passed >= 8
